/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every sender reads the one ring at a position of its own. While an aggregator is absent, the ring
 * keeps what it lacks, up to the ring's bounds.
 *
 *	URL with an address, or ipc://	one sender, from start to end
 *	URL with a name			one sender per address of the name: a headless Service has
 *					one per replica. Names are looked up again and again
 *					(agent/endpoints.h); a new address begins with the oldest
 *					interval of the ring.
 *
 * An aggregator with an IPv4 and an IPv6 address under one name gets everything twice and ignores
 * the second copy. There are at most SENDERS_MAX senders; addresses beyond that are logged. If
 * aggregators order intervals of different lengths, the shortest of those that answer holds.
 */
#include "agent/publisher.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/ring.h"
#include "agent/sender.h"
#include "agent/endpoints.h"
#include "shared/arith.h"
#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/file.h"
#include "shared/frame.h"
#include "shared/keyring.h"
#include "shared/log.h"
#include "shared/mem.h"

#define RING_SPAN_NS (15 * 60 * NS_PER_SEC)
#define SILENCE_NS   (15 * NS_PER_SEC)
#define FAR_NS	     (60 * NS_PER_SEC)

enum { URLS_MAX = 8, SENDERS_MAX = 16 };

#define REASON_LEN sizeof(((struct sender_stats *)0)->last_reason)

/* One aggregator. */
struct peer {
	struct sender *sender; /* owned */
	const struct endpoint *endpoint; /* borrowed: as configured */
	struct address address; /* one of the endpoint's name; "" if the endpoint is an address */
	int64_t opened_ns; /* monotonic; or when it last enrolled the node */
	int64_t silence_ns; /* after so long without an ack it is silent */
	struct sender_stats stats; /* as of the last step */
	bool answering, silent;
	uint64_t enrolled, not_enrolled; /* of stats, as of the step before */
	char not_enrolled_why[REASON_LEN]; /* "": no enrolment is refused */
	char refusal_logged[REASON_LEN];
	struct error trouble; /* why it gets nothing; "": it does */
};

/* One configured URL. */
struct target {
	struct endpoint endpoint;
	struct resolver *resolver; /* NULL: nothing to look up */
	struct endpoints endpoints;
	size_t senders;
	bool lookup_logged, open_logged; /* failures that last */
	size_t left_out_logged;
};

struct publisher {
	struct publisher_config config; /* fixed after open, as are those down to run */
	int epoll;
	uint8_t run[FRAME_RUN_LEN];

	struct keyring_place *key_place; /* NULL: no key */
	struct keyring keys;
	struct enroller *enroller; /* owned; NULL: keys seal */
	struct ring *ring;
	struct target targets[URLS_MAX];
	size_t target_count;
	struct peer peers[SENDERS_MAX];
	size_t peer_count;
};

/* --- peers ------------------------------------------------------------------------------------ */

/* Twice the reply timeout of sender.c: a running aggregator has answered by then. */
#define ANSWER_NS (10 * NS_PER_SEC)

/* "tcp://aggregator:2021 (10.0.0.7)" */
struct peer_name {
	char text[ENDPOINT_URL_MAX + sizeof(struct address) + 4];
};

static struct peer_name name_of(const struct peer *p)
{
	struct peer_name name;
	bool named = p->address.text[0];

	snprintf(name.text, sizeof(name.text), "%s%s%s%s", p->endpoint->url, named ? " (" : "",
		 p->address.text, named ? ")" : "");
	return name;
}

static void take_enrolment(struct peer *p, int64_t mono_ns)
{
	if (p->stats.not_enrolled != p->not_enrolled) {
		memcpy(p->not_enrolled_why, p->stats.last_reason, REASON_LEN);
		memcpy(p->refusal_logged, p->stats.last_reason, REASON_LEN);
	}
	p->not_enrolled = p->stats.not_enrolled;
	if (p->stats.enrolled == p->enrolled)
		return;
	log_info("%s gave this node a key of its own", name_of(p).text);
	p->enrolled = p->stats.enrolled;
	p->opened_ns = mono_ns;
	p->not_enrolled_why[0] = p->refusal_logged[0] = '\0';
}

