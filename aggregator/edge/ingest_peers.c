/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that needs a message reads it: one epoll for all peers, one recv() for a frame, which
 * usually arrives whole, and one sendmsg() for its answer.
 *
 *                                      a part            the rest, within 30 s
 *        (accepted, greeted) --> IDLE -----------> BEGUN --------------------> message
 *                                |  ^               ^                            |
 *                     message(s) |  +-- no more ----|----------------------------+
 *                                v                  | a part                     | more was read
 *                              message -----------> READY <----------------------+
 *
 * ingest_slots.c decides which connections stay, and for how long.
 *
 * A message that one recv() reads whole is handed out from a buffer that all peers share. A part is
 * kept with its peer until the rest arrives, so a silent peer holds no memory. A peer may send a
 * request before the answer to the former: what is read beyond a message is kept, and its peer is
 * READY; an eventfd makes the epoll readable then.
 *
 * What can fail. A peer is closed that breaks the protocol, announces more than a frame may have,
 * ends a message too late, or gets a part of an answer only. Parts of messages share a bound; over
 * it the peer that began first is closed. The number of peers leaves descriptors to the rest of
 * the program. Without a descriptor and a connection to evict, a spare descriptor serves to accept
 * and close clients; if that fails too, accepting pauses for a moment, since a listener that is
 * always readable would use a whole core. An unverified connection gets its time once more if
 * something of it is unread when the time is over, as a busy loop is late, or if one of its frames
 * opened: an agent that repeats an interval has the next in 15 s at most. Everything is counted.
 * Agents connect and send again.
 */
#include "aggregator/edge/ingest_peers.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

#include "aggregator/edge/ingest_slots.h"
#include "shared/array.h"
#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/file.h"
#include "shared/mem.h"

enum {
	EVENTS_MAX = 64,
	ACCEPTS_MAX = 1024, /* between two waits: 20 ms */
	REFUSALS_MAX = 64, /* of them, closed for want of descriptors */
	LOOKS_MAX = 16, /* without a message */
	SHARED_LEN = 256 * 1024,
	PART_STEP = 4096,
	PARTS_MAX = 256 * 1024 * 1024, /* bytes of all parts of messages */
	PEERS_LEAST = 64,
	DESCRIPTORS_KEPT = 256, /* for the HTTP API, files, the database, .. */
};

#define MESSAGE_NS (30 * NS_PER_SEC) /* from its first byte to its last */
#define PAUSE_NS   (100 * NS_PER_MS)

/* Events of other things than peers. */
enum { ID_LISTENER = 1, ID_READY, ID_TIMER };

/* Peers of each state are in a list of their own. */
enum peer_state {
	PEER_IDLE,
	PEER_BEGUN, /* a message has begun */
	PEER_READY, /* more than its last message is read */
	PEER_STATES,
};

struct peer {
	struct ingest_slot slot; /* first: peer_of() */
	char *node; /* owned: of the last opened frame; NULL: none */
	int fd;
	bool greeted;
	uint64_t id; /* index in peers below; the upper half is a count that makes it unique */
	enum peer_state state;
	int64_t due_ns; /* of PEER_BEGUN: closed then */
	struct buf part; /* read bytes */
	size_t taken; /* bytes of them that are handed out; 0 unless PEER_READY */
	struct peer *prev, *next; /* in the list */
};

struct ingest_peers {
	/* fixed after open */
	enum endpoint_kind kind;
	struct ingest_counters *counters; /* borrowed */
	ingest_closed *closed;
	void *ctx; /* borrowed */
	int epoll, listener, ready_event, timer;
	uint8_t address_key[PEER_KEY_LEN];

	int64_t now_ns; /* monotonic */
	struct ingest_slots *slots; /* owned */
	int spare; /* a descriptor to give up; negative: none */
	uint32_t accepted; /* ever, never 0 in an id */
	struct peer **peers; /* owned; [slot_count], NULL: free */
	size_t slot_count, count;
	size_t free_hint; /* no index before it is free */
	struct peer *lists[PEER_STATES]; /* oldest first */
	struct peer *lender; /* whose part holds the message that is handed out; or NULL */
	int64_t timer_ns; /* of the timer, not after the next deadline; 0: off */
	int64_t resume_ns; /* accepting pauses until then; 0: no pause */
	size_t part_bytes; /* capacity of all parts */
	struct epoll_event events[EVENTS_MAX];
	int event_count, event_at;
	struct buf whole; /* the message that is handed out, if it came in parts */
	uint8_t shared[SHARED_LEN];
};

