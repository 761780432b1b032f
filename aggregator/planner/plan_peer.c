/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory goes in pieces, each in a frame of its own between those of reservations. It is not
 * compressed: of 150,000 pods it has up to 8 MB, and zlib would delay reservations by 0.1 s.
 *
 * One of both decides which one is the elder: the one with the lower run, by the first ages that it
 * compares. The other one follows. So delays of frames do not make two elders of aggregators that
 * started together, and Unix times have no say.
 */
#include "aggregator/planner/plan_peer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shared/arith.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/message.h"

struct plan_peer {
	/* fixed after start */
	struct plan_slot *plans; /* borrowed */
	struct exchange_counters *counters; /* borrowed */
	uint64_t run;
	int64_t started_ns;
	pthread_mutex_t lock;

	/* under lock: what the other one told */
	uint64_t its_run; /* 0: nothing */
	atomic_ullong elder_run; /* 0: not decided; read without the lock */
	uint64_t id;
	int64_t heard_ns; /* when it told an id; else of the start */
	int64_t same_ns; /* when ids were equal, or the first one came after a silence */
	struct buf memory; /* owned; of the elder, and not used yet; empty: none */
};

const char *plan_accord_name(enum plan_accord a)
{
	static const char *const names[PLAN_ACCORDS] = {"same", "other", "unknown"};

	return names[a];
}

