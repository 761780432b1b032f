/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object is applied when its text is new, when it is missing, or when its replicas were changed by
 * others; and at most once in CHANGE_NS. Server-side apply is not forced: a field that another manager
 * owns is a conflict, which is told and tried again.
 */
#include "aggregator/actuator/act_slack.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

#define SECOND_NS INT64_C(1000000000)

static const int64_t CHANGE_NS = 60 * SECOND_NS;

void act_slack_output_fini(struct act_slack_output *out)
{
	free(out->actions);
	buf_fini(&out->narration);
	*out = (struct act_slack_output){0};
}

/* --- what was applied ------------------------------------------------------------------------- */

static void kept_fini(struct act_slack_kept *k)
{
	free(k->kind);
	free(k->namespace);
	free(k->name);
	free(k->text);
}

void act_slack_state_fini(struct act_slack_state *s)
{
	for (size_t i = 0; i < s->count; i++)
		kept_fini(&s->kept[i]);
	free(s->kept);
	*s = (struct act_slack_state){0};
}

static bool is_same(const char *kind, const char *namespace, const char *name, const char *kind2,
		    const char *namespace2, const char *name2)
{
	return strcmp(kind, kind2) == 0 && strcmp(namespace, namespace2) == 0 &&
	       strcmp(name, name2) == 0;
}

static struct act_slack_kept *find_kept(struct act_slack_state *s, const char *kind,
					const char *namespace, const char *name)
{
	for (size_t i = 0; i < s->count; i++) {
		struct act_slack_kept *k = &s->kept[i];

		if (is_same(k->kind, k->namespace, k->name, kind, namespace, name))
			return k;
	}
	return NULL;
}

static struct act_slack_kept *keep(struct act_slack_state *s, const char *kind,
				   const char *namespace, const char *name)
{
	struct act_slack_kept *k = find_kept(s, kind, namespace, name);

	if (k)
		return k;
	s->kept = mem_realloc(s->kept, (s->count + 1) * sizeof(*s->kept));
	k = &s->kept[s->count++];
	*k = (struct act_slack_kept){.kind = mem_strdup(kind),
				     .namespace = mem_strdup(namespace),
				     .name = mem_strdup(name)};
	return k;
}

static bool is_wanted(const struct act_slack_input *in, const char *kind, const char *namespace,
		      const char *name)
{
	for (size_t i = 0; i < in->wanted_count; i++)
		if (is_same(in->wanted[i].kind, in->wanted[i].namespace, in->wanted[i].name, kind,
			    namespace, name))
			return true;
	return false;
}

/* Objects that are neither wanted nor there are forgotten. */
static void forget(struct act_slack_state *s, const struct act_slack_input *in)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct act_slack_kept *k = &s->kept[i];
		bool stays = is_wanted(in, k->kind, k->namespace, k->name);

		for (size_t e = 0; e < in->existing_count && !stays; e++)
			stays = is_same(in->existing[e].kind, in->existing[e].namespace,
					in->existing[e].name, k->kind, k->namespace, k->name);
		if (stays)
			s->kept[count++] = *k;
		else
			kept_fini(k);
	}
	s->count = count;
}

/* --- the step --------------------------------------------------------------------------------- */

static const struct act_slack_existing *find_existing(const struct act_slack_input *in,
						      const struct act_slack_wanted *w)
{
	for (size_t i = 0; i < in->existing_count; i++) {
		const struct act_slack_existing *e = &in->existing[i];

		if (is_same(e->kind, e->namespace, e->name, w->kind, w->namespace, w->name))
			return e;
	}
	return NULL;
}

/* Once for each reason. */
static void tell_left(struct act_slack_kept *k, const char *why, struct act_slack_output *out)
{
	if (strcmp(k->told.text, why) == 0)
		return;
	error_set(&k->told, "%s", why);
	buf_printf(&out->narration, "%s %s/%s is left alone: %s\n", k->kind, k->namespace, k->name,
		   why);
}

