/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and answers of each route. A parameter or member of a body that is not here is refused
 * before its handler runs, except by /watcher, /extender, /metrics and the health checks, which
 * ignore it. The top of each handler's file has the details of its answers.
 */
#include <string.h>

#include "aggregator/api/route.h"

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

#define LABELS                                                                                     \
	{                                                                                          \
		"labelSelector", API_STRING, NULL, false, "Only objects with these labels."        \
	}
#define PAGE                                                                                       \
	{"limit", API_INTEGER, NULL, false, "At most so many items, 500 unless said."},            \
		{"continue", API_STRING, NULL, false, "The token of the page before."},            \
		{"sort", API_STRING, api_sorts, false, "By what; the largest first."}, LABELS
#define UNLIMITED                                                                                  \
	{                                                                                          \
		"unlimited", API_STRING, api_unlimited, false,                                     \
			"What a container without a limit counts as."                              \
	}
#define EXPLAIN                                                                                    \
	{                                                                                          \
		"explain", API_BOOLEAN, booleans, false, "Tell how it came about."                 \
	}
#define POD                                                                                        \
	{                                                                                          \
		"pod", API_POD, NULL, true,                                                        \
			"The pod it is about: a manifest, or its text in YAML or JSON."            \
	}
#define NAMESPACE                                                                                  \
	{                                                                                          \
		"namespace", API_STRING, NULL, false, "That of a pod which names none."            \
	}
#define QUOTA_VARIANT                                                                              \
	{                                                                                          \
		"variant", API_STRING, quota_variants, false,                                      \
			"By which rules; the server's unless said."                                \
	}

const struct api_field *api_field_find(const char *name, const struct api_field *list)
{
	while (list->name && strcmp(list->name, name) != 0)
		list++;
	return list->name ? list : NULL;
}

/* --- load-watcher's --------------------------------------------------------------------------- */

static const char *const windows[] = {"5m", "10m", "15m", NULL};

#define WINDOW                                                                                     \
	{                                                                                          \
		"window", API_STRING, windows, false,                                              \
			"The longest window to answer from, 15m unless said."                      \
	}

static const struct api_field watcher_query[] = {
	{"host", API_STRING, NULL, false, "Only this node."},
	WINDOW,
	{0},
};
static const struct api_field watcher_host_query[] = {WINDOW, {0}};

const struct api_description api_is_watcher = {
	.summary = "Use of all nodes, as load-watcher answers it",
	.content_type = JSON,
	.query = watcher_query,
	.lenient = true,
};
const struct api_description api_is_watcher_host = {
	.summary = "Use of one node, as load-watcher answers it",
	.content_type = JSON,
	.query = watcher_host_query,
	.lenient = true,
};
const struct api_description api_is_watcher_health = {
	.summary = "200 while some node is heard, else 503",
};

/* --- the extender's --------------------------------------------------------------------------- */

#define EXTENDER                                                                                   \
	.content_type = JSON, .posted = true,                                                      \
	.about =                                                                                   \
		"The ExtenderArgs or ExtenderPreemptionArgs of k8s.io/kube-scheduler/extender/v1."

const struct api_description api_is_extender_filter = {
	.summary = "Nodes that may have the pod, and why others may not",
	EXTENDER,
};
const struct api_description api_is_extender_prioritize = {
	.summary = "What each node is worth for the pod, 0 to 10",
	EXTENDER,
};
const struct api_description api_is_extender_preempt = {
	.summary = "Which pods may be evicted for one that found no place",
	EXTENDER,
};

/* --- nodes and pods --------------------------------------------------------------------------- */

