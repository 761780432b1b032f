/* All nodes, as pictures of the fleet need them: their measures, steps of colour, search and groups. */
import { useApi } from "./api.js";
import * as format from "./format.js";
import { useMemo } from "./html.js";

/* Members of a node here, and the columns of /v1/fleet that they come from; null is unknown. */
const FIELDS = {
	name: "name",
	state: "source.state",
	ready: "ready",
	cordoned: "unschedulable",
	unknown: "unknownToApi",
	age: "source.ageSeconds",
	cpuAllocatable: "allocatable.cpuMillicores",
	memAllocatable: "allocatable.memoryBytes",
	cpuRequests: "requests.cpuMillicores",
	memRequests: "requests.memoryBytes",
	cpuDeclared: "limitRatio.declared.cpu",
	memDeclared: "limitRatio.declared.memory",
	cpuKernel: "limitRatio.kernel.cpu",
	memKernel: "limitRatio.kernel.memory",
	cpuUnlimited: "unlimitedContainers.cpu",
	memUnlimited: "unlimitedContainers.memory",
	pods: "pods",
	cpu: "usage.cpuMillicores.latest.value",
	cpuMean: "usage.cpuMillicores.windows.5m.mean",
	cpuSigma: "usage.cpuMillicores.windows.5m.stddev",
	cpuP95: "usage.cpuMillicores.windows.5m.p95",
	workset: "usage.workingSetBytes.latest.value",
	worksetMean: "usage.workingSetBytes.windows.5m.mean",
	worksetSigma: "usage.workingSetBytes.windows.5m.stddev",
	cpuWaited: "contention.cpu",
	memWaited: "contention.memory",
	oomKills: "contention.oomKills",
};
const NAMES = Object.keys(FIELDS);
const FLEET = `/v1/fleet?columns=${Object.values(FIELDS).join()}`;
/* Half of the bytes of a node, and they rarely change. */
const LABELS = "/v1/fleet?columns=name,labels";

function readNode(row, labels) {
	const node = { labels: labels?.get(row[0]) ?? {} };
	for (let i = 0; i < NAMES.length; i++) node[NAMES[i]] = row[i];
	return node;
}

/* {source, nodes, keys, total}: nodes are null until they came; keys are labels to group by. */
export function useFleet() {
	const source = useApi(FLEET, 5);
	const { data: labels, error } = useApi(LABELS, 60);
	const byName = useMemo(() => labels && new Map(labels.rows), [labels]);
	const nodes = useMemo(() => source.data?.rows.map((row) => readNode(row, byName)) ?? null, [source.data, byName]);
	const keys = useMemo(() => groupKeys(labels?.rows ?? []), [labels]);
	return { source: { data: source.data, error: source.error ?? error }, nodes, keys, total: source.data?.total };
}

/* --- measures */

const largest = (a, b) => Math.max(a ?? b ?? NaN, b ?? a ?? NaN);

export const cpuShare = (n) => format.share(n.cpu, n.cpuAllocatable);
export const memoryShare = (n) => format.share(n.workset, n.memAllocatable);

const USE = [0.2, 0.4, 0.6, 0.8, 0.95];
const WAITS = [0.01, 0.02, 0.05, 0.1, 0.25];
const RATIOS = [0.5, 0.8, 1, 1.5, 2];
const AGES = [6, 12, 30, 60, 300];

/*
 * value(node) is NaN or null where it is unknown; bounds are the ends of the first five of six steps;
 * cluster: known only where a Kubernetes API is followed.
 */
export const METRICS = {
	cpu: { title: "CPU use", value: cpuShare, bounds: USE, print: format.percent },
	memory: { title: "Memory use", value: memoryShare, bounds: USE, print: format.percent },
	p95: { title: "CPU, 95th percentile", value: (n) => format.share(n.cpuP95, n.cpuAllocatable), bounds: USE, print: format.percent },
	requests: { title: "CPU requests", value: (n) => format.share(n.cpuRequests, n.cpuAllocatable), bounds: USE, print: format.percent, cluster: true },
	contention: { title: "Contention", value: (n) => largest(n.cpuWaited, n.memWaited), bounds: WAITS, print: format.percent },
	limits: { title: "Limit ratio", value: (n) => largest(n.cpuDeclared, n.memDeclared), bounds: RATIOS, print: format.percent, cluster: true },
	age: { title: "Age of the data", value: (n) => n.age, bounds: AGES, print: format.age },
};

export const STEPS = 6;

/* 0 to 5, or -1 where the value is unknown. */
export function stepOf(metric, value) {
	if (!Number.isFinite(value)) return -1;
	const i = metric.bounds.findIndex((bound) => value < bound);
	return i < 0 ? STEPS - 1 : i;
}

export function stepText(metric, step) {
	if (step < 0) return "unknown";
	if (step === 0) return "below " + metric.print(metric.bounds[0]);
	if (step === STEPS - 1) return metric.print(metric.bounds[STEPS - 2]) + " and more";
	return `${metric.print(metric.bounds[step - 1])} to ${metric.print(metric.bounds[step])}`;
}

/* Labels that divide the nodes into a few groups, by name. rows: [name, labels] of each node. */
function groupKeys(rows) {
	const values = new Map();
	for (const [, labels] of rows)
		for (const [key, value] of Object.entries(labels)) {
			if (!values.has(key)) values.set(key, new Set());
			values.get(key).add(value);
		}
	return [...values].filter(([, set]) => set.size > 1 && set.size <= 60).map(([key]) => key).sort();
}

/* [[value, nodes]] by that label, sorted; one group without a name where no label is chosen. */
export function groupNodes(nodes, key) {
	if (!key) return [["", nodes]];
	const groups = new Map();
	for (const n of nodes) {
		const value = n.labels[key] ?? "(none)";
		if (!groups.has(value)) groups.set(value, []);
		groups.get(value).push(n);
	}
	return [...groups].sort(([a], [b]) => format.order(a, b));
}

/* Whether a node's name or one of its labels ("key=value") has all words of the search. */
export function matches(node, words) {
	const labels = () => Object.entries(node.labels).map(([k, v]) => `${k}=${v}`);
	return words.every((w) => node.name.toLowerCase().includes(w) || labels().some((l) => l.toLowerCase().includes(w)));
}

export const words = (text) => (text ?? "").toLowerCase().split(/\s+/).filter(Boolean);

/* Lines about a node for the box beside the pointer. */
export function describe(n) {
	const lines = [n.name, `CPU ${format.cpuOf(n.cpu, n.cpuAllocatable)} (${format.percent(cpuShare(n))})`];
	lines.push(`5 minutes: mean ${format.cpu(n.cpuMean)}, sigma ${format.cpu(n.cpuSigma)}, P95 ${format.cpu(n.cpuP95)}`);
	lines.push(`working set ${format.bytesOf(n.workset, n.memAllocatable)} (${format.percent(memoryShare(n))})`);
	if (n.cpuRequests !== null) lines.push(`CPU requests ${format.percent(METRICS.requests.value(n))}, limits ${format.percent(n.cpuDeclared)}`);
	lines.push(`heard ${format.age(n.age)} ago${n.ready === false ? ", NotReady" : ""}${n.cordoned ? ", cordoned" : ""}`);
	return lines;
}
