/* SPDX-License-Identifier: Apache-2.0 */
/* A body is read as a whole before any of it counts. */
#include "aggregator/state/reservations_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/message.h"

enum { FIELD_RESERVATION = 2, FIELD_REQUEST = 13 };

#define LIFE_MAX_NS (2 * RESERVATIONS_TTL_NS)

struct request {
	struct span name;
	int64_t amount;
};

enum text { UID, NAMESPACE, NAME, NODE, CLAIM, TEXTS };

struct told {
	struct span text[TEXTS];
	int64_t life_ns, age_ns, claim_life_ns, priority;
	int64_t expected_cpu_milli, expected_high_cpu_milli, expected_mem_bytes;
	struct resources requests; /* owned */
};

struct exchange_body {
	uint64_t session;
	size_t count;
	struct told *told; /* owned */
};

static int take_request(void *into, struct span bytes, struct error *error);
static int take_told(void *into, struct span bytes, struct error *error);

#define ROW(number, of, member, ...)                                                               \
	[(number)-1] = {.name = #member, .offset = offsetof(struct of, member), __VA_ARGS__}
#define WITHIN(low, high) .bounded = true, .least = (low), .most = (high)

static const struct message_field request_rows[] = {
	ROW(1, request, name, .kind = MESSAGE_SPAN),
	ROW(2, request, amount, .kind = MESSAGE_S64),
};
static const struct message request_message = MESSAGE(request_rows);

static const struct message_field told_rows[] = {
	ROW(1, told, text[UID], .kind = MESSAGE_SPAN),
	ROW(2, told, life_ns, .kind = MESSAGE_U64, WITHIN(0, LIFE_MAX_NS)),
	ROW(3, told, age_ns, .kind = MESSAGE_U64, WITHIN(0, INT64_MAX)),
	ROW(4, told, text[NAMESPACE], .kind = MESSAGE_SPAN),
	ROW(5, told, text[NAME], .kind = MESSAGE_SPAN),
	ROW(6, told, text[NODE], .kind = MESSAGE_SPAN),
	ROW(7, told, text[CLAIM], .kind = MESSAGE_SPAN),
	ROW(8, told, claim_life_ns, .kind = MESSAGE_U64, WITHIN(0, LIFE_MAX_NS)),
	ROW(9, told, priority, .kind = MESSAGE_S64, WITHIN(INT32_MIN, INT32_MAX)),
	ROW(10, told, expected_cpu_milli, .kind = MESSAGE_U64, WITHIN(0, INT64_MAX)),
	ROW(11, told, expected_high_cpu_milli, .kind = MESSAGE_U64, WITHIN(0, INT64_MAX)),
	ROW(12, told, expected_mem_bytes, .kind = MESSAGE_U64, WITHIN(0, INT64_MAX)),
	ROW(FIELD_REQUEST, told, requests, .kind = MESSAGE_CALL, .take = take_request),
};
static const struct message told_message = MESSAGE(told_rows);

static const struct message_field body_rows[] = {
	ROW(1, exchange_body, session, .kind = MESSAGE_U64),
	ROW(FIELD_RESERVATION, exchange_body, told, .kind = MESSAGE_CALL, .take = take_told),
};
static const struct message body_message = MESSAGE(body_rows);

/* --- writing ---------------------------------------------------------------------------------- */

void reservations_message_begin(struct buf *body, uint64_t session)
{
	const struct exchange_body head = {.session = session};

	buf_clear(body);
	message_encode(&body_message, &head, body);
}

static int64_t life_of(int64_t end_ns, int64_t now_ns)
{
	return int_max(0, int_min(end_ns - now_ns, LIFE_MAX_NS));
}

static void add_requests(struct buf *body, const struct resources *requests)
{
	struct request r;
	const char *name;
	size_t at = 0;

	while (resources_next(requests, &at, &name, &r.amount)) {
		r.name = span_of_text(name);
		message_encode_inside(&request_message, FIELD_REQUEST, &r, body);
	}
}

bool reservations_message_add(struct buf *body, const char *uid, const struct reservation *e,
			      int64_t now_ns)
{
	struct told t = {.text[UID] = span_of_text(uid)};
	size_t mark;

	if (e && e->state == RESERVATIONS_BOUND)
		return false;
	if (e)
		t = (struct told){
			.text = {t.text[UID], span_of_text(e->namespace), span_of_text(e->name),
				 span_of_text(e->node), span_of_text(e->claim)},
			.life_ns = life_of(e->expires_ns, now_ns),
			.age_ns = int_max(0, now_ns - e->changed_ns),
			.claim_life_ns = *e->claim ? life_of(e->claim_ns, now_ns) : 0,
			.priority = e->priority,
			.expected_cpu_milli = int_max(0, e->expected_cpu_milli),
			.expected_high_cpu_milli = int_max(0, e->expected_high_cpu_milli),
			.expected_mem_bytes = int_max(0, e->expected_mem_bytes),
		};
	mark = message_open(body, FIELD_RESERVATION);
	message_encode(&told_message, &t, body);
	if (e)
		add_requests(body, &e->requests);
	message_close(body, mark);
	return true;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int check_text(struct span text, size_t most, const char *what, struct error *error)
{
	if (!text.len || (text.len <= most && !memchr(text.data, 0, text.len)))
		return 0;
	return error_fail(error, -EBADMSG, "%s is no text of at most %zu bytes", what, most);
}

static int take_request(void *into, struct span bytes, struct error *error)
{
	struct resources *requests = &((struct told *)into)->requests;
	struct request r = {.amount = 0};
	char *name;
	int rc = message_decode(&request_message, bytes, &r, error);

	if (!rc)
		rc = check_text(r.name, (size_t)2 * RESERVATIONS_TEXT_MAX, "a request", error);
	if (!rc && (!r.name.len || requests->extended_count == RESERVATIONS_EXTENDED_MAX))
		rc = error_fail(error, -EBADMSG, "a request has no name, or there are more than %d",
				RESERVATIONS_EXTENDED_MAX);
	if (rc)
		return rc;
	name = mem_strndup((const char *)r.name.data, r.name.len);
	resources_set_named(requests, name, r.amount);
	free(name);
	return 0;
}

static int take_told(void *into, struct span bytes, struct error *error)
{
	struct exchange_body *b = into;
	struct told *t;
	int rc;

	ARRAY_ADD(b->told, b->count) = (struct told){.life_ns = 0};
	t = &b->told[b->count - 1];
	rc = message_decode(&told_message, bytes, t, error);
	if (!rc && !t->text[UID].len)
		rc = error_fail(error, -EBADMSG, "a reservation has no uid");
	for (size_t i = 0; i < TEXTS && !rc; i++)
		rc = check_text(t->text[i], RESERVATIONS_TEXT_MAX, "a name of a reservation",
				error);
	return rc;
}

static void apply(struct reservations *set, const struct told *t, int64_t now_ns)
{
	char text[TEXTS][RESERVATIONS_TEXT_MAX + 1] = {""};
	const struct reservation entry = {
		.uid = text[UID],
		.namespace = text[NAMESPACE],
		.name = text[NAME],
		.node = text[NODE],
		.claim = text[CLAIM],
		.requests = t->requests,
		.expected_cpu_milli = t->expected_cpu_milli,
		.expected_high_cpu_milli = t->expected_high_cpu_milli,
		.expected_mem_bytes = t->expected_mem_bytes,
		.priority = (int32_t)t->priority,
		.changed_ns = now_ns - t->age_ns,
		.expires_ns = now_ns + t->life_ns,
		.claim_ns = t->text[CLAIM].len ? now_ns + t->claim_life_ns : 0,
	};

	for (size_t i = 0; i < TEXTS; i++)
		if (t->text[i].len)
			memcpy(text[i], t->text[i].data, t->text[i].len);
	if (t->life_ns)
		reservations_adopt(set, &entry, now_ns);
	else
		reservations_disown(set, entry.uid, entry.changed_ns);
}

int reservations_message_take(struct reservations *set, const struct buf *body, uint64_t session,
			      int64_t now_ns, size_t *count, struct error *error)
{
	const struct span bytes = {(const uint8_t *)body->data, body->len};
	struct exchange_body b = {.session = 0};
	int rc = message_decode(&body_message, bytes, &b, error) ? -EBADMSG : 0;

	if (!rc && b.session != session)
		rc = error_fail(error, -EBADMSG, "it is of another session");
	for (size_t i = 0; i < b.count && !rc; i++)
		apply(set, &b.told[i], now_ns);
	for (size_t i = 0; i < b.count; i++)
		resources_fini(&b.told[i].requests);
	free(b.told);
	*count = rc ? 0 : b.count;
	return rc;
}
