/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of routes, with the inputs and answers of each. The methods of a path stand together. A
 * parameter or member of a body that is not here is refused before its handler runs, except by
 * /watcher, /extender, /metrics and the health checks, which ignore it. The top of each handler's
 * file has the details of its answers.
 */
#include <string.h>

#include "aggregator/api/route.h"
#include "aggregator/policy/advice/advice.h"

/* Names of all nodes, or all nodes whole: 5000 with what a kubelet tells have about 60 MiB. */
enum { EXTENDER_BODY_MOST = 64 << 20 };

#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"
#define HTML "text/html; charset=utf-8"

const char *const api_sorts[] = {"name", "cpu", "memory", NULL};
const char *const api_unlimited[] = {"ignore", "allocatable", "requests", NULL};
static const char *const booleans[] = {"true", "false", NULL};
static const char *const score_variants[] = {"corrected", "upstream", "kep", NULL};
static const char *const quota_variants[] = {"corrected", "upstream", NULL};
static const char *const budgets[] = {"hard", "soft", NULL};
const char *const api_formats[] = {"json", "balloons", "capacitybuffer", NULL};

static const struct api_field none[] = {{0}};

/* clang-format off */
#define OPTIONAL(name, type, values, about) {name, type, values, NULL, false, about}
#define REQUIRED(name, type, values, about) {name, type, values, NULL, true, about}
#define OBJECTS(name, of, about) {name, API_OBJECTS, NULL, of, false, about}
/* clang-format on */
#define LABELS OPTIONAL("labelSelector", API_STRING, NULL, "Only objects with these labels.")
#define PAGE                                                                                       \
	OPTIONAL("limit", API_INTEGER, NULL, "At most so many items, 500 unless said."),           \
		OPTIONAL("continue", API_STRING, NULL, "The token of the page before."),           \
		OPTIONAL("sort", API_STRING, api_sorts, "By what; the largest first."), LABELS
#define UNLIMITED                                                                                  \
	OPTIONAL("unlimited", API_STRING, api_unlimited,                                           \
		 "What a container without a limit counts as.")
#define EXPLAIN OPTIONAL("explain", API_BOOLEAN, booleans, "Tell how it came about.")
#define POD                                                                                        \
	REQUIRED("pod", API_POD, NULL,                                                             \
		 "The pod it is about: a manifest, or its text in YAML or JSON.")
#define NAMESPACE OPTIONAL("namespace", API_STRING, NULL, "That of a pod which names none.")
#define QUOTA_VARIANT                                                                              \
	OPTIONAL("variant", API_STRING, quota_variants, "By which rules; the server's unless said.")
#define WINDOW                                                                                     \
	OPTIONAL("window", API_STRING, api_windows,                                                \
		 "The longest window to answer from, 15m unless said.")
#define NODES OPTIONAL("nodes", API_NAMES, NULL, "Only these nodes.")
#define EXTENDER                                                                                   \
	.content_type = JSON, .body_most = EXTENDER_BODY_MOST,                                     \
	.about =                                                                                   \
		"The ExtenderArgs or ExtenderPreemptionArgs of k8s.io/kube-scheduler/extender/v1."

const struct api_field *api_field_find(const char *name, const struct api_field *list)
{
	while (list->name && strcmp(list->name, name) != 0)
		list++;
	return list->name ? list : NULL;
}

/* --- load-watcher's --------------------------------------------------------------------------- */

const char *const api_windows[] = {"5m", "10m", "15m", NULL};

static const struct api_field watcher_query[] = {
	OPTIONAL("host", API_STRING, NULL, "Only this node."),
	WINDOW,
	{0},
};
static const struct api_field watcher_host_query[] = {WINDOW, {0}};

/* --- nodes and pods --------------------------------------------------------------------------- */

static const struct api_field nodes_query[] = {
	OPTIONAL("node", API_STRING, NULL, "Only this node."),
	PAGE,
	UNLIMITED,
	{0},
};
static const struct api_field node_query[] = {UNLIMITED, {0}};
static const struct api_field fleet_query[] = {
	OPTIONAL("columns", API_STRING, NULL, "Only these, with commas between."),
	{0},
};
static const struct api_field pods_query[] = {
	OPTIONAL("namespace", API_STRING, NULL, "Only of this namespace."),
	OPTIONAL("node", API_STRING, NULL, "Only on this node."),
	PAGE,
	OPTIONAL("peaks", API_BOOLEAN, booleans, "With the peaks of the last 24 hours."),
	{0},
};

