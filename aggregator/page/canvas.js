/*
 * A canvas for pictures with thousands of marks, one a node. The caller draws in CSS pixels and says which
 * mark is at a point; pointer, arrow keys and Enter work the same in every picture. Colours come from the
 * style sheet, so a picture follows the light or dark scheme.
 */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { open } from "./route.js";

/* Colours by the names of the custom properties of style.css. */
export function readColours() {
	const style = getComputedStyle(document.documentElement);
	return (name) => style.getPropertyValue("--" + name).trim();
}

/* Width of an element in CSS pixels, as it changes. */
function useWidth(ref) {
	const [width, set] = useState(0);
	useLayoutEffect(() => {
		const observer = new ResizeObserver(() => set(ref.current?.clientWidth ?? 0));
		observer.observe(ref.current);
		set(ref.current.clientWidth);
		return () => observer.disconnect();
	}, []);
	return width;
}

/* Whether the dark scheme is on, as it changes. */
export function useScheme() {
	const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
	const [dark, set] = useState(query.matches);
	useEffect(() => {
		const changed = () => set(query.matches);
		changed();
		query.addEventListener("change", changed);
		return () => query.removeEventListener("change", changed);
	}, []);
	return dark;
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/*
 * label: what the picture shows, for screen readers; names: of the nodes, in the order of marks, by which the
 * chosen one is found again when nodes come, go or change places; layout(width) gives {height, ..}, the geometry,
 * which is kept while layout and width are the same;
 * draw(context, geometry, colours, mark) draws it with one mark chosen (-1: none); hit(geometry, x, y)
 * is the index of a mark or -1; step(geometry, mark, dx, dy) the next one by an arrow key; tip(mark) its
 * text, a list of lines. A click or Enter opens the node.
 */
export function Picture({ label, names, layout, draw, hit, step, tip }) {
	const box = useRef();
	const canvas = useRef();
	const width = useWidth(box);
	const dark = useScheme();
	const [name, setName] = useState();
	const mark = names.indexOf(name);
	const [point, setPoint] = useState(null);
	const geometry = useMemo(() => (width ? layout(width) : null), [layout, width]);

	useLayoutEffect(() => {
		if (!geometry) return;
		const ratio = devicePixelRatio || 1;
		const c = canvas.current;
		c.width = Math.round(width * ratio);
		c.height = Math.round(geometry.height * ratio);
		const context = c.getContext("2d");
		context.scale(ratio, ratio);
		draw(context, geometry, readColours(), mark);
	}, [geometry, draw, mark, dark]);

	const onMove = (e) => {
		const found = hit(geometry, e.offsetX, e.offsetY);
		setName(names[found]);
		setPoint(found < 0 ? null : [e.offsetX, e.offsetY]);
	};
	const onKey = (e) => {
		const move = STEPS[e.key];
		if (e.key === "Enter" && mark >= 0) open("node", name);
		if (!move) return;
		e.preventDefault();
		setName(names[step(geometry, mark, ...move)]);
		setPoint(null);
	};
	const lines = mark >= 0 ? tip(mark) : [];
	return html`<div class="picture" ref=${box}>
		<canvas
			ref=${canvas}
			tabindex="0"
			role="application"
			aria-label=${`${label} Arrow keys choose, Enter opens.`}
			style=${{ width: "100%", height: (geometry?.height ?? 0) + "px" }}
			onPointerMove=${onMove}
			onPointerLeave=${() => (setName(), setPoint(null))}
			onClick=${(e) => {
				const found = hit(geometry, e.offsetX, e.offsetY);
				if (found >= 0) open("node", names[found]);
			}}
			onKeyDown=${onKey}
		/>
		${lines.length > 0 && html`<${Tip} lines=${lines} point=${point} width=${width} />`}
		<p class="unseen" aria-live="polite">${lines.join(", ")}</p>
	</div>`;
}

/* Beside the pointer, or in the corner for a mark that was chosen by keys. */
function Tip({ lines, point, width }) {
	const left = point && point[0] < width / 2;
	const place = point
		? { top: point[1] + 14 + "px", left: left ? point[0] + 14 + "px" : "auto", right: left ? "auto" : width - point[0] + 14 + "px" }
		: { top: "4px", right: "4px" };
	return html`<div class="tip" style=${place} aria-hidden="true">
		<strong>${lines[0]}</strong>
		${lines.slice(1).map((l) => html`<div key=${l}>${l}</div>`)}
	</div>`;
}