/* --- peers ------------------------------------------------------------------------------------ */

static struct peer *find_peer(const struct ingest_peers *p, uint64_t id)
{
	size_t at = (size_t)(uint32_t)id;
	struct peer *peer = at < p->slot_count ? p->peers[at] : NULL;

	return peer && peer->id == id ? peer : NULL;
}

/* Makes the epoll readable while a peer is ready. */
static void tell_ready(struct ingest_peers *p, bool was)
{
	bool is = p->lists[PEER_READY] != NULL;
	uint64_t count = 1;
	ssize_t done = sizeof(count);

	if (is && !was)
		done = write(p->ready_event, &count, sizeof(count));
	else if (!is && was)
		done = read(p->ready_event, &count, sizeof(count));
	assert(done == sizeof(count));
}

/* 0: off. */
static void set_timer(struct ingest_peers *p, int64_t at_ns)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = at_ns / NS_PER_SEC, .tv_nsec = at_ns % NS_PER_SEC}};
	int rc = timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &when, NULL);

	assert(rc == 0);
	p->timer_ns = at_ns;
}

/*
 * The timer is not moved to later deadlines: most peers are in time, and setting it is a system
 * call.
 */
static void expect_by(struct ingest_peers *p, int64_t due_ns)
{
	if (!p->timer_ns || due_ns < p->timer_ns)
		set_timer(p, due_ns);
}

static void enter(struct ingest_peers *p, struct peer *peer, enum peer_state state)
{
	bool was_ready = p->lists[PEER_READY] != NULL;

	peer->state = state;
	DL_APPEND(p->lists[state], peer);
	if (state == PEER_READY) {
		tell_ready(p, was_ready);
	} else if (state == PEER_BEGUN) {
		peer->due_ns = p->now_ns + MESSAGE_NS;
		expect_by(p, peer->due_ns);
	}
}

static void leave(struct ingest_peers *p, struct peer *peer)
{
	DL_DELETE(p->lists[peer->state], peer);
	if (peer->state == PEER_READY)
		tell_ready(p, true);
}

static void move(struct ingest_peers *p, struct peer *peer, enum peer_state state)
{
	if (peer->state == state)
		return;
	leave(p, peer);
	enter(p, peer, state);
}

/* The handed-out message stays valid until the next one is requested. */
static void drop_part(struct ingest_peers *p, struct peer *peer)
{
	p->part_bytes -= peer->part.cap;
	if (p->lender == peer) {
		buf_fini(&p->whole);
		p->whole = peer->part;
		p->lender = NULL;
	} else {
		buf_fini(&peer->part);
	}
	buf_init(&peer->part);
	peer->taken = 0;
}

static void close_peer(struct ingest_peers *p, struct peer *peer)
{
	size_t at = (size_t)(uint32_t)peer->id;

	leave(p, peer);
	ingest_slots_remove(p->slots, &peer->slot);
	drop_part(p, peer);
	p->peers[at] = NULL;
	if (at < p->free_hint)
		p->free_hint = at;
	close(peer->fd);
	if (peer->node)
		p->closed(p->ctx, peer->node, peer->id);
	free(peer->node);
	free(peer);
	counter_set(&p->counters->connections, --p->count);
}

static void end_peer(struct ingest_peers *p, struct peer *peer, enum ingest_closing why)
{
	counter_add(&p->counters->closed[why], 1);
	close_peer(p, peer);
}

