/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the database into usage_node_unpack(). The sum is made here, so that what lies behind it
 * is reached. What is accepted must fit for stats with finite numbers, and be packed to bytes that
 * are read as the same again.
 */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "aggregator/state/usage_node.h"
#include "aggregator/state/usage_pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stats(const struct window_stats *s)
{
	assert(isfinite(s->mean) && isfinite(s->stddev) && s->stddev >= 0);
	assert(isfinite(s->min) && isfinite(s->max));
	assert(isfinite(s->p50) && isfinite(s->p95) && isfinite(s->p99));
	assert(s->known == (s->samples > 0));
	assert(!s->known || s->start_ns < s->end_ns);
}

static void check_node(const struct node_stats *p)
{
	assert(strcmp(p->name, "node") == 0 && p->pod_count == 0);
	assert(p->cpu_allocatable_milli > 0 && p->mem_allocatable_bytes > 0);
	for (int w = 0; w < WINDOWS; w++) {
		check_stats(&p->usage.windows[w].cpu_milli);
		check_stats(&p->usage.windows[w].mem_bytes);
		check_stats(&p->usage.windows[w].working_set_bytes);
		assert(isfinite(p->usage.windows[w].counts.seconds));
	}
}

static struct usage_node *unpack(const void *data, size_t len)
{
	struct usage_node *n = NULL;
	struct error error = {""};
	struct buf b = BUF_INIT;
	int rc;

	buf_add(&b, data, len);
	usage_pack_seal("node", &b);
	rc = usage_node_unpack("node", b.data, b.len, &n, &error);
	assert(rc ? !n && error.text[0] : n != NULL);
	buf_fini(&b);
	return n;
}

static void show(struct usage_node *n)
{
	struct stats_scratch scratch = {0};
	struct node_stats *stats;
	int64_t as_of[2];

	usage_node_restore(n, 1, 1);
	as_of[0] = n->head.end_ns;
	as_of[1] = node_windows_newest_ns(n->windows);
	for (int i = 0; i < 2; i++) {
		n->head.end_ns = as_of[i];
		stats = usage_node_stats(n, &scratch);
		check_node(stats);
		node_stats_drop(stats);
	}
	n->head.end_ns = as_of[0];
	stats_scratch_free_members(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct usage_node *n = unpack(data, size), *again;
	struct buf first = BUF_INIT, second = BUF_INIT;

	if (!n)
		return 0;
	show(n);
	usage_node_pack(n, &first);
	again = unpack(first.data, first.len);
	assert(again);
	usage_node_pack(again, &second);
	assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	buf_fini(&first);
	buf_fini(&second);
	usage_node_free(n);
	usage_node_free(again);
	return 0;
}
