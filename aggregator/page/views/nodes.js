/* All nodes at a glance: sums, what is wrong, one box a node, and the same as a table. */
import { useApi } from "../api.js";
import { Picture } from "../canvas.js";
import * as fleet from "../fleet.js";
import * as format from "../format.js";
import { html, useCallback, useMemo } from "../html.js";
import { Bar, Choice, Field, Legend, NodeLink, Tile, Waiting, Word } from "../parts.js";
import { pick } from "../route.js";
import { Table } from "../table.js";
import { drawBoxes, hitBox, layoutBoxes, stepBox } from "./boxes.js";

/* --- sums */

function Resource({ title, total, name, print }) {
	const measured = total.measured?.allocatable ?? total.allocatable ?? total.capacity ?? {};
	const used = (total.usage?.[name === "cpuMillicores" ? name : "workingSetBytes"] ?? total.usage?.[name])?.latest?.value;
	const whole = total.allocatable?.[name] ?? measured[name];
	const requests = total.requests?.[name];
	const limits = total.limits?.[name];
	const most = Math.max(1, format.share(limits, whole) || 0);
	const note = requests !== undefined && `requests ${format.percent(format.share(requests, whole))}, limits ${format.percent(format.share(limits, whole))}`;
	return html`<${Tile} title=${title} value=${html`${format.percent(format.share(used, measured[name]))} <small>${print(used, measured[name])}</small>`} note=${note}>
		<${Bar}
			most=${most}
			fills=${[
				[format.share(requests, whole), "requests"],
				[format.share(used, measured[name]), "used"],
			]}
			marks=${[
				[1, "whole", "allocatable"],
				[format.share(limits, whole), "limits", "limits"],
			]}
		/>
	<//>`;
}

function Sums({ total }) {
	const s = total.source ?? {};
	const unheard = [
		[s.late, "late"],
		[s.expired, "expired"],
		[s.none, "never heard"],
	].filter(([count]) => count);
	const ready = total.knownToApi ? `${total.ready} of ${total.knownToApi} ready, ${total.unschedulable} cordoned` : "no Kubernetes API";
	return html`<section class="tiles" aria-label="Sums of all nodes">
		<${Tile} title="Nodes" value=${total.nodes} note=${ready} />
		<${Resource} title="CPU" total=${total} name="cpuMillicores" print=${format.cpuOf} />
		<${Resource} title="Memory" total=${total} name="memoryBytes" print=${format.bytesOf} />
		<${Tile}
			title="Agents"
			value=${html`${s.fresh} <small>heard within 30s</small>`}
			note=${unheard.length ? unheard.map(([count, text]) => `${count} ${text}`).join(", ") : "none is silent"}
		/>
		${total.pods !== undefined && html`<${Tile} title="Pods" value=${total.pods} note=${`${total.unlimitedContainers?.memory ?? "-"} containers without a memory limit`} />`}
	</section>`;
}

/* --- what is wrong */

const HIGHEST = 8;

