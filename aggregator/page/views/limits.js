/* Over-subscription: sums of limits by the allocatable, as pods declare them and as the kernel enforces them. */
import * as fleet from "../fleet.js";
import * as format from "../format.js";
import { html, useMemo } from "../html.js";
import { Bar, Check, Choice, Legend, NodeLink, Tile, Waiting, Word } from "../parts.js";
import { Table } from "../table.js";

const RESOURCES = {
	cpu: { title: "CPU", declared: "cpuDeclared", kernel: "cpuKernel", unlimited: "cpuUnlimited", requests: "cpuRequests", allocatable: "cpuAllocatable" },
	memory: { title: "Memory", declared: "memDeclared", kernel: "memKernel", unlimited: "memUnlimited", requests: "memRequests", allocatable: "memAllocatable" },
};

function RatioBar({ declared, kernel, most }) {
	return html`<${Bar}
		most=${most}
		fills=${[[declared ?? 0, declared > 2 ? "full" : declared > 1 ? "over" : "used"]]}
		marks=${[
			[1, "whole", "allocatable"],
			[kernel ?? NaN, "kernel", "by the kernel"],
		]}
	/>`;
}

const ratio = (value) => html`<${Word} kind=${value > 2 ? "bad" : value > 1 ? "warn" : "plain"}>${format.percent(value)}<//>`;

function columnsOf(r, most) {
	const requests = (n) => format.share(n[r.requests], n[r.allocatable]);
	return [
		{ id: "name", title: "NODE", value: (n) => n.name, cell: (n) => html`<${NodeLink} name=${n.name} />` },
		{ id: "declared", title: "DECLARED", help: "Sum of limits that pods declare, by the allocatable", number: true, value: (n) => n[r.declared], cell: (n) => ratio(n[r.declared]) },
		{ id: "kernel", title: "ENFORCED", help: "The same by the limits that the kernel enforces", number: true, value: (n) => n[r.kernel], cell: (n) => ratio(n[r.kernel]) },
		{ id: "bar", title: "BY THE ALLOCATABLE", value: (n) => n[r.declared], cell: (n) => html`<${RatioBar} declared=${n[r.declared]} kernel=${n[r.kernel]} most=${most} />` },
		{ id: "requests", title: "REQUESTS", number: true, value: requests, cell: (n) => format.percent(requests(n)) },
		{ id: "unlimited", title: "NO-LIMIT", help: "Containers without a limit of this resource", number: true, value: (n) => n[r.unlimited], cell: (n) => n[r.unlimited] ?? "-" },
		{ id: "pods", title: "PODS", number: true, value: (n) => n.pods, cell: (n) => n.pods ?? "-" },
	];
}

function Sum({ id, r, known, total }) {
	const over = known.filter((n) => n[r.declared] > 1).length;
	return html`<${Tile}
		title=${r.title}
		value=${html`${over} <small>of ${format.plural(known.length, "node")} over-subscribed</small>`}
		note=${`all nodes: declared ${format.percent(total.limitRatio?.declared?.[id])}, enforced ${format.percent(total.limitRatio?.kernel?.[id])}; ${total.unlimitedContainers?.[id] ?? "-"} containers without a limit`}
	/>`;
}

export function Limits({ params }) {
	const { source, nodes, total } = fleet.useFleet();
	const id = params.get("resource") === "memory" ? "memory" : "cpu";
	const r = RESOURCES[id];
	const over = params.get("over") === "yes";
	const known = useMemo(() => (nodes ?? []).filter((n) => n.cpuDeclared !== null || n.memDeclared !== null), [nodes]);
	const rows = useMemo(() => (over ? known.filter((n) => n[r.declared] > 1 || n[r.kernel] > 1) : known), [known, over, r]);
	const most = useMemo(() => rows.reduce((m, n) => Math.max(m, n[r.declared] ?? 0, n[r.kernel] ?? 0), 1), [rows, r]);
	const columns = useMemo(() => columnsOf(r, most), [r, most]);
	const head = html`<h1>Limits</h1><${Waiting} source=${source} what="nodes" />`;
	if (!nodes) return head;
	return html`${head}
		<p class="lead">Above 100% the pods of a node cannot all have what their limits allow at the same time.</p>
		<section class="tiles" aria-label="Sums of all nodes">
			${Object.entries(RESOURCES).map(([name, x]) => html`<${Sum} key=${name} id=${name} r=${x} known=${known} total=${total} />`)}
		</section>
		<div class="controls">
			<${Choice} name="resource" label="Resource" value=${id} options=${Object.entries(RESOURCES).map(([name, x]) => [name, x.title])} />
			<${Check} name="over" label="over-subscribed only" value=${over} />
		</div>
		<${Legend}
			title="Bars"
			steps=${[
				["used", "declared, up to the allocatable"],
				["over", "above it"],
				["full", "above twice of it"],
				["mark-whole", "allocatable"],
				["mark-kernel", "enforced by the kernel"],
			]}
		/>
		<${Table}
			name="sort"
			caption=${`Limits of ${r.title} by node`}
			columns=${columns}
			rows=${rows}
			keyOf=${(n) => n.name}
			first="-declared"
			empty=${known.length ? "No node is over-subscribed." : "No Kubernetes API is followed, so no limits of pods are known."}
		/>`;
}
