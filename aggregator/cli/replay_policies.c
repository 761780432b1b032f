/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What policies would have done, over the moments of a record:
 *
 *   placements   Each pod that was bound between two moments is scored on what was known at the
 *                first, and goes to the best node that fits. A node is hot if its mean CPU use of
 *                five minutes is above HOT_SHARE of its allocatable; the use of a pod that was
 *                elsewhere is added to it. That is judged at the first moment HOT_AFTER_NS later, of
 *                pods that still run.
 *   waves        Each moment's drain plan, with the timers of the record. A drained node stays in
 *                the record; it and its evictions count once. A destination is over the cap if,
 *                within an hour, the mean CPU use of it and of the pods that were moved to it
 *                exceeds HOT_SHARE.
 */
#include "aggregator/cli/replay_policies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/answer.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/commands.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/mem.h"

#define HOT_SHARE    0.85
#define HOT_AFTER_NS (5 * 60 * NS_PER_SEC)
#define MOVED_FOR_NS (3600 * NS_PER_SEC)

/* A pod that went to a node, and when that is judged. */
struct placement {
	char *uid, *node, *was; /* owned; was: where it went in the record */
	int64_t due_ns;
};

/* A pod that a wave moved. */
struct move {
	char *uid, *to; /* owned */
	int64_t until_ns;
	bool over; /* its destination was counted at this move */
};

/* Results of a policy. X(column, key in JSON, member) */
#define RESULTS(X)                                                                                 \
	X("PLACED", "placed", placed)                                                              \
	X("UNPLACED", "unplaced", unplaced)                                                        \
	X("JUDGED", "judged", judged)                                                              \
	X("HOT-WAS", "hotWas", hot_was)                                                            \
	X("HOT", "hot", hot)                                                                       \
	X("WAVES", "waves", waves)                                                                 \
	X("DRAINED", "drained", drained.count)                                                     \
	X("EVICTIONS", "evictions", evictions)                                                     \
	X("OVER-CAP", "overCap", over)

struct policy {
	char *name; /* owned */
	struct cli_options scores; /* blend and plugins; owned */
	struct option_list drain; /* words of the command; owned */
	struct placement *placements;
	struct move *moves;
	struct option_list drained; /* names; owned */
	size_t placement_count, move_count; /* of what is owned above */
	/* results */
	size_t placed, unplaced, judged, hot, hot_was, waves, evictions, over;
};

/* --- policies --------------------------------------------------------------------------------- */

/* NAME[:OPTION=VALUE;..] */
static int read_policy(const char *text, struct policy *p, struct error *error)
{
	size_t len = strcspn(text, ":");
	char *rest = mem_strdup(text[len] ? text + len + 1 : ""), *save, *part;
	struct option_list *plugins = &p->scores.plugins;
	int rc = 0;

	p->name = mem_strndup(text, len);
	p->scores.pod = (char *)"-"; /* scores are of a pod, and of whether it fits */
	ARRAY_ADD(p->drain.items, p->drain.count) = mem_strdup("drain");
	ARRAY_ADD(p->drain.items, p->drain.count) = mem_strdup("--output=json");
	for (part = strtok_r(rest, ";", &save); part && !rc; part = strtok_r(NULL, ";", &save)) {
		if (strncmp(part, "blend=", 6) == 0) {
			free(p->scores.blend);
			p->scores.blend = mem_strdup(part + 6);
		} else if (strncmp(part, "plugin=", 7) == 0) {
			ARRAY_ADD(plugins->items, plugins->count) = mem_strdup(part + 7);
		} else if (strchr(part, '=')) {
			ARRAY_ADD(p->drain.items, p->drain.count) = mem_printf("--%s", part);
		} else {
			rc = error_fail(error, -EINVAL, "--policy %s: \"%s\" must be OPTION=VALUE",
					text, part);
		}
	}
	if (!rc && !len)
		rc = error_fail(error, -EINVAL, "--policy \"%s\": a policy needs a name", text);
	else if (!rc && strcspn(text, "=,;") < len)
		rc = error_fail(error, -EINVAL, "--policy %s: the form is NAME:OPTION=VALUE;..",
				text);
	free(rest);
	return rc;
}