struct plan_peer *plan_peer_new(struct plan_slot *plans, struct exchange_counters *counters,
				uint64_t run, int64_t now_ns)
{
	struct plan_peer *p = mem_zalloc(1, sizeof(*p));

	p->plans = plans;
	p->counters = counters;
	p->run = run;
	p->started_ns = p->heard_ns = p->same_ns = now_ns;
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void plan_peer_free(struct plan_peer *p)
{
	if (!p)
		return;
	buf_fini(&p->memory);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* --- bodies ----------------------------------------------------------------------------------- */

struct told {
	int64_t age_ns;
	uint64_t run, elder_run, id, memory_size, memory_at;
	struct span memory;
};

#define ROW(number, of, member, ...)                                                               \
	[(number)-1] = {.name = #member, .offset = offsetof(struct of, member), __VA_ARGS__}

/* Fields 1 and 2 are those of reservations; 3 is no longer used. */
static const struct message_field told_rows[] = {
	ROW(4, told, id, .kind = MESSAGE_U64),
	ROW(5, told, memory_size, .kind = MESSAGE_U64, .bounded = true,
	    .most = PLAN_PEER_MEMORY_MAX),
	ROW(6, told, memory_at, .kind = MESSAGE_U64, .bounded = true, .most = PLAN_PEER_MEMORY_MAX),
	ROW(7, told, memory, .kind = MESSAGE_SPAN),
	ROW(8, told, run, .kind = MESSAGE_U64),
	ROW(9, told, age_ns, .kind = MESSAGE_U64, .bounded = true, .most = INT64_MAX),
	ROW(10, told, elder_run, .kind = MESSAGE_U64),
};
static const struct message told_message = MESSAGE(told_rows);

struct parts {
	struct span of[PLAN_PARTS];
};

static const struct message_field part_rows[PLAN_PARTS] = {
	ROW(PLAN_SLACK + 1, parts, of[PLAN_SLACK], .kind = MESSAGE_SPAN),
	ROW(PLAN_DRAIN + 1, parts, of[PLAN_DRAIN], .kind = MESSAGE_SPAN),
};
static const struct message part_message = MESSAGE(part_rows);

static void write_memory(const struct plan_result *r, struct buf *out)
{
	struct parts parts = {.of = {{NULL, 0}}};

	for (int p = 0; p < PLAN_PARTS; p++)
		if (r->memory[p])
			parts.of[p] = (struct span){(const uint8_t *)r->memory[p]->data,
						    r->memory[p]->len};
	message_encode(&part_message, &parts, out);
}

bool plan_peer_tell(struct plan_peer *p, struct plan_telling *t, struct buf *body, int64_t now_ns)
{
	struct plan_result *r = plan_slot_take(p->plans);
	struct told told = {.run = p->run,
			    .age_ns = now_ns - p->started_ns,
			    .elder_run = atomic_load(&p->elder_run),
			    .id = r ? r->id : 0};

	if (r && r->version != t->version && !t->memory.len && told.elder_run == p->run) {
		write_memory(r, &t->memory);
		t->version = r->version;
		t->at = 0;
		if (t->memory.len > PLAN_PEER_MEMORY_MAX) {
			log_warn("the other aggregator plans without this one's memory: it has %zu "
				 "bytes, more than %d",
				 t->memory.len, PLAN_PEER_MEMORY_MAX);
			buf_fini(&t->memory);
		}
	}
	plan_result_drop(r);
	if (t->memory.len) {
		told.memory_size = t->memory.len;
		told.memory_at = t->at;
		told.memory = (struct span){(const uint8_t *)t->memory.data + t->at,
					    (size_t)int_min(PLAN_PEER_PIECE,
							    (int64_t)(t->memory.len - t->at))};
		t->at += told.memory.len;
	}
	message_encode(&told_message, &told, body);
	if (t->at == t->memory.len)
		buf_fini(&t->memory);
	return t->memory.len > 0;
}

static int take_piece(struct plan_hearing *h, const struct told *t, bool *complete,
		      struct error *error)
{
	struct parts parts = {.of = {{NULL, 0}}};

	if (!t->memory_at) {
		buf_clear(&h->memory);
		h->size = t->memory_size;
	}
	if (t->memory_size != h->size || t->memory_at != h->memory.len || !t->memory.len ||
	    t->memory.len > h->size - h->memory.len) {
		buf_fini(&h->memory);
		return error_fail(error, -EBADMSG, "a piece of the planner's memory is missing");
	}
	buf_add(&h->memory, t->memory.data, t->memory.len);
	*complete = h->memory.len == h->size;
	if (*complete &&
	    message_decode(&part_message,
			   (struct span){(const uint8_t *)h->memory.data, h->memory.len}, &parts,
			   error))
		return -EBADMSG;
	return 0;
}

/* Under the lock. */
static void choose_elder(struct plan_peer *p, const struct told *t, int64_t now_ns)
{
	if (t->run < p->run)
		p->elder_run = t->elder_run;
	else if (t->run != p->its_run)
		p->elder_run = t->age_ns > now_ns - p->started_ns ? t->run : p->run;
	p->its_run = t->run;
}

static void note(struct plan_peer *p, const struct told *t, struct buf *memory, int64_t now_ns)
{
	struct plan_result *r = plan_slot_take(p->plans);

	pthread_mutex_lock(&p->lock);
	choose_elder(p, t, now_ns);
	if (t->id) {
		if ((r && r->id == t->id) || now_ns - p->heard_ns > PLAN_PEER_SILENT_NS)
			p->same_ns = now_ns;
		p->heard_ns = now_ns;
		p->id = t->id;
	}
	if (memory && p->elder_run == t->run) {
		buf_fini(&p->memory);
		p->memory = *memory;
		*memory = (struct buf)BUF_INIT;
	}
	pthread_mutex_unlock(&p->lock);
	plan_result_drop(r);
}

int plan_peer_hear(struct plan_peer *p, struct plan_hearing *h, const struct buf *body,
		   int64_t now_ns, struct error *error)
{
	struct told t = {.run = 0};
	bool complete = false;
	int rc = message_decode(&told_message,
				(struct span){(const uint8_t *)body->data, body->len}, &t, error);

	if (!rc && t.memory_size)
		rc = take_piece(h, &t, &complete, error);
	if (rc) {
		counter_add(&p->counters->refused, 1);
		return -EBADMSG;
	}
	if (t.run)
		note(p, &t, complete ? &h->memory : NULL, now_ns);
	return 0;
}

/* --- the planner ------------------------------------------------------------------------------ */

int plan_peer_lead(struct plan_peer *p, struct plan_core *c, int64_t wall_ns, struct error *error)
{
	struct parts parts = {.of = {{NULL, 0}}};
	struct buf memory;
	int rc = 0;

	if (!p)
		return 0;
	pthread_mutex_lock(&p->lock);
	memory = p->memory;
	p->memory = (struct buf)BUF_INIT;
	pthread_mutex_unlock(&p->lock);
	message_decode(&part_message, (struct span){(const uint8_t *)memory.data, memory.len},
		       &parts, error);
	for (int i = 0; i < PLAN_PARTS && !rc; i++)
		if (parts.of[i].len)
			rc = plan_core_remember(c, (enum plan_part)i,
						&(struct plan_text){
							.data = (const char *)parts.of[i].data,
							.len = parts.of[i].len,
							.now_ns = wall_ns,
							.foreign = true,
						},
						error);
	buf_fini(&memory);
	counter_add(&p->counters->refused, rc != 0);
	return rc;
}

/* --- answers ---------------------------------------------------------------------------------- */

void plan_peer_begin(struct plan_peer *p, int64_t now_ns)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->heard_ns = int_max(p->heard_ns, now_ns);
	pthread_mutex_unlock(&p->lock);
}

struct plan_peer_state plan_peer_look(struct plan_peer *p, const struct plan_result *plan,
				      int64_t now_ns)
{
	struct plan_result *newest = plan ? NULL : plan_slot_take(p->plans);
	const struct plan_result *r = plan ? plan : newest;
	struct plan_peer_state s = {.elder = atomic_load(&p->elder_run) == p->run};

	pthread_mutex_lock(&p->lock);
	s.id = p->id;
	if (!p->id || now_ns - p->heard_ns > PLAN_PEER_SILENT_NS) {
		s.accord = PLAN_UNKNOWN;
		s.for_ns = now_ns - p->heard_ns;
	} else if (!r || r->id != p->id) {
		s.accord = PLAN_OTHER;
		s.for_ns = now_ns - p->same_ns;
	}
	pthread_mutex_unlock(&p->lock);
	plan_result_drop(newest);
	return s;
}
