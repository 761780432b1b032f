/* Where the boxes of nodes lie: groups one below the other, boxes in rows, as large as a screen allows. */

const GAP = 2;
const HEAD = 24;
const LEAST = 7;
const MOST = 64;
const TALL = 520; /* what all boxes may take before they become smaller */
const STEPS = 6;
const LABELLED = 38; /* boxes this large have their value in them */

function heightFor(size, groups, width, named) {
	const columns = Math.max(1, Math.floor((width + GAP) / (size + GAP)));
	return groups.reduce((sum, [, nodes]) => sum + (named ? HEAD : 0) + Math.ceil(nodes.length / columns) * (size + GAP), 0);
}

/* {height, size, columns, groups: [{name, top, first, count}], boxes: [[x, y]]} */
export function layoutBoxes(groups, named, width) {
	let size = MOST;
	while (size > LEAST && heightFor(size, groups, width, named) > TALL) size--;
	const columns = Math.max(1, Math.floor((width + GAP) / (size + GAP)));
	const boxes = [];
	const heads = [];
	let top = 0;
	for (const [name, nodes] of groups) {
		heads.push({ name, top, first: boxes.length, count: nodes.length });
		if (named) top += HEAD;
		for (let i = 0; i < nodes.length; i++)
			boxes.push([(i % columns) * (size + GAP), top + Math.floor(i / columns) * (size + GAP)]);
		top += Math.ceil(nodes.length / columns) * (size + GAP);
	}
	return { height: Math.max(top, size), size, columns, groups: heads, boxes, named };
}

/* Boxes of one colour after each other: a canvas parses each new colour. */
function drawStep(context, g, colours, cells, step) {
	context.fillStyle = step < 0 ? colours("unknown") : colours("step" + step);
	g.boxes.forEach(([x, y], i) => cells[i].step === step && context.fillRect(x, y, g.size, g.size));
	if (g.size < LABELLED) return;
	context.fillStyle = step < 0 ? colours("ink") : colours("step-ink" + step);
	g.boxes.forEach(([x, y], i) => cells[i].step === step && context.fillText(cells[i].text, x + g.size / 2, y + g.size / 2 + 1));
}

function drawCorner(context, x, y, size) {
	context.beginPath();
	context.moveTo(x, y);
	context.lineTo(x, y + size);
	context.lineTo(x - size, y);
	context.fill();
}

/* cells: {step, text, warn} of each box in order. */
export function drawBoxes(context, g, colours, cells, chosen) {
	const ink = colours("ink");
	context.clearRect(0, 0, context.canvas.width, context.canvas.height);
	context.textBaseline = "middle";
	if (g.named) {
		context.font = "600 12px system-ui, sans-serif";
		context.fillStyle = ink;
		for (const head of g.groups) context.fillText(`${head.name} · ${head.count}`, 0, head.top + HEAD / 2);
	}
	context.font = `${Math.min(13, g.size / 3.2)}px system-ui, sans-serif`;
	context.textAlign = "center";
	for (let step = -1; step < STEPS; step++) drawStep(context, g, colours, cells, step);
	context.fillStyle = ink;
	g.boxes.forEach(([x, y], i) => cells[i].warn && drawCorner(context, x + g.size, y, g.size / 3));
	if (chosen < 0 || !g.boxes[chosen]) return;
	context.strokeStyle = ink;
	context.lineWidth = 2;
	context.strokeRect(g.boxes[chosen][0] - 1, g.boxes[chosen][1] - 1, g.size + 2, g.size + 2);
}

const groupAt = (g, i) => g.groups.find((head) => i >= head.first && i < head.first + head.count);

export function hitBox(g, x, y) {
	const pitch = g.size + GAP;
	const column = Math.floor(x / pitch);
	const group = g.groups.findLast((head) => head.top <= y);
	const row = group ? Math.floor((y - group.top - (g.named ? HEAD : 0)) / pitch) : -1;
	if (row < 0 || column < 0 || column >= g.columns) return -1;
	const i = row * g.columns + column;
	return i < group.count ? group.first + i : -1;
}

/* Left and right through all boxes, up and down by rows of a group, then into the next. */
export function stepBox(g, from, dx, dy) {
	const last = g.boxes.length - 1;
	if (from < 0 || from > last) return last < 0 ? -1 : 0;
	if (dx) return Math.max(0, Math.min(last, from + dx));
	const group = groupAt(g, from);
	const to = from + dy * g.columns;
	if (to >= group.first && to < group.first + group.count) return to;
	const other = g.groups[g.groups.indexOf(group) + dy];
	if (!other) return from;
	const column = (from - group.first) % g.columns;
	const rows = Math.ceil(other.count / g.columns);
	return other.first + Math.min(other.count - 1, dy > 0 ? column : (rows - 1) * g.columns + column);
}