static bool watch(const struct ingest_peers *p, int fd, uint64_t id)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = id};

	return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void add_peer(struct ingest_peers *p, int fd, uint64_t address)
{
	struct peer *peer = mem_zalloc(1, sizeof(*peer));
	size_t at = p->free_hint;

	while (at < p->slot_count && p->peers[at])
		at++;
	if (at == p->slot_count)
		ARRAY_ADD(p->peers, p->slot_count) = NULL;
	p->free_hint = at + 1;
	if (!++p->accepted)
		p->accepted = 1;
	peer->fd = fd;
	peer->id = (uint64_t)p->accepted << 32 | at;
	p->peers[at] = peer;
	counter_set(&p->counters->connections, ++p->count);
	ingest_slots_add(p->slots, &peer->slot, address, p->now_ns);
	expect_by(p, peer->slot.due_ns);
	enter(p, peer, PEER_IDLE);
	if (send(fd, wire_hello, WIRE_HELLO_LEN, MSG_DONTWAIT | MSG_NOSIGNAL) != WIRE_HELLO_LEN ||
	    !watch(p, fd, peer->id))
		close_peer(p, peer);
}

static bool refuse_one(struct ingest_peers *p)
{
	bool refused = endpoint_refuse_one(p->listener, &p->spare);

	counter_add(&p->counters->refused, refused);
	return refused;
}

static struct peer *peer_of(struct ingest_slot *slot)
{
	return (struct peer *)slot;
}

/* False if no connection may be evicted. */
static bool make_slot(struct ingest_peers *p)
{
	struct ingest_slot *victim = ingest_slots_victim(p->slots, p->now_ns);

	if (victim)
		end_peer(p, peer_of(victim), INGEST_CLOSING_ROOM);
	return victim;
}

static void admit(struct ingest_peers *p, int fd, const struct sockaddr *from)
{
	uint64_t address = peer_hash(p->address_key, from);
	struct ingest_slot *victim;

	if (!ingest_slots_admit(p->slots, address, p->now_ns, &victim)) {
		counter_add(&p->counters->refused, 1);
		close(fd);
		return;
	}
	if (victim)
		end_peer(p, peer_of(victim), INGEST_CLOSING_ROOM);
	add_peer(p, fd, address);
}

/* Pauses accepting; clients wait in the backlog. 0: ends the pause. */
static void pause_accepting(struct ingest_peers *p, int64_t until_ns)
{
	struct epoll_event event = {.events = until_ns ? 0 : EPOLLIN, .data.u64 = ID_LISTENER};
	int rc = epoll_ctl(p->epoll, EPOLL_CTL_MOD, p->listener, &event);

	assert(rc == 0);
	p->resume_ns = until_ns;
	if (until_ns)
		expect_by(p, until_ns);
}

/* accept() fails for want of a descriptor before it looks for a connection. */
static bool somebody_waits(const struct ingest_peers *p)
{
	struct pollfd listener = {.fd = p->listener, .events = POLLIN};

	return poll(&listener, 1, 0) != 0;
}

