/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel-actuator: options, then a step every two seconds while the lease is held, until it is
 * told to stop. Exit: 0 ok, 1 error, 2 usage.
 *
 *	plan --> cluster --> real use --> act_step() --> requests, one after the other --> report
 *
 * A step whose reading fails decides nothing. The thread of the lease (lease.c) renews it all the
 * while. A stop, or the loss of the lease, leaves drains to a successor.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/actuator/edge.h"
#include "aggregator/actuator/mailbox.h"
#include "aggregator/actuator/reclaim.h"
#include "aggregator/actuator/slack.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/options.h"
#include "shared/program.h"

struct actuator_options {
	char *act, *namespaces, *node_selector, *kubeconfig, *context;
	char *lease_namespace, *lease_name;
	bool dry_run;
	int after;
	int64_t max_pod_wait_ns, max_in_flight, max_evictions, max_evictions_per_hour;
	struct program_common common;
};

static const char *const afters[] = {"keep", "uncordon", "delete-node", NULL};

#define AT(member) offsetof(struct actuator_options, member)
static const struct option_spec specs[] = {
	TEXT_OPTION("act", AT(act), "drain,reclaim,slack", "",
		    "Actions without a request, separated by commas: drain carries out the waves "
		    "of evenkeel drain, reclaim the plans of /v1/quotas/reclaim, and slack keeps "
		    "balloons or CapacityBuffers in the cluster. Default: only requests of people "
		    "(evenkeel act)."),
	FLAG_OPTION("dry-run", 0, AT(dry_run),
		    "Send every write with dryRun=All, and log each step."),
	TEXT_OPTION("namespaces", AT(namespaces), "NAME,..", NULL,
		    "Namespaces whose pods may move or be evicted, and that may have balloons; a "
		    "node with other pods stays. Default: all but kube-system."),
	TEXT_OPTION("node-selector", AT(node_selector), "SELECTOR", "",
		    "Labels of nodes that may be drained, in the form of kubectl's -l."),
	RANGE_OPTION(OPTION_DURATION, "max-pod-wait", AT(max_pod_wait_ns), "DURATION", "10m", 1e9,
		     24 * 3600e9,
		     "Longest wait for a refused eviction, and for the Ready replacement of an "
		     "evicted pod, before the node is rolled back; and for the binding of a pod "
		     "that reclaim makes room for."),
	RANGE_OPTION(OPTION_INTEGER, "max-evictions", AT(max_evictions), "N", "20", 1, 1000,
		     "Most evictions of reclaim in a minute, with refused ones."),
	RANGE_OPTION(OPTION_INTEGER, "max-evictions-per-hour", AT(max_evictions_per_hour), "N",
		     "1000", 1, ACT_RATE_MOST,
		     "Most evictions of drains in an hour, with refused ones."),
	RANGE_OPTION(OPTION_INTEGER, "max-in-flight", AT(max_in_flight), "N", "10", 1, 1000,
		     "Most evicted pods without a Ready replacement; of one owner it is one."),
	CHOICE_OPTION("after", AT(after), "keep|uncordon|delete-node", "keep", afters,
		      "State of a drained node: cordoned (keep), for cluster-autoscaler or "
		      "maintenance; uncordoned; or deleted."),
	TEXT_OPTION("kubeconfig", AT(kubeconfig), "FILE", NULL,
		    "Kubeconfig of the Kubernetes API. Default: in a pod its own cluster."),
	TEXT_OPTION("context", AT(context), "NAME", NULL,
		    "The context of the kubeconfig to use instead of its current one."),
	TEXT_OPTION("lease-namespace", AT(lease_namespace), "NAME", "evenkeel",
		    "Namespace of the Lease whose holder acts."),
	TEXT_OPTION("lease-name", AT(lease_name), "NAME", "evenkeel-actuator",
		    "Name of the Lease."),
	PROGRAM_COMMON_OPTIONS(AT(common)),
};

static const struct option_note manual[] = {
	{"DESCRIPTION", NULL,
	 "The actuator carries out drain plans of evenkeel-aggregator(8): it cordons and taints "
	 "the nodes of a wave, has the plan proven by the planner and by an independent checker on "
	 "a snapshot that has the taints, evicts pod after pod by the Eviction API, and rolls back "
	 "what fails. It reaches the aggregator through the Kubernetes API. One of several acts at "
	 "a time, by a Lease."},
	{"SIGNALS", "SIGTERM, SIGINT", "End; drains are left to the next holder of the Lease."},
	{"EXIT STATUS", "0", "It was told to end."},
	{NULL, "1", "It cannot start, or a dry run finds a drain of an actuator."},
	{NULL, "2", "Wrong options."},
	{"SEE ALSO", NULL, "evenkeel-aggregator(8), evenkeel(1)"},
	{0},
};

static const struct option_program program = {
	.name = "evenkeel-actuator",
	.summary = "Carries out drain plans that planner and checker agree on.",
	.usage = "[OPTION..]",
	.specs = specs,
	.env_prefix = "EVENKEEL_",
	.config_name = "config",
	.manual = manual,
};

