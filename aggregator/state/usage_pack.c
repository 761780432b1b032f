/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sum finds damage; the checks behind it find what a sum does not, bytes that somebody made.
 * What is kept of the newest interval is what stats show of it; a value that was put aside is not
 * known after a restart, and the node as old as its last good one. Totals are not kept: they are
 * counters of this process, and one that came back a minute younger would look to a monitoring
 * system like a counter that began anew at that height.
 */
#include "aggregator/state/usage_pack.h"

#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <string.h>

#include "aggregator/state/usage_node.h"

#define LATEST_BITS                                                                                \
	((uint32_t)(USAGE_CPU | USAGE_MEMORY | USAGE_WORKING_SET | USAGE_SWAP | USAGE_PIDS))

static void code_machine(struct bytes *b, struct machine_stats *m)
{
	uint8_t known = m->known;

	bytes_u8(b, &known);
	m->known = known;
	bytes_f64(b, &m->user_milli);
	bytes_f64(b, &m->system_milli);
	bytes_f64(b, &m->iowait_milli);
	bytes_f64(b, &m->steal_milli);
	bytes_i64(b, &m->mem_available_bytes);
}

static void code_head(struct bytes *b, struct node_stats *head)
{
	uint8_t tier = (uint8_t)head->tier;

	bytes_u8(b, &tier);
	head->tier = tier;
	bytes_f32(b, &head->rate_hz);
	bytes_u32(b, &head->missed_ticks);
	bytes_u32(b, &head->overflow);
	bytes_u64(b, &head->pass_ns);
	bytes_f64(b, &head->agent_cpu_milli);
	code_machine(b, &head->machine);
	bytes_i64(b, &head->cpu_capacity_milli);
	bytes_i64(b, &head->mem_capacity_bytes);
}

static void code_latest(struct bytes *b, struct usage *u)
{
	uint32_t pids = (uint32_t)u->pids;

	bytes_u32(b, &u->have);
	bytes_f32(b, &u->cpu_milli.mean);
	bytes_f32(b, &u->mem_bytes.last);
	bytes_f32(b, &u->working_set_bytes.last);
	bytes_u64(b, &u->swap_bytes);
	bytes_u32(b, &pids);
	u->pids = pids;
}

/* Only what stats read of the newest interval, and nothing of what was not measured. */
static struct usage latest_of(const struct usage *u)
{
	struct usage latest = {.have = u->have & LATEST_BITS};

	if (!u->cpu_milli.samples)
		latest.have &= ~(uint32_t)USAGE_CPU;
	if (latest.have & USAGE_CPU)
		latest.cpu_milli.mean = u->cpu_milli.mean;
	if (latest.have & USAGE_MEMORY)
		latest.mem_bytes.last = u->mem_bytes.last;
	if (latest.have & USAGE_WORKING_SET)
		latest.working_set_bytes.last = u->working_set_bytes.last;
	for (int c = COUNTERS_COUNTED; c < COUNTERS; c++)
		if (latest.have & usage_counters[c].have)
			latest.counter[c] = u->counter[c];
	return latest;
}

void usage_node_pack(const struct usage_node *n, struct buf *out)
{
	struct bytes b = {.out = out};
	struct usage_mark mark = n->counted;
	struct node_stats head = n->head;
	struct usage latest = latest_of(&n->node_usage);
	int64_t heard_ns = n->heard_ns, correction_ns = n->clock.correction_ns;
	int64_t good_ns = n->good_ns;
	uint8_t version = USAGE_PACK_VERSION;

	bytes_u8(&b, &version);
	bytes_raw(&b, mark.run, FRAME_RUN_LEN);
	bytes_u64(&b, &mark.sequence);
	bytes_i64(&b, &head.end_ns);
	bytes_i64(&b, &heard_ns);
	bytes_i64(&b, &correction_ns);
	bytes_i64(&b, &good_ns);
	code_head(&b, &head);
	code_latest(&b, &latest);
	node_windows_pack(n->windows, &b);
}

static void sum_up(const char *name, const void *data, size_t len, uint8_t sum[USAGE_PACK_SUM_LEN])
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, NULL, 0, USAGE_PACK_SUM_LEN);
	crypto_generichash_update(&state, (const unsigned char *)name, strlen(name) + 1);
	crypto_generichash_update(&state, data, len);
	crypto_generichash_final(&state, sum, USAGE_PACK_SUM_LEN);
}

