/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/nodes and /v1/nodes/NAME: what is measured on each machine, how fresh that is, and by which means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/usage_json.h"
#include "aggregator/state/node_clock.h"
#include "aggregator/state/usage_check.h"
#include "shared/clock.h"
#include "shared/jsonw.h"

static void write_run(struct jsonw *w, const uint8_t run[FRAME_RUN_LEN])
{
	char text[2 * FRAME_RUN_LEN + 1];

	for (int i = 0; i < FRAME_RUN_LEN; i++)
		snprintf(text + 2 * i, sizeof(text) - (size_t)(2 * i), "%02x", run[i]);
	jsonw_key_string(w, "runId", text);
}

/* Ahead is positive. What frames need on the way makes a clock seem behind by as much. */
static void write_clock(struct jsonw *w, const struct node_page *p)
{
	if (!p->clock_known)
		return;
	jsonw_key_fixed(w, "clockSkewSeconds", (double)p->clock_ahead_ns / NS_PER_SEC, 3);
	jsonw_key(w, "clockSkewed");
	jsonw_bool(w, llabs(p->clock_ahead_ns) > NODE_CLOCK_FLAGGED_NS);
}

/* Values that could not be: how many, and what was wrong with the last. */
static void write_quarantine(struct jsonw *w, const struct page_quarantine *q)
{
	if (!q->count)
		return;
	jsonw_key(w, "quarantine");
	jsonw_object_open(w);
	jsonw_key(w, "count");
	jsonw_uint(w, q->count);
	jsonw_key_string(w, "lastReason", quarantine_reason_name[q->reason]);
	jsonw_key_string(w, "lastMessage", q->message);
	usage_json_write_time(w, "lastTime", q->last_ns);
	jsonw_object_close(w);
}

static void write_source(struct jsonw *w, const struct node_page *p, int64_t now_ns)
{
	static const char *const tiers[] = {
		[TIER_T0] = "T0",
		[TIER_T1] = "T1",
		[TIER_T2] = "T2",
		[TIER_T3] = "T3",
	};
	enum freshness state = page_freshness(p, now_ns);

	jsonw_key(w, "source");
	jsonw_object_open(w);
	jsonw_key_string(w, "state", freshness_name(state));
	if (state != NEVER) {
		jsonw_key_fixed(w, "ageSeconds", (double)page_age_ns(p, now_ns) / NS_PER_SEC, 3);
		jsonw_key_string(w, "tier", tiers[p->tier]);
		jsonw_key_fixed(w, "rateHz", p->rate_hz, 3);
		write_clock(w, p);
		write_run(w, p->run);
		jsonw_key_int(w, "missedTicks", p->missed_ticks);
		jsonw_key_int(w, "overflowCgroups", p->overflow);
		jsonw_key_fixed(w, "agentCpuMillicores", p->agent_cpu_milli, 3);
		jsonw_key_fixed(w, "passMicroseconds", (double)p->pass_ns / 1000, 3);
		write_quarantine(w, &p->quarantine);
	}
	jsonw_object_close(w);
}

static void write_machine(struct jsonw *w, const struct page_machine *m)
{
	if (!m->known)
		return;
	jsonw_key(w, "machine");
	jsonw_object_open(w);
	jsonw_key(w, "cpuMillicores");
	jsonw_object_open(w);
	jsonw_key_fixed(w, "user", m->user_milli, 3);
	jsonw_key_fixed(w, "system", m->system_milli, 3);
	jsonw_key_fixed(w, "iowait", m->iowait_milli, 3);
	jsonw_key_fixed(w, "steal", m->steal_milli, 3);
	jsonw_object_close(w);
	jsonw_key_int(w, "memoryAvailableBytes", m->mem_available_bytes);
	jsonw_object_close(w);
}

static void write_members(struct jsonw *w, const struct node_page *p, int64_t now_ns)
{
	jsonw_key_string(w, "name", p->name);
	write_source(w, p, now_ns);
	usage_json_write_resources(w, "capacity", p->cpu_capacity_milli, p->mem_capacity_bytes);
	usage_json_write_resources(w, "allocatable", p->cpu_allocatable_milli,
				   p->mem_allocatable_bytes);
	write_machine(w, &p->machine);
	usage_json_write(w, &p->usage, p->end_ns);
	usage_json_write_contention(w, p->usage.windows);
}

static void answer_list(const struct view *v, const struct list_query *q, int64_t now_ns,
			struct api_response *rs)
{
	struct list_pick pick;
	struct jsonw w;

	list_pick_init(&pick, q);
	for (size_t i = 0; i < v->node_count; i++)
		if (!q->node || strcmp(v->nodes[i]->page->name, q->node) == 0)
			list_pick_offer(&pick, (struct list_item){.page = v->nodes[i]->page});
	list_pick_sort(&pick);
	jsonw_init(&w, &rs->body);
	list_write_open(&w, "NodeList", now_ns);
	for (size_t i = 0; i < pick.count; i++) {
		jsonw_object_open(&w);
		write_members(&w, pick.items[i].page, now_ns);
		jsonw_object_close(&w);
	}
	list_write_close(&w, &pick);
	list_pick_fini(&pick);
}

static void answer_one(const struct view *v, const char *name, int64_t now_ns,
		       struct api_response *rs)
{
	const struct node_page *p = view_find_page(v, name);
	struct jsonw w;

	if (!p) {
		api_fail(rs, FAIL_NOT_FOUND, NULL, "no agent has reported from a node \"%s\"",
			 name);
		return;
	}
	jsonw_init(&w, &rs->body);
	jsonw_object_open(&w);
	list_write_header(&w, "Node", now_ns);
	write_members(&w, p, now_ns);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
}

void api_nodes(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	static const char *const list_parameters[] = {"node",	  "limit",	   "sort",
						      "continue", "labelSelector", NULL};
	static const char *const none[] = {NULL};
	const char *name = rq->path + strlen("/v1/nodes");
	struct list_query q;
	int64_t now_ns = ctx->now_ns();
	struct view *v;

	name += *name == '/';
	if (!list_query_read(rq, *name ? none : list_parameters, &q, rs))
		return;
	v = view_slot_take(ctx->views);
	rs->content_type = "application/json";
	rs->etag = list_etag(v, now_ns);
	if (*name)
		answer_one(v, name, now_ns, rs);
	else
		answer_list(v, &q, now_ns, rs);
	view_drop(v);
	list_query_fini(&q);
}