static const struct api_field nodes_query[] = {
	{"node", API_STRING, NULL, false, "Only this node."},
	PAGE,
	UNLIMITED,
	{0},
};
static const struct api_field node_query[] = {UNLIMITED, {0}};
static const struct api_field fleet_query[] = {
	{"columns", API_STRING, NULL, false, "Only these, with commas between."},
	{0},
};
static const struct api_field pods_query[] = {
	{"namespace", API_STRING, NULL, false, "Only of this namespace."},
	{"node", API_STRING, NULL, false, "Only on this node."},
	PAGE,
	{"peaks", API_BOOLEAN, booleans, false, "With the peaks of the last 24 hours."},
	{0},
};

static const struct api_field pod_history_query[] = {
	{"node", API_STRING, NULL, false, "On this node; the first one that has it unless said."},
	{0},
};

const struct api_description api_is_nodes = {
	.summary = "What nodes have, promised and use",
	.kind = "NodeList",
	.resource = "nodes",
	.list = true,
	.query = nodes_query,
};
const struct api_description api_is_node = {
	.summary = "What one node has, promised and uses",
	.kind = "Node",
	.query = node_query,
};
const struct api_description api_is_fleet = {
	.summary = "All nodes as rows of columns, for what shows them at once",
	.kind = "Fleet",
	.resource = "fleets",
	.query = fleet_query,
};
const struct api_description api_is_node_history = {
	.summary = "Use of a node in the last 15 minutes, by 15 seconds",
	.kind = "NodeHistory",
	.list = true,
	.query = none,
};
const struct api_description api_is_pods = {
	.summary = "Use of pods, or other workloads, against requests and limits; state of resizes",
	.kind = "PodList",
	.resource = "pods",
	.list = true,
	.query = pods_query,
};

const struct api_description api_is_pod_history = {
	.summary = "Use of a pod or another workload in the last 15 minutes, by 30 seconds",
	.kind = "PodHistory",
	.list = true,
	.query = pod_history_query,
};

/* --- quotas ----------------------------------------------------------------------------------- */

static const struct api_field quotas_query[] = {
	{"namespace", API_STRING, NULL, false, "Only of this namespace."},
	QUOTA_VARIANT,
	{0},
};
static const struct api_field quota_query[] = {QUOTA_VARIANT, {0}};

const struct api_field api_admit_members[] = {POD, NAMESPACE, QUOTA_VARIANT, {0}};
const struct api_field api_preempt_members[] = {
	POD,
	NAMESPACE,
	QUOTA_VARIANT,
	{"nominatedNode", API_STRING, NULL, false, "Only this node may be its destination."},
	{"pdb", API_STRING, budgets, false,
	 "Whether PodDisruptionBudgets are kept, or broken where nothing else helps."},
	{0},
};

#define REQUIRED(name, about)                                                                      \
	{                                                                                          \
		(name), API_STRING, NULL, true, (about)                                            \
	}

const struct api_field api_reserve_members[] = {
	REQUIRED("plan", "The id of the plan, as it is listed."),
	REQUIRED("namespace", "That of the pending pod of the plan."),
	REQUIRED("name", "Its name."),
	REQUIRED("uid", "Its uid."),
	{0},
};

const struct api_description api_is_quotas = {
	.summary = "Elastic quotas: guaranteed, used, borrowed, lent, and really used",
	.kind = "QuotaList",
	.resource = "quotas",
	.list = true,
	.query = quotas_query,
};
const struct api_description api_is_quota = {
	.summary = "The elastic quota of one namespace",
	.kind = "Quota",
	.query = quota_query,
};
static const char *const text_alone[] = {NULL};

const struct api_description api_is_quotas_admit = {
	.long_by = text_alone,
	.summary = "Whether quotas let a pod in, and what would",
	.kind = "QuotaAdmission",
	.query = none,
	.posted = true,
	.body = api_admit_members,
};
const struct api_description api_is_quotas_preempt = {
	.summary = "Whose pods would have to go for a pod",
	.kind = "QuotaPreemption",
	.query = none,
	.posted = true,
	.body = api_preempt_members,
};
const struct api_description api_is_quotas_reclaim = {
	.summary = "Plans for pending pods of quotas within their min: whose pods give way to them",
	.kind = "QuotaReclaimList",
	.list = true,
	.query = quota_query,
};