static const struct api_field advice_query[] = {
	OPTIONAL("namespace", API_STRING, NULL, "Only of this namespace."),
	OPTIONAL("limit", API_INTEGER, NULL, "At most so many items, 500 unless said."),
	OPTIONAL("continue", API_STRING, NULL, "The token of the page before."),
	LABELS,
	OPTIONAL("policy", API_STRING, advice_policies,
		 "How much room proposals leave above what is demanded."),
	OPTIONAL("throttledBelow", API_STRING, NULL,
		 "The share of periods that a proposed CPU limit may throttle: 1% or 0.01, which "
		 "is the default."),
	EXPLAIN,
	{0},
};

static const struct api_field pod_history_query[] = {
	OPTIONAL("node", API_STRING, NULL, "On this node; the first one that has it unless said."),
	{0},
};

/* --- quotas ----------------------------------------------------------------------------------- */

static const struct api_field quotas_query[] = {
	OPTIONAL("namespace", API_STRING, NULL, "Only of this namespace."),
	QUOTA_VARIANT,
	{0},
};
static const struct api_field quota_query[] = {QUOTA_VARIANT, {0}};

const struct api_field api_admit_members[] = {POD, NAMESPACE, QUOTA_VARIANT, {0}};
const struct api_field api_preempt_members[] = {
	POD,
	NAMESPACE,
	QUOTA_VARIANT,
	OPTIONAL("nominatedNode", API_STRING, NULL, "Only this node may be its destination."),
	OPTIONAL("pdb", API_STRING, budgets,
		 "Whether PodDisruptionBudgets are kept, or broken where nothing else helps."),
	{0},
};

const struct api_field api_reserve_members[] = {
	REQUIRED("plan", API_STRING, NULL, "The id of the plan, as it is listed."),
	REQUIRED("namespace", API_STRING, NULL, "That of the pending pod of the plan."),
	REQUIRED("name", API_STRING, NULL, "Its name."),
	REQUIRED("uid", API_STRING, NULL, "Its uid."),
	{0},
};

static const char *const text_alone[] = {NULL};

/* --- where pods go ---------------------------------------------------------------------------- */

const struct api_field api_scores_members[] = {
	OPTIONAL("pod", API_POD, NULL, "The pod it is about, likewise; one that asks for nothing."),
	NODES,
	OPTIONAL("plugins", API_NAMES, NULL, "By these plugins; those of the blend unless said."),
	OPTIONAL("blend", API_OBJECT, NULL, "Weights by plugin."),
	OPTIONAL("args", API_OBJECT, NULL,
		 "Arguments by plugin, by upstream's names. LimitAware: resources [{name, weight}] "
		 "(cpu, memory, ephemeral-storage, hugepages-SIZE, extended ones), unlimited, init "
		 "(count|ignore), normalization (MinMax|Quantiles)."),
	OPTIONAL("variant", API_STRING, score_variants, "By which rules."),
	OPTIONAL("explain", API_BOOLEAN, NULL, "With every term, and reasons."),
	OPTIONAL("fits", API_BOOLEAN, NULL, "With whether the pod fits on each node."),
	{0},
};
const struct api_field api_fit_members[] = {POD, NODES, {0}};

/* Plain scores are what schedulers ask for; these look for a place for the pod on every node. */
static const char *const scores_long_by[] = {"explain", "fits", NULL};

/* --- plans ------------------------------------------------------------------------------------ */

static const struct api_field drain_query[] = {
	OPTIONAL("node", API_STRING, NULL, "Only these nodes, with commas between."),
	LABELS,
	EXPLAIN,
	{0},
};
static const struct api_field drain_history_query[] = {
	OPTIONAL("node", API_STRING, NULL, "Only these nodes, with commas between."),
	OPTIONAL("event", API_STRING, NULL, "Only this event, such as waveReport."),
	OPTIONAL("limit", API_INTEGER, NULL, "At most so many decisions, 500 unless said."),
	{0},
};
static const struct api_field slack_query[] = {
	OPTIONAL("class", API_STRING, NULL, "Only this class of placeholders."),
	OPTIONAL("node", API_STRING, NULL, "Only what stands on this node."),
	EXPLAIN,
	OPTIONAL("format", API_STRING, api_formats,
		 "Objects for kubectl apply in YAML, in place of this one."),
	{0},
};

/* --- the actuator ----------------------------------------------------------------------------- */

static const char *const actions[] = {"drain", "undo", "pause", "resume", NULL};
static const char *const told_states[] = {"waiting", "taken", "refused", "done", NULL};
static const char *const phases[] = {"claimed", "tainted",    "evicting", "verified",
				     "drained", "rolledBack", NULL};
static const char *const outcomes[] = {"drained", "rolledBack", "stopped", NULL};
static const char *const wave_kind[] = {"WaveReport", NULL};

