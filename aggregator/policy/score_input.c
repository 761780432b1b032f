/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder: what is known about a node, from best to worst.
 *
 *     window 15m    the longest window that is covered (windows.h)
 *     window 10m
 *     window 5m
 *     since start   measured for less than 5 minutes, or hardly at all since: the last 5 minutes
 *     late 42s      any of these, but the node has been silent for 30 s: the numbers are kept, and trusted less
 *                   by widening sigma with the age; not for upstream, which takes late numbers as they are
 *     expired       silent for more than 5 minutes: nothing is known any more
 *     none          never heard of
 */

#include <string.h>

#include "aggregator/policy/score.h"
#include "aggregator/policy/sentence.h"

enum { RUNG_LEN = 32 };

static const struct rung {
	enum window window;
	const char *text;
} rungs[] = {
	{WINDOW_15M, "window 15m"},
	{WINDOW_10M, "window 10m"},
	{WINDOW_5M, "window 5m"},
};

#define RUNGS (sizeof(rungs) / sizeof(rungs[0]))

/* The window to use, or NULL; *rung names it, NULL where it is shorter than its name says. */
static const struct window_set *choose(const struct page_usage *usage, const struct rung **rung)
{
	const struct window_set *known = NULL;

	*rung = NULL;
	for (size_t i = 0; i < RUNGS; i++) {
		const struct window_set *set = &usage->windows[rungs[i].window];

		if (window_is_covered(set, rungs[i].window)) {
			*rung = &rungs[i];
			return set;
		}
		if (set->cpu_milli.known || set->mem_bytes.known)
			known = set;
	}
	return known;
}

static struct score_metric percent_of(const struct window_stats *stats, int64_t capacity,
				      double widen)
{
	if (!stats->known || capacity <= 0)
		return (struct score_metric){false, 0, 0};
	return (struct score_metric){true, 100 * stats->mean / (double)capacity,
				     widen * 100 * stats->stddev / (double)capacity};
}

static void name_late(char text[RUNG_LEN], double age_seconds)
{
	struct sentence s;

	sentence_start(&s, text, RUNG_LEN);
	sentence_add(&s, "late ");
	sentence_add_int(&s, (int64_t)age_seconds);
	sentence_add(&s, "s");
}

static void take_metrics(const struct node_page *page, bool late, enum score_variant variant,
			 char text[RUNG_LEN], struct score_node *node)
{
	const struct rung *rung;
	const struct window_set *set = choose(&page->usage, &rung);
	double widen = late && variant != SCORE_UPSTREAM ? 1 + node->age_seconds / 60 : 1;

	if (!set)
		return;
	node->cpu = percent_of(&set->cpu_milli, page->cpu_capacity_milli, widen);
	node->mem = percent_of(&set->mem_bytes, page->mem_capacity_bytes, widen);
	node->window = rung ? window_name[rung->window] : "";
	node->rung = rung ? rung->text : "since start";
	if (late) {
		name_late(text, node->age_seconds);
		node->rung = text;
	}
}

void score_node_from_page(const struct node_page *page, int64_t now_ns, enum score_variant variant,
			  char text[RUNG_LEN], struct score_node *node)
{
	enum freshness freshness = page_freshness(page, now_ns);

	*node = (struct score_node){
		.name = page->name,
		.cpu_capacity_milli = page->cpu_capacity_milli,
		.mem_capacity_bytes = page->mem_capacity_bytes,
		.cpu_allocatable_milli = page->cpu_allocatable_milli,
		.mem_allocatable_bytes = page->mem_allocatable_bytes,
		.rung = freshness_name(freshness == EXPIRED ? EXPIRED : NEVER),
		.window = "",
	};
	if (freshness == NEVER)
		return;
	if (now_ns > page->end_ns)
		node->age_seconds = (double)(now_ns - page->end_ns) / 1e9;
	if (freshness != EXPIRED)
		take_metrics(page, freshness == LATE, variant, text, node);
}
