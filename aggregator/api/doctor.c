/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finding fails when answers are wrong or missing because of it, and warns when they are less
 * than they could be. The server says what is; what that means and what to do about it is said
 * here, in one place.
 */
#include "aggregator/api/doctor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "shared/array.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "shared/units.h"

enum { NAMES_SHOWN = 5, PLANS_DIFFER_S = 60 };

#define VIEW_LATE_SECONDS	 30 /* one is published every 10 s even when nothing happens */
#define SAVE_LATE_SECONDS	 300 /* once a minute */
#define CERTIFICATE_WARN_SECONDS (7.0 * 86400)

void doctor_fini(struct doctor *d)
{
	for (size_t i = 0; i < d->count; i++) {
		free(d->checks[i].detail);
		free(d->checks[i].advice);
	}
	free(d->checks);
}

void doctor_add(struct doctor *d, enum doctor_verdict verdict, const char *what, const char *advice,
		const char *format, ...)
{
	char detail[1024];

	MEM_FORMAT(detail, sizeof(detail), format);
	ARRAY_ADD(d->checks, d->count) = (struct doctor_check){
		.verdict = verdict,
		.what = what,
		.detail = mem_strdup(detail),
		.advice = advice ? mem_strdup(advice) : NULL,
	};
}

enum doctor_verdict doctor_verdict_of(const struct doctor *d)
{
	enum doctor_verdict worst = DOCTOR_OK;

	for (size_t i = 0; i < d->count; i++)
		if (d->checks[i].verdict > worst)
			worst = d->checks[i].verdict;
	return worst;
}

const char *const doctor_verdicts[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_WARN] = "warn",
	[DOCTOR_FAIL] = "fail",
};