function Wrong({ children }) {
	const source = useApi("/v1/doctor", 10);
	const found = source.data?.checks.filter((c) => c.verdict !== "ok") ?? [];
	return html`<aside class="wrong" aria-label="What is wrong now">
		<h2>What is wrong now</h2>
		<${Waiting} source=${source} what="findings" />
		${source.data && !found.length && html`<p><${Word} kind="good">Nothing<//> of ${source.data.checks.length} checks.</p>`}
		<ul>
			${found.map(
				(c) => html`<li key=${c.what + c.detail}>
					<p><${Word} kind=${c.verdict === "fail" ? "bad" : "warn"}>${c.verdict}<//> <b>${c.what}</b>: ${c.detail}</p>
					${c.advice && html`<p class="note">${c.advice}</p>`}
				</li>`,
			)}
		</ul>
		${children}
	</aside>`;
}

/* The nodes with the greatest values of what the picture shows. */
function Highest({ nodes, metric }) {
	const known = nodes.map((n) => [metric.value(n), n]).filter(([value]) => value > 0);
	const top = known.sort((a, b) => b[0] - a[0]).slice(0, HIGHEST);
	if (!top.length) return null;
	return html`<table class="highest">
		<caption>Highest: ${metric.title}</caption>
		<tbody>
			${top.map(([value, n]) => html`<tr key=${n.name}><th scope="row"><${NodeLink} name=${n.name} /></th><td class="num">${metric.print(value)}</td></tr>`)}
		</tbody>
	</table>`;
}

/* --- the picture */

function Boxes({ groups, metric, named }) {
	const nodes = useMemo(() => groups.flatMap(([, list]) => list), [groups]);
	const names = useMemo(() => nodes.map((n) => n.name), [nodes]);
	const cells = useMemo(
		() =>
			nodes.map((n) => {
				const value = metric.value(n);
				return {
					step: n.state === "expired" || n.state === "none" ? -1 : fleet.stepOf(metric, value),
					text: metric.print(value),
					warn: n.ready === false || n.cordoned || n.unknown,
				};
			}),
		[nodes, metric],
	);
	const layout = useCallback((width) => layoutBoxes(groups, named, width), [groups, named]);
	const draw = useCallback((context, g, colours, mark) => drawBoxes(context, g, colours, cells, mark), [cells]);
	const counts = new Array(fleet.STEPS + 1).fill(0);
	for (const c of cells) counts[c.step + 1]++;
	return html`<${Picture}
			label=${`${format.plural(nodes.length, "node")}, coloured by ${metric.title}.`}
			layout=${layout}
			draw=${draw}
			hit=${hitBox}
			step=${stepBox}
			names=${names}
			tip=${(i) => fleet.describe(nodes[i])}
		/>
		<${Legend}
			title="Colours"
			steps=${[0, 1, 2, 3, 4, 5, -1].map((i) => ["step" + i, fleet.stepText(metric, i), counts[i + 1]]).concat([["corner", "not ready, cordoned or unknown to the API"]])}
		/>`;
}

/* --- the table */

function state(n) {
	const word = n.unknown ? "unknown" : n.ready === null ? "-" : n.ready ? "Ready" : "NotReady";
	return n.cordoned ? word + ",cordoned" : word;
}

const number = (id, title, help, value, print) => ({ id, title, help, number: true, value, cell: (n) => print(value(n)) });
const share = (id, title, help, value) => number(id, title, help, value, format.percent);

const NAME = { id: "name", title: "NAME", value: (n) => n.name, cell: (n) => html`<${NodeLink} name=${n.name} />` };
const MEASURED = [
	{ ...number("cpu", "CPU", "Newest use and allocatable", (n) => n.cpu), cell: (n) => format.cpuOf(n.cpu, n.cpuAllocatable) },
	share("cpup", "CPU%", "Newest CPU use by the allocatable", fleet.cpuShare),
	number("mean", "MEAN(5m)", "Mean of CPU use in 5 minutes", (n) => n.cpuMean, format.cpu),
	number("sigma", "SIGMA", "Standard deviation of CPU use in 5 minutes", (n) => n.cpuSigma, format.cpu),
	number("p95", "P95", "95th percentile of CPU use in 5 minutes", (n) => n.cpuP95, format.cpu),
	{ ...number("memory", "WORKSET", "Working set and allocatable", (n) => n.workset), cell: (n) => format.bytesOf(n.workset, n.memAllocatable) },
	share("memp", "MEM%", "Working set by the allocatable", fleet.memoryShare),
	share("waiting", "WAITING", "Share of time in which a task waited for neighbours", fleet.METRICS.contention.value),
	number("oom", "OOM", "Kills for want of memory in 5 minutes", (n) => n.oomKills, (v) => v ?? "-"),
	number("age", "AGE", "Since the newest data", (n) => n.age, format.age),
];
/* Known only where a Kubernetes API is followed. */
const PROMISED = [
	{ id: "status", title: "STATUS", value: state, cell: (n) => html`<${Word} kind=${state(n) === "Ready" ? "plain" : "warn"}>${state(n)}<//>` },
	share("cpureq", "CPU-REQ%", "CPU requests by the allocatable", fleet.METRICS.requests.value),
	share("cpulim", "CPU-LIM%", "Declared CPU limits by the allocatable", (n) => n.cpuDeclared),
	share("memlim", "MEM-LIM%", "Declared memory limits by the allocatable", (n) => n.memDeclared),
];

/* --- all of it */

export function Nodes({ params }) {
	const { source, nodes: all, keys, total } = fleet.useFleet();
	const search = params.get("q") ?? "";
	const key = params.get("group") ?? "";
	const chosen = pick(fleet.METRICS, params.get("metric")) ? params.get("metric") : "cpu";
	const nodes = useMemo(() => {
		const words = fleet.words(search);
		return words.length ? (all ?? []).filter((n) => fleet.matches(n, words)) : (all ?? []);
	}, [all, search]);
	const groups = useMemo(() => fleet.groupNodes(nodes, key), [nodes, key]);
	const cluster = total?.requests !== undefined;
	const columns = useMemo(() => (cluster ? [NAME, PROMISED[0], ...MEASURED.slice(0, 2), ...PROMISED.slice(1), ...MEASURED.slice(2)] : [NAME, ...MEASURED]), [cluster]);
	const metrics = Object.entries(fleet.METRICS).filter(([, m]) => cluster || !m.cluster);
	const head = html`<h1>Nodes</h1><${Waiting} source=${source} what="nodes" />`;
	if (!all) return head;
	return html`${head}
		<${Sums} total=${total} />
		<div class="beside">
			<section aria-label="Picture of all nodes">
				<div class="controls">
					<${Choice} name="metric" label="Colour" value=${chosen} options=${metrics.map(([id, m]) => [id, m.title])} />
					${keys.length > 0 && html`<${Choice} name="group" label="Group by" value=${key} options=${[["", "nothing"], ...keys.map((k) => [k, k])]} />`}
					<${Field} name="q" label="Search" value=${search} placeholder="name or label=value" />
				</div>
				${nodes.length ? html`<${Boxes} groups=${groups} metric=${fleet.METRICS[chosen]} named=${key !== ""} />` : html`<p class="empty">No node matches "${search}".</p>`}
			</section>
			<${Wrong}><${Highest} nodes=${nodes} metric=${fleet.METRICS[chosen]} /><//>
		</div>
		<${Table} name="sort" caption="Nodes" columns=${columns} rows=${nodes} keyOf=${(n) => n.name} />`;
}