static void log_trouble(struct peer *p, bool silent)
{
	struct error why = {""};

	if (!silent && p->silent)
		log_info("%s acknowledges again; since the start %" PRIu64
			 " intervals were lost to it",
			 name_of(p).text, p->stats.skipped);
	p->silent = silent;
	if (p->not_enrolled_why[0])
		error_set(&why, "%s does not enrol this node: %s", name_of(p).text,
			  p->not_enrolled_why);
	else if (silent)
		error_set(&why,
			  "%s acknowledges nothing; is it running, with the same key? The last 15 "
			  "minutes are kept for it",
			  name_of(p).text);
	if (why.text[0] && strcmp(why.text, p->trouble.text) != 0)
		log_warn("%s", why.text);
	p->trouble = why;
}

/* As sender_step(); logs a change of the peer's state once. */
static int64_t peer_step(struct peer *p, const struct ring *ring, int64_t mono_ns)
{
	int64_t wanted = sender_step(p->sender, ring, mono_ns), heard;
	bool idle;

	sender_get_stats(p->sender, &p->stats);
	if (p->stats.refused + p->stats.held != 0 && p->stats.not_enrolled == p->not_enrolled &&
	    strcmp(p->stats.last_reason, p->refusal_logged) != 0) {
		log_warn("%s did not take an interval: %s", name_of(p).text, p->stats.last_reason);
		memcpy(p->refusal_logged, p->stats.last_reason, REASON_LEN);
	}
	take_enrolment(p, mono_ns);
	heard = int_max(p->stats.last_ack_ns, p->opened_ns);
	idle = sender_idle(p->sender, ring);
	p->answering = idle || mono_ns - heard < ANSWER_NS;
	/* Without anything to send a peer does not become silent. */
	log_trouble(p, mono_ns - heard > p->silence_ns && (p->silent || !idle));
	return wanted;
}

/* --- senders ---------------------------------------------------------------------------------- */

static struct sender_config sender_config(const struct publisher *p)
{
	const struct interval *oldest = p->ring ? ring_find(p->ring, 0) : NULL;
	struct sender_config config = {
		.node = p->config.node,
		.keys = &p->keys,
		.enroller = p->enroller,
		.wall_ns = clock_wall_ns,
		.first = oldest ? oldest->sequence - oldest->merged + 1 : 1,
		.boot_ns = clock_boot_ns,
	};

	memcpy(config.run, p->run, sizeof(config.run));
	return config;
}

static int watch(struct publisher *p, int fd, const char *whose, struct error *error)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (!epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event))
		return 0;
	return error_system(error, -errno, "%s: cannot watch its descriptor", whose);
}

/* Begins to connect to the address, or to the endpoint if address is NULL. */
static int open_peer(struct publisher *p, struct target *t, const struct address *address,
		     int64_t mono_ns, struct error *error)
{
	const struct sender_config config = sender_config(p);
	bool v6 = address && strchr(address->text, ':');
	struct peer *peer = &p->peers[p->peer_count];
	char url[ENDPOINT_URL_MAX + 1];
	int rc;

	*peer = (struct peer){
		.endpoint = &t->endpoint,
		.opened_ns = mono_ns,
		.silence_ns = SILENCE_NS + p->config.interval_ns,
		.answering = true,
	};
	if (address) {
		peer->address = *address;
		snprintf(url, sizeof(url), "tcp://%s%s%s:%u", v6 ? "[" : "", address->text,
			 v6 ? "]" : "", t->endpoint.port);
	}
	rc = sender_open(&peer->sender, address ? url : t->endpoint.url, &config, error);
	if (rc)
		return rc;
	rc = watch(p, sender_fd(peer->sender), t->endpoint.url, error);
	if (rc) {
		sender_close(peer->sender);
		return rc;
	}
	p->peer_count++;
	t->senders++;
	return 0;
}

static void close_peer(struct publisher *p, struct target *t, size_t index)
{
	epoll_ctl(p->epoll, EPOLL_CTL_DEL, sender_fd(p->peers[index].sender), NULL);
	sender_close(p->peers[index].sender);
	p->peer_count--;
	t->senders--;
	memmove(&p->peers[index], &p->peers[index + 1],
		(p->peer_count - index) * sizeof(struct peer));
}

