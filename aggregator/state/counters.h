/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the service, for /metrics. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "aggregator/state/usage_check.h"

/*
 * X(name, metric labels, help of the family is in the metrics edge). What became of each frame that
 * arrived.
 */
#define FRAME_RESULTS(X)                                                                           \
	X(applied)                                                                                 \
	X(part) /* stored until its interval is complete */                                        \
	X(duplicate)                                                                               \
	X(too_old)                                                                                 \
	X(need_full) /* a resend was ordered */                                                    \
	X(refused) /* over a limit, or what an interval cannot be */                               \
	X(rival) /* of a second run of a node whose first is alive; it may send it again */        \
	X(malformed)                                                                               \
	X(version)                                                                                 \
	X(oversized)                                                                               \
	X(unknown_key)                                                                             \
	X(forged)                                                                                  \
	X(foreign) /* of another node than its key */                                              \
	X(shared_key) /* under a shared key, which does not count for its node */                  \
	X(enrolled) /* an enrolment that got a key */                                              \
	X(exchange) /* the first one of another aggregator's connection */                         \
	X(not_enrolled) /* one that was refused or has to wait */

enum frame_result {
#define X(name) FRAME_RESULT_##name,
	FRAME_RESULTS(X)
#undef X
		FRAME_RESULT_COUNT
};

/* Of the database; times are 0 and all else stands still while there is none. */
struct store_counters {
	atomic_uint_least64_t enabled; /* 1: there is a --state-dir */
	atomic_uint_least64_t alarm; /* 1: nothing is being saved */
	atomic_uint_least64_t saves, failures;
	atomic_uint_least64_t saved_ns; /* Unix time of the last save; 0: none yet */
	atomic_uint_least64_t save_took_ns, load_took_ns;
	atomic_uint_least64_t loaded; /* nodes that were read at start */
	atomic_uint_least64_t bytes;
	atomic_uint_least64_t aside; /* databases that were set aside */
	atomic_uint_least64_t lost_intervals;
};

/* Of --record; all stands still while there is none. */
struct record_counters {
	atomic_uint_least64_t enabled; /* 1: there is a --record */
	atomic_uint_least64_t alarm; /* 1: nothing is recorded */
	atomic_uint_least64_t failures;
	atomic_uint_least64_t bytes; /* written, before compression */
};

enum extender_verb { EXTENDER_FILTER, EXTENDER_PRIORITIZE, EXTENDER_PREEMPT, EXTENDER_VERBS };

/*
 * X(name, metric label, reason of a node in the answer). Why a node was refused; QUOTA: the pod was,
 * for all nodes, and counts once. A kube-scheduler adds up the nodes of equal reasons, "12 CPU use
 * above the cap, 8 Insufficient cpu", so a reason has no numbers.
 */
#define EXTENDER_REFUSALS_TABLE(X)                                                                 \
	X(UNKNOWN_NODE, "unknownNode", "unknown to evenkeel")                                      \
	X(USE_CAP_CPU, "useCapCpu", "CPU use above the cap")                                       \
	X(USE_CAP_MEMORY, "useCapMemory", "memory use above the cap")                              \
	X(LIMIT_RATIO_CPU, "limitRatioCpu", "CPU limits above the ratio")                          \
	X(LIMIT_RATIO_MEMORY, "limitRatioMemory", "memory limits above the ratio")                 \
	X(UNMEASURED, "unmeasured", "not measured while others are")                               \
	X(CLAIMED, "claimed", "room claimed for another pod")                                      \
	X(QUOTA, "pod", "")

enum extender_refusal {
#define X(name, label, reason) EXTENDER_##name,
	EXTENDER_REFUSALS_TABLE(X)
#undef X
		EXTENDER_REFUSALS
};

struct extender_counters {
	atomic_uint_least64_t requests[EXTENDER_VERBS];
	atomic_uint_least64_t took_ns[EXTENDER_VERBS];
	atomic_uint_least64_t refused[EXTENDER_REFUSALS];
	atomic_uint_least64_t malformed;
	atomic_uint_least64_t unreserved; /* answers without a reservation */
};

