/* Where a pod fits: a manifest is pasted; each node's score, and the first filter that refuses it. */
import { post } from "../api.js";
import * as format from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { NodeLink, Tile, Word } from "../parts.js";
import { Table } from "../table.js";

const EXAMPLE = `apiVersion: v1
kind: Pod
metadata:
  name: newcomer
spec:
  containers:
  - name: app
    resources:
      requests: {cpu: 500m, memory: 1Gi}
      limits: {cpu: "1", memory: 2Gi}
`;

const UNITS = { millicores: format.cpu, bytes: format.bytes, seconds: format.age, fraction: format.percent, ratio: format.percent, percent: (v) => `${v.toFixed(1)} %` };
const term = (t) => (UNITS[t.unit] ? UNITS[t.unit](t.value) : `${+t.value.toFixed(4)}${t.unit ? " " + t.unit : ""}`);

/* Every term of one node's scores. */
function Terms({ node, pod }) {
	const [state, set] = useState({});
	useEffect(() => {
		let current = true;
		set({});
		post("/v1/scores", { pod, nodes: [node], explain: true }).then(
			(data) => current && set({ item: data.items[0] }),
			(error) => current && set({ error }),
		);
		return () => {
			current = false;
		};
	}, [node, pod]);
	return html`<section class="terms" aria-label=${`Score of ${node}`}>
		<h2>How ${node} scores</h2>
		${state.error && html`<p class="problem" role="alert">${state.error.message}</p>`}
		${state.item?.plugins.map(
			(p) => html`<div key=${p.name}>
				<h3>${p.name}: ${p.score}</h3>
				<p>${p.reason}</p>
				<dl>${p.terms?.map((t) => html`<div key=${t.name}><dt>${t.name}</dt><dd>${term(t)}</dd></div>`)}</dl>
			</div>`,
		)}
	</section>`;
}

/* The filter that refuses is in /v1/fit, the scores in /v1/scores; both by name. */
async function ask(pod) {
	const [scores, fit] = await Promise.all([post("/v1/scores", { pod }), post("/v1/fit", { pod })]);
	const by = new Map(fit.items.map((i) => [i.node, i]));
	return { pod, fit, expected: scores.expected, rows: scores.items.map((s) => ({ ...s, ...by.get(s.node), score: s.score })) };
}

function columnsOf(rows, explain) {
	const plugins = rows[0]?.plugins ?? [];
	return [
		{ id: "node", title: "NODE", value: (r) => r.node, cell: (r) => html`<${NodeLink} name=${r.node} />` },
		{ id: "fits", title: "FITS", value: (r) => (r.fits ? "yes" : "no"), cell: (r) => html`<${Word} kind=${r.fits ? "good" : "bad"}>${r.fits ? "yes" : "no"}<//>` },
		{ id: "score", title: "SCORE", number: true, value: (r) => r.score },
		...plugins.map((p, i) => ({ id: p.name, title: p.name, number: true, value: (r) => r.plugins?.[i]?.score, cell: (r) => r.plugins?.[i]?.score ?? "-" })),
		{ id: "rung", title: "RUNG", help: "What the score stands on", value: (r) => r.plugins?.[0]?.rung ?? r.rung ?? "-" },
		{ id: "filter", title: "REFUSED BY", value: (r) => r.filter ?? "", cell: (r) => (r.filter ? html`<b>${r.filter}</b> <span class="note">${r.reason?.replace(`${r.filter}: `, "")}</span>` : "") },
		{ id: "terms", title: "TERMS", value: () => 0, cell: (r) => html`<button type="button" onClick=${() => explain(r.node)}>Explain<span class="unseen"> ${r.node}</span></button>` },
	];
}

function Answer({ answer }) {
	const { fit, expected, rows } = answer;
	const [why, explain] = useState("");
	const refused = Object.entries(fit.refused ?? {}).sort((a, b) => b[1] - a[1]);
	const ranked = [...rows].sort((a, b) => Number(b.fits) - Number(a.fits) || b.score - a.score);
	return html`<section class="tiles" aria-label="Answer">
			<${Tile} title="Fits now" value=${html`${fit.fits} <small>of ${rows.length} nodes</small>`} note=${fit.fits ? `best: ${ranked[0]?.node}, score ${ranked[0]?.score}` : "on no node"} />
			<${Tile} title="Refused by" value=${refused[0]?.[0] ?? "nothing"} note=${refused.map(([filter, count]) => `${filter} ${count}`).join(", ") || "no filter"} />
			${expected && html`<${Tile} title="Expected use" value=${html`${format.cpu(expected.cpuMillicores)} <small>CPU</small> ${format.bytes(expected.memoryBytes)} <small>memory</small>`} note=${`by ${expected.source ?? "-"}`} />`}
		</section>
		${fit.warnings?.map((w) => html`<p key=${w} class="note">${w}</p>`)}
		${why && html`<${Terms} node=${why} pod=${answer.pod} />`}
		<${Table} name="sort" caption="Nodes for this pod" columns=${columnsOf(rows, explain)} rows=${ranked} keyOf=${(r) => r.node} first="-score" count=${25} />`;
}

export function Fit() {
	const [text, setText] = useState(EXAMPLE);
	const [state, set] = useState({});
	const submit = (e) => {
		e.preventDefault();
		set({ busy: true });
		ask(text).then(
			(answer) => set({ answer }),
			(error) => set({ error }),
		);
	};
	return html`<h1>Where does this pod fit?</h1>
		<form class="manifest" onSubmit=${submit}>
			<label for="manifest">A pod, or what makes pods (Deployment, Job, ..), in YAML or JSON</label>
			<textarea id="manifest" rows="14" spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)}></textarea>
			<p><button type="submit" disabled=${state.busy}>${state.busy ? "Computing …" : "Find nodes"}</button></p>
		</form>
		${state.error && html`<p class="problem" role="alert">${state.error.message}</p>`}
		${state.answer && html`<${Answer} answer=${state.answer} />`}`;
}