/* --- names ------------------------------------------------------------------------------------ */

static bool is_answering(const struct publisher *p, const struct target *t)
{
	for (size_t i = 0; i < p->peer_count; i++) {
		if (p->peers[i].endpoint == &t->endpoint && p->peers[i].answering)
			return true;
	}
	return false;
}

static void join(struct publisher *p, struct target *t, const struct address *address,
		 int64_t mono_ns)
{
	struct error why;

	if (!open_peer(p, t, address, mono_ns, &why)) {
		log_info("%s: sending to %s", t->endpoint.url, address->text);
		t->open_logged = false;
		return;
	}
	endpoints_forget(&t->endpoints, address);
	if (!t->open_logged)
		log_error("%s: cannot send to %s: %s", t->endpoint.url, address->text, why.text);
	t->open_logged = true;
}

static void leave(struct publisher *p, struct target *t, const struct address *address)
{
	for (size_t i = 0; i < p->peer_count; i++) {
		if (p->peers[i].endpoint != &t->endpoint ||
		    strcmp(p->peers[i].address.text, address->text) != 0)
			continue;
		log_info("%s: no longer sending to %s, the name does not have it any more",
			 t->endpoint.url, address->text);
		close_peer(p, t, i);
		return;
	}
}

static void take_answer(struct publisher *p, struct target *t, int64_t mono_ns)
{
	struct endpoints_change changes[ENDPOINTS_CHANGES_MAX];
	struct resolver_answer answer;
	size_t count;

	if (!resolver_take(t->resolver, &answer))
		return;
	count = endpoints_take(&t->endpoints, &answer, mono_ns, is_answering(p, t),
			       SENDERS_MAX - p->peer_count, changes);
	if (answer.failed && !t->lookup_logged)
		log_warn("%s: cannot look up %s; trying again, the last 15 minutes are kept",
			 t->endpoint.url, answer.why.text);
	if (!answer.failed && t->endpoints.left_out != t->left_out_logged) {
		if (t->endpoints.left_out)
			log_error("%s: %zu of its addresses are not sent to: %d senders at most",
				  t->endpoint.url, t->endpoints.left_out, SENDERS_MAX);
		t->left_out_logged = t->endpoints.left_out;
	}
	t->lookup_logged = answer.failed;
	for (size_t i = 0; i < count; i++) {
		if (changes[i].added)
			join(p, t, &changes[i].address, mono_ns);
		else
			leave(p, t, &changes[i].address);
	}
}

/* Returns when it wants to be called again. */
static int64_t step_target(struct publisher *p, struct target *t, int64_t mono_ns)
{
	take_answer(p, t, mono_ns);
	if (endpoints_due(&t->endpoints, mono_ns, is_answering(p, t)))
		resolver_ask(t->resolver);
	return t->endpoints.due_ns;
}

/* --- the loop's side -------------------------------------------------------------------------- */

int64_t publisher_step(struct publisher *p, int64_t mono_ns)
{
	int64_t deadline = mono_ns + FAR_NS;
	uint64_t cursors[SENDER_CURSORS * SENDERS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < p->target_count; i++) {
		if (p->targets[i].resolver)
			deadline = int_min(deadline, step_target(p, &p->targets[i], mono_ns));
	}
	for (size_t i = 0; i < p->peer_count; i++) {
		deadline = int_min(deadline, peer_step(&p->peers[i], p->ring, mono_ns));
		count += sender_get_cursors(p->peers[i].sender, cursors + count);
	}
	ring_set_cursors(p->ring, cursors, count);
	return deadline;
}

int publisher_fd(const struct publisher *p)
{
	return p->epoll;
}

void publisher_push(struct publisher *p, struct interval *interval)
{
	ring_push(p->ring, interval);
}

int64_t publisher_ordered_interval_ns(const struct publisher *p)
{
	int64_t ordered = 0;

	for (size_t i = 0; i < p->peer_count; i++) {
		int64_t wants = p->peers[i].stats.interval_ms * NS_PER_MS;

		if (wants && !p->peers[i].silent && (!ordered || wants < ordered))
			ordered = wants;
	}
	return ordered;
}