const struct api_field api_act_request_members[] = {
	REQUIRED("action", API_STRING, actions, "What the actuator is to do."),
	OPTIONAL("nodes", API_NAMES, NULL, "Of drain and undo: the nodes, 1 to 100."),
	OPTIONAL("dryRun", API_BOOLEAN, NULL, "Of drain and undo: change nothing, and tell."),
	{0},
};
static const struct api_field reported_request[] = {
	REQUIRED("id", API_STRING, NULL, "The request's."),
	REQUIRED("state", API_STRING, told_states + 1, "What became of it."),
	OPTIONAL("reasons", API_NAMES, NULL, "Why it is refused."),
	{0},
};
const struct api_field api_act_told_members[] = {
	REQUIRED("id", API_STRING, NULL, "The request's."),
	REQUIRED("action", API_STRING, actions, "What the actuator is to do."),
	REQUIRED("nodes", API_NAMES, NULL, "The nodes."),
	REQUIRED("dryRun", API_BOOLEAN, NULL, "Change nothing, and tell."),
	OPTIONAL("user", API_STRING, NULL, "Whose request it is."),
	REQUIRED("at", API_TIME, NULL, "When it was made."),
	REQUIRED("state", API_STRING, told_states, "What became of it."),
	REQUIRED("reasons", API_NAMES, NULL, "Why it is refused."),
	{0},
};
static const struct api_field reported_node[] = {
	REQUIRED("name", API_STRING, NULL, "The node's."),
	OPTIONAL("plan", API_STRING, NULL, "The plan that it is drained by."),
	REQUIRED("phase", API_STRING, phases, "How far its drain is."),
	OPTIONAL("moved", API_COUNT, NULL, "Pods that are evicted and bound again."),
	OPTIONAL("of", API_COUNT, NULL, "Pods that have to move."),
	OPTIONAL("message", API_STRING, NULL, "What it waits for, or why it is rolled back."),
	OPTIONAL("since", API_TIME, NULL, "When the phase began."),
	{0},
};
static const struct api_field reported_destination[] = {
	REQUIRED("node", API_STRING, NULL, "The destination."),
	OPTIONAL("cpuPromised", API_NUMBER, NULL, "Cores that the plan predicts."),
	OPTIONAL("cpuMeasured", API_NUMBER, NULL, "Cores in use."),
	OPTIONAL("cpuCap", API_NUMBER, NULL, "Cores that use must not exceed."),
	OPTIONAL("memoryPromised", API_NUMBER, NULL, "Bytes that the plan predicts."),
	OPTIONAL("memoryMeasured", API_NUMBER, NULL, "Bytes in use."),
	OPTIONAL("contention", API_NUMBER, NULL, "The share of time that tasks wait for CPU."),
	{0},
};
static const struct api_field reported_rescue[] = {
	REQUIRED("namespace", API_STRING, NULL, "The namespace of the pod."),
	REQUIRED("name", API_STRING, NULL, "The pod that gets room."),
	REQUIRED("node", API_STRING, NULL, "The node with the room."),
	OPTIONAL("evicted", API_COUNT, NULL, "Evicted victims."),
	OPTIONAL("victims", API_COUNT, NULL, "Victims of the plan."),
	{0},
};
const struct api_field api_act_report_members[] = {
	REQUIRED("holder", API_STRING, NULL, "Who holds the Lease."),
	REQUIRED("transitions", API_COUNT, NULL, "Of the Lease; a report of fewer is refused."),
	OPTIONAL("version", API_STRING, NULL, "The actuator's."),
	OPTIONAL("paused", API_BOOLEAN, NULL, "It begins nothing new."),
	OPTIONAL("dryRun", API_BOOLEAN, NULL, "It changes nothing."),
	OPTIONAL("acts", API_NAMES, NULL, "What it may do."),
	OBJECTS("requests", reported_request, "What became of requests."),
	OBJECTS("nodes", reported_node, "Nodes under way."),
	OBJECTS("destinations", reported_destination, "Promised against measured."),
	OBJECTS("rescues", reported_rescue, "Pods that reclaim makes room for."),
	{0},
};
static const struct api_field wave_node[] = {
	REQUIRED("name", API_STRING, NULL, "The node's."),
	REQUIRED("outcome", API_STRING, outcomes, "How its drain ended."),
	OPTIONAL("evictions", API_COUNT, NULL, "Of its pods."),
	OPTIONAL("seconds", API_NUMBER, NULL, "From its taint to its end."),
	{0},
};
const struct api_field api_wave_report_members[] = {
	REQUIRED("kind", API_STRING, wave_kind, "What the object is."),
	REQUIRED("plan", API_STRING, NULL, "The plan's name."),
	REQUIRED("begin", API_TIME, NULL, "When the first node was claimed."),
	REQUIRED("end", API_TIME, NULL, "When the last one was done."),
	REQUIRED("outcome", API_STRING, outcomes, "How the wave ended."),
	OPTIONAL("reason", API_STRING, NULL, "Why it was stopped or rolled back."),
	OBJECTS("nodes", wave_node, "Its nodes."),
	OPTIONAL("evictions", API_COUNT, NULL, "Pods that were evicted."),
	OPTIONAL("refused", API_COUNT, NULL, "Evictions that the API refused."),
	OPTIONAL("promised", API_FIGURES, NULL, "What the plan promised."),
	OPTIONAL("achieved", API_FIGURES, NULL, "What was measured of it."),
	OPTIONAL("violations", API_NAMES, NULL, "What was broken, by which numbers."),
	{0},
};