static void add_action(struct act_slack_output *out, const struct act_slack_action *a)
{
	out->actions = mem_realloc(out->actions, (out->action_count + 1) * sizeof(*out->actions));
	out->actions[out->action_count++] = *a;
}

/* Whether the cluster has it as it was applied last. */
static bool is_applied(const struct act_slack_kept *k, const struct act_slack_existing *e,
		       const struct act_slack_wanted *w, bool dry_run)
{
	if (!k->text || strcmp(k->text, w->text) != 0)
		return false;
	return dry_run || w->shared || (e && e->replicas == w->replicas);
}

static void apply(struct act_slack_state *s, const struct act_slack_rules *o,
		  const struct act_slack_input *in, const struct act_slack_wanted *w,
		  struct act_slack_output *out)
{
	const struct act_slack_existing *e = find_existing(in, w);
	struct act_slack_kept *k = keep(s, w->kind, w->namespace, w->name);

	if (*w->namespace && !act_may_move(o->act, w->namespace)) {
		tell_left(k, "evenkeel leaves its namespace alone", out);
		return;
	}
	if (e && !e->ours && !w->shared) {
		tell_left(k, "it is there, and not applied by the field manager " SLACK_MANAGER,
			  out);
		return;
	}
	if (is_applied(k, e, w, o->dry_run) ||
	    (k->changed_ns && in->now_ns - k->changed_ns < CHANGE_NS))
		return;
	k->changed_ns = in->now_ns;
	add_action(out, &(struct act_slack_action){.kind = w->kind,
						   .namespace = w->namespace,
						   .name = w->name,
						   .text = w->text});
	if (w->replicas >= 0)
		buf_printf(&out->narration, "%s %s/%s gets %" PRId64 " replicas\n", w->kind,
			   w->namespace, w->name, w->replicas);
}

static void clean_up(struct act_slack_state *s, const struct act_slack_rules *o,
		     const struct act_slack_input *in, const struct act_slack_existing *e,
		     struct act_slack_output *out)
{
	struct act_slack_kept *k;

	if (!e->ours || !act_may_move(o->act, e->namespace) ||
	    is_wanted(in, e->kind, e->namespace, e->name))
		return;
	k = keep(s, e->kind, e->namespace, e->name);
	if (k->changed_ns && in->now_ns - k->changed_ns < CHANGE_NS)
		return;
	k->changed_ns = in->now_ns;
	add_action(out, &(struct act_slack_action){.removes = true,
						   .kind = e->kind,
						   .namespace = e->namespace,
						   .name = e->name,
						   .uid = e->uid});
	buf_printf(&out->narration, "%s %s/%s is removed: no class wants it\n", e->kind,
		   e->namespace, e->name);
}

void act_slack_step(struct act_slack_state *s, const struct act_slack_rules *o,
		    const struct act_slack_input *in, struct act_slack_output *out)
{
	forget(s, in);
	if (in->paused)
		return;
	for (size_t i = 0; i < in->existing_count; i++)
		clean_up(s, o, in, &in->existing[i], out);
	for (size_t i = 0; i < in->wanted_count; i++)
		apply(s, o, in, &in->wanted[i], out);
}

void act_slack_result(struct act_slack_state *s, const struct act_slack_action *a,
		      enum act_result result, const char *answer, struct error *told)
{
	struct act_slack_kept *k = find_kept(s, a->kind, a->namespace, a->name);

	assert(k);
	error_set(told, "%s", "");
	if (result == ACT_DONE && !a->removes) {
		free(k->text);
		k->text = mem_strdup(a->text);
		k->told = (struct error){""};
	} else if (result != ACT_DONE && !(a->removes && result == ACT_GONE) &&
		   strcmp(k->told.text, answer) != 0) {
		error_set(&k->told, "%s", answer);
		error_set(told, "%s %s/%s is not %s: %s", a->kind, a->namespace, a->name,
			  a->removes ? "removed" : "applied", answer);
	}
}
