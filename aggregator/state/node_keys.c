/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node has its newest key and the last one before it under which a frame has opened, so that a
 * renewal loses no frame, even if agents miss answers. An enrolment by another pod ends the keys of
 * the pod before. Keys from the database count as used. The stamp and the reply key of the last enrolment
 * make older copies of enrolments useless: see shared/enrolment.h.
 *
 * In the database the table is a protobuf message, `repeated Node nodes = 1`, with
 *
 *	message Node {
 *	  string name = 1;
 *	  uint64 stamp_ns = 2;
 *	  bytes reply_key = 3;      // 32 bytes
 *	  bytes newest = 4;         // 32 bytes, as is former, if there is one
 *	  uint64 newest_ends_ns = 5;  // Unix time
 *	  bytes former = 6;
 *	  uint64 former_ends_ns = 7;
 *	  string pod = 8;           // "NAME/UID"; "": enrolled by a join token
 *	}
 */
#include "aggregator/state/node_keys.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/message.h"

enum { FULL_WAIT_MS = 60000 };
#define NS_PER_S 1000000000LL

struct issued {
	UT_hash_handle hh; /* by key.id */
	struct node_key is;
};

struct holder {
	UT_hash_handle hh;
	char *node, *pod; /* owned */
	uint64_t stamp_ns;
	uint8_t reply_key[ENROLMENT_PUBLIC_LEN];
	struct issued *newest, *former; /* owned; NULL: none */
};

struct node_keys {
	size_t nodes_max;
	struct holder *holders;
	struct issued *issued;
	uint64_t generation;
};

struct node_keys *node_keys_new(size_t nodes_max)
{
	struct node_keys *k = mem_zalloc(1, sizeof(*k));

	k->nodes_max = nodes_max;
	return k;
}

static void withdraw(struct node_keys *k, struct issued **i)
{
	if (!*i)
		return;
	assert(k->issued); /* has it */
	HASH_DEL(k->issued, *i);
	sodium_memzero(*i, sizeof(**i));
	free(*i);
	*i = NULL;
}

static void free_holder(struct node_keys *k, struct holder *h)
{
	withdraw(k, &h->newest);
	withdraw(k, &h->former);
	free(h->node);
	free(h->pod);
	free(h);
}

void node_keys_free(struct node_keys *k)
{
	struct holder *h, *next;

	if (!k)
		return;
	HASH_RELEASE (k->holders, h, next)
		free_holder(k, h);
	free(k);
}

static bool is_over(const struct issued *i, int64_t now_ns)
{
	return !i || i->is.expires_ns <= now_ns;
}

struct node_key *node_keys_find(const struct node_keys *k, const uint8_t id[KEY_ID_LEN],
				int64_t now_ns)
{
	struct issued *i;

	HASH_FIND(hh, k->issued, id, KEY_ID_LEN, i);
	return is_over(i, now_ns) ? NULL : &i->is;
}

const char *node_keys_pod(const struct node_keys *k, const char *node, int64_t now_ns)
{
	struct holder *h;

	HASH_FIND_STR(k->holders, node, h);
	return h && !is_over(h->newest, now_ns) ? h->pod : NULL;
}

uint64_t node_keys_generation(const struct node_keys *k)
{
	return k->generation;
}

/* --- issuing ---------------------------------------------------------------------------------- */

static void forget_ended(struct node_keys *k, int64_t now_ns)
{
	struct holder *h, *next;

	for (h = k->holders; h; h = next) {
		next = h->hh.next;
		if (!is_over(h->newest, now_ns))
			continue;
		HASH_DEL(k->holders, h);
		free_holder(k, h);
	}
}

/* NULL: full. */
static struct holder *holder_of(struct node_keys *k, const char *node, int64_t now_ns)
{
	struct holder *h;

	HASH_FIND_STR(k->holders, node, h);
	if (!h && HASH_COUNT(k->holders) >= k->nodes_max)
		forget_ended(k, now_ns);
	if (h || HASH_COUNT(k->holders) >= k->nodes_max)
		return h;
	HASH_NEW(k->holders, h, node, mem_strdup(node));
	h->pod = mem_strdup("");
	return h;
}

/* NULL: there is a key with that id. */
static struct issued *add_key(struct node_keys *k, const struct holder *h,
			      const uint8_t secret[KEY_LEN], int64_t expires_ns)
{
	struct issued *i = mem_zalloc(1, sizeof(*i)), *other;

	i->is.node = h->node;
	i->is.expires_ns = expires_ns;
	memcpy(i->is.key.secret, secret, KEY_LEN);
	key_set_id(&i->is.key);
	HASH_FIND(hh, k->issued, i->is.key.id, KEY_ID_LEN, other);
	if (other) {
		sodium_memzero(i, sizeof(*i));
		free(i);
		return NULL;
	}
	HASH_ADD(hh, k->issued, is.key.id, KEY_ID_LEN, i);
	return i;
}

static bool is_near(uint64_t stamp_ns, int64_t now_ns)
{
	int64_t ahead = (int64_t)stamp_ns - now_ns;

	return ahead <= ENROLMENT_CLOCK_NS && ahead >= -ENROLMENT_CLOCK_NS;
}

static void answer_key(const struct issued *i, int64_t now_ns, struct enrolment_answer *a)
{
	a->status = ENROLMENT_DONE;
	a->key = i->is.key;
	a->lifetime_s = (uint32_t)int_max(1, (i->is.expires_ns - now_ns) / NS_PER_S);
}

