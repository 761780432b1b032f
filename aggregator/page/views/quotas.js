/* Elastic quotas: what is guaranteed, used, borrowed and lent; findings; whose pods could give way. */
import { useApi } from "../api.js";
import * as format from "../format.js";
import { html, useState } from "../html.js";
import { Bar, Choice, Legend, NodeLink, Tile, Waiting, Word } from "../parts.js";
import { pick } from "../route.js";
import { Table } from "../table.js";

const RESOURCES = {
	cpu: { title: "CPU", name: "cpuMillicores", print: format.cpu, real: (q) => q.realUse?.cpuMillicores?.mean },
	memory: { title: "Memory", name: "memoryBytes", print: format.bytes, real: (q) => q.realUse?.workingSetBytes },
};
const BAD = new Set(["starved", "overMax"]);
const WARN = new Set(["atMax", "waiting"]);

const kindOf = (verdict) => (BAD.has(verdict) ? "bad" : WARN.has(verdict) ? "warn" : "plain");

/* Use up to min, borrowed beyond it, and the part of min that others use. */
function QuotaBar({ quota, name, most }) {
	const [used, guaranteed, lent] = [quota.used?.[name] ?? 0, quota.guaranteed?.[name] ?? 0, quota.lent?.[name] ?? 0];
	return html`<${Bar}
		most=${most}
		fills=${[
			[lent ? used + lent : 0, "lent"],
			[used, used > guaranteed ? "borrowed" : "used"],
			[Math.min(used, guaranteed), "used"],
		].filter(([, kind], i, all) => all.findLastIndex(([, k]) => k === kind) === i)}
		marks=${[
			[quota.min?.[name], "whole", "min"],
			[quota.max?.[name] ?? NaN, "limits", "max"],
		]}
	/>`;
}

function columnsOf(r, most) {
	const amount = (id, title, help, value) => ({ id, title, help, number: true, value, cell: (q) => format.limit(value(q), (v) => (v === 0 ? "0" : r.print(v))) });
	return [
		{ id: "namespace", title: "NAMESPACE", value: (q) => q.namespace },
		{ id: "verdict", title: "STATE", value: (q) => q.verdict, cell: (q) => html`<${Word} kind=${kindOf(q.verdict)}>${q.verdict}<//>` },
		{ id: "bar", title: "USED OF MIN AND MAX", value: (q) => q.used?.[r.name], cell: (q) => html`<${QuotaBar} quota=${q} name=${r.name} most=${most} />` },
		amount("used", "USED", "Requests of the pods that have a node", (q) => q.used?.[r.name]),
		amount("min", "MIN", "What the quota guarantees", (q) => q.min?.[r.name]),
		amount("max", "MAX", "The most that the quota allows", (q) => q.max?.[r.name]),
		amount("borrowed", "BORROWED", "Use beyond min, of what others leave unused", (q) => q.borrowed?.[r.name]),
		amount("lent", "LENT", "What others use of an unused min", (q) => q.lent?.[r.name]),
		amount("pending", "PENDING", "What pods without a node request", (q) => q.pending?.[r.name]),
		amount("real", "REAL", "What is really used", r.real),
		{ id: "pods", title: "PODS", help: "With a node + waiting for one", number: true, value: (q) => q.pods?.used, cell: (q) => `${q.pods?.used ?? "-"}${q.pods?.pending ? "+" + q.pods.pending : ""}` },
	];
}

function Loans({ items, r }) {
	const by = (part) => items.filter((q) => q[part]?.[r.name] > 0).sort((a, b) => b[part][r.name] - a[part][r.name]);
	const list = (quotas, part) => quotas.map((q) => html`<li key=${q.namespace}>${q.namespace} <b>${r.print(q[part][r.name])}</b></li>`);
	const [borrowers, lenders] = [by("borrowed"), by("lent")];
	if (!borrowers.length) return html`<p class="empty">No namespace borrows ${r.title}.</p>`;
	return html`<div class="loans">
		<section aria-label="Lenders"><h3>Unused min, lent by</h3><ul>${list(lenders, "lent")}</ul></section>
		<p class="arrow" aria-hidden="true">→</p>
		<section aria-label="Borrowers"><h3>Borrowed by</h3><ul>${list(borrowers, "borrowed")}</ul></section>
	</div>`;
}