void doctor_write(const struct doctor *d, struct jsonw *w)
{
	jsonw_key_string(w, "verdict", doctor_verdicts[doctor_verdict_of(d)]);
	jsonw_key_array(w, "checks");
	for (const struct doctor_check *c = d->checks; c < d->checks + d->count; c++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "verdict", doctor_verdicts[c->verdict]);
		jsonw_key_string(w, "what", c->what);
		jsonw_key_string(w, "detail", c->detail);
		jsonw_key_text(w, "advice", c->advice);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

/* --- reading the status ----------------------------------------------------------------------- */

/* 0 where it is absent. */
static double count_at(const cJSON *status, const char *path)
{
	double count = document_number(status, path);

	return count > 0 ? count : 0;
}

/*
 * "a, b and 3 more": the first of `total` nodes, by what is in the array: names, or objects with a
 * name.
 */
static char *list_names(const cJSON *names, double total)
{
	struct buf text = BUF_INIT;
	double shown = 0;

	for (const cJSON *item = document_first(names, ""); item && shown < NAMES_SHOWN;
	     item = item->next) {
		const char *name =
			cJSON_IsString(item) ? item->valuestring : document_text(item, "name");

		if (!name)
			continue;
		buf_printf(&text, "%s%s", shown > 0 ? ", " : "", name);
		shown++;
	}
	if (total > shown && shown > 0)
		buf_printf(&text, " and %.0f more", total - shown);
	return buf_take(&text, NULL);
}

/* --- the checks, in the order of the data's way ----------------------------------------------- */

static void examine_server(struct doctor *d, const cJSON *status)
{
	const char *version = document_text(status, "version");
	double age = document_number(status, "view.ageSeconds");
	char text[UNITS_LEN];

	if (version && strcmp(version, EVENKEEL_VERSION) != 0)
		doctor_add(d, DOCTOR_WARN, "version",
			   "Use the same version for both, or some answers are not understood.",
			   "the server is %s, this program %s", version, EVENKEEL_VERSION);
	if (!(document_number(status, "view.version") > 0)) {
		doctor_add(d, DOCTOR_WARN, "view",
			   "Nothing was heard since the start: go by what is said of agents below.",
			   "no state has been published yet");
		return;
	}
	units_age(age, text);
	if (age > VIEW_LATE_SECONDS)
		doctor_add(d, DOCTOR_FAIL, "view",
			   "The aggregator's loop is stuck or starved: look at its log and its CPU "
			   "limit.",
			   "what is answered was published %s ago, and should be once in 10s",
			   text);
	else
		doctor_add(d, DOCTOR_OK, "view", NULL, "published %s ago: %.0f nodes, %.0f pods",
			   isnan(age) ? "0s" : text, count_at(status, "view.nodes"),
			   count_at(status, "view.pods"));
}

static void examine_certificate(struct doctor *d, const cJSON *access)
{
	double left = document_number(access, "certificateEndsInSeconds");
	char text[UNITS_LEN];

	if (isnan(left) || left > CERTIFICATE_WARN_SECONDS)
		return;
	units_age(fmax(left, 0), text);
	if (left <= 0)
		doctor_add(d, DOCTOR_FAIL, "certificate",
			   "Put a new pair into the files of --tls-cert and --tls-key: it is taken "
			   "within 10s.",
			   "the server's certificate has ended");
	else
		doctor_add(d, DOCTOR_WARN, "certificate",
			   "Is it renewed by itself? A new pair in the same files is taken within "
			   "10s.",
			   "the server's certificate ends in %s", text);
}

/* Who is let in to the API, and whether that is what anybody would want. */
static void examine_access(struct doctor *d, const cJSON *status)
{
	const cJSON *access = document_at(status, "access");
	bool tokens =
		document_is_true(access, "tokenFile") || document_is_true(access, "tokenReview");
	bool certificates = document_is_true(access, "clientCertificates"),
	     tls = document_is_true(access, "tls");

	examine_certificate(d, access);
	if (document_number(access, "reloadFailures") > 0)
		doctor_add(d, DOCTOR_WARN, "access",
			   "The aggregator's log says which; what was read before is in force.",
			   "certificates or tokens could not be read again %.0f times",
			   document_number(access, "reloadFailures"));
	if (tokens || certificates)
		doctor_add(d, DOCTOR_OK, "access", NULL, "over %s, with %s%s%s",
			   tls ? "HTTPS" : "HTTP", tokens ? "a token" : "",
			   tokens && certificates ? " or " : "",
			   certificates ? "a client certificate" : "");
	else if (document_is_true(access, "fromOtherMachines"))
		doctor_add(d, DOCTOR_WARN, "access",
			   "See --tls-cert, --token-file and --token-review of the aggregator, or "
			   "a NetworkPolicy.",
			   "everybody who can connect may read everything and make reservations");
}

static void examine_freshness(struct doctor *d, const cJSON *status)
{
	double nodes = count_at(status, "agents.nodes"), fresh = count_at(status, "agents.fresh");

	if (nodes == 0)
		doctor_add(d, DOCTOR_FAIL, "agents",
			   "Start evenkeel-agent on every node, with --aggregator tcp://HOST:2021 "
			   "and the aggregator's key as --key-file.",
			   "no node is known");
	else if (fresh == 0)
		doctor_add(d, DOCTOR_FAIL, "agents",
			   "Do agents run, reach the ingest port (2021), and have the aggregator's "
			   "key? Their logs say what fails.",
			   "none of %.0f node%s is heard", nodes, units_plural(nodes));
	else
		doctor_add(d, DOCTOR_OK, "agents", NULL, "%.0f of %.0f node%s heard within 30s",
			   fresh, nodes, nodes == 1 ? " is" : "s are");
}

/* Nodes of one state, by where the status counts and names them. */
struct node_state {
	const char *count, *examples;
	enum doctor_verdict verdict;
	const char *says, *advice;
};

/* A finding for each state that any node is in. */
static void add_states(struct doctor *d, const cJSON *status, const char *what,
		       const struct node_state *states, size_t state_count)
{
	for (const struct node_state *s = states; s < states + state_count; s++) {
		double count = count_at(status, s->count);
		char *names;

		if (count == 0)
			continue;
		names = list_names(document_at(status, s->examples), count);
		doctor_add(d, s->verdict, what, s->advice, "%.0f node%s %s%s%s", count,
			   units_plural(count), s->says, names[0] ? ": " : "", names);
		free(names);
	}
}

static void examine_agents(struct doctor *d, const cJSON *status)
{
	static const struct node_state states[] = {
		{"agents.late", "agents.examples.late", DOCTOR_WARN, "not heard for more than 30s",
		 "If it lasts: is the node busy, or its network cut? Sigma is widened meanwhile."},
		{"agents.expired", "agents.examples.expired", DOCTOR_FAIL,
		 "not heard for more than 5m",
		 "Their agents stopped, or the nodes are gone. They take no new pods by score."},
		{"agents.none", "agents.examples.none", DOCTOR_WARN, "never heard",
		 "Does the agent's DaemonSet tolerate their taints, and does its pod run there? "
		 "They count as full until then."},
		{"agents.unknownToApi", "agents.examples.unknownToApi", DOCTOR_WARN,
		 "heard, but unknown to the API",
		 "Give their agents --node-name as the Node object has it (spec.nodeName)."},
		{"agents.tiers.T3", "agents.examples.T3", DOCTOR_WARN,
		 "sampled from cgroup files, once a second",
		 "Their agents may not use BPF: give them CAP_BPF and CAP_PERFMON, see their "
		 "logs."},
	};

	examine_freshness(d, status);
	add_states(d, status, "agents", states, sizeof(states) / sizeof(states[0]));
}

static void examine_frames(struct doctor *d, const cJSON *status)
{
	static const struct {
		const char *path, *says, *advice;
	} sorts[] = {
		{"frames.unknownKey", "sealed with a key that is not known here",
		 "Give agents and aggregator the same --key-file; a directory of keys takes old "
		 "and new ones."},
		{"frames.forged", "that did not open with the key they name",
		 "Somebody sends what no agent sealed, or a key file was changed in place."},
		{"frames.version", "of another version of the format",
		 "Update agents and aggregator to the same version."},
		{"frames.malformed", "that are no frames",
		 "Something else talks to the ingest port: does a probe or a scanner?"},
		{"frames.oversized", "that are too large",
		 "Too many workloads on one node, see its agent's log."},
		{"frames.rival", "of a second agent of a node whose first is alive",
		 "The aggregator's log names the node. Give each agent a --node-name of its own; "
		 "if they have that, somebody has the key: exchange it."},
		{"frames.foreign", "of another node than the one whose key seals them",
		 "A node was taken over, or its --node-name was changed: the aggregator's log "
		 "names both."},
		{"frames.sharedKey", "under a shared key of nodes that have to enrol",
		 "Let these agents enrol (--aggregator-key). Until they do, start the aggregator "
		 "with --allow-shared-key true."},
		{"frames.notEnrolled", "that ask for a node's key and got none",
		 "The aggregator's log names node and reason. Agents ask again by themselves."},
		{"frames.refused", "refused", "The aggregator's log names node and reason."},
	};
	bool applied = count_at(status, "frames.applied") > 0;
	size_t found = 0;

	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
		double count = count_at(status, sorts[i].path);

		if (count == 0)
			continue;
		doctor_add(d, applied ? DOCTOR_WARN : DOCTOR_FAIL, "frames", sorts[i].advice,
			   "%.0f %s, since the start", count, sorts[i].says);
		found++;
	}
	if (!found && applied)
		doctor_add(d, DOCTOR_OK, "frames", NULL, "all that agents sent could be read");
}