const struct api_description api_is_quotas_reserve = {
	.summary = "Claims the room of a plan's victims for its pod, before they are evicted",
	.kind = "QuotaReservation",
	.query = none,
	.posted = true,
	.acts = true,
	.body = api_reserve_members,
};

/* --- where pods go ---------------------------------------------------------------------------- */

#define NODES                                                                                      \
	{                                                                                          \
		"nodes", API_NAMES, NULL, false, "Only these nodes."                               \
	}

const struct api_field api_scores_members[] = {
	{"pod", API_POD, NULL, false, "The pod it is about, likewise; one that asks for nothing."},
	NODES,
	{"plugins", API_NAMES, NULL, false, "By these plugins; those of the blend unless said."},
	{"blend", API_OBJECT, NULL, false, "Weights by plugin."},
	{"args", API_OBJECT, NULL, false,
	 "Arguments by plugin, by upstream's names. LimitAware: resources [{name, weight}] (cpu, "
	 "memory, ephemeral-storage, hugepages-SIZE, extended ones), unlimited, init "
	 "(count|ignore), normalization (MinMax|Quantiles)."},
	{"variant", API_STRING, score_variants, false, "By which rules."},
	{"explain", API_BOOLEAN, NULL, false, "With every term, and reasons."},
	{"fits", API_BOOLEAN, NULL, false, "With whether the pod fits on each node."},
	{0},
};
const struct api_field api_fit_members[] = {POD, NODES, {0}};

/* Plain scores are what schedulers ask for; these look for a place for the pod on every node. */
static const char *const scores_long_by[] = {"explain", "fits", NULL};

const struct api_description api_is_scores = {
	.long_by = scores_long_by,
	.summary = "What each node is worth for a pod, and why",
	.kind = "ScoreList",
	.resource = "scores",
	.list = true,
	.query = none,
	.posted = true,
	.body = api_scores_members,
};
const struct api_description api_is_fit = {
	.summary = "Where a pod could go now, and why not elsewhere",
	.kind = "FitList",
	.resource = "fits",
	.list = true,
	.query = none,
	.posted = true,
	.body = api_fit_members,
};

/* --- plans ------------------------------------------------------------------------------------ */

static const struct api_field drain_query[] = {
	{"node", API_STRING, NULL, false, "Only these nodes, with commas between."},
	LABELS,
	EXPLAIN,
	{0},
};
static const struct api_field drain_history_query[] = {
	{"node", API_STRING, NULL, false, "Only these nodes, with commas between."},
	{"event", API_STRING, NULL, false, "Only this event, such as waveReport."},
	{"limit", API_INTEGER, NULL, false, "At most so many decisions, 500 unless said."},
	{0},
};
static const struct api_field slack_query[] = {
	{"class", API_STRING, NULL, false, "Only this class of placeholders."},
	{"node", API_STRING, NULL, false, "Only what stands on this node."},
	EXPLAIN,
	{"format", API_STRING, api_formats, false,
	 "Objects for kubectl apply in YAML, in place of this one."},
	{0},
};

const struct api_description api_is_drain = {
	.summary = "Which nodes may be drained, where their pods would go, and why others stay",
	.kind = "DrainPlan",
	.resource = "drains",
	.list = true,
	.query = drain_query,
};
const struct api_description api_is_drain_history = {
	.summary = "What was decided about drains, the newest first",
	.kind = "DrainHistory",
	.list = true,
	.query = drain_history_query,
};
const struct api_description api_is_drain_report = {
	.summary = "Keeps the actuator's report about a finished wave",
	.kind = "WaveReport",
	.resource = "drains",
	.subresource = "history",
	.query = none,
	.posted = true,
	.acts = true,
	.body = api_wave_report_members,
};
const struct api_description api_is_slack = {
	.summary = "Room that is kept for pods to come, and what could start now",
	.kind = "SlackList",
	.resource = "slacks",
	.list = true,
	.other_type = "application/yaml",
	.query = slack_query,
};

