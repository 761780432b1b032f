/*
 * The fleet before and after a wave: a column a node, by requests or real use in shares of the allocatable, the
 * fullest first. Columns of nodes that go are hollow; what destinations take is on top; moves are arcs.
 */
import { html, useCallback, useMemo } from "../html.js";
import * as format from "../format.js";
import { Picture } from "../canvas.js";
import { Legend } from "../parts.js";

const HEIGHT = 200;
const LEFT = 38;
const FOOT = 18;
const HEAD = 14;
const ARCS = 70; /* above the columns */

/* Of the nodes that go; a plan tells those of nodes that wait as well. */
export const movesOf = (items) => items.filter((i) => i.verdict === "drain").flatMap((i) => (i.moves ?? []).map((m) => ({ ...m, from: i.name })));

/* {name, before, after, goes, item} of each node, the fullest first. */
function columnsOf(items, by) {
	const added = new Map();
	const size = new Map(items.map((i) => [i.name, i.allocatable?.cpuMillicores]));
	for (const m of movesOf(items)) added.set(m.to, (added.get(m.to) ?? 0) + format.share(m.cpuMillicores ?? 0, size.get(m.to)));
	return items
		.map((item) => {
			const before = item.utilization?.[by] ?? 0;
			const goes = item.verdict === "drain";
			return { name: item.name, item, goes, before, after: goes ? 0 : before + (added.get(item.name) || 0) };
		})
		.sort((a, b) => b.before - a.before || format.order(a.name, b.name));
}

function arcs(columns) {
	const place = new Map(columns.map((c, i) => [c.name, i]));
	return movesOf(columns.map((c) => c.item))
		.map((m) => [place.get(m.from), place.get(m.to)])
		.filter(([, to]) => to !== undefined);
}

function drawWave(context, g, colours, columns, lines, chosen) {
	context.clearRect(0, 0, context.canvas.width, context.canvas.height);
	context.font = "12px system-ui, sans-serif";
	context.fillStyle = colours("soft");
	context.strokeStyle = colours("line");
	for (const at of [0, 0.5, 1]) {
		const y = Math.round(g.y(at)) + 0.5;
		context.beginPath();
		context.moveTo(0, y);
		context.lineTo(g.width, y);
		context.stroke();
		context.fillText(format.percent(at), 0, y - 3);
	}
	const [kept, goes, more, ink] = [colours("accent"), colours("step5"), colours("step3"), colours("ink")];
	columns.forEach((c, i) => {
		const x = g.left + i * g.pitch;
		const top = g.y(Math.min(1.1, c.goes ? c.before : c.after));
		const w = Math.max(1, g.pitch - (g.pitch > 3 ? 1 : 0));
		if (c.goes) {
			context.strokeStyle = goes;
			context.strokeRect(x + 0.5, Math.min(top, g.y(0) - 3) + 0.5, Math.max(1, w - 1), Math.max(2, g.y(0) - top - 1));
			return;
		}
		context.fillStyle = kept;
		context.fillRect(x, g.y(c.before), w, g.y(0) - g.y(c.before));
		context.fillStyle = more;
		if (c.after > c.before) context.fillRect(x, top, w, Math.max(2, g.y(c.before) - top));
	});
	context.strokeStyle = ink;
	if (chosen >= 0 && columns[chosen]) context.strokeRect(g.left + chosen * g.pitch - 1, g.y(1), g.pitch + 1, g.y(0) - g.y(1) + 1);
	context.strokeStyle = goes;
	context.lineWidth = 1.25;
	for (const [from, to] of lines) {
		const [a, b] = [from, to].map((i) => g.left + (i + 0.5) * g.pitch);
		const [ya, yb] = [from, to].map((i) => g.y(Math.min(1, columns[i].before)) - 4);
		context.beginPath();
		context.moveTo(a, ya);
		context.bezierCurveTo(a, 4, b, 4, b, yb);
		context.stroke();
		context.beginPath();
		context.arc(b, yb, 3, 0, 2 * Math.PI);
		context.fillStyle = goes;
		context.fill();
	}
}

const hit = (g, x) => {
	const i = Math.floor((x - g.left) / g.pitch);
	return i >= 0 && i < g.count ? i : -1;
};
const step = (g, from, dx, dy) => Math.max(0, Math.min(g.count - 1, from + (dx || -dy * 10)));

function tipOf(c) {
	const u = c.item.utilization ?? {};
	return [
		c.name,
		`${c.item.verdict}: requested ${format.percent(u.requested)}, used ${format.percent(u.used)}`,
		c.goes ? `goes; ${format.plural(c.item.moves?.length ?? 0, "pod")} move` : c.after > c.before ? `takes pods: ${format.percent(c.before)} becomes ${format.percent(c.after)}` : "stays as it is",
	];
}

export function Wave({ items, by, moves }) {
	const columns = useMemo(() => columnsOf(items, by), [items, by]);
	const lines = useMemo(() => (moves ? arcs(columns) : []), [columns, moves]);
	const layout = useMemo(() => {
		const height = HEIGHT + (lines.length ? ARCS : HEAD);
		return (width) => ({ width, height, left: LEFT, pitch: (width - LEFT) / columns.length, count: columns.length, y: (s) => height - FOOT - s * (HEIGHT - FOOT) });
	}, [columns, lines]);
	const draw = useCallback((c, g, colours, mark) => drawWave(c, g, colours, columns, lines, mark), [columns, lines]);
	const names = useMemo(() => columns.map((c) => c.name), [columns]);
	const goes = columns.filter((c) => c.goes).length;
	const takes = columns.filter((c) => c.after > c.before).length;
	return html`<${Picture}
			label=${`${format.plural(columns.length, "node")} by CPU ${by}, before and after the wave: ${goes} go, ${takes} take pods.`}
			layout=${layout}
			draw=${draw}
			hit=${hit}
			step=${step}
			names=${names}
			tip=${(i) => tipOf(columns[i])}
		/>
		<${Legend}
			title="Columns"
			steps=${[
				["accent", "stays", columns.length - goes],
				["hollow", "goes", goes],
				["step3", "moved here", takes],
			]}
		/>`;
}