static void examine_clocks(struct doctor *d, const cJSON *status)
{
	double flagged = count_at(status, "clock.flagged");
	const cJSON *first = document_first(status, "clock.nodes");
	double skew = document_number(first, "skewSeconds");
	char *names, text[UNITS_LEN];

	if (flagged == 0) {
		doctor_add(d, DOCTOR_OK, "clocks", NULL, "all within 30s of the aggregator's");
		return;
	}
	units_age(fabs(skew), text);
	names = list_names(document_at(status, "clock.nodes"), flagged);
	doctor_add(d, DOCTOR_WARN, "clocks",
		   "Their times are corrected here; set their clocks right (NTP) anyway.",
		   "%.0f node%s off by more than 30s: %s; the first is %s %s", flagged,
		   units_plural(flagged), names, text, skew < 0 ? "behind" : "ahead");
	free(names);
}

static void examine_values(struct doctor *d, const cJSON *status)
{
	double values = count_at(status, "quarantine.values");
	const cJSON *first = document_first(status, "quarantine.nodes");

	if (values == 0) {
		doctor_add(d, DOCTOR_OK, "values", NULL, "none had to be left out");
		return;
	}
	doctor_add(d, DOCTOR_WARN, "values",
		   "They are left out of all answers. Many of them mean a kernel or a machine that "
		   "lies: evenkeel nodes -o json has the last of each node.",
		   "%.0f could not be and were left out; %s: %s", values,
		   document_text_or(first, "name", "?"),
		   document_text_or(first, "lastMessage", "?"));
}