static void policy_fini(struct policy *p)
{
	for (size_t i = 0; i < p->placement_count; i++) {
		free(p->placements[i].uid);
		free(p->placements[i].node);
		free(p->placements[i].was);
	}
	for (size_t i = 0; i < p->move_count; i++) {
		free(p->moves[i].uid);
		free(p->moves[i].to);
	}
	free(p->placements);
	free(p->moves);
	option_list_free(&p->drained);
	option_list_free(&p->scores.plugins);
	free(p->scores.blend);
	option_list_free(&p->drain);
	free(p->name);
}

/* --- use -------------------------------------------------------------------------------------- */

/* Mean millicores over five minutes; 0: not measured. */
static double mean_cpu(const struct usage_summary *u)
{
	int window;
	const struct window_set *set = window_longest_within(u->windows, WINDOW_5M, &window);

	return set && set->cpu_milli.samples ? set->cpu_milli.mean : 0;
}

/* Of a pod, wherever it runs; *node: there. */
static double pod_cpu(const struct view *v, const char *uid, const struct view_node **node)
{
	struct usage_summary u;

	for (size_t i = 0; i < v->node_count; i++) {
		const struct view_node *n = v->nodes[i];

		for (size_t k = 0; k < n->pod_count; k++) {
			const struct kube_pod *pod = n->pods[k].pod;

			if (!pod || strcmp(pod->object.uid, uid) != 0 || !kube_pod_is_active(pod))
				continue;
			*node = n;
			if (!n->pods[k].use)
				return 0;
			node_stats_pod_usage(n->stats, n->pods[k].use, &u);
			return mean_cpu(&u);
		}
	}
	*node = NULL;
	return 0;
}

/* Whether the node is hot with so much more use. */
static bool is_hot(const struct view *v, const char *name, double more_milli)
{
	const struct view_node *n = view_find(v, name);

	return n && n->stats->end_ns &&
	       mean_cpu(&n->stats->usage) + more_milli >
		       HOT_SHARE * (double)n->cpu_allocatable_milli;
}

/* --- placements ------------------------------------------------------------------------------- */

/* The pod as it was created. */
static char *manifest_of(const struct kube_pod *pod)
{
	cJSON *json = cJSON_ParseWithLength(pod->template->text, pod->template->text_len);
	cJSON *metadata = cJSON_GetObjectItem(json, "metadata");
	char *text;

	if (!metadata)
		metadata = cJSON_AddObjectToObject(json, "metadata");
	cJSON_AddStringToObject(metadata, "namespace", pod->object.namespace);
	cJSON_AddStringToObject(metadata, "name", pod->object.name);
	text = cJSON_PrintUnformatted(json);
	cJSON_Delete(json);
	return text;
}

/* The best node that fits; of equal ones the first by name. NULL: none does. */
static const char *best_of(const cJSON *scores)
{
	const char *best = NULL;
	double most = -1;

	for (const cJSON *item = document_first(scores, "items"); item; item = item->next) {
		double score = document_number(item, "score");

		if (score > most && !document_is_null(item, "score") &&
		    document_is_true(item, "fits")) {
			most = score;
			best = document_text(item, "node");
		}
	}
	return best;
}

/* The answer of /v1/scores for the pod, which the caller frees; NULL with the reason. */
static cJSON *score(const struct policy *p, struct offline *files, const char *pod,
		    struct error *error)
{
	const struct cli cli = {.options = &p->scores};
	cJSON *request = scores_request(&cli, pod, error), *scores = NULL;
	struct buf answer = BUF_INIT;

	if (request) {
		char *json = cJSON_PrintUnformatted(request);
		int status = offline_request(files, "POST", "/v1/scores", json, &answer);

		free(json);
		scores = cJSON_ParseWithLength(answer.data, answer.len);
		if (status != 200) {
			error_set(error, "%s", document_text_or(scores, "error.message", ""));
			cJSON_Delete(scores);
			scores = NULL;
		}
	}
	if (!scores)
		error_prefix(error, "--policy %s", p->name);
	cJSON_Delete(request);
	buf_fini(&answer);
	return scores;
}