/* X(name, metric label). Whether another aggregator had acknowledged what an answer reserves. */
#define EXCHANGE_OUTCOMES(X)                                                                       \
	X(ACKNOWLEDGED, "acknowledged")                                                            \
	X(LATE, "late") /* it did not acknowledge that within the bound */                         \
	X(ALONE, "alone") /* it is not connected, or behind: the answer did not wait */

enum exchange_outcome {
#define X(name, label) EXCHANGE_##name,
	EXCHANGE_OUTCOMES(X)
#undef X
		EXCHANGE_OUTCOMES_COUNT
};

enum copy_direction { COPY_SENT, COPY_RECEIVED, COPY_DIRECTIONS };

/* Of --peer; all stands still while there is none. */
struct exchange_counters {
	atomic_uint_least64_t enabled; /* 1: there is a --peer */
	atomic_uint_least64_t together; /* 1: it acknowledges reservations */
	atomic_uint_least64_t answers[EXCHANGE_OUTCOMES_COUNT];
	atomic_uint_least64_t wait_ns; /* of answers, for it */
	atomic_uint_least64_t sent, received; /* reservations */
	atomic_uint_least64_t refused; /* its frames that are not understood */
	/* copies of the database, and the time that they took */
	atomic_uint_least64_t copy_bytes[COPY_DIRECTIONS], copy_ns[COPY_DIRECTIONS];
};

/* What quotas said to schedulers. */
enum { QUOTA_ADMISSIONS_MAX = 8 };

struct quota_counters {
	atomic_uint_least64_t admissions[QUOTA_ADMISSIONS_MAX]; /* by enum quota_admission */
	atomic_uint_least64_t preempt_victims,
		preempt_none; /* searches that found some, and none */
	atomic_uint_least64_t preempt_repeated; /* what was told before, or is going already */
	atomic_uint_least64_t status_written, status_failed; /* of quota objects, where asked for */
};

/* Of pods that were refused, and what is done so that the scheduler asks about them again. */
struct requeue_counters {
	atomic_uint_least64_t enabled; /* 1: there is a --nudge-claim */
	atomic_uint_least64_t waiting; /* pods that were refused and are still pending */
	atomic_uint_least64_t sent, failed;
	atomic_uint_least64_t status; /* HTTP status of the last; 0: none yet, or not reached */
};

/* Of Events about objects (--events). */
struct event_counters {
	atomic_uint_least64_t written, failed;
	atomic_uint_least64_t limited; /* left out, since there were too many */
};

/* Of plans; nothing counts where none are made. */
struct planner_counters {
	atomic_uint_least64_t steps;
	atomic_uint_least64_t late; /* that took longer than their period */
	atomic_uint_least64_t took_ns, last_ns; /* of all steps, and of the last */
};

/* Of drains: nodes that were on their way and are gone, .. */
struct drain_counters {
	atomic_uint_least64_t scaled_down_empty, scaled_down_underutilized;
	atomic_uint_least64_t scaled_down_gpu; /* of them */
	atomic_uint_least64_t steps, took_ns; /* of planning */
};

/* Of the waves that the actuator reported. */
enum wave_outcome { WAVE_DRAINED, WAVE_ROLLED_BACK, WAVE_STOPPED, WAVE_OUTCOMES };

struct wave_counters {
	atomic_uint_least64_t ended[WAVE_OUTCOMES];
	atomic_uint_least64_t evictions, refused; /* refused: by budgets */
	atomic_uint_least64_t rolled_back; /* nodes */
	atomic_uint_least64_t seconds;
};

/* X(name, metric label). Why requests were not let in. */
#define ACCESS_REFUSALS_TABLE(X)                                                                   \
	X(NO_CREDENTIALS, "noCredentials")                                                         \
	X(UNKNOWN_TOKEN, "unknownToken")                                                           \
	X(BAD_CERTIFICATE, "badCertificate") /* expired, or another authority's */                 \
	X(FORBIDDEN, "forbidden")                                                                  \
	X(NOT_REVIEWED, "notReviewed") /* who knows could not be asked */                          \
	X(UNCLEAR, "unclear") /* where it ends, or who sends it */                                 \
	X(HOST, "foreignHost") /* no credentials are asked for, and its name is none of ours */    \
	X(ORIGIN, "foreignOrigin") /* a page of another server */                                  \
	X(CONTENT_TYPE, "contentType") /* not JSON */                                              \
	X(RATE, "rateLimited")                                                                     \
	X(TOO_LARGE, "tooLarge")                                                                   \
	X(SLOW, "slow") /* connections that were cut */                                            \
	X(CONNECTIONS, "tooManyConnections") /* of one client */                                   \
	X(HANDSHAKES, "tooManyHandshakes") /* of one client, or of all */                          \
	X(NO_DESCRIPTOR, "noDescriptor") /* for a connection */