/* --- the actuator ----------------------------------------------------------------------------- */

static const char *const actions[] = {"drain", "undo", "pause", "resume", NULL};
static const char *const request_states[] = {"taken", "refused", "done", NULL};
static const char *const phases[] = {"claimed", "tainted",    "evicting", "verified",
				     "drained", "rolledBack", NULL};
static const char *const outcomes[] = {"drained", "rolledBack", "stopped", NULL};
static const char *const wave_kind[] = {"WaveReport", NULL};

const struct api_field api_act_request_members[] = {
	{"action", API_STRING, actions, true, "What the actuator is to do."},
	{"nodes", API_NAMES, NULL, false, "Of drain and undo: the nodes, 1 to 100."},
	{"dryRun", API_BOOLEAN, NULL, false, "Of drain and undo: change nothing, and tell."},
	{0},
};
static const struct api_field reported_request[] = {
	{"id", API_STRING, NULL, true, "The request's."},
	{"state", API_STRING, request_states, true, "What became of it."},
	{"reasons", API_NAMES, NULL, false, "Why it is refused."},
	{0},
};
static const struct api_field reported_node[] = {
	{"name", API_STRING, NULL, true, "The node's."},
	{"plan", API_STRING, NULL, false, "The plan that it is drained by."},
	{"phase", API_STRING, phases, true, "How far its drain is."},
	{"moved", API_COUNT, NULL, false, "Pods that are evicted and bound again."},
	{"of", API_COUNT, NULL, false, "Pods that have to move."},
	{"message", API_STRING, NULL, false, "What it waits for, or why it is rolled back."},
	{"since", API_TIME, NULL, false, "When the phase began."},
	{0},
};
static const struct api_field reported_destination[] = {
	{"node", API_STRING, NULL, true, "The destination."},
	{"cpuPromised", API_NUMBER, NULL, false, "Cores that the plan predicts."},
	{"cpuMeasured", API_NUMBER, NULL, false, "Cores in use."},
	{"cpuCap", API_NUMBER, NULL, false, "Cores that use must not exceed."},
	{"memoryPromised", API_NUMBER, NULL, false, "Bytes that the plan predicts."},
	{"memoryMeasured", API_NUMBER, NULL, false, "Bytes in use."},
	{"contention", API_NUMBER, NULL, false, "The share of time that tasks wait for CPU."},
	{0},
};
static const struct api_field reported_rescue[] = {
	{"namespace", API_STRING, NULL, true, "The pod's."},
	{"name", API_STRING, NULL, true, "The pod that gets room."},
	{"node", API_STRING, NULL, true, "Where its room is."},
	{"evicted", API_COUNT, NULL, false, "Victims that were evicted."},
	{"victims", API_COUNT, NULL, false, "Pods that leave for it."},
	{0},
};
const struct api_field api_act_report_members[] = {
	{"holder", API_STRING, NULL, true, "Who holds the Lease."},
	{"transitions", API_COUNT, NULL, true, "Of the Lease; a report of fewer is refused."},
	{"version", API_STRING, NULL, false, "The actuator's."},
	{"paused", API_BOOLEAN, NULL, false, "It begins nothing new."},
	{"dryRun", API_BOOLEAN, NULL, false, "It changes nothing."},
	{"acts", API_NAMES, NULL, false, "What it may do."},
	{"requests", API_REPORTED_REQUESTS, NULL, false, "What became of requests."},
	{"nodes", API_REPORTED_NODES, NULL, false, "Nodes under way."},
	{"destinations", API_REPORTED_DESTINATIONS, NULL, false, "Promised against measured."},
	{"rescues", API_REPORTED_RESCUES, NULL, false, "Pods that reclaim makes room for."},
	{0},
};
static const struct api_field wave_node[] = {
	{"name", API_STRING, NULL, true, "The node's."},
	{"outcome", API_STRING, outcomes, true, "How its drain ended."},
	{"evictions", API_COUNT, NULL, false, "Of its pods."},
	{"seconds", API_NUMBER, NULL, false, "From its taint to its end."},
	{0},
};
const struct api_field api_wave_report_members[] = {
	{"kind", API_STRING, wave_kind, true, "What the object is."},
	{"plan", API_STRING, NULL, true, "The plan's name."},
	{"begin", API_TIME, NULL, true, "When the first node was claimed."},
	{"end", API_TIME, NULL, true, "When the last one was done."},
	{"outcome", API_STRING, outcomes, true, "How the wave ended."},
	{"reason", API_STRING, NULL, false, "Why it was stopped or rolled back."},
	{"nodes", API_WAVE_NODES, NULL, false, "Its nodes."},
	{"evictions", API_COUNT, NULL, false, "Pods that were evicted."},
	{"refused", API_COUNT, NULL, false, "Evictions that the API refused."},
	{"promised", API_FIGURES, NULL, false, "What the plan promised."},
	{"achieved", API_FIGURES, NULL, false, "What was measured of it."},
	{"violations", API_NAMES, NULL, false, "What was broken, by which numbers."},
	{0},
};