static int place_one(struct policy *p, struct offline *files, const struct kube_pod *pod,
		     int64_t due_ns, struct error *error)
{
	char *manifest = manifest_of(pod);
	cJSON *scores = score(p, files, manifest, error);
	const char *node = best_of(scores);

	free(manifest);
	if (!scores)
		return -EINVAL;
	if (node) {
		ARRAY_ADD(p->placements, p->placement_count) =
			(struct placement){mem_strdup(pod->object.uid), mem_strdup(node),
					   mem_strdup(pod->node), due_ns};
	}
	p->placed += node != NULL;
	p->unplaced += !node;
	cJSON_Delete(scores);
	return 0;
}

/* Whether there are such plugins, before the first pod. */
static int check_scores(const struct policy *p, struct offline *files, struct error *error)
{
	cJSON *scores = score(p, files, "{\"spec\":{\"containers\":[]}}", error);
	int rc = scores ? 0 : -EINVAL;

	cJSON_Delete(scores);
	return rc;
}

static bool is_placed(const struct kube_pod *pod)
{
	return pod && kube_pod_is_active(pod) && !pod->template->mirror &&
	       strcmp(pod->template->owner.kind, "DaemonSet") != 0;
}

/* Pods that are bound in the view and were not before. */
static int place_arrived(struct policies *all, struct policy *p, struct offline *files,
			 const struct view *v, int64_t due_ns, struct error *error)
{
	for (size_t i = 0; i < v->node_count; i++) {
		const struct view_node *n = v->nodes[i];

		for (size_t k = 0; k < n->pod_count; k++) {
			const struct kube_pod *pod = n->pods[k].pod;

			if (is_placed(pod) && !uid_set_has(&all->known, pod->object.uid) &&
			    place_one(p, files, pod, due_ns, error))
				return -EINVAL;
		}
	}
	return 0;
}

static void judge_placements(struct policy *p, const struct view *v, int64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->placement_count; i++) {
		struct placement *one = &p->placements[i];
		const struct view_node *node;
		double milli;

		if (one->due_ns > now_ns) {
			p->placements[kept++] = *one;
			continue;
		}
		milli = pod_cpu(v, one->uid, &node);
		if (node) {
			p->judged++;
			p->hot_was += is_hot(v, one->was, 0);
			p->hot += is_hot(v, one->node, strcmp(one->node, one->was) ? milli : 0);
		}
		free(one->uid);
		free(one->node);
		free(one->was);
	}
	p->placement_count = kept;
}

/* --- waves ------------------------------------------------------------------------------------ */

static void drain_node(struct policy *p, const cJSON *node, int64_t now_ns)
{
	ARRAY_ADD(p->drained.items, p->drained.count) =
		mem_strdup(document_text_or(node, "name", ""));
	for (const cJSON *m = document_first(node, "moves"); m; m = m->next) {
		if (!document_text(m, "uid") || !document_text(m, "to"))
			continue;
		p->evictions++;
		ARRAY_ADD(p->moves, p->move_count) =
			(struct move){mem_strdup(document_text(m, "uid")),
				      mem_strdup(document_text(m, "to")), now_ns + MOVED_FOR_NS,
				      false};
	}
}

static int drain(struct policy *p, const struct offline_moment *m, struct error *error)
{
	const struct cli outer = {.command = &command_replay};
	struct buf out = BUF_INIT;
	struct offline *files;
	size_t before = p->drained.count;
	cJSON *plan = NULL;

	if (offline_open_moment(&files, m, error) == 0 &&
	    commands_run(files, &p->drain, &outer, &out, error) != CLI_USAGE)
		plan = cJSON_ParseWithLength(out.data ? out.data : "", out.len);
	if (!plan)
		error_prefix(error, "--policy %s", p->name);
	for (const cJSON *n = document_first(plan, "wave.nodes"); n; n = n->next)
		if (!array_find_text(p->drained.items, p->drained.count, sizeof(*p->drained.items),
				     document_text_or(n, "name", "")))
			drain_node(p, n, m->at_ns);
	p->waves += p->drained.count > before;
	cJSON_Delete(plan);
	buf_fini(&out);
	return plan ? 0 : -EINVAL;
}