enum access_refusal {
#define X(name, label) ACCESS_REFUSAL_##name,
	ACCESS_REFUSALS_TABLE(X)
#undef X
		ACCESS_REFUSALS
};

/* How requests are let in; bits of access_counters.ways. None: everybody is. */
enum access_way {
	ACCESS_BY_TOKEN = 1,
	ACCESS_BY_REVIEW = 2,
	ACCESS_BY_CERTIFICATE = 4,
	ACCESS_OVER_TLS = 8,
	ACCESS_FROM_AFAR = 16, /* others than this machine can connect */
};

/* Of the HTTP API. */
struct access_counters {
	atomic_uint_least64_t ways; /* fixed after start */
	atomic_uint_least64_t refused[ACCESS_REFUSALS];
	atomic_uint_least64_t reviews, reviews_cached; /* asked for, and known still */
	atomic_uint_least64_t certificate_ends_s; /* Unix time; 0: no TLS */
	atomic_uint_least64_t reloads, reload_failures; /* of certificates and tokens */
	atomic_uint_least64_t connections; /* that are open */
};

/* X(name, metric label). Why connections of agents were ended by this side. */
#define INGEST_CLOSINGS_TABLE(X)                                                                   \
	X(NO_HELLO, "noHello")                                                                     \
	X(NO_FRAME, "noFrame") /* that opens, in time */                                           \
	X(UNOPENED, "unopened") /* frames, one after the other */                                  \
	X(PROTOCOL, "protocol") /* what no agent says, or more than a frame may have */            \
	X(SLOW, "slow") /* a message that does not end */                                          \
	X(MEMORY, "memory") /* too much of messages that have not ended */                         \
	X(UNREAD, "unread") /* an answer, of which a part went out */                              \
	X(SILENT, "silent") /* for longer than any agent is */                                     \
	X(ROOM, "room") /* strange or silent, while there was none for somebody else */

enum ingest_closing {
#define X(name, label) INGEST_CLOSING_##name,
	INGEST_CLOSINGS_TABLE(X)
#undef X
		INGEST_CLOSINGS
};

/* Of the connections of agents. */
struct ingest_counters {
	atomic_uint_least64_t connections; /* that are open */
	atomic_uint_least64_t closed[INGEST_CLOSINGS];
	atomic_uint_least64_t refused; /* for want of room, or of a descriptor */
};

struct counters {
	struct access_counters access;
	struct ingest_counters ingest;
	struct drain_counters drain;
	struct wave_counters waves;
	struct planner_counters planner;
	struct store_counters store;
	struct record_counters record;
	struct extender_counters extender;
	struct exchange_counters exchange;
	struct quota_counters quota;
	struct requeue_counters requeue;
	struct event_counters events;
	atomic_uint_least64_t frames[FRAME_RESULT_COUNT];
	atomic_uint_least64_t frame_bytes;
	/* published ones that came within the next one, not alone */
	atomic_uint_least64_t intervals_merged;
	atomic_uint_least64_t intervals_missing; /* that their run went past without telling them */
	atomic_uint_least64_t quarantined[QUARANTINE_REASON_COUNT]; /* values left out */
	atomic_uint_least64_t http_requests[6]; /* by status class: [2] is 2xx */
	atomic_uint_least64_t views_published;
	atomic_uint_least64_t leaving; /* 1: a signal ended it; it serves for --shutdown-delay */
};

static inline void counter_add(atomic_uint_least64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static inline void counter_set(atomic_uint_least64_t *c, uint64_t value)
{
	atomic_store_explicit(c, value, memory_order_relaxed);
}

static inline uint64_t counter_get(const atomic_uint_least64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}