const struct api_field *api_members_of(enum api_type type)
{
	switch (type) {
	case API_REPORTED_REQUESTS:
		return reported_request;
	case API_REPORTED_NODES:
		return reported_node;
	case API_REPORTED_DESTINATIONS:
		return reported_destination;
	case API_REPORTED_RESCUES:
		return reported_rescue;
	case API_WAVE_NODES:
		return wave_node;
	default:
		return NULL;
	}
}

const struct api_description api_is_act = {
	.summary = "What the actuator does, and what it is asked to do",
	.kind = "Act",
	.resource = "acts",
	.query = none,
};
const struct api_description api_is_act_report = {
	.summary = "Takes the actuator's report about what it does",
	.kind = "Act",
	.resource = "acts",
	.subresource = "report",
	.query = none,
	.posted = true,
	.acts = true,
	.body = api_act_report_members,
};
const struct api_description api_is_act_request = {
	.summary = "Asks the actuator to drain nodes, to undo that, to pause or to go on",
	.kind = "ActRequest",
	.query = none,
	.posted = true,
	.acts = true,
	.status = 202,
	.body = api_act_request_members,
};

/* --- the service ------------------------------------------------------------------------------ */

const struct api_description api_is_snapshot = {
	.summary = "All that is known, to replay answers from",
	.kind = "Snapshot",
	.resource = "snapshots",
	.query = none,
};
const struct api_description api_is_names = {
	.summary = "What nodes, namespaces and classes of placeholders are called",
	.kind = "Names",
	.resource = "names",
	.query = none,
};
const struct api_description api_is_status = {
	.summary = "Agents, the Kubernetes API, the database, and what was refused",
	.kind = "Status",
	.resource = "statuses",
	.query = none,
};
const struct api_description api_is_doctor = {
	.summary = "What is wrong, and what to do about it",
	.kind = "Diagnosis",
	.resource = "diagnoses",
	.query = none,
};
const struct api_description api_is_metrics = {
	.summary = "Metrics for Prometheus",
	.content_type = "text/plain; version=0.0.4; charset=utf-8",
};
const struct api_description api_is_healthz = {
	.summary = "200 while the service answers",
	.content_type = TEXT,
};
const struct api_description api_is_readyz = {
	.summary = "200 once everything was read that answers come from, else 503",
	.content_type = TEXT,
};
const struct api_description api_is_page = {
	.summary = "The web page",
	.content_type = HTML,
};
const struct api_description api_is_page_file = {
	.summary = "A file of the web page",
	.content_type = TEXT,
};
const struct api_description api_is_openapi = {
	.summary = "This description",
	.content_type = JSON,
	.query = none,
};