/* Destinations whose use, with what was moved there, is over the cap; each counts once. */
static void judge_moves(struct policy *p, const struct view *v, int64_t now_ns)
{
	for (size_t i = 0; i < p->move_count; i++) {
		struct move *m = &p->moves[i];
		const struct view_node *node;
		double more = 0;
		bool over = false;

		for (size_t k = 0; k < p->move_count; k++) {
			if (strcmp(p->moves[k].to, m->to) != 0)
				continue;
			over |= p->moves[k].over;
			if (p->moves[k].until_ns >= now_ns)
				more += pod_cpu(v, p->moves[k].uid, &node);
		}
		if (over || m->until_ns < now_ns || !is_hot(v, m->to, more))
			continue;
		m->over = true;
		p->over++;
	}
}

/* --- all of them ------------------------------------------------------------------------------ */

int policies_read(struct policies *all, const struct option_list *texts, struct error *error)
{
	*all = (struct policies){.of = mem_zalloc(texts->count + 1, sizeof(*all->of))};
	for (size_t i = 0; i < texts->count; i++) {
		if (read_policy(texts->items[i], &all->of[all->count++], error))
			return -EINVAL;
		for (size_t k = 0; k < i; k++)
			if (strcmp(all->of[k].name, all->of[i].name) == 0)
				return error_fail(error, -EINVAL,
						  "--policy %s: another one has this name",
						  all->of[i].name);
	}
	return 0;
}

void policies_fini(struct policies *all)
{
	for (size_t i = 0; i < all->count; i++)
		policy_fini(&all->of[i]);
	free(all->of);
	uid_set_fini(&all->known);
}

static void know_pods(struct policies *all, const struct view *v)
{
	for (size_t i = 0; i < v->node_count; i++)
		for (size_t k = 0; k < v->nodes[i]->pod_count; k++)
			if (v->nodes[i]->pods[k].pod)
				uid_set_add(&all->known, v->nodes[i]->pods[k].pod->object.uid);
}

int policies_step(struct policies *all, const struct offline_moment *before,
		  const struct offline_moment *now, struct error *error)
{
	int rc = 0;

	for (size_t i = 0; i < all->count && !rc; i++) {
		struct policy *p = &all->of[i];
		struct offline *files;

		if (offline_open_moment(&files, before ? before : now, error))
			return -EINVAL;
		rc = before ? place_arrived(all, p, files, now->view, now->at_ns + HOT_AFTER_NS,
					    error)
			    : check_scores(p, files, error);
		offline_close(files);
		judge_placements(p, now->view, now->at_ns);
		judge_moves(p, now->view, now->at_ns);
		if (!rc)
			rc = drain(p, now, error);
	}
	know_pods(all, now->view);
	return rc;
}

/* clang-format off */
static const struct column columns[] = {
	{"POLICY", FORM_NAME, cell_text, .at = "name"},
#define X(title, key, member) {title, FORM_RIGHT, cell_count, .at = (key)},
	RESULTS(X)
#undef X
	{0},
};
/* clang-format on */

void policies_show(const struct policies *all, struct cli *cli)
{
	cJSON *doc = answer_new("PolicyList"), *items = cJSON_AddArrayToObject(doc, "items"), *item;

	for (const struct policy *p = all->of; p < all->of + all->count; p++) {
		item = cJSON_CreateObject();
		cJSON_AddItemToArray(items, item);
		cJSON_AddStringToObject(item, "name", p->name);
#define X(title, key, member) cJSON_AddNumberToObject(item, key, (double)p->member);
		RESULTS(X)
#undef X
	}
	if (cli->options->output == OUTPUT_JSON)
		answer_print(cli, doc);
	else
		columns_print_list(cli, doc, "items", "name", columns, NULL, "policy");
	cJSON_Delete(doc);
}
