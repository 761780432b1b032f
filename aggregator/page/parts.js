/* Small parts that views share. */
import { html } from "./html.js";
import { link, setParams } from "./route.js";

/* What stands in place of data or above older data: an error, that nothing came yet, or nothing. */
export function Waiting({ source: { data, error }, what }) {
	if (error && error.status !== 0 && error.status !== 401)
		return html`<p class="problem" role="alert">${what}: ${error.message}${data && ". What is shown is older."}</p>`;
	if (!data && !error) return html`<p class="empty">Reading ${what} …</p>`;
	return null;
}

/* A choice that is a parameter of the URL: options are [value, text]. */
export function Choice({ name, label, value, options }) {
	return html`<label class="choice"
		>${label}
		<select value=${value} onChange=${(e) => setParams({ [name]: e.target.value })}>
			${options.map(([v, text]) => html`<option key=${v} value=${v} selected=${v === value}>${text}</option>`)}
		</select>
	</label>`;
}

/* A text or number that is a parameter of the URL. */
export function Field({ name, label, value, type = "search", ...more }) {
	return html`<label class="choice"
		>${label} <input type=${type} value=${value} onInput=${(e) => setParams({ [name]: e.target.value })} ...${more} />
	</label>`;
}

export function Check({ name, label, value }) {
	return html`<label class="choice"
		><input type="checkbox" checked=${value} onChange=${(e) => setParams({ [name]: e.target.checked ? "yes" : "" })} /> ${label}
	</label>`;
}

export function Tile({ title, value, note, children }) {
	return html`<div class="tile">
		<h2>${title}</h2>
		<p class="value">${value}</p>
		${note && html`<p class="note">${note}</p>`} ${children}
	</div>`;
}

const width = (share) => Math.max(0, Math.min(100, share * 100)) + "%";

/*
 * A bar of shares of `most`: fills are [share, class] drawn over each other, the first lowest; marks are
 * [share, class, title]. For the eye only: the numbers stand beside it.
 */
export function Bar({ fills, marks = [], most = 1 }) {
	return html`<span class="bar" aria-hidden="true">
		${fills.map(([s, kind]) => s > 0 && html`<i key=${kind} class=${"fill " + kind} style=${{ width: width(s / most) }}></i>`)}
		${marks.map(
			([s, kind, title]) =>
				Number.isFinite(s) && html`<i key=${kind} class=${"mark " + kind} title=${title} style=${{ left: `min(${width(s / most)}, calc(100% - 2px))` }}></i>`,
		)}
	</span>`;
}

/* steps: [class, text, count]; what the colours of a picture mean. */
export function Legend({ title, steps }) {
	return html`<ul class="legend" aria-label=${title}>
		${steps.map(
			([kind, text, count]) =>
				html`<li key=${kind}><i class=${"swatch " + kind}></i>${text}${count !== undefined && html` <b>${count}</b>`}</li>`,
		)}
	</ul>`;
}

export const NodeLink = ({ name }) => html`<a href=${link(["node", name])}>${name}</a>`;
export const PodLink = ({ pod }) =>
	html`<a href=${link(["pod", pod.namespace ?? "-", pod.name], { node: pod.node })}
		>${pod.namespace ? pod.namespace + "/" : ""}${pod.name}</a
	>`;

/* A word with the colour of its class: good, warn, bad or plain. */
export const Word = ({ kind, children }) => html`<span class=${"word " + kind}>${children}</span>`;
