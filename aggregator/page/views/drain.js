/* The drain plan: the fleet before and after, verdicts with reasons and what helps, moves, and the history. */
import { useApi } from "../api.js";
import * as format from "../format.js";
import { html, useMemo } from "../html.js";
import { Check, Choice, NodeLink, Tile, Waiting, Word } from "../parts.js";
import { setParams } from "../route.js";
import { Table } from "../table.js";
import { movesOf, Wave } from "./wave.js";

const KINDS = { drain: "good", drained: "good", unneeded: "warn", inDeletion: "warn", notExamined: "warn", needed: "plain", kept: "plain" };

function Verdicts({ verdicts, chosen }) {
	return html`<div class="chips" role="group" aria-label="Verdicts">
		${Object.entries(verdicts)
			.filter(([, count]) => count > 0)
			.map(
				([verdict, count]) =>
					html`<button type="button" key=${verdict} aria-pressed=${chosen === verdict} onClick=${() => setParams({ verdict: chosen === verdict ? "" : verdict })}>
						<${Word} kind=${KINDS[verdict] ?? "plain"}>${verdict}<//> ${count}
					</button>`,
			)}
	</div>`;
}

/* --- tables */

const u = (i) => i.utilization ?? {};

function Reasons({ item }) {
	const [first, ...more] = item.reasons ?? [];
	if (!first) return "-";
	const one = (r) => html`<span key=${r.text}><b>${r.code}</b> ${r.text}${r.unblock && html`<br /><span class="note">Helps: ${r.unblock}</span>`}</span>`;
	if (!more.length) return one(first);
	return html`${one(first)}
		<details>
			<summary>${format.plural(more.length, "more reason")}</summary>
			${more.map((r) => html`<p key=${r.text}>${one(r)}</p>`)}
		</details>`;
}

const NODES = [
	{ id: "name", title: "NODE", value: (i) => i.name, cell: (i) => html`<${NodeLink} name=${i.name} />` },
	{ id: "verdict", title: "VERDICT", value: (i) => i.verdict, cell: (i) => html`<${Word} kind=${KINDS[i.verdict] ?? "plain"}>${i.verdict}<//>` },
	{ id: "since", title: "SINCE", help: "From when on the node has been unneeded", value: (i) => i.since ?? "", cell: (i) => (i.since ? format.time(i.since) : "-") },
	{ id: "pods", title: "PODS", help: "Pods that would move + pods of DaemonSets", number: true, value: (i) => i.pods, cell: (i) => `${i.pods}${i.daemonPods ? "+" + i.daemonPods : ""}` },
	{ id: "requested", title: "REQUESTED", help: "The larger share of CPU and memory", number: true, value: (i) => u(i).requested, cell: (i) => format.percent(u(i).requested) },
	{ id: "used", title: "USED", help: "The same of real use", number: true, value: (i) => u(i).used, cell: (i) => format.percent(u(i).used) },
	{ id: "reason", title: "REASON", value: (i) => i.reasons?.[0]?.code ?? "", cell: (i) => html`<${Reasons} item=${i} />` },
];

const MOVES = [
	{ id: "from", title: "FROM", value: (m) => m.from, cell: (m) => html`<${NodeLink} name=${m.from} />` },
	{ id: "pod", title: "POD", value: (m) => `${m.namespace}/${m.name}` },
	{ id: "to", title: "TO", value: (m) => m.to, cell: (m) => html`<${NodeLink} name=${m.to} />` },
	{ id: "cpu", title: "CPU-REQ", number: true, value: (m) => m.cpuMillicores, cell: (m) => format.cpu(m.cpuMillicores) },
	{ id: "memory", title: "MEM-REQ", number: true, value: (m) => m.memoryBytes, cell: (m) => format.bytes(m.memoryBytes) },
];

const after = (d, name, print) => `${print(d[name]?.before)} → ${print(d[name]?.after)} of ${print(d[name]?.limit)}`;
const TARGETS = [
	{ id: "node", title: "DESTINATION", value: (d) => d.node, cell: (d) => html`<${NodeLink} name=${d.node} />` },
	{ id: "pods", title: "PODS", number: true, value: (d) => d.pods },
	{ id: "cpu", title: "CPU, PREDICTED", number: true, value: (d) => d.cpuMillicores?.after, cell: (d) => after(d, "cpuMillicores", format.cpu) },
	{ id: "memory", title: "MEMORY, PREDICTED", number: true, value: (d) => d.memoryBytes?.after, cell: (d) => after(d, "memoryBytes", format.bytes) },
];