function Findings({ findings }) {
	const columns = [
		{ id: "severity", title: "SEVERITY", value: (f) => f.severity, cell: (f) => html`<${Word} kind=${f.severity === "error" ? "bad" : "warn"}>${f.severity}<//>` },
		{ id: "namespace", title: "NAMESPACE", value: (f) => f.namespace ?? "-" },
		{ id: "code", title: "CODE", value: (f) => f.code },
		{ id: "text", title: "FINDING", value: (f) => f.text },
		{ id: "behaviour", title: "WHAT IT MEANS", value: (f) => f.behaviour ?? "" },
	];
	return html`<${Table} name="lint" caption="Findings about quotas" columns=${columns} rows=${findings} keyOf=${(f) => `${f.namespace}/${f.code}/${f.resource}/${f.text}`} first="severity" empty="Nothing was found." />`;
}

/* Computed on demand: it takes seconds in a large cluster. */
function Reclaim() {
	const [asked, ask] = useState(false);
	const source = useApi(asked ? "/v1/quotas/reclaim" : null, 60);
	const { data } = source;
	return html`<section>
		<h2>Who would go</h2>
		<p class="note">Pending pods of quotas within their min, and the pods that would be evicted for them.</p>
		${!asked && html`<p><button type="button" onClick=${() => ask(true)}>Compute</button></p>`}
		${asked && html`<${Waiting} source=${source} what="victims" />`}
		${data && !data.items.length && html`<p class="empty">No pod would have to go for a pod within its min.</p>`}
		${data?.leftOut > 0 && html`<p class="note">${format.plural(data.leftOut, "pending pod")} not examined: the search ends after some seconds or pods.</p>`}
		${data?.items.map((item) => html`<${Claim} key=${`${item.namespace}/${item.name}`} item=${item} />`)}
	</section>`;
}

function Claim({ item }) {
	return html`<div class="claim">
		<h3>${item.namespace}/${item.name} on <${NodeLink} name=${item.node} /></h3>
		<p>${item.text}</p>
		<ul>
			${item.victims.map((v) => html`<li key=${`${v.namespace}/${v.name}`}>${v.namespace}/${v.name}</li>`)}
		</ul>
	</div>`;
}

export function Quotas({ params }) {
	const source = useApi("/v1/quotas", 5);
	const r = pick(RESOURCES, params.get("resource"), RESOURCES.cpu);
	const head = html`<h1>Quotas</h1><${Waiting} source=${source} what="quotas" />`;
	if (!source.data) return head;
	const { items, total, findings } = source.data;
	const most = items.reduce((m, q) => Math.max(m, q.used?.[r.name] ?? 0, q.min?.[r.name] ?? 0, q.max?.[r.name] ?? 0), 1);
	const reasons = items.filter((q) => kindOf(q.verdict) !== "plain").flatMap((q) => q.reasons.map((x) => ({ ...x, namespace: q.namespace })));
	return html`${head}
		<section class="tiles" aria-label="Sums">
			<${Tile} title="Namespaces" value=${items.length} note=${`${items.filter((q) => kindOf(q.verdict) !== "plain").length} wait or are at their max`} />
			<${Tile} title=${`${r.title} guaranteed`} value=${r.print(total?.guaranteed?.[r.name])} note=${`used ${r.print(total?.used?.[r.name])}`} />
			<${Tile} title="Borrowed" value=${r.print(total?.borrowed?.[r.name])} note=${`lent ${r.print(total?.lent?.[r.name])}`} />
			<${Tile} title="Pending" value=${r.print(total?.pending?.[r.name])} note=${`unused ${r.print(total?.unused?.[r.name])}`} />
		</section>
		<div class="controls">
			<${Choice} name="resource" label="Resource" value=${r === RESOURCES.memory ? "memory" : "cpu"} options=${Object.entries(RESOURCES).map(([id, x]) => [id, x.title])} />
		</div>
		<${Legend}
			title="Bars"
			steps=${[
				["used", "used within min"],
				["borrowed", "borrowed"],
				["lent", "lent to others"],
				["mark-whole", "min"],
				["mark-limits", "max"],
			]}
		/>
		<${Table} name="sort" caption="Quotas by namespace" columns=${columnsOf(r, most)} rows=${items} keyOf=${(q) => q.namespace} empty="No elastic quotas are known." />
		${reasons.length > 0 && html`<h2>Why pods wait</h2><ul class="reasons">${reasons.map((x) => html`<li key=${x.namespace + x.text}><b>${x.namespace}</b> ${x.text}</li>`)}</ul>`}
		<h2>Who borrows from whom: ${r.title}</h2>
		<${Loans} items=${items} r=${r} />
		<${Reclaim} />
		<${Findings} findings=${findings ?? []} />`;
}
