/* Mean against deviation: a node is at risk where mean + z sigma exceeds the cap. */
import { Picture } from "../canvas.js";
import * as fleet from "../fleet.js";
import * as format from "../format.js";
import { html, useCallback, useMemo } from "../html.js";
import { Choice, Field, Legend, NodeLink, Waiting } from "../parts.js";
import { pick } from "../route.js";
import { Table } from "../table.js";

/* Z and caps of drain plans, unless the URL has others. */
const Z = 2.33;
const RESOURCES = {
	cpu: { title: "CPU", mean: "cpuMean", sigma: "cpuSigma", allocatable: "cpuAllocatable", cap: 0.85 },
	memory: { title: "Memory", mean: "worksetMean", sigma: "worksetSigma", allocatable: "memAllocatable", cap: 0.9 },
};
const LEFT = 52;
const BOTTOM = 40;
const TOP = 12;
const RADIUS = 4;

/* Points in shares of the allocatable, of nodes with a window. */
function pointsOf(nodes, resource, z) {
	return nodes.flatMap((node) => {
		const [mean, sigma, whole] = [node[resource.mean], node[resource.sigma], node[resource.allocatable]];
		if (mean === null || !(whole > 0)) return [];
		return [{ node, name: node.name, mean: mean / whole, sigma: sigma / whole, reach: (mean + z * sigma) / whole }];
	});
}

/* A round end of an axis, at least `least`. */
function endOf(values, least) {
	const most = values.reduce((a, b) => Math.max(a, b), least);
	const unit = 10 ** Math.floor(Math.log10(most));
	return [1, 1.5, 2, 3, 4, 5, 8, 10].map((f) => f * unit).find((end) => end >= most) ?? most;
}

function drawAxes(context, g, colours) {
	context.strokeStyle = colours("line");
	context.fillStyle = colours("soft");
	context.font = "12px system-ui, sans-serif";
	context.lineWidth = 1;
	for (let i = 0; i <= 5; i++) {
		const x = Math.round(g.x((g.xMost * i) / 5)) + 0.5;
		const y = Math.round(g.y((g.yMost * i) / 5)) + 0.5;
		context.beginPath();
		context.moveTo(x, TOP);
		context.lineTo(x, g.height - BOTTOM);
		context.moveTo(LEFT, y);
		context.lineTo(g.width, y);
		context.stroke();
		context.textAlign = i === 5 ? "right" : "center";
		context.fillText(format.percent((g.xMost * i) / 5), x, g.height - BOTTOM + 16);
		context.textAlign = "right";
		context.fillText(`${+((g.yMost * i * 100) / 5).toFixed(1)}%`, LEFT - 6, y + 4);
	}
	context.textAlign = "right";
	context.fillText("mean of 5 minutes, by the allocatable", g.width, g.height - 6);
	context.textAlign = "left";
	context.fillText("sigma", LEFT + 6, TOP + 12);
}

function drawPoints(context, g, colours, points, cap, z, chosen) {
	context.clearRect(0, 0, context.canvas.width, context.canvas.height);
	drawAxes(context, g, colours);
	context.save();
	context.beginPath();
	context.rect(LEFT, TOP, g.width - LEFT, g.height - BOTTOM - TOP);
	context.clip();
	context.strokeStyle = colours("step5");
	context.lineWidth = 2;
	context.beginPath();
	context.moveTo(g.x(cap), g.y(0));
	context.lineTo(g.x(0), g.y(cap / z));
	context.stroke();
	context.restore();
	const [inside, beyond, ink] = [colours("accent"), colours("step5"), colours("ink")];
	points.forEach((p, i) => {
		context.globalAlpha = i === chosen ? 1 : 0.65;
		context.fillStyle = p.reach > cap ? beyond : inside;
		context.beginPath();
		context.arc(g.x(p.mean), g.y(p.sigma), i === chosen ? RADIUS + 2 : RADIUS, 0, 2 * Math.PI);
		context.fill();
		if (i !== chosen) return;
		context.strokeStyle = ink;
		context.stroke();
	});
	context.globalAlpha = 1;
}