/* --- the loop --------------------------------------------------------------------------------- */

static atomic_bool stopping;

static void on_signal(int number)
{
	(void)number;
	atomic_store(&stopping, true);
}

struct actuator {
	struct edge edge;
	struct mailbox mailbox;
	struct act_state state;
	struct act_options rules;
	char **acts; /* owned: the words of --act */
	struct reclaim reclaim;
	struct slack_keeper slack;
	char holder[MARK_HOLDER_LEN];
	char tried[MARK_PLAN_LEN]; /* the last plan of a dry run */
	bool failing; /* logged: reading */
	bool refuses; /* a dry run found a drain */
};

/* True: it was done. */
static bool carry_out(struct actuator *a, const struct act_action *action)
{
	const char *answer = "";
	enum act_result result = edge_carry_out(&a->edge, action, &answer);

	act_result(&a->state, action, result, answer, clock_mono_ns());
	if (result == ACT_DONE)
		log_info("%s%s", a->edge.dry_run ? "dry run: " : "", action->text.text);
	else
		log_warn("not done (HTTP %ld: %s): %s", a->edge.status, answer, action->text.text);
	return result == ACT_DONE;
}

/* The evictions of a claimed node: without writes, no later step would decide on them. */
static void try_evictions(struct actuator *a, const char *node)
{
	const struct verify_plan *p = &a->edge.offer;

	for (size_t i = 0; i < p->move_count; i++) {
		struct eviction pod = {.namespace = (char *)p->moves[i].namespace,
				       .name = (char *)p->moves[i].name,
				       .uid = (char *)p->moves[i].uid};
		struct act_action action = {.kind = ACT_EVICT, .node = node, .pod = &pod};

		if (strcmp(p->nodes[p->moves[i].node].name, node) != 0)
			continue;
		error_set(&action.text, "pod %s/%s is evicted", pod.namespace, pod.name);
		carry_out(a, &action);
	}
}

static void try_wave(struct actuator *a, const struct act_output *out)
{
	if (strcmp(a->tried, a->edge.plan.id) == 0)
		return;
	memcpy(a->tried, a->edge.plan.id, sizeof(a->tried));
	for (size_t i = 0; i < out->action_count; i++) {
		carry_out(a, &out->actions[i]);
		try_evictions(a, out->actions[i].node);
	}
}

/* Nothing would end it. */
static void refuse_drain(struct actuator *a, const char *node)
{
	log_error("--dry-run: node %s has a drain or the taint " MARK_TAINT
		  "; undo it, or let an actuator without --dry-run end it",
		  node);
	a->refuses = true;
	atomic_store(&stopping, true);
}

/* False: the cluster cannot be read. */
static bool read_all(struct actuator *a, int64_t now_ns)
{
	struct error why = {""};
	size_t count;
	struct edge_named *named = mailbox_nodes(&a->mailbox, &count);
	int rc;

	edge_read_plan(&a->edge, &a->state, now_ns);
	rc = edge_read_cluster(&a->edge, &a->state, named, count, now_ns, &why);
	free(named);
	if (rc && !a->failing)
		log_warn("no step is possible: %s", why.text);
	a->failing = rc != 0;
	if (!rc)
		edge_read_uses(&a->edge, &a->state);
	return !rc;
}

/* True: it wrote, and the next step is due soon. */
static bool step_drain(struct actuator *a, const struct lease_state *lease)
{
	struct edge *e = &a->edge;
	struct act_output out = {0};
	int64_t now_ns = clock_mono_ns();
	bool busy = false;

	if (!read_all(a, now_ns))
		return false;
	act_step(&a->state, &a->rules,
		 &(struct act_input){
			 .cluster = &e->cluster,
			 .plan = &e->plan,
			 .uses = e->uses,
			 .use_count = e->use_count,
			 .paused = lease->paused,
			 .now_ns = now_ns,
			 .wall_ns = clock_wall_ns(),
		 },
		 &out);
	log_lines(out.narration.data);
	if (e->dry_run && a->state.drain_count)
		refuse_drain(a, a->state.drains[0].node);
	else if (e->dry_run)
		try_wave(a, &out);
	for (size_t i = 0; i < out.action_count && !e->dry_run; i++)
		busy |= carry_out(a, &out.actions[i]);
	if (a->state.wave_ended)
		mailbox_report_wave(e, &a->state.wave);
	mailbox_exchange(&a->mailbox, e, &a->state, &a->reclaim.state, lease->paused, now_ns);
	act_output_fini(&out);
	return busy;
}

static bool acts(const struct actuator *a, const char *word)
{
	return array_has_text((const char *const *)a->acts, word);
}

static bool step(struct actuator *a, const struct lease_state *lease)
{
	bool busy = step_drain(a, lease);

	if (acts(a, "reclaim"))
		busy |= reclaim_run(&a->reclaim, &a->edge, lease->paused, clock_mono_ns());
	if (acts(a, "slack"))
		busy |= slack_run(&a->slack, &a->edge, lease->paused, clock_mono_ns());
	return busy && !a->edge.dry_run;
}