const HISTORY = [
	{ id: "time", title: "TIME", value: (h) => h.time, cell: (h) => format.time(h.time) },
	{ id: "node", title: "NODE", value: (h) => h.node ?? "", cell: (h) => (h.node ? html`<${NodeLink} name=${h.node} />` : "-") },
	{ id: "event", title: "EVENT", value: (h) => h.event },
	{ id: "reason", title: "REASON", value: (h) => h.reason ?? "" },
	{ id: "text", title: "TEXT", value: (h) => h.text ?? "" },
];

/* --- all of it */

function Plan({ wave, items }) {
	const moves = movesOf(items);
	return html`${moves.length > 0 &&
		html`<${Table} name="moves" caption="Moves of the wave" columns=${MOVES} rows=${moves} keyOf=${(m) => `${m.from}/${m.namespace}/${m.name}`} />`}
	${wave?.destinations?.length > 0 && html`<${Table} name="targets" caption="Destinations" columns=${TARGETS} rows=${wave.destinations} keyOf=${(d) => d.node} />`}`;
}

function sentence(plan) {
	const { verdicts = {}, wave } = plan;
	if (!verdicts.drain) return `No node may be drained now; ${verdicts.unneeded ?? 0} are unneeded and wait.`;
	const order = wave?.anyOrder ? "in any order" : "in this order";
	const names = wave?.nodes?.map((n) => n.name) ?? [];
	return `${format.plural(verdicts.drain, "node")} may be drained now, together, ${order}: ${names.slice(0, 12).join(", ")}${names.length > 12 ? ", …" : ""}.`;
}

export function Drain({ params }) {
	const source = useApi("/v1/drain?explain=true", 5);
	const history = useApi("/v1/drain/history?limit=200", 10);
	const verdict = params.get("verdict") ?? "";
	const by = params.get("by") === "used" ? "used" : "requested";
	const items = source.data?.items;
	const rows = useMemo(() => (items ?? []).filter((i) => !verdict || i.verdict === verdict), [items, verdict]);
	const head = html`<h1>Drain</h1><${Waiting} source=${source} what="the plan" />`;
	if (!source.data) return head;
	const { verdicts = {}, wave, throttled, planned } = source.data;
	return html`${head}
		<p class="lead">${sentence(source.data)}${planned ? ` Planned at ${format.time(planned)}.` : ""}</p>
		<section class="tiles" aria-label="Sums">
			<${Tile} title="May go now" value=${verdicts.drain ?? 0} note=${wave ? `${wave.emptyNodes} empty, ${format.plural(wave.pods, "pod")} move` : "no wave"} />
			<${Tile} title="Unneeded" value=${verdicts.unneeded ?? 0} note=${throttled?.held ? `${throttled.held} held back by the limit of ${throttled.nodes.limit} nodes` : "not yet, or held"} />
			<${Tile} title="Needed" value=${verdicts.needed ?? 0} note=${`${verdicts.kept ?? 0} kept as destinations`} />
			<${Tile} title="Drained" value=${verdicts.drained ?? 0} note=${`${verdicts.inDeletion ?? 0} in deletion`} />
		</section>
		<div class="controls">
			<${Choice} name="by" label="Columns" value=${by} options=${[["requested", "requested"], ["used", "really used"]]} />
			<${Check} name="moves" label="moves as lines" value=${params.get("moves") === "yes"} />
		</div>
		${items.length > 0 && html`<${Wave} items=${items} by=${by} moves=${params.get("moves") === "yes"} />`}
		<${Plan} wave=${wave} items=${items} />
		<h2>Verdicts</h2>
		<${Verdicts} verdicts=${verdicts} chosen=${verdict} />
		<${Table} name="sort" caption=${verdict ? `Nodes: ${verdict}` : "Nodes"} columns=${NODES} rows=${rows} keyOf=${(i) => i.name} first="verdict" empty="No Kubernetes API is followed, so there is no plan." />
		<${Waiting} source=${history} what="the history" />
		${history.data && html`<${Table} name="history" caption="History of decisions" columns=${HISTORY} rows=${history.data.items} keyOf=${(h) => `${h.time}${h.node}${h.event}`} first="-time" count=${20} empty="Nothing was decided yet." />`}`;
}