/* --- the routes ------------------------------------------------------------------------------- */

const struct route api_routes[] = {
	{"/watcher", NULL, api_watcher, API_WORK_SHORT,
	 "Use of all nodes, as load-watcher answers it", .content_type = JSON,
	 .query = watcher_query, .lenient = true, .access = API_ACCESS_WATCHER},
	{"/watcher/health", NULL, api_watcher_health, API_WORK_SHORT,
	 "200 while some node is heard, else 503", .access = API_ACCESS_WATCHER},
	{"/watcher/{host}", NULL, api_watcher, API_WORK_SHORT,
	 "Use of one node, as load-watcher answers it", .content_type = JSON,
	 .query = watcher_host_query, .lenient = true, .access = API_ACCESS_WATCHER},
	{"/extender/filter", "POST", api_extender_filter, API_WORK_SCHEDULER,
	 "Nodes that may have the pod, and why others may not", EXTENDER},
	{"/extender/prioritize", "POST", api_extender_prioritize, API_WORK_SCHEDULER,
	 "The score of each node for the pod, 0 to 10", EXTENDER},
	{"/extender/preempt", "POST", api_extender_preempt, API_WORK_SCHEDULER,
	 "Which pods may be evicted for one that found no place", EXTENDER},
	{"/v1/nodes", "GET", api_nodes, API_WORK_SHORT, "What nodes have, promised and use",
	 .kind = "NodeList", .resource = "nodes", .list = true, .query = nodes_query},
	{"/v1/nodes/{name}/history", "GET", api_node_history, API_WORK_SHORT,
	 "Use of a node in the last 15 minutes, by 15 seconds", .kind = "NodeHistory", .list = true,
	 .query = none},
	{"/v1/nodes/{name}", "GET", api_nodes, API_WORK_SHORT,
	 "What one node has, promised and uses", .kind = "Node", .query = node_query},
	{"/v1/fleet", "GET", api_fleet, API_WORK_SHORT,
	 "All nodes as rows of columns, for what shows them at once", .kind = "Fleet",
	 .resource = "fleets", .query = fleet_query},
	{"/v1/names", "GET", api_names, API_WORK_SHORT,
	 "What nodes, namespaces and classes of placeholders are called", .kind = "Names",
	 .resource = "names", .query = none},
	{"/v1/pods", "GET", api_pods, API_WORK_SHORT,
	 "Use of pods, or other workloads, against requests and limits; state of resizes",
	 .kind = "PodList", .resource = "pods", .list = true, .query = pods_query},
	{"/v1/pods/{namespace}/{name}/history", "GET", api_pod_history, API_WORK_SHORT,
	 "Use of a pod or another workload in the last 15 minutes, by 30 seconds",
	 .kind = "PodHistory", .list = true, .query = pod_history_query},
	{"/v1/advice", "GET", api_advice, API_WORK_LONG,
	 "Requests and limits for the containers of workloads, by what they demanded",
	 .kind = "AdviceList", .resource = "advices", .list = true, .query = advice_query},
	{"/v1/quotas", "GET", api_quotas, API_WORK_SHORT,
	 "Elastic quotas: guaranteed, used, borrowed, lent, and really used", .kind = "QuotaList",
	 .resource = "quotas", .list = true, .query = quotas_query},
	{"/v1/quotas/admit", "POST", api_quotas_admit, API_WORK_LONG,
	 "Whether quotas let a pod in, and what would", .kind = "QuotaAdmission", .query = none,
	 .body = api_admit_members, .long_by = text_alone},
	{"/v1/quotas/preempt", "POST", api_quotas_preempt, API_WORK_LONG,
	 "Whose pods would have to go for a pod", .kind = "QuotaPreemption", .query = none,
	 .body = api_preempt_members},
	{"/v1/quotas/reclaim", "GET", api_quotas_reclaim, API_WORK_LONG,
	 "Plans for pending pods of quotas within their min: whose pods give way to them",
	 .kind = "QuotaReclaimList", .list = true, .query = quota_query},
	{"/v1/quotas/reclaim/reservations", "POST", api_quotas_reserve, API_WORK_LONG,
	 "Claims the room of a plan's victims for its pod, before they are evicted",
	 .kind = "QuotaReservation", .query = none, .acts = true, .body = api_reserve_members},
	{"/v1/quotas/{namespace}", "GET", api_quotas, API_WORK_SHORT,
	 "The elastic quota of one namespace", .kind = "Quota", .query = quota_query},
	{"/v1/scores", "POST", api_scores, API_WORK_LONG,
	 "The score of each node for a pod, with its terms", .kind = "ScoreList",
	 .resource = "scores", .list = true, .query = none, .body = api_scores_members,
	 .long_by = scores_long_by},
	{"/v1/drain", "GET", api_drain, API_WORK_SHORT,
	 "Which nodes may be drained, where their pods would go, and why others stay",
	 .kind = "DrainPlan", .resource = "drains", .list = true, .query = drain_query},
	{"/v1/drain/history", "GET", api_drain_history, API_WORK_SHORT,
	 "What was decided about drains, the newest first", .kind = "DrainHistory", .list = true,
	 .query = drain_history_query},
	{"/v1/drain/history", "POST", api_drain_report, API_WORK_SHORT,
	 "Keeps the actuator's report about a finished wave", .kind = "WaveReport",
	 .resource = "drains", .subresource = "history", .query = none, .acts = true,
	 .body = api_wave_report_members},
	{"/v1/act", "GET", api_act, API_WORK_SHORT,
	 "What the actuator does, and what it is asked to do", .kind = "Act", .resource = "acts",
	 .query = none},
	{"/v1/act", "PUT", api_act_report, API_WORK_SHORT,
	 "Takes the actuator's report about what it does", .kind = "Act", .resource = "acts",
	 .subresource = "report", .query = none, .acts = true, .body = api_act_report_members},
	{"/v1/act/requests", "POST", api_act_request, API_WORK_SHORT,
	 "Asks the actuator to drain nodes, to undo that, to pause or to go on",
	 .kind = "ActRequest", .query = none, .acts = true, .status = 202,
	 .body = api_act_request_members},
	{"/v1/fit", "POST", api_fit, API_WORK_LONG,
	 "Where a pod could go now, and why not elsewhere", .kind = "FitList", .resource = "fits",
	 .list = true, .query = none, .body = api_fit_members},
	{"/v1/slack", "GET", api_slack, API_WORK_SHORT,
	 "Room that is kept for pods to come, and what could start now", .kind = "SlackList",
	 .resource = "slacks", .list = true, .other_type = "application/yaml",
	 .query = slack_query},
	{"/v1/snapshot", "GET", api_snapshot, API_WORK_SHORT,
	 "All that is known, to replay answers from", .kind = "Snapshot", .resource = "snapshots",
	 .query = none},
	{"/v1/status", "GET", api_status, API_WORK_SHORT,
	 "Agents, the Kubernetes API, the database, and what was refused", .kind = "Status",
	 .resource = "statuses", .query = none},
	{"/v1/doctor", "GET", api_doctor, API_WORK_SHORT, "What is wrong, and what to do about it",
	 .kind = "Diagnosis", .resource = "diagnoses", .query = none},
	{"/metrics", "GET", api_metrics, API_WORK_SHORT, "Metrics for Prometheus",
	 .content_type = "text/plain; version=0.0.4; charset=utf-8"},
	{"/healthz", "GET", api_healthz, API_WORK_NOW, "200 while the service answers",
	 .content_type = TEXT, .access = API_ACCESS_PUBLIC},
	{"/openapi.json", "GET", api_openapi, API_WORK_SHORT, "This description",
	 .content_type = JSON, .query = none},
	{"/readyz", "GET", api_readyz, API_WORK_NOW,
	 "200 once everything was read that answers come from, else 503", .content_type = TEXT,
	 .access = API_ACCESS_PUBLIC},
	{"/", "GET", api_page, API_WORK_NOW, "The web page", .content_type = HTML,
	 .access = API_ACCESS_PUBLIC},
	{"/page/{file}", "GET", api_page, API_WORK_NOW, "A file of the web page",
	 .content_type = TEXT, .access = API_ACCESS_PUBLIC},
	{0},
};
