/* Room that is kept for pods to come: classes of placeholders, and how many such pods could start now. */
import { useApi } from "../api.js";
import * as format from "../format.js";
import { html } from "../html.js";
import { Bar, Tile, Waiting, Word } from "../parts.js";
import { Table } from "../table.js";

const slots = (s, name) => (s.slots?.[name] === undefined ? "-" : `${s.slots.atLeast ? "≥ " : ""}${s.slots[name]}`);

const COLUMNS = [
	{ id: "name", title: "CLASS", value: (s) => s.name },
	{ id: "verdict", title: "VERDICT", value: (s) => s.verdict, cell: (s) => html`<${Word} kind=${s.unplaced > 0 ? "bad" : "plain"}>${s.verdict}<//>` },
	{ id: "cpu", title: "CPU", help: "Of one placeholder", number: true, value: (s) => s.shape?.cpuMillicores, cell: (s) => format.cpu(s.shape?.cpuMillicores) },
	{ id: "memory", title: "MEMORY", help: "Of one placeholder", number: true, value: (s) => s.shape?.memoryBytes, cell: (s) => format.bytes(s.shape?.memoryBytes) },
	{ id: "wanted", title: "WANTED", help: "Placeholders that shall be there", number: true, value: (s) => s.wanted },
	{ id: "placed", title: "PLACED", help: "Placeholders that have a node", number: true, value: (s) => s.placed },
	{
		id: "bar",
		title: "PLACED OF WANTED",
		value: (s) => s.placed / (s.wanted || 1),
		cell: (s) => html`<${Bar} most=${Math.max(s.wanted, s.placed, 1)} fills=${[[s.wanted, "full"], [s.placed, "used"]]} />`,
	},
	{ id: "unplaced", title: "UNPLACED", help: "Placeholders that no node has room for", number: true, value: (s) => s.unplaced },
	{ id: "slots", title: "SLOTS", help: "Such pods that could start now by requests", number: true, value: (s) => s.slots?.byRequests, cell: (s) => slots(s, "byRequests") },
	{ id: "usable", title: "USABLE", help: "Such pods that could start where CPU and memory are really free", number: true, value: (s) => s.slots?.byUse, cell: (s) => slots(s, "byUse") },
	{ id: "fragmented", title: "FRAGMENTED", help: "Share of free room in pieces too small for such a pod", number: true, value: (s) => s.fragmentation, cell: (s) => format.percent(s.fragmentation) },
];

const amounts = (a) => `${format.cpu(a?.cpuMillicores)} CPU, ${format.bytes(a?.memoryBytes)}`;

export function Slack() {
	const source = useApi("/v1/slack", 10);
	const head = html`<h1>Slack</h1><${Waiting} source=${source} what="slack" />`;
	if (!source.data) return head;
	const { target = {}, total = {}, items, nodesToAdd = [], notes = [], planned } = source.data;
	return html`${head}
		<p class="lead">Placeholders reserve room for pods to come; plans count them as pods.${planned ? ` Planned at ${format.time(planned)}.` : ""}</p>
		<section class="tiles" aria-label="Sums">
			<${Tile} title="Wanted" value=${total.wanted ?? "-"} note=${`${total.placed ?? "-"} placed, ${total.unplaced ?? "-"} without room`} />
			<${Tile} title="Target" value=${amounts(target.extra)} note=${target.rate !== undefined ? `${format.percent(target.rate)} of what is ${target.base}` : `from ${target.from ?? "-"}`} />
			<${Tile} title="Allocatable" value=${amounts(target.allocatable)} note=${`requested ${amounts(target.requested)}, on ${format.plural(target.nodes ?? 0, "node")}`} />
			<${Tile} title="Nodes to add" value=${total.nodesToAdd ?? nodesToAdd.length} note="for placeholders without room" />
		</section>
		${notes.map((n) => html`<p key=${n} class="note">${typeof n === "string" ? n : n.text}</p>`)}
		<${Table} name="sort" caption="Classes of placeholders" columns=${COLUMNS} rows=${items} keyOf=${(s) => s.name} empty="No placeholders are configured." />`;
}