static void loop(struct actuator *a)
{
	static const struct timespec usual = {.tv_sec = 2}, after_writes = {.tv_nsec = 500000000};

	while (!atomic_load(&stopping)) {
		struct lease_state lease;
		bool busy = false;

		lease_get(a->edge.lease, &lease);
		if (lease.held && lease.transitions == a->edge.transitions) {
			busy = step(a, &lease);
		} else {
			act_state_fini(&a->state);
			reclaim_forget(&a->reclaim);
			slack_forget(&a->slack);
			mailbox_forget(&a->mailbox);
			edge_forget(&a->edge);
			a->edge.transitions = lease.transitions;
		}
		edge_end_step(&a->edge);
		if (!atomic_load(&stopping))
			nanosleep(busy ? &after_writes : &usual, NULL);
	}
}

/* --- start ------------------------------------------------------------------------------------ */

/* The words of a list, which end with NULL, in one block of the caller's. */
static char **split(const char *list, size_t *count)
{
	size_t len = strlen(list);
	char **words = mem_zalloc(1, (len + 1) * sizeof(*words) + len + 1);
	char *at = memcpy(words + len + 1, list, len), *word;

	*count = 0;
	while ((word = strsep(&at, ", ")))
		if (*word)
			words[(*count)++] = word;
	return words;
}

static int check_acts(char **acts, struct error *error)
{
	static const char *const known[] = {"drain", "reclaim", "slack", NULL};

	for (; *acts; acts++)
		if (!array_has_text(known, *acts))
			return error_fail(
				error, -EINVAL,
				"--act: \"%.100s\" is unknown; drain, reclaim and slack are known",
				*acts);
	return 0;
}

static int start(struct actuator *a, const struct actuator_options *o, struct error *error)
{
	struct kube_config config = {0};
	const struct lease_options lease = {o->lease_namespace, o->lease_name, a->holder, &config};
	const struct sigaction action = {.sa_handler = on_signal};
	int rc = kube_config_find(&config, o->kubeconfig, o->context, error);

	if (!rc)
		rc = edge_open(&a->edge, &config, &stopping, error);
	if (rc)
		goto out;
	a->edge.dry_run = o->dry_run;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	rc = lease_start(&a->edge.lease, &lease, error);
	if (rc)
		edge_close(&a->edge);
out:
	kube_config_fini(&config);
	return rc;
}

static void name_holder(char holder[MARK_HOLDER_LEN])
{
	char host[128] = "host";

	gethostname(host, sizeof(host) - 1);
	snprintf(holder, MARK_HOLDER_LEN, "%s_%d_%" PRIx64, host, (int)getpid(),
		 (uint64_t)clock_wall_ns());
}

static int run(const void *values, struct error *error)
{
	const struct actuator_options *o = values;
	struct actuator a = {.rules = {.after = (enum act_after)o->after,
				       .pod_wait_ns = o->max_pod_wait_ns,
				       .in_flight_max = (size_t)o->max_in_flight,
				       .hour_max = (size_t)o->max_evictions_per_hour,
				       .holder = a.holder},
			     .reclaim.options = {.act = &a.rules,
						 .evictions_max = (size_t)o->max_evictions,
						 .wait_ns = o->max_pod_wait_ns,
						 .dry_run = o->dry_run},
			     .slack.rules = {.act = &a.rules, .dry_run = o->dry_run}};
	struct selector *selector = NULL;
	char **namespaces = NULL;
	size_t act_count;
	int status = 2;

	a.acts = split(o->act, &act_count);
	if (check_acts(a.acts, error))
		goto out;
	a.rules.drain = acts(&a, "drain");
	if (selector_parse(o->node_selector, &selector, error)) {
		error_prefix(error, "--node-selector");
		goto out;
	}
	if (o->namespaces)
		namespaces = split(o->namespaces, &a.rules.namespace_count);
	a.rules.namespaces = (const char *const *)namespaces;
	name_holder(a.holder);
	mailbox_init(&a.mailbox, o->lease_namespace, o->lease_name, a.acts, a.holder);
	status = start(&a, o, error) ? 1 : 0;
	if (!status) {
		a.edge.selector = selector;
		log_info("%s acts as %s", *o->act ? o->act : "nothing by itself", a.holder);
		loop(&a);
		status = a.refuses;
		lease_stop(a.edge.lease);
		edge_close(&a.edge);
	}
out:
	act_state_fini(&a.state);
	reclaim_forget(&a.reclaim);
	slack_forget(&a.slack);
	mailbox_fini(&a.mailbox);
	selector_free(selector);
	free(namespaces);
	free(a.acts);
	return status;
}

int main(int argc, char **argv)
{
	struct actuator_options options = {0};

	return program_main(&program, &options, &options.common, run, argc, argv);
}