function layoutOf(points, cap, z) {
	const xMost = endOf(points.map((p) => p.mean), 1);
	const yMost = endOf(points.map((p) => p.sigma), Math.min(0.1, cap / z));
	return (width) => {
		const height = Math.max(260, Math.min(520, width * 0.5));
		return {
			width,
			height,
			xMost,
			yMost,
			at: points,
			x: (share) => LEFT + (share / xMost) * (width - LEFT - 8),
			y: (share) => height - BOTTOM - (share / yMost) * (height - BOTTOM - TOP),
		};
	};
}

function hit(g, x, y) {
	let best = -1;
	let least = 100;
	g.at.forEach((p, i) => {
		const distance = (g.x(p.mean) - x) ** 2 + (g.y(p.sigma) - y) ** 2;
		if (distance < least) [least, best] = [distance, i];
	});
	return best;
}

/* By keys from the greatest reach down. */
const step = (g, from, dx, dy) => Math.max(0, Math.min(g.at.length - 1, from + (dx || dy)));

const share = (id, title, help) => ({ id, title, help, number: true, value: (p) => p[id], cell: (p) => format.percent(p[id]) });

function columnsOf(cap) {
	return [
		{ id: "name", title: "NODE", value: (p) => p.name, cell: (p) => html`<${NodeLink} name=${p.name} />` },
		share("mean", "MEAN", "Mean of 5 minutes by the allocatable"),
		share("sigma", "SIGMA", "Standard deviation by the allocatable"),
		share("reach", "MEAN + Z SIGMA", "What the node may reach"),
		{ id: "over", title: "BEYOND THE CAP BY", number: true, value: (p) => p.reach - cap, cell: (p) => (p.reach > cap ? format.percent(p.reach - cap) : "-") },
	];
}

const number = (text, other) => (Number(text) > 0 ? Number(text) : other);

export function Risk({ params }) {
	const { source, nodes } = fleet.useFleet();
	const resource = pick(RESOURCES, params.get("resource"), RESOURCES.cpu);
	const z = number(params.get("z"), Z);
	const cap = number(params.get("cap"), resource.cap * 100) / 100;
	const points = useMemo(() => pointsOf(nodes ?? [], resource, z).sort((a, b) => b.reach - a.reach), [nodes, resource, z]);
	const layout = useMemo(() => layoutOf(points, cap, z), [points, cap, z]);
	const draw = useCallback((c, g, colours, mark) => drawPoints(c, g, colours, points, cap, z, mark), [points, cap, z]);
	const columns = useMemo(() => columnsOf(cap), [cap]);
	const beyond = useMemo(() => points.filter((p) => p.reach > cap), [points, cap]);
	const names = useMemo(() => points.map((p) => p.name), [points]);
	const head = html`<h1>Risk</h1><${Waiting} source=${source} what="nodes" />`;
	if (!nodes) return head;
	return html`${head}
		<p class="lead">
			<b>${format.plural(beyond.length, "node")}</b> of ${points.length} may exceed the cap: mean + ${z} sigma of 5 minutes is above ${format.percent(cap)} of
			the allocatable ${resource.title}.
		</p>
		<div class="controls">
			<${Choice} name="resource" label="Resource" value=${resource === RESOURCES.memory ? "memory" : "cpu"} options=${Object.entries(RESOURCES).map(([id, r]) => [id, r.title])} />
			<${Field} name="z" label="z" type="number" value=${params.get("z") ?? ""} placeholder=${Z} min="0.1" max="10" step="0.01" />
			<${Field} name="cap" label="Cap, %" type="number" value=${params.get("cap") ?? ""} placeholder=${resource.cap * 100} min="1" max="200" step="any" />
		</div>
		<${Picture}
			label=${`Mean against sigma of ${format.plural(points.length, "node")}; ${beyond.length} beyond the cap.`}
			layout=${layout}
			draw=${draw}
			hit=${hit}
			step=${step}
			names=${names}
			tip=${(i) => [...fleet.describe(points[i].node), `mean + z sigma ${format.percent(points[i].reach)}`]}
		/>
		<${Legend}
			title="Colours"
			steps=${[
				["accent", "within the cap", points.length - beyond.length],
				["step5", "beyond the cap", beyond.length],
			]}
		/>
		<${Table} name="sort" caption="Nodes by what they may reach" columns=${columns} rows=${points} keyOf=${(p) => p.name} first="-reach" />`;
}