static void examine_database(struct doctor *d, const cJSON *status)
{
	double age = document_number(status, "database.lastSaveAgeSeconds"),
	       aside = count_at(status, "database.setAside");
	char text[UNITS_LEN];

	units_age(age, text);
	if (document_is(status, "database.state", "failing"))
		doctor_add(d, DOCTOR_FAIL, "database",
			   "Is the state directory full, read-only or another's? The log says why. "
			   "A restart now would lose what the agents' rings do not have.",
			   "nothing is being saved");
	else if (age > SAVE_LATE_SECONDS)
		doctor_add(d, DOCTOR_WARN, "database", "Is its disk slow? See the log.",
			   "saved %s ago, and should be once a minute", text);
	else if (document_is(status, "database.state", "ok"))
		doctor_add(d, DOCTOR_OK, "database", NULL, "%s%s%s",
			   isnan(age) ? "nothing to save yet" : "saved ", isnan(age) ? "" : text,
			   isnan(age) ? "" : " ago");
	else
		doctor_add(d, DOCTOR_OK, "database", NULL,
			   "none: after a restart windows come back from the agents' rings "
			   "(--state-dir keeps them here, too)");
	if (aside > 0)
		doctor_add(d, DOCTOR_WARN, "database",
			   "They are in the state directory: keep or delete them.",
			   "%.0f damaged or newer database%s set aside", aside,
			   aside == 1 ? " was" : "s were");
}

/* Pods that the extender refused; nothing is said where none waits and nothing failed. */
static void examine_refused_pods(struct doctor *d, const cJSON *status)
{
	const char *nudge = document_text(status, "refusedPods.nudge");
	double waiting = count_at(status, "refusedPods.waiting");

	if (!nudge || strcmp(nudge, "unused") == 0 || strcmp(nudge, "ok") == 0)
		return;
	if (strcmp(nudge, "off") != 0)
		doctor_add(d, DOCTOR_WARN, "refused pods",
			   "Apply packaging/kubernetes/core/nudge.yaml: the claim of "
			   "--nudge-claim, and the Role that lets the aggregator patch it.",
			   "the claim cannot be changed (%s), so kube-scheduler asks again about "
			   "refused pods up to 5m late",
			   nudge);
	else if (waiting > 0)
		doctor_add(d, DOCTOR_WARN, "refused pods",
			   "Apply packaging/kubernetes/core/nudge.yaml, and give the aggregator "
			   "--nudge-claim.",
			   "%.0f wait, and kube-scheduler asks again about them up to 5m late",
			   waiting);
}