/* True while there may be more; *refused counts failures for want of a descriptor. */
static bool accept_one(struct ingest_peers *p, int *refused)
{
	union {
		struct sockaddr any;
		struct sockaddr_storage room;
	} from = {0};
	socklen_t len = sizeof(from);
	int fd = accept4(p->listener, &from.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	bool lacking;

	if (fd >= 0) {
		admit(p, fd, &from.any);
		return true;
	}
	if (errno == EINTR || errno == ECONNABORTED)
		return true;
	if (errno == EWOULDBLOCK)
		return false;
	lacking = errno == EMFILE || errno == ENFILE;
	if (lacking && !somebody_waits(p))
		return false;
	if (lacking && ++*refused < REFUSALS_MAX && (make_slot(p) || refuse_one(p)))
		return true;
	pause_accepting(p, p->now_ns + PAUSE_NS);
	return false;
}

static void accept_peers(struct ingest_peers *p)
{
	int refused = 0;

	for (int i = 0; i < ACCEPTS_MAX && !p->resume_ns; i++)
		if (!accept_one(p, &refused))
			return;
}

static bool has_unread(const struct peer *peer)
{
	int unread = 0;

	return !ioctl(peer->fd, FIONREAD, &unread) && unread > 0;
}

static void end_slot(struct ingest_peers *p, struct ingest_slot *slot)
{
	struct peer *peer = peer_of(slot);

	if ((peer->node || has_unread(peer)) && ingest_slots_defer(p->slots, slot, p->now_ns))
		return;
	end_peer(p, peer,
		 slot->verified	 ? INGEST_CLOSING_SILENT
		 : peer->greeted ? INGEST_CLOSING_NO_FRAME
				 : INGEST_CLOSING_NO_HELLO);
}

static void on_time(struct ingest_peers *p)
{
	struct peer **begun = &p->lists[PEER_BEGUN];
	struct ingest_slot *late;

	set_timer(p, 0);
	while ((late = ingest_slots_expired(p->slots, p->now_ns)))
		end_slot(p, late);
	while (*begun && (*begun)->due_ns <= p->now_ns)
		end_peer(p, *begun, INGEST_CLOSING_SLOW);
	if (p->resume_ns && p->resume_ns <= p->now_ns)
		pause_accepting(p, 0);
	if (p->resume_ns)
		expect_by(p, p->resume_ns);
	if (*begun)
		expect_by(p, (*begun)->due_ns);
	if (ingest_slots_due_ns(p->slots))
		expect_by(p, ingest_slots_due_ns(p->slots));
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Length of the hello at the beginning: 0 after it was received; -EAGAIN, -EPROTO. */
static int greet(struct peer *peer, const void *data, size_t len)
{
	int rc;

	if (peer->greeted)
		return 0;
	rc = wire_check_hello(data, len);
	if (rc)
		return rc;
	peer->greeted = true;
	return WIRE_HELLO_LEN;
}

/*
 * Finds the first message in the read bytes of a peer; *used is how much is done with then, also
 * without a message. 0, -EAGAIN, or an error that ends the connection. A message that cannot be
 * answered is skipped.
 */
static int find_message(const struct ingest_peers *p, struct peer *peer, const uint8_t *data,
			size_t len, size_t *used, struct ingest_message *out)
{
	size_t head = wire_head_len(p->kind), message_len, stack;
	int rc = greet(peer, data, len);

	*used = rc > 0 ? (size_t)rc : 0;
	while (rc >= 0) {
		const uint8_t *at = data + *used + head;

		rc = wire_get_head(p->kind, data + *used, len - *used, &message_len);
		if (rc)
			break;
		if (message_len > len - *used - head)
			return -EAGAIN;
		*used += head + message_len;
		stack = wire_stack_len(at, message_len);
		if (!stack)
			continue;
		out->data = at + stack;
		out->len = message_len - stack;
		out->route.peer = peer->id;
		out->route.len = stack;
		memcpy(out->route.stack, at, stack);
		return 0;
	}
	return rc;
}

/* Keeps the last read bytes of the peer: a begun message, or anything. */
static void keep_rest(struct ingest_peers *p, struct peer *peer, const uint8_t *rest, size_t len,
		      bool begun)
{
	struct buf part = BUF_INIT;

	if (len)
		buf_add(&part, rest, len);
	drop_part(p, peer);
	peer->part = part;
	p->part_bytes += part.cap;
	move(p, peer, !len ? PEER_IDLE : begun ? PEER_BEGUN : PEER_READY);
}

/* Takes a message from the kept bytes of the peer. Small messages are not moved one by one. */
static int take_kept(struct ingest_peers *p, struct peer *peer, struct ingest_message *message)
{
	const uint8_t *at = (uint8_t *)peer->part.data + peer->taken;
	size_t len = peer->part.len - peer->taken, used;
	int rc = find_message(p, peer, at, len, &used, message);

	if (rc == -EAGAIN && (used || peer->taken))
		keep_rest(p, peer, at + used, len - used, true);
	else if (rc == -EAGAIN)
		move(p, peer, PEER_BEGUN);
	if (rc)
		return rc;
	p->lender = peer;
	peer->taken += used;
	move(p, peer, used < len ? PEER_READY : PEER_IDLE);
	if (used == len)
		drop_part(p, peer);
	return 0;
}

/*
 * Makes room for the rest of the begun message, but hardly more than has come: announced lengths
 * are not believed. Over the bound, peers that began before are closed; -ENOBUFS: there is none.
 */
static int make_room(struct ingest_peers *p, struct peer *peer, size_t *room)
{
	size_t head = wire_head_len(p->kind), have = peer->part.len, before = peer->part.cap;
	size_t total;

	*room = have > PART_STEP ? have : PART_STEP;
	if (peer->greeted && !wire_get_head(p->kind, peer->part.data, have, &total) &&
	    head + total - have < *room)
		*room = head + total - have;
	buf_reserve(&peer->part, *room);
	p->part_bytes += peer->part.cap - before;
	while (p->part_bytes > PARTS_MAX) {
		if (!p->lists[PEER_BEGUN] || p->lists[PEER_BEGUN] == peer)
			return -ENOBUFS;
		end_peer(p, p->lists[PEER_BEGUN], INGEST_CLOSING_MEMORY);
	}
	return 0;
}

/* The number of bytes, or a negative errno: -EAGAIN, -ECONNRESET at the end. */
static ssize_t receive(int fd, void *into, size_t room)
{
	ssize_t n = recv(fd, into, room, MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR || errno == EWOULDBLOCK ? -EAGAIN : -errno;
	return n ? n : -ECONNRESET;
}

/* Reads the rest of a message, or a part of it. */
static int read_rest(struct ingest_peers *p, struct peer *peer, struct ingest_message *message)
{
	size_t room;
	ssize_t n = make_room(p, peer, &room);

	if (!n)
		n = receive(peer->fd, peer->part.data + peer->part.len, room);
	if (n < 0)
		return (int)n;
	peer->part.len += (size_t)n;
	return take_kept(p, peer, message);
}

static int read_peer(struct ingest_peers *p, struct peer *peer, struct ingest_message *message)
{
	size_t used;
	ssize_t n;
	int rc;

	if (peer->part.len)
		return read_rest(p, peer, message);
	n = receive(peer->fd, p->shared, sizeof(p->shared));
	if (n < 0)
		return (int)n;
	rc = find_message(p, peer, p->shared, (size_t)n, &used, message);
	if (!rc || rc == -EAGAIN)
		keep_rest(p, peer, p->shared + used, (size_t)n - used, rc != 0);
	return rc;
}

/* --- events ----------------------------------------------------------------------------------- */

/* 0: a message; else -EAGAIN. */
static int serve(struct ingest_peers *p, struct peer *peer, struct ingest_message *message)
{
	int rc = peer->state == PEER_READY ? take_kept(p, peer, message)
					   : read_peer(p, peer, message);

	if (rc && rc != -EAGAIN) {
		/* Closes a peer after an error. */
		if (rc == -EPROTO || rc == -EMSGSIZE)
			end_peer(p, peer, INGEST_CLOSING_PROTOCOL);
		else if (rc == -ENOBUFS)
			end_peer(p, peer, INGEST_CLOSING_MEMORY);
		else
			close_peer(p, peer); /* closed by the peer */
	}
	return rc ? -EAGAIN : 0;
}

static int on_event(struct ingest_peers *p, uint64_t id, struct ingest_message *message)
{
	struct peer *peer;

	switch (id) {
	case ID_LISTENER:
		accept_peers(p);
		return -EAGAIN;
	case ID_TIMER:
	case ID_READY:
		return -EAGAIN; /* handled before */
	default:
		peer = find_peer(p, id);
		return peer ? serve(p, peer, message) : -EAGAIN;
	}
}

/*
 * Waits for events after the last ones. nanomsg gives up a connection without a hello within a
 * second, so with many events new connections are accepted first: else thousands of agents that
 * return would never get in behind the frames of others.
 */
static bool look(struct ingest_peers *p)
{
	p->event_at = 0;
	p->event_count = epoll_wait(p->epoll, p->events, EVENTS_MAX, 0);
	if (p->event_count == EVENTS_MAX)
		accept_peers(p);
	return p->event_count > 0;
}

/* Bounded, so that connections without messages do not keep the loop. */
int ingest_peers_receive(struct ingest_peers *p, struct ingest_message *message, int64_t now_ns)
{
	int rc = -EAGAIN, looks = 0;

	p->now_ns = now_ns;
	p->lender = NULL;
	if (p->timer_ns && p->timer_ns <= now_ns)
		on_time(p);
	while (rc) {
		if (p->lists[PEER_READY])
			rc = serve(p, p->lists[PEER_READY], message);
		else if (p->event_at < p->event_count)
			rc = on_event(p, p->events[p->event_at++].data.u64, message);
		else if (looks++ == LOOKS_MAX)
			return -EBUSY;
		else if (!look(p))
			break;
	}
	return rc;
}

void ingest_peers_judge(struct ingest_peers *p, const struct ingest_route *route, const char *node,
			bool news)
{
	struct peer *peer = find_peer(p, route->peer);

	if (!peer)
		return;
	/* Nearly always the same as before. */
	if (node && (!peer->node || strcmp(peer->node, node) != 0)) {
		free(peer->node);
		peer->node = mem_strdup(node);
	}
	if (node && news)
		ingest_slots_verify(p->slots, &peer->slot, p->now_ns);
	else if (!node && ingest_slots_note_unopened(&peer->slot))
		end_peer(p, peer, INGEST_CLOSING_UNOPENED);
}

void ingest_peers_reply(struct ingest_peers *p, const struct ingest_route *route, const void *data,
			size_t len)
{
	struct peer *peer = find_peer(p, route->peer);
	uint8_t head[WIRE_HEAD_MAX];
	struct iovec iov[] = {{head, wire_head_len(p->kind)},
			      {(void *)route->stack, route->len},
			      {(void *)data, len}};
	struct msghdr header = {.msg_iov = iov, .msg_iovlen = 3};
	ssize_t n;

	if (!peer)
		return;
	wire_put_head(p->kind, route->len + len, head);
	do
		n = sendmsg(peer->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EWOULDBLOCK)
		return;
	if (n < 0)
		close_peer(p, peer);
	else if ((size_t)n < iov[0].iov_len + route->len + len)
		end_peer(p, peer, INGEST_CLOSING_UNREAD);
}

int ingest_peers_release(struct ingest_peers *p, const struct ingest_route *route)
{
	struct peer *peer = find_peer(p, route->peer);
	int fd;

	if (!peer)
		return -1;
	/* The epoll would keep what a copy of the descriptor keeps open. */
	epoll_ctl(p->epoll, EPOLL_CTL_DEL, peer->fd, NULL);
	fd = fcntl(peer->fd, F_DUPFD_CLOEXEC, 0);
	close_peer(p, peer);
	return fd;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static size_t peers_most(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < PEERS_LEAST + DESCRIPTORS_KEPT)
		return PEERS_LEAST;
	return (size_t)files.rlim_cur - DESCRIPTORS_KEPT;
}

int ingest_peers_open(struct ingest_peers **out, int listener, enum endpoint_kind kind,
		      struct ingest_counters *counters, ingest_closed *closed, void *ctx)
{
	struct ingest_peers *p = mem_zalloc(1, sizeof(*p));
	int rc;

	p->kind = kind;
	p->counters = counters;
	p->closed = closed;
	p->ctx = ctx;
	p->slots = ingest_slots_new(peers_most());
	crypto_shorthash_keygen(p->address_key);
	p->listener = listener;
	p->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	p->ready_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (p->epoll >= 0 && p->ready_event >= 0 && p->timer >= 0 &&
	    watch(p, listener, ID_LISTENER) && watch(p, p->ready_event, ID_READY) &&
	    watch(p, p->timer, ID_TIMER)) {
		*out = p;
		return 0;
	}
	rc = -errno;
	p->listener = -1;
	ingest_peers_close(p);
	return rc;
}

void ingest_peers_close(struct ingest_peers *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->slot_count; i++)
		if (p->peers[i])
			close_peer(p, p->peers[i]);
	file_close(p->listener);
	file_close(p->timer);
	file_close(p->ready_event);
	file_close(p->epoll);
	file_close(p->spare);
	ingest_slots_free(p->slots);
	buf_fini(&p->whole);
	free(p->peers);
	free(p);
}

int ingest_peers_fd(const struct ingest_peers *p)
{
	return p->epoll;
}
