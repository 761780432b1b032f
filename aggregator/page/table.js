/*
 * A table with a caption, sorted by a click on a column's head, in parts of so many rows. Columns are
 * {id, title, help, number, value(row), cell(row)}: value is what is sorted by, cell what is shown (the
 * value where there is none). The order is in the URL, so a link has it.
 */
import { order as byName } from "./format.js";
import { html, useMemo, useState } from "./html.js";
import { setParams, useRoute } from "./route.js";

const ROWS = 50;

/* Unknown values stay last in either direction. */
function compare(a, b, down) {
	const none = (x) => x === undefined || x === null || x === "" || Number.isNaN(x);
	if (none(a) || none(b)) return none(a) - none(b);
	const order = typeof a === "string" ? byName(a, b) : a - b;
	return down ? -order : order;
}

function Head({ column, sort, onSort }) {
	const sorted = sort.id === column.id;
	const state = sorted ? (sort.down ? "descending" : "ascending") : undefined;
	return html`<th scope="col" class=${column.number ? "num" : ""} aria-sort=${state}>
		<button type="button" title=${column.help} onClick=${() => onSort(column, sorted)}>
			${column.title}<span aria-hidden="true">${sorted ? (sort.down ? " ↓" : " ↑") : ""}</span>
		</button>
	</th>`;
}

function Pager({ from, count, total, onMove }) {
	return html`<p class="pager">
		<button type="button" disabled=${from === 0} onClick=${() => onMove(from - count)}>Previous</button>
		<span>${from + 1} to ${Math.min(from + count, total)} of ${total}</span>
		<button type="button" disabled=${from + count >= total} onClick=${() => onMove(from + count)}>Next</button>
	</p>`;
}

/*
 * name: of its parameter in the URL; rows with unique keys by keyOf(row); first: the column sorted by,
 * "-id" for downwards.
 */
export function Table({ name, caption, columns, rows, keyOf, first, count = ROWS, empty = "Nothing to show." }) {
	const chosen = useRoute().params.get(name) ?? first ?? columns[0].id;
	const sort = { id: chosen.replace(/^-/, ""), down: chosen.startsWith("-") };
	const [at, setAt] = useState(0);
	const order = columns.find((c) => c.id === sort.id) ?? columns[0];
	const sorted = useMemo(
		() => rows.map((row) => [order.value(row), row]).sort((a, b) => compare(a[0], b[0], sort.down)).map((p) => p[1]),
		[rows, order.id, sort.down],
	);
	const from = at < sorted.length ? at : 0;
	const onSort = (column, again) => {
		const down = again ? !sort.down : Boolean(column.number);
		setParams({ [name]: (down ? "-" : "") + column.id });
		setAt(0);
	};
	if (!rows.length) return html`<p class="empty">${empty}</p>`;
	return html`<div class="table" tabindex="0" role="region" aria-label=${caption}>
			<table>
				<caption>${caption}</caption>
				<thead>
					<tr>${columns.map((c) => html`<${Head} key=${c.id} column=${c} sort=${sort} onSort=${onSort} />`)}</tr>
				</thead>
				<tbody>
					${sorted.slice(from, from + count).map(
						(row) => html`<tr key=${keyOf(row)}>
							${columns.map((c) => html`<td key=${c.id} class=${c.number ? "num" : ""}>${(c.cell ?? c.value)(row)}</td>`)}
						</tr>`,
					)}
				</tbody>
			</table>
		</div>
		${sorted.length > count && html`<${Pager} from=${from} count=${count} total=${sorted.length} onMove=${setAt} />`}`;
}
