/*
 * The last 15 minutes of one measure: mean, the band of +- sigma, the maximum, and lines for amounts such
 * as the allocatable. uPlot draws; lines far above the values are named below instead of squeezing them.
 */
import { readColours, useScheme } from "./canvas.js";
import { html, useEffect, useMemo, useRef } from "./html.js";
import * as format from "./format.js";
import uPlot from "./vendor/uplot.js";

const HEIGHT = 220;
const FAR = 4; /* lines above this multiple of the greatest value are not drawn */

const seconds = (text) => Date.parse(text) / 1000;

/* [times, upper, lower, mean, max], with null where buckets are missing; drawn in the middle of a bucket. */
function columnsOf(items, measure, bucketSeconds) {
	const out = [[], [], [], [], []];
	let before = null;
	for (const item of items) {
		const start = seconds(item.start);
		if (before !== null && start - before > 1.5 * bucketSeconds) [before + bucketSeconds, null, null, null, null].forEach((v, i) => out[i].push(v));
		const m = item[measure];
		const at = (start + seconds(item.end)) / 2;
		const spread = m && (m.stddev ?? null);
		[at, m ? m.mean + (spread ?? 0) : null, m ? Math.max(0, m.mean - (spread ?? 0)) : null, m?.mean ?? null, m?.max ?? null].forEach((v, i) => out[i].push(v));
		before = start;
	}
	return out;
}

const greatest = (columns) => columns.slice(1).flat().reduce((a, b) => (b > a ? b : a), 0);

/* lines: {kind, title, value}. Those that fit into the picture, and the top of its axis. */
function frameOf(columns, lines) {
	const most = greatest(columns);
	const known = lines.filter((l) => Number.isFinite(l.value) && l.value > 0);
	const near = known.filter((l) => l.value <= most * FAR);
	return { near, far: known.filter((l) => !near.includes(l)), top: Math.max(most, ...near.map((l) => l.value)) * 1.08 || 1 };
}

/* Round amounts for people who read bytes in powers of two. */
const STEPS_OF_BYTES = Array.from({ length: 60 }, (_, i) => 2 ** i);
const SHOWN_SECONDS = 900;

const clock = (u, splits) => splits.map((s) => format.time(new Date(s * 1000).toISOString()).slice(-8, -3));

function options(width, columns, frame, print, colour, dark) {
	const end = columns[0].at(-1);
	const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
	const line = (name) => ({ stroke: colour(name), width: 2, points: { show: columns[0].length < 2 } });
	return {
		width,
		height: HEIGHT,
		legend: { show: false },
		cursor: { y: false, drag: { setScale: false } },
		scales: { x: { time: true, range: [end - SHOWN_SECONDS, end] }, y: { range: [0, frame.top] } },
		axes: [
			{ ...axis, size: 30, space: 80, values: clock },
			{ ...axis, size: 64, incrs: print === format.bytes ? STEPS_OF_BYTES : undefined, values: (u, splits) => splits.map((v) => (v ? print(v) : "0")) },
		],
		series: [{}, { ...line("accent"), width: 0 }, { ...line("accent"), width: 0 }, line("accent"), { ...line("step4"), width: 1 }],
		bands: [{ series: [1, 2], fill: colour(dark ? "band-dark" : "band") }],
		hooks: { draw: [(u) => drawLines(u, frame.near, colour)] },
	};
}

function drawLines(u, lines, colour) {
	const c = u.ctx;
	c.save();
	c.lineWidth = 1.5 * devicePixelRatio;
	for (const l of lines) {
		const y = u.valToPos(l.value, "y", true);
		c.setLineDash(l.kind === "limits" ? [2 * devicePixelRatio, 4 * devicePixelRatio] : [8 * devicePixelRatio, 4 * devicePixelRatio]);
		c.strokeStyle = colour("line-" + l.kind);
		c.beginPath();
		c.moveTo(u.bbox.left, y);
		c.lineTo(u.bbox.left + u.bbox.width, y);
		c.stroke();
	}
	c.restore();
}

/* The picture alone, drawn anew when the values, the width or the scheme change. */
function Plot({ columns, frame, print, label }) {
	const box = useRef();
	const dark = useScheme();
	useEffect(() => {
		const element = box.current;
		if (!element) return undefined;
		let plot;
		const draw = () => {
			plot?.destroy();
			plot = new uPlot(options(element.clientWidth, columns, frame, print, readColours(), dark), columns, element);
		};
		const observer = new ResizeObserver(() => plot && plot.width !== element.clientWidth && draw());
		draw();
		observer.observe(element);
		return () => {
			observer.disconnect();
			plot.destroy();
		};
	}, [columns, frame, print, dark]);
	return html`<div class="plot" ref=${box} role="img" aria-label=${label}></div>`;
}

function Values({ items, measure, print }) {
	return html`<details>
		<summary>Values as a table</summary>
		<div class="table" tabindex="0" role="region" aria-label="Values">
			<table>
				<thead>
					<tr>${["From", "Mean", "Sigma", "Min", "Max"].map((t, i) => html`<th key=${t} scope="col" class=${i ? "num" : ""}>${t}</th>`)}</tr>
				</thead>
				<tbody>
					${items.map(
						(item) => html`<tr key=${item.start}>
							<td>${format.time(item.start)}</td>
							${["mean", "stddev", "min", "max"].map((k) => html`<td key=${k} class="num">${print(item[measure]?.[k])}</td>`)}
						</tr>`,
					)}
				</tbody>
			</table>
		</div>
	</details>`;
}

/* history: the answer of a history route; measure: "cpuMillicores" or another of its members. */
export function Chart({ title, history, measure, print, lines }) {
	const columns = useMemo(() => columnsOf(history.items, measure, history.bucketSeconds), [history, measure]);
	const frame = useMemo(() => frameOf(columns, lines), [columns, lines.map((l) => l.value).join()]);
	const newest = history.items.at(-1)?.[measure];
	if (!columns[3].some((mean) => mean !== null)) return html`<section class="chart"><h2>${title}</h2><p class="empty">Not measured yet.</p></section>`;
	return html`<section class="chart">
		<h2>${title} <small>mean ${print(newest?.mean)}, max ${print(newest?.max)} in the newest ${history.bucketSeconds} s</small></h2>
		<${Plot} columns=${columns} frame=${frame} print=${print} label=${`${title} of the last 15 minutes`} />
		<ul class="legend" aria-label="Lines">
			<li><i class="swatch accent"></i>mean</li>
			<li><i class="swatch band"></i>± sigma</li>
			<li><i class="swatch step4"></i>max</li>
			${frame.near.map((l) => html`<li key=${l.kind}><i class=${"swatch stroke line-" + l.kind}></i>${l.title} ${print(l.value)}</li>`)}
			${frame.far.map((l) => html`<li key=${l.kind} class="soft">${l.title} ${print(l.value)}, above the picture</li>`)}
		</ul>
		<${Values} items=${history.items} measure=${measure} print=${print} />
	</section>`;
}
