/* The drain plan: the fleet before and after, moves, the actuator, verdicts with reasons and what helps, and the history. */
import { post, useApi } from "../api.js";
import * as format from "../format.js";
import { html, useMemo, useState } from "../html.js";
import { Bar, Check, Choice, NodeLink, Tile, Waiting, Word } from "../parts.js";
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

/* --- the actuator: its progress, destinations as promised and as measured, requests, its pause */

const STATES = { drained: "good", done: "good", verified: "good", rolledBack: "bad", refused: "bad" };
const open = (r) => r.state === "waiting" || r.state === "taken";
const cores = (x) => format.cpu(x == null ? x : x * 1000);
const word = (text) => html`<${Word} kind=${STATES[text] ?? "warn"}>${text}<//>`;

const ACTING = [
	{ id: "name", title: "NODE", value: (n) => n.name, cell: (n) => html`<${NodeLink} name=${n.name} />` },
	{ id: "phase", title: "PHASE", value: (n) => n.phase, cell: (n) => word(n.phase) },
	{ id: "bar", title: "PROGRESS", value: (n) => format.share(n.moved, n.of), cell: (n) => html`<${Bar} fills=${[[1, "full"], [n.of ? n.moved / n.of : 1, "used"]]} />` },
	{ id: "moved", title: "PODS MOVED", number: true, value: (n) => n.moved, cell: (n) => `${n.moved ?? "-"} of ${n.of ?? "-"}` },
	{ id: "since", title: "SINCE", value: (n) => n.since ?? "", cell: (n) => (n.since ? format.time(n.since) : "-") },
	{ id: "message", title: "MESSAGE", value: (n) => n.message ?? "" },
];

const against = (promised, measured, print) => `${print(promised)} → ${print(measured)}`;
const hot = (d) => d.cpuCap > 0 && d.cpuMeasured > d.cpuCap;
const MEASURED = [
	{ id: "node", title: "DESTINATION", value: (d) => d.node, cell: (d) => html`<${NodeLink} name=${d.node} />` },
	{ id: "cpu", title: "CPU, PROMISED → MEASURED", number: true, value: (d) => d.cpuMeasured, cell: (d) => against(d.cpuPromised, d.cpuMeasured, cores) },
	{ id: "cap", title: "CPU CAP", number: true, value: (d) => d.cpuCap, cell: (d) => html`${cores(d.cpuCap)} ${hot(d) && html`<${Word} kind="bad">above<//>`}` },
	{ id: "memory", title: "MEMORY, PROMISED → MEASURED", number: true, value: (d) => d.memoryMeasured, cell: (d) => against(d.memoryPromised, d.memoryMeasured, format.bytes) },
	{ id: "contention", title: "CONTENTION", help: "The share of time that tasks wait for CPU", number: true, value: (d) => d.contention, cell: (d) => format.percent(d.contention) },
];

const REQUESTS = [
	{ id: "at", title: "AT", value: (r) => r.at, cell: (r) => format.time(r.at) },
	{ id: "action", title: "ACTION", value: (r) => r.action },
	{ id: "nodes", title: "NODES", value: (r) => r.nodes.join(", ") },
	{ id: "user", title: "USER", value: (r) => r.user ?? "-" },
	{ id: "state", title: "STATE", value: (r) => r.state, cell: (r) => word(r.state) },
	{ id: "reasons", title: "REASONS", value: (r) => r.reasons.join("; ") },
];

/* Posts what the actuator is not yet; while such a request is open there is nothing to press. */
function Pause({ paused, requests }) {
	const [state, set] = useState({});
	const action = paused ? "resume" : "pause";
	const asked = requests.some((r) => r.action === action && open(r));
	const ask = () => {
		set({ busy: true });
		post("/v1/act/requests", { action }).then(
			() => set({}),
			(error) => set({ error }),
		);
	};
	return html`<p><button type="button" disabled=${state.busy || asked} onClick=${ask}>${asked ? `Asked to ${action}` : `${paused ? "Resume" : "Pause"} the actuator`}</button></p>
		${state.error && html`<p class="problem" role="alert">Not asked to ${action}: ${state.error.message}</p>`}`;
}

function Actuator() {
	const source = useApi("/v1/act", 2);
	const { data } = source;
	const reported = useMemo(() => data && Date.now() - data.reportedAgoSeconds * 1000, [data]);
	const act = data?.actuator;
	if (!data) return html`<${Waiting} source=${source} what="the actuator" />`;
	return html`<h2>Actuator</h2>
		<${Waiting} source=${source} what="the actuator" />
		${!act && html`<p class="note">No actuator has reported: nothing is drained by itself.</p>`}
		${act &&
		html`<p>
				<b>${act.holder}</b>${act.acts?.length > 0 && ` may ${act.acts.join(", ")}`}${act.dryRun && ", as a dry run"}; ${act.paused ? html`<${Word} kind="warn">paused<//>` : "not paused"}.
				Reported at ${format.time(reported)}.
			</p>
			<${Pause} paused=${act.paused} requests=${data.requests} />`}
		${act?.nodes?.length > 0 && html`<${Table} name="acting" caption="Nodes under way" columns=${ACTING} rows=${act.nodes} keyOf=${(n) => n.name} />`}
		${act?.destinations?.length > 0 &&
		html`<${Table} name="measured" caption="Destinations, promised and measured" columns=${MEASURED} rows=${act.destinations} keyOf=${(d) => d.node} />`}
		${data.requests.length > 0 && html`<${Table} name="requests" caption="Requests to the actuator" columns=${REQUESTS} rows=${data.requests} keyOf=${(r) => r.id} first="-at" count=${10} />`}`;
}

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
		<${Actuator} />
		<h2>Verdicts</h2>
		<${Verdicts} verdicts=${verdicts} chosen=${verdict} />
		<${Table} name="sort" caption=${verdict ? `Nodes: ${verdict}` : "Nodes"} columns=${NODES} rows=${rows} keyOf=${(i) => i.name} first="verdict" empty="No Kubernetes API is followed, so there is no plan." />
		<${Waiting} source=${history} what="the history" />
		${history.data && html`<${Table} name="history" caption="History of decisions" columns=${HISTORY} rows=${history.data.items} keyOf=${(h) => `${h.time}${h.node}${h.event}`} first="-time" count=${20} empty="Nothing was decided yet." />`}`;
}
