/* One pod, or another workload: its last 15 minutes against request and limits, and its containers. */
import { useApi } from "../api.js";
import * as format from "../format.js";
import { html } from "../html.js";
import { NodeLink, Waiting } from "../parts.js";
import { Table } from "../table.js";
import { Charts } from "./node.js";

const amount = (id, title, value, print) => ({ id, title, number: true, value, cell: (c) => print(value(c)) });

const COLUMNS = [
	{ id: "name", title: "CONTAINER", value: (c) => c.name ?? c.id ?? "-" },
	amount("cpu", "CPU", (c) => c.usage?.cpuMillicores?.latest?.value, format.cpu),
	amount("cpulim", "CPU-KERNEL", (c) => c.kernelLimits?.cpuMillicores, (v) => format.limit(v, format.cpu)),
	amount("workset", "WORKSET", (c) => c.usage?.workingSetBytes?.latest?.value, format.bytes),
	amount("memlim", "MEM-KERNEL", (c) => c.kernelLimits?.memoryBytes, (v) => format.limit(v, format.bytes)),
	amount("waiting", "WAITING", (c) => c.contention?.cpu, format.percent),
];

const lines = (pod, name) => [
	{ kind: "requests", title: "request", value: pod.requests?.[name] },
	{ kind: "limits", title: "limit", value: pod.limits?.[name] ?? NaN },
	{ kind: "capacity", title: "kernel's limit", value: pod.kernelLimits?.[name] === pod.limits?.[name] ? NaN : (pod.kernelLimits?.[name] ?? NaN) },
];

export function Pod({ parts: [namespace, name], params }) {
	const node = params.get("node") ?? "";
	const at = node ? `?node=${encodeURIComponent(node)}` : "";
	const history = useApi(`/v1/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/history${at}`);
	const pods = useApi(node ? `/v1/pods?node=${encodeURIComponent(node)}&limit=5000` : `/v1/pods?namespace=${encodeURIComponent(namespace)}&limit=5000`);
	const pod = pods.data?.items.find((p) => p.name === name && (p.namespace ?? "-") === namespace);
	return html`<p class="path">${node && html`<${NodeLink} name=${node} /> /`}</p>
		<h1>${namespace === "-" ? name : `${namespace}/${name}`}</h1>
		<${Waiting} source=${pods} what="the pod" />
		${pods.data && !pod && html`<p class="problem" role="alert">No such pod is known any more.</p>`}
		${pod &&
		html`<p class="lead">
				${[pod.phase, pod.qosClass, pod.workload && `${pod.workload.kind} ${pod.workload.name}`].filter(Boolean).join(", ")}. Throttled in
				${" " + format.percent(pod.contention?.throttledRatio)} of the periods and killed ${pod.contention?.oomKills ?? "-"} times for want of memory in 5
				minutes.
			</p>
			<${Charts} source=${history} cpuLines=${lines(pod, "cpuMillicores")} memoryLines=${lines(pod, "memoryBytes")} />
			<${Table} name="sort" caption="Containers" columns=${COLUMNS} rows=${pod.containers ?? []} keyOf=${(c) => c.cgroup ?? c.name} empty="No containers are known." />`}`;
}
