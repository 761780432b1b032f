/* One node: its last 15 minutes, what it has and has promised, and its pods against their limits. */
import { useApi } from "../api.js";
import { Chart } from "../chart.js";
import * as format from "../format.js";
import { html, useMemo } from "../html.js";
import { Bar, Legend, PodLink, Tile, Waiting, Word } from "../parts.js";
import { link } from "../route.js";
import { Table } from "../table.js";

/* --- head */

function Facts({ node }) {
	const s = node.source ?? {};
	const w = node.usage?.cpuMillicores?.windows?.["5m"];
	const c = node.contention ?? {};
	const workset = node.usage?.workingSetBytes?.latest?.value;
	const parts = [node.unknownToApi ? "unknown to the API" : node.ready === false ? "NotReady" : node.ready ? "Ready" : "", node.unschedulable && "cordoned", ...(node.lifecycle ?? [])];
	return html`<section class="tiles" aria-label="The node now">
		<${Tile} title="State" value=${parts.filter(Boolean).join(", ") || s.state} note=${`${s.state}, heard ${format.age(s.ageSeconds)} ago, tier ${s.tier ?? "-"}`} />
		<${Tile}
			title="CPU"
			value=${html`${format.percent(format.share(node.usage?.cpuMillicores?.latest?.value, node.allocatable?.cpuMillicores))} <small>${format.cpuOf(node.usage?.cpuMillicores?.latest?.value, node.allocatable?.cpuMillicores)}</small>`}
			note=${w && `5 minutes: mean ${format.cpu(w.mean)}, sigma ${format.cpu(w.stddev)}, P95 ${format.cpu(w.p95)}, max ${format.cpu(w.max)}`}
		/>
		<${Tile}
			title="Working set"
			value=${html`${format.percent(format.share(workset, node.allocatable?.memoryBytes))} <small>${format.bytesOf(workset, node.allocatable?.memoryBytes)}</small>`}
			note=${`memory in use ${format.bytes(node.usage?.memoryBytes?.latest?.value)}`}
		/>
		${node.limitRatio?.declared &&
		html`<${Tile}
			title="Limits"
			value=${html`${format.percent(node.limitRatio.declared.cpu)} <small>CPU</small> ${format.percent(node.limitRatio.declared.memory)} <small>memory</small>`}
			note=${`by the kernel ${format.percent(node.limitRatio.kernel?.cpu)} and ${format.percent(node.limitRatio.kernel?.memory)} of the allocatable`}
		/>`}
		<${Tile}
			title="Waiting"
			value=${html`${format.percent(c.cpu)} <small>CPU</small> ${format.percent(c.memory)} <small>memory</small>`}
			note=${`throttled ${format.percent(c.throttledRatio)}, OOM kills ${c.oomKills ?? "-"} in 5 minutes`}
		/>
	</section>`;
}

const lines = (node, name) => [
	{ kind: "capacity", title: "capacity", value: node.capacity?.[name] },
	{ kind: "allocatable", title: "allocatable", value: node.allocatable?.[name] },
	{ kind: "requests", title: "requests", value: node.requests?.[name] },
	{ kind: "limits", title: "limits", value: node.limits?.[name] },
];

/* --- pods */

const use = (p, name) => p.usage?.[name]?.latest?.value;

/* Use against request and limit; the scale ends at the greatest of them. */
function UseBar({ pod, name, usage }) {
	const [used, request, most] = [use(pod, usage), pod.requests?.[name], pod.limits?.[name]];
	const end = Math.max(used ?? 0, request ?? 0, most ?? 0) || 1;
	return html`<${Bar}
		fills=${[[(used ?? 0) / end, most && used > 0.95 * most ? "full" : "used"]]}
		marks=${[
			[request / end, "request", "request"],
			[most ? most / end : NaN, "limits", "limit"],
		]}
	/>`;
}

/* The kernel's limits where they are not those of the spec. */
function mismatch(p) {
	const m = p.limitMismatch ?? {};
	return [
		m.cpuMillicores && `CPU ${format.limit(m.cpuMillicores.kernel, format.cpu)}`,
		m.memoryBytes && `memory ${format.limit(m.memoryBytes.kernel, format.bytes)}`,
	]
		.filter(Boolean)
		.join(", ");
}

const amount = (id, title, value, print, help) => ({ id, title, help, number: true, value, cell: (p) => print(value(p)) });