const char *publisher_trouble(const struct publisher *p)
{
	const char *trouble = "";

	for (size_t i = p->peer_count; i-- > 0;) {
		if (p->peers[i].not_enrolled_why[0])
			return p->peers[i].trouble.text;
		if (p->peers[i].silent)
			trouble = p->peers[i].trouble.text;
	}
	return trouble;
}

bool publisher_idle(const struct publisher *p)
{
	for (size_t i = 0; i < p->target_count; i++) {
		if (!p->targets[i].senders && ring_newest(p->ring))
			return false;
	}
	for (size_t i = 0; i < p->peer_count; i++) {
		if (!sender_idle(p->peers[i].sender, p->ring))
			return false;
	}
	return true;
}

void publisher_reload_keys(struct publisher *p)
{
	struct error why;

	for (size_t i = 0; i < p->peer_count && p->enroller; i++)
		sender_renew_key(p->peers[i].sender, clock_mono_ns());
	if (p->enroller)
		log_info("asking for new keys of this node");
	else if (!p->key_place)
		return;
	else if (keyring_read(&p->keys, p->key_place, &why))
		log_error("keeping the old keys: %s", why.text);
	else
		log_info("read the keys again");
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int check_urls(struct publisher *p, struct error *error)
{
	const struct option_list *urls = p->config.aggregators;
	const struct sender_config config = sender_config(p);
	int rc = 0;

	if (urls->count > URLS_MAX)
		return error_fail(error, -EINVAL,
				  "--aggregator: %zu given, at most %d are possible", urls->count,
				  URLS_MAX);
	for (size_t i = 0; i < urls->count && !rc; i++)
		rc = sender_check(&p->targets[i].endpoint, urls->items[i], &config, error);
	return rc;
}

int publisher_open(struct publisher **out, const struct publisher_config *config,
		   struct error *error)
{
	struct publisher *p = mem_zalloc(1, sizeof(*p));
	int rc = 0;

	p->config = *config;
	p->ring = ring_new(config->ring_bytes ? config->ring_bytes : RING_BYTES_DEFAULT,
			   config->ring_span_ns ? config->ring_span_ns : RING_SPAN_NS);
	randombytes_buf(p->run, sizeof(p->run));
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll < 0)
		rc = error_system(error, -errno, "cannot watch descriptors");
	if (!rc && config->key_path)
		rc = keyring_open(&p->key_place, config->key_path, error);
	if (!rc && p->key_place)
		rc = keyring_read(&p->keys, p->key_place, error);
	if (!rc && config->enrol.aggregator_key_path)
		rc = enroller_open(&p->enroller, &config->enrol, error);
	if (!rc)
		rc = check_urls(p, error);
	if (rc)
		publisher_close(p);
	else
		*out = p;
	return rc;
}

static int open_target(struct publisher *p, struct target *t, int64_t mono_ns, struct error *error)
{
	const struct publisher_config *c = &p->config;
	int rc;

	if (t->endpoint.kind == ENDPOINT_IPC || endpoint_is_address(&t->endpoint))
		return open_peer(p, t, NULL, mono_ns, error);
	rc = resolver_open(&t->resolver, t->endpoint.host, c->lookup, c->lookup_ctx, error);
	if (rc)
		return rc;
	endpoints_start(&t->endpoints, mono_ns);
	return watch(p, resolver_fd(t->resolver), t->endpoint.url, error);
}

int publisher_start(struct publisher *p, struct error *error)
{
	int64_t now = clock_mono_ns();
	int rc = 0;

	for (size_t i = 0; i < p->config.aggregators->count && !rc; i++) {
		p->target_count++;
		rc = open_target(p, &p->targets[i], now, error);
	}
	return rc;
}

void publisher_close(struct publisher *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->target_count; i++)
		resolver_close(p->targets[i].resolver);
	for (size_t i = 0; i < p->peer_count; i++)
		sender_close(p->peers[i].sender);
	keyring_wipe(&p->keys);
	keyring_close(p->key_place);
	enroller_close(p->enroller);
	file_close(p->epoll);
	ring_free(p->ring);
	free(p);
}