void usage_pack_seal(const char *name, struct buf *packed)
{
	uint8_t sum[USAGE_PACK_SUM_LEN];

	sum_up(name, packed->data, packed->len, sum);
	buf_add(packed, sum, sizeof(sum));
}

static bool machine_can_be(const struct machine_stats *m)
{
	return isfinite(m->user_milli) && isfinite(m->system_milli) && isfinite(m->iowait_milli) &&
	       isfinite(m->steal_milli) && m->mem_available_bytes >= 0;
}

static bool head_can_be(const struct node_stats *head)
{
	return head->tier <= TIER_T3 && isfinite(head->rate_hz) &&
	       isfinite(head->agent_cpu_milli) && head->cpu_capacity_milli > 0 &&
	       head->mem_capacity_bytes > 0 && machine_can_be(&head->machine);
}

static bool latest_can_be(const struct usage *u)
{
	return !(u->have & ~LATEST_BITS) && isfinite(u->cpu_milli.mean) &&
	       isfinite(u->mem_bytes.last) && isfinite(u->working_set_bytes.last);
}

static bool times_can_be(const struct usage_node *n)
{
	const int64_t farthest_ns = INT64_MAX / 2;
	int64_t correction_ns = n->clock.correction_ns;

	return n->head.end_ns > 0 && n->heard_ns > 0 && n->good_ns >= 0 &&
	       correction_ns >= -farthest_ns && correction_ns <= farthest_ns &&
	       correction_ns % INT64_C(1000000000) == 0;
}

static int read_node(struct bytes *b, struct usage_node *n, struct error *error)
{
	struct node_windows *windows;

	bytes_raw(b, n->counted.run, FRAME_RUN_LEN);
	bytes_u64(b, &n->counted.sequence);
	bytes_i64(b, &n->head.end_ns);
	bytes_i64(b, &n->heard_ns);
	bytes_i64(b, &n->clock.correction_ns);
	bytes_i64(b, &n->good_ns);
	code_head(b, &n->head);
	code_latest(b, &n->node_usage);
	if (b->bad || !n->counted.sequence || !times_can_be(n) || !head_can_be(&n->head) ||
	    !latest_can_be(&n->node_usage))
		return error_fail(error, -EBADMSG, "what it says of the machine cannot be");
	if (node_windows_unpack(b, &windows))
		return error_fail(error, -EBADMSG, "its windows cannot be");
	node_windows_free(n->windows);
	n->windows = windows;
	if (b->left)
		return error_fail(error, -EBADMSG, "%zu bytes follow its end", b->left);
	return 0;
}

static int check_sum(const char *name, const uint8_t *data, size_t len, struct error *error)
{
	uint8_t sum[USAGE_PACK_SUM_LEN];

	if (len <= USAGE_PACK_SUM_LEN)
		return error_fail(error, -EBADMSG, "it has but %zu bytes", len);
	sum_up(name, data, len - USAGE_PACK_SUM_LEN, sum);
	if (memcmp(sum, data + len - USAGE_PACK_SUM_LEN, USAGE_PACK_SUM_LEN) == 0)
		return 0;
	return error_fail(error, -EBADMSG, "its checksum is wrong");
}

int usage_node_unpack(const char *name, const void *data, size_t len, struct usage_node **out,
		      struct error *error)
{
	struct bytes b = {.in = data, .left = len - USAGE_PACK_SUM_LEN};
	struct usage_node *n;
	uint8_t version = 0;
	int rc;

	if (!frame_node_name_valid(name, strlen(name)))
		return error_fail(error, -EBADMSG, "no node has such a name");
	rc = check_sum(name, data, len, error);
	if (rc)
		return rc;
	bytes_u8(&b, &version);
	if (version != USAGE_PACK_VERSION)
		return error_fail(error, -EPROTO, "it is of version %u, this is %u", version,
				  USAGE_PACK_VERSION);
	n = usage_node_new(name, 0);
	rc = read_node(&b, n, error);
	if (rc) {
		usage_node_free(n);
		return rc;
	}
	n->counted.known = true;
	n->node_usage.cpu_milli.samples = 1; /* for the mean to count */
	*out = n;
	return 0;
}
