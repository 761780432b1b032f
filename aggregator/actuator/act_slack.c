/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object is applied when its text is new, when it is missing, or when its replicas were changed by
 * others; and at most once in CHANGE_NS. Server-side apply is forced for objects that are ours, and
 * takes fields from other managers. For a new or a shared object, a field that another manager owns is
 * a conflict, which is told and tried again.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/slack.h"
#include "shared/array.h"
#include "shared/mem.h"

#define CHANGE_NS (60 * INT64_C(1000000000))

/* --- what was applied ------------------------------------------------------------------------- */

static void kept_fini(struct slack_kept *k)
{
	free(k->title);
	free(k->text);
}

void act_slack_state_fini(struct slack_state *s)
{
	for (size_t i = 0; i < s->count; i++)
		kept_fini(&s->kept[i]);
	free(s->kept);
	*s = (struct slack_state){0};
}

static struct slack_kept *keep(struct slack_state *s, const char *title)
{
	size_t at;

	s->kept = array_put_name(s->kept, &s->count, sizeof(*s->kept), title, &at);
	return &s->kept[at];
}

static const struct slack_object *find(const struct slack_objects *objects, const char *title)
{
	return array_find_text(objects->of, objects->count, sizeof(struct slack_object), title);
}

/* --- the step --------------------------------------------------------------------------------- */

/* Once for each reason. */
static void tell_left(struct slack_kept *k, const char *why, struct slack_output *out)
{
	if (strcmp(k->told.text, why) == 0)
		return;
	error_set(&k->told, "%s", why);
	buf_printf(&out->narration, "%s is left alone: %s\n", k->title, why);
}

/* False: it was changed less than CHANGE_NS ago. */
static bool change(struct slack_kept *k, const struct slack_object *of, int64_t now_ns,
		   struct slack_output *out)
{
	if (k->changed_ns && now_ns - k->changed_ns < CHANGE_NS)
		return false;
	k->changed_ns = now_ns;
	ARRAY_ADD(out->actions, out->action_count) = of;
	return true;
}

/* Whether the cluster has it as it was applied last. */
static bool is_applied(const struct slack_kept *k, const struct slack_object *existing,
		       const struct slack_object *w, bool dry_run)
{
	if (!k->text || strcmp(k->text, w->text) != 0)
		return false;
	return dry_run || w->shared || (existing && existing->replicas == w->replicas);
}

static void apply(struct slack_state *s, const struct slack_rules *o, const struct slack_input *in,
		  const struct slack_object *w, struct slack_output *out)
{
	const struct slack_object *existing = find(&in->existing, w->title);
	struct slack_kept *k = keep(s, w->title);

	if (*w->namespace && !act_may_move(o->act, w->namespace))
		tell_left(k, "evenkeel leaves its namespace alone", out);
	else if (existing && !existing->ours && !w->shared)
		tell_left(k, "it is there, and not applied by the field manager " SLACK_MANAGER,
			  out);
	else if (!is_applied(k, existing, w, o->dry_run) && change(k, w, in->now_ns, out) &&
		 w->replicas >= 0)
		buf_printf(&out->narration, "%s gets %" PRId64 " replicas\n", w->title,
			   w->replicas);
}

void act_slack_step(struct slack_state *s, const struct slack_rules *o,
		    const struct slack_input *in, struct slack_output *out)
{
	size_t count = 0;

	/* Objects that are neither wanted nor there are forgotten. */
	for (size_t i = 0; i < s->count; i++)
		if (find(&in->wanted, s->kept[i].title) || find(&in->existing, s->kept[i].title))
			s->kept[count++] = s->kept[i];
		else
			kept_fini(&s->kept[i]);
	s->count = count;
	for (size_t i = 0; i < in->existing.count && !in->paused; i++) {
		const struct slack_object *e = &in->existing.of[i];

		if (e->ours && act_may_move(o->act, e->namespace) && !find(&in->wanted, e->title) &&
		    change(keep(s, e->title), e, in->now_ns, out))
			buf_printf(&out->narration, "%s is removed: no class wants it\n", e->title);
	}
	for (size_t i = 0; i < in->wanted.count && !in->paused; i++)
		apply(s, o, in, &in->wanted.of[i], out);
}

void act_slack_result(struct slack_state *s, const struct slack_object *of, enum act_result result,
		      const char *answer, struct error *told)
{
	struct slack_kept *k = array_search_name(s->kept, s->count, sizeof(*k), of->title);

	assert(k);
	error_set(told, "%s", "");
	if (result == ACT_DONE && !of->uid) {
		free(k->text);
		k->text = mem_strdup(of->text);
		k->told = (struct error){""};
	} else if (result != ACT_DONE && !(of->uid && result == ACT_GONE) &&
		   strcmp(k->told.text, answer) != 0) {
		error_set(&k->told, "%s", answer);
		error_set(told, "%s is not %s: %s", of->title, of->uid ? "removed" : "applied",
			  answer);
	}
}