void node_keys_issue(struct node_keys *k, const struct enrolment *e, const char *pod,
		     const uint8_t secret[KEY_LEN], int64_t now_ns, struct enrolment_answer *a)
{
	struct holder *h = holder_of(k, e->node, now_ns);
	struct issued *fresh;

	*a = (struct enrolment_answer){.status = ENROLMENT_LATER, .wait_ms = FULL_WAIT_MS};
	if (!h) {
		snprintf(a->reason, sizeof(a->reason), "%zu nodes have keys, more are not possible",
			 k->nodes_max);
		return;
	}
	if (!is_over(h->newest, now_ns) &&
	    !memcmp(h->reply_key, e->reply_key, sizeof(h->reply_key))) {
		answer_key(h->newest, now_ns, a);
		return;
	}
	/* This machine's clock was ahead then. */
	if ((int64_t)h->stamp_ns - now_ns > ENROLMENT_CLOCK_NS)
		h->stamp_ns = 0;
	if (!is_near(e->stamp_ns, now_ns) || e->stamp_ns <= h->stamp_ns) {
		a->status = ENROLMENT_STALE;
		a->stamp_ns = (uint64_t)int_max(now_ns, (int64_t)h->stamp_ns + 1);
		return;
	}
	fresh = add_key(k, h, secret, now_ns + NODE_KEY_LIFETIME_S * NS_PER_S);
	if (!fresh)
		return;
	if (h->newest && h->newest->is.used) {
		withdraw(k, &h->former);
		h->former = h->newest;
	} else {
		withdraw(k, &h->newest);
	}
	h->newest = fresh;
	if (strcmp(h->pod, pod) != 0) {
		withdraw(k, &h->former);
		free(h->pod);
		h->pod = mem_strdup(pod);
	}
	h->stamp_ns = e->stamp_ns;
	memcpy(h->reply_key, e->reply_key, sizeof(h->reply_key));
	k->generation++;
	answer_key(fresh, now_ns, a);
}

/* --- database --------------------------------------------------------------------------------- */

struct row {
	struct span name;
	uint64_t stamp_ns;
	struct span reply_key, newest;
	uint64_t newest_ends_ns;
	struct span former;
	uint64_t former_ends_ns;
	struct span pod;
};

#define ROW(number, member, ...)                                                                   \
	[(number)-1] = {.name = #member, .offset = offsetof(struct row, member), __VA_ARGS__}
#define TIME .kind = MESSAGE_U64, .bounded = true, .most = INT64_MAX / 2

static const struct message_field row_fields[] = {
	ROW(1, name, .kind = MESSAGE_SPAN),
	ROW(2, stamp_ns, TIME),
	ROW(3, reply_key, .kind = MESSAGE_SPAN),
	ROW(4, newest, .kind = MESSAGE_SPAN),
	ROW(5, newest_ends_ns, TIME),
	ROW(6, former, .kind = MESSAGE_SPAN),
	ROW(7, former_ends_ns, TIME),
	ROW(8, pod, .kind = MESSAGE_SPAN),
};
static const struct message row_message = MESSAGE(row_fields);

void node_keys_write(const struct node_keys *k, int64_t now_ns, struct buf *out)
{
	for (const struct holder *h = k->holders; h; h = h->hh.next) {
		struct row row = {.name = span_of_text(h->node),
				  .stamp_ns = h->stamp_ns,
				  .reply_key = {h->reply_key, sizeof(h->reply_key)},
				  .pod = span_of_text(h->pod)};

		if (is_over(h->newest, now_ns))
			continue;
		row.newest = (struct span){h->newest->is.key.secret, KEY_LEN};
		row.newest_ends_ns = (uint64_t)h->newest->is.expires_ns;
		if (!is_over(h->former, now_ns)) {
			row.former = (struct span){h->former->is.key.secret, KEY_LEN};
			row.former_ends_ns = (uint64_t)h->former->is.expires_ns;
		}
		message_encode_inside(&row_message, 1, &row, out);
	}
}

static int take_row(void *into, struct span bytes, struct error *error)
{
	struct node_keys *k = *(struct node_keys **)into;
	char name[NODE_NAME_MAX + 1] = "";
	struct row row = {0};
	struct holder *h;

	if (message_decode(&row_message, bytes, &row, error) ||
	    !frame_node_name_valid((const char *)row.name.data, row.name.len) ||
	    row.reply_key.len != ENROLMENT_PUBLIC_LEN || row.newest.len != KEY_LEN ||
	    (row.former.len && row.former.len != KEY_LEN))
		return error_fail(error, -EBADMSG, "no keys of a node");
	memcpy(name, row.name.data, row.name.len);
	h = holder_of(k, name, INT64_MIN);
	/* A node that has enrolled meanwhile has newer ones. */
	if (!h || h->newest)
		return 0;
	h->stamp_ns = row.stamp_ns;
	free(h->pod);
	h->pod = mem_strndup(row.pod.len ? (const char *)row.pod.data : "", row.pod.len);
	memcpy(h->reply_key, row.reply_key.data, sizeof(h->reply_key));
	h->newest = add_key(k, h, row.newest.data, (int64_t)row.newest_ends_ns);
	if (h->newest)
		h->newest->is.used = true;
	if (row.former.len)
		h->former = add_key(k, h, row.former.data, (int64_t)row.former_ends_ns);
	k->generation++;
	return 0;
}

int node_keys_read(struct node_keys *k, const void *data, size_t len, struct error *error)
{
	static const struct message_field nodes[] = {
		{.name = "nodes", .kind = MESSAGE_CALL, .take = take_row}};
	static const struct message table = MESSAGE(nodes);
	struct node_keys *into = k;

	return message_decode(&table, (struct span){data, len}, &into, error);
}