/* The other aggregator; nothing is said where none is expected. */
static void examine_peer(struct doctor *d, const cJSON *status)
{
	double late = count_at(status, "peer.answersLate") + count_at(status, "peer.answersAlone"),
	       answers = late + count_at(status, "peer.answersAcknowledged");

	if (document_is(status, "peer.state", "alone"))
		doctor_add(
			d, DOCTOR_WARN, "peer",
			"Does the aggregator of --peer run, with a --peer and the same keys? The "
			"log has the reason.",
			"the other aggregator is not connected: both may reserve the same room");
	else if (document_is(status, "peer.state", "together"))
		doctor_add(
			d, DOCTOR_OK, "peer", NULL,
			"the other aggregator is told of reservations: %.0f of %.0f answers went "
			"out without its acknowledgement",
			late, answers);
	if (document_is(status, "peer.plan", "other") &&
	    count_at(status, "peer.planSeconds") >
		    fmax(PLANS_DIFFER_S, 2 * count_at(status, "peer.planIntervalSeconds")))
		doctor_add(
			d, DOCTOR_WARN, "peer",
			"Have both the same version, options and objects? Until the plans are the "
			"same, the actuator takes none.",
			"the other aggregator has planned other drains for %.0fs",
			count_at(status, "peer.planSeconds"));
	if (count_at(status, "peer.refused") > 0)
		doctor_add(d, DOCTOR_WARN, "peer",
			   "Use the same version for both aggregators; the logs of both have the "
			   "reason.",
			   "%.0f frames and memories of plans of the other aggregator are not "
			   "understood",
			   count_at(status, "peer.refused"));
}

void doctor_examine(struct doctor *d, const cJSON *status)
{
	examine_server(d, status);
	examine_access(d, status);
	doctor_examine_kubernetes(d, status);
	examine_agents(d, status);
	examine_frames(d, status);
	examine_clocks(d, status);
	examine_values(d, status);
	examine_database(d, status);
	examine_refused_pods(d, status);
	examine_peer(d, status);
}

/* --- a snapshot ------------------------------------------------------------------------------- */

/* Ages are as of the snapshot's moment, and no agent is there to be looked after. */
static void examine_usage(struct doctor *d, const cJSON *status)
{
	static const struct node_state states[] = {
		{"agents.late", "agents.examples.late", DOCTOR_WARN,
		 "measured more than 30s before the snapshot's moment",
		 "Sigma is widened for them."},
		{"agents.expired", "agents.examples.expired", DOCTOR_WARN,
		 "measured more than 5m before the snapshot's moment",
		 "They take no new pods by score."},
		{"agents.none", "agents.examples.none", DOCTOR_WARN, "not measured",
		 "They count as full: give measurements that have them."},
	};
	double nodes = count_at(status, "agents.nodes");

	doctor_add(d, DOCTOR_OK, "usage", NULL, "%.0f of %.0f node%s measured",
		   nodes - count_at(status, "agents.none"), nodes, nodes == 1 ? " is" : "s are");
	add_states(d, status, "usage", states, sizeof(states) / sizeof(states[0]));
}

void doctor_examine_snapshot(struct doctor *d, const cJSON *status, const char *no_usage)
{
	if (document_is(status, "kubernetes.mode", "snapshot"))
		doctor_examine_kubernetes(d, status);
	else
		doctor_add(d, DOCTOR_OK, "kubernetes", NULL,
			   "no API was followed when the snapshot was taken");
	if (no_usage) {
		doctor_add(d, DOCTOR_WARN, "usage", NULL, "%s", no_usage);
		return;
	}
	examine_usage(d, status);
	examine_values(d, status);
}

/* --- GET /v1/doctor --------------------------------------------------------------------------- */

void api_doctor(const struct api_context *ctx, const struct api_request *rq,
		struct api_response *rs)
{
	struct api_response answer = {.status = 200};
	struct doctor d = {0};
	struct jsonw w;
	cJSON *status;

	api_status(ctx, rq, &answer);
	status = cJSON_ParseWithLength(answer.body.data, answer.body.len);
	doctor_examine(&d, status);
	list_answer_open(rs, &w, "Diagnosis", ctx->now_ns());
	doctor_write(&d, &w);
	list_answer_close(&w);
	cJSON_Delete(status);
	doctor_fini(&d);
	buf_fini(&answer.body);
}