const COLUMNS = [
	{ id: "name", title: "POD", value: (p) => `${p.namespace ?? ""}/${p.name}`, cell: (p) => html`<${PodLink} pod=${p} />` },
	{ id: "phase", title: "STATUS", value: (p) => p.phase ?? "-" },
	amount("cpu", "CPU", (p) => use(p, "cpuMillicores"), format.cpu, "Newest use"),
	{ id: "cpubar", title: "OF REQUEST AND LIMIT", value: (p) => use(p, "cpuMillicores"), cell: (p) => html`<${UseBar} pod=${p} name="cpuMillicores" usage="cpuMillicores" />` },
	amount("sigma", "SIGMA", (p) => p.usage?.cpuMillicores?.windows?.["5m"]?.stddev, format.cpu, "Standard deviation in 5 minutes"),
	amount("cpureq", "CPU-REQ", (p) => p.requests?.cpuMillicores, format.cpu),
	amount("cpulim", "CPU-LIM", (p) => p.limits?.cpuMillicores, (v) => format.limit(v, format.cpu)),
	{
		id: "throttled",
		title: "THROTTLED",
		help: "Share of periods that hit the CPU limit in 5 minutes",
		number: true,
		value: (p) => p.contention?.throttledRatio,
		cell: (p) => html`<${Word} kind=${p.contention?.throttledRatio > 0.25 ? "bad" : p.contention?.throttledRatio > 0.05 ? "warn" : "plain"}>${format.percent(p.contention?.throttledRatio)}<//>`,
	},
	amount("workset", "WORKSET", (p) => use(p, "workingSetBytes"), format.bytes, "Memory without file pages that can be dropped"),
	{ id: "membar", title: "OF REQUEST AND LIMIT", value: (p) => use(p, "workingSetBytes"), cell: (p) => html`<${UseBar} pod=${p} name="memoryBytes" usage="workingSetBytes" />` },
	amount("memreq", "MEM-REQ", (p) => p.requests?.memoryBytes, format.bytes),
	amount("memlim", "MEM-LIM", (p) => p.limits?.memoryBytes, (v) => format.limit(v, format.bytes)),
	{ id: "kernel", title: "KERNEL", help: "Limits that the kernel enforces, where the pod declares others", value: mismatch, cell: (p) => mismatch(p) && html`<${Word} kind="warn">${mismatch(p)}<//>` },
	amount("oom", "OOM", (p) => p.contention?.oomKills, (v) => v ?? "-", "Kills for want of memory in 5 minutes"),
];

/* Without a Kubernetes API no workload has requests and limits of a spec. */
const OF_SPECS = new Set(["phase", "cpubar", "cpureq", "cpulim", "membar", "memreq", "memlim", "kernel"]);

function Workloads({ items }) {
	const cluster = items.some((p) => p.requests);
	const columns = useMemo(() => (cluster ? COLUMNS : COLUMNS.filter((c) => !OF_SPECS.has(c.id))), [cluster]);
	return html`${cluster &&
		html`<${Legend}
			title="Bars"
			steps=${[
				["used", "use"],
				["full", "use near the limit"],
				["mark-request", "request"],
				["mark-limits", "limit"],
			]}
		/>`}
		<${Table}
			name="sort"
			caption=${cluster ? "Pods of the node" : "Workloads of the machine"}
			columns=${columns}
			rows=${items}
			keyOf=${(p) => `${p.namespace}/${p.name}/${p.uid}`}
			first="-cpu"
			empty="No pods and no other workloads."
		/>`;
}

/* --- all of it */

/* Both charts of a node or a pod. The history may be missing: nothing was measured yet. */
export function Charts({ source, cpuLines, memoryLines }) {
	const waiting = html`<${Waiting} source=${source} what="the last 15 minutes" />`;
	if (!source.data?.items.length) return waiting;
	return html`${waiting}<div class="charts">
		<${Chart} title="CPU" history=${source.data} measure="cpuMillicores" print=${format.cpu} lines=${cpuLines} />
		<${Chart} title="Working set" history=${source.data} measure="workingSetBytes" print=${format.bytes} lines=${memoryLines} />
	</div>`;
}

export function Node({ parts: [name] }) {
	const path = `/v1/nodes/${encodeURIComponent(name ?? "")}`;
	const source = useApi(path);
	const history = useApi(path + "/history");
	const pods = useApi(`/v1/pods?node=${encodeURIComponent(name ?? "")}&limit=5000`);
	const head = html`<p class="path"><a href=${link(["nodes"])}>Nodes</a> /</p>
		<h1>${name}</h1>
		<${Waiting} source=${source} what="the node" />`;
	if (!source.data) return head;
	const node = source.data;
	return html`${head}
		<p class="labels">${Object.entries(node.labels ?? {}).map(([k, v]) => html`<span key=${k}>${k}=${v}</span>`)}</p>
		<${Facts} node=${node} />
		<${Charts} source=${history} cpuLines=${lines(node, "cpuMillicores")} memoryLines=${lines(node, "memoryBytes")} />
		<${Waiting} source=${pods} what="pods" />
		${pods.data && html`<${Workloads} items=${pods.data.items} />`}`;
}
