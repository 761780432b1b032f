/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nanomsg's own side of an answering socket hands every message from its thread to ours and back:
 * five switches of threads and eighteen system calls for each, more than all that is then done with
 * a frame. Here the thread that wants the message reads it: one epoll for all peers, one recv() for
 * a frame, which usually is there as a whole, and one sendmsg() for its answer.
 *
 *               within 10 s            a part            the rest, within 30 s
 *     NEW (accepted) --hello--> IDLE -----------> BEGUN --------------------> message
 *                                |  ^               ^                            |
 *                     message(s) |  +-- no more ----|----------------------------+
 *              within 15 minutes v                  | a part                     | more was read
 *                              message -----------> READY <----------------------+
 *
 * A message that one recv() brought whole is handed out where it lies, in room that all peers
 * share. What came in part is kept with its peer until the rest is there, so a peer that is silent
 * holds no memory. A peer may ask again before it is answered; what is read beyond a message is
 * kept and handed out from there, and its peer is READY: an eventfd makes the epoll readable then,
 * as the kernel no longer does.
 *
 * What can fail. A peer that breaks the protocol, announces more than a frame may have, says its
 * hello or ends a message too late is closed; so is one whose answer went out in part, and one that
 * asks nothing for longer than any agent does. Parts of messages share a bound; over it, who began
 * first is closed: who is honest is done soon. There is a bound of peers, so that agents leave some
 * descriptors to all else. Over it, and out of descriptors, who was silent for longest is closed
 * for who comes, if that is ROOM_NS or more: strangers who only greet hold none for long, and
 * crowds of them drive out nobody who asks now and then. Where nobody is, a spare one is given up
 * to accept and close, so that nobody waits in a backlog for ever. Where that fails too, or is
 * needed too often, nobody is accepted for a moment: a listener that is always readable would take
 * a whole core. All of that is counted. Agents connect again and send again. On shutdown nothing is
 * kept.
 */
#include "aggregator/edge/ingest_peers.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/mem.h"

enum {
	EVENTS_MAX = 64,
	ACCEPTS_MAX = 1024, /* between two looks at those who have asked: 20 ms */
	REFUSALS_MAX = 64, /* of these, for want of descriptors */
	LOOKS_MAX = 16, /* for one message */
	SHARED_LEN = 256 * 1024,
	PART_STEP = 4096,
	PARTS_MAX = 256 * 1024 * 1024, /* bytes kept of messages that came in part */
	PEERS_LEAST = 64,
	DESCRIPTORS_KEPT = 256, /* for the HTTP API, files, databases .. */
};

#define HELLO_NS   (10 * NS_PER_SEC)
#define MESSAGE_NS (30 * NS_PER_SEC)
#define SILENT_NS  (900 * NS_PER_SEC)
#define ROOM_NS	   (90 * NS_PER_SEC)
#define PAUSE_NS   (100 * NS_PER_MS)

/* What an event is about, where it is not a peer. */
enum { ID_LISTENER = 1, ID_READY, ID_TIMER };

/* Peers of each state are in a list of their own. */
enum peer_state {
	PEER_NEW, /* its hello is awaited */
	PEER_IDLE,
	PEER_BEGUN, /* the rest of a message is awaited */
	PEER_READY, /* more than its last message was read */
	PEER_STATES,
};

struct peer {
	int fd;
	uint64_t id; /* place in peers below, and in the upper half a count that makes it unique */
	enum peer_state state;
	int64_t due_ns; /* monotonic: closed then, unless it is PEER_READY */
	struct buf part; /* what was read .. */
	size_t taken; /* .. of which so much is handed out; 0 unless PEER_READY */
	struct peer *prev, *next; /* in the list */
};

struct ingest_peers {
	/* fixed after open */
	enum endpoint_kind kind;
	struct ingest_patience patience;
	struct ingest_counters *counters; /* borrowed */
	int epoll, listener, ready_event, timer;
	size_t most; /* peers */

	int spare; /* a descriptor to give up; negative: there is none */
	uint32_t accepted; /* ever, never 0 in an id */
	struct peer **peers; /* owned; NULL: the place is free */
	size_t room, count;
	size_t free_hint; /* no place before it is free */
	struct peer
		*lists[PEER_STATES]; /* who came first is first: by due_ns, where there is one */
	struct peer *lender; /* in whose part the message lies that is handed out; or NULL */
	int64_t timer_ns; /* when the timer goes off, not after anything is due; 0: never */
	int64_t resume_ns; /* nobody is accepted before; 0: everybody is */
	size_t part_bytes; /* room of all parts together */
	struct epoll_event events[EVENTS_MAX];
	int event_count, event_at;
	struct buf whole; /* the message handed out, where it came in parts */
	uint8_t shared[SHARED_LEN];
};

/* --- peers ------------------------------------------------------------------------------------ */

static struct peer *find_peer(const struct ingest_peers *p, uint64_t id)
{
	size_t at = (size_t)(uint32_t)id;
	struct peer *peer = at < p->room ? p->peers[at] : NULL;

	return peer && peer->id == id ? peer : NULL;
}

static size_t take_place(struct ingest_peers *p)
{
	size_t at = p->free_hint, old = p->room;

	while (at < p->room && p->peers[at])
		at++;
	if (at == p->room) {
		p->room = old ? 2 * old : 64;
		p->peers = mem_realloc(p->peers, p->room * sizeof(struct peer *));
		memset(&p->peers[old], 0, (p->room - old) * sizeof(struct peer *));
	}
	p->free_hint = at + 1;
	return at;
}

/* An event while any peer is ready. */
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

/* 0 stops it. */
static void set_timer(struct ingest_peers *p, int64_t at_ns)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = at_ns / NS_PER_SEC, .tv_nsec = at_ns % NS_PER_SEC}};
	int rc = timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &when, NULL);

	assert(rc == 0);
	p->timer_ns = at_ns;
}

/*
 * What is no longer due is seen when the timer goes off: most peers are in time, and setting it is
 * a system call.
 */
static void expect_by(struct ingest_peers *p, int64_t due_ns)
{
	if (!p->timer_ns || due_ns < p->timer_ns)
		set_timer(p, due_ns);
}

static int64_t patience_of(const struct ingest_peers *p, enum peer_state state)
{
	return state == PEER_NEW    ? p->patience.hello_ns
	       : state == PEER_IDLE ? p->patience.silent_ns
				    : p->patience.message_ns;
}

static void enter(struct ingest_peers *p, struct peer *peer, enum peer_state state)
{
	bool was_ready = p->lists[PEER_READY] != NULL;

	peer->state = state;
	DL_APPEND(p->lists[state], peer);
	if (state == PEER_READY) {
		tell_ready(p, was_ready);
		return;
	}
	peer->due_ns = clock_mono_ns() + patience_of(p, state);
	expect_by(p, peer->due_ns);
}

static void leave(struct ingest_peers *p, struct peer *peer)
{
	DL_DELETE(p->lists[peer->state], peer);
	if (peer->state == PEER_READY)
		tell_ready(p, true);
}

/* Who was idle, and is again, has asked something meanwhile. */
static void move(struct ingest_peers *p, struct peer *peer, enum peer_state state)
{
	if (peer->state == state && state != PEER_IDLE)
		return;
	leave(p, peer);
	enter(p, peer, state);
}

/* What is handed out stays where it is until the next message is asked for. */
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
	drop_part(p, peer);
	p->peers[at] = NULL;
	if (at < p->free_hint)
		p->free_hint = at;
	close(peer->fd);
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

static void add_peer(struct ingest_peers *p, int fd)
{
	struct peer *peer = mem_zalloc(1, sizeof(*peer));
	size_t at = take_place(p);

	if (!++p->accepted)
		p->accepted = 1;
	peer->fd = fd;
	peer->id = (uint64_t)p->accepted << 32 | at;
	p->peers[at] = peer;
	counter_set(&p->counters->connections, ++p->count);
	enter(p, peer, PEER_NEW);
	if (send(fd, wire_hello, WIRE_HELLO_LEN, MSG_DONTWAIT | MSG_NOSIGNAL) != WIRE_HELLO_LEN ||
	    !watch(p, fd, peer->id))
		close_peer(p, peer);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Lets somebody in and out at once; false when that cannot be done either. */
static bool refuse_one(struct ingest_peers *p)
{
	int fd;

	close_fd(p->spare);
	fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		counter_add(&p->counters->refused, 1);
	close_fd(fd);
	p->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

/* Ends who was silent for longest; false when nobody was for long. */
static bool make_place(struct ingest_peers *p)
{
	struct peer *silent = p->lists[PEER_IDLE];

	if (!silent ||
	    clock_mono_ns() - (silent->due_ns - p->patience.silent_ns) < p->patience.room_ns)
		return false;
	end_peer(p, silent, INGEST_CLOSING_ROOM);
	return true;
}

static void admit(struct ingest_peers *p, int fd)
{
	if (p->count >= p->most && !make_place(p)) {
		counter_add(&p->counters->refused, 1);
		close(fd);
		return;
	}
	add_peer(p, fd);
}

/* While the listener is not listened to, those who knock wait in its backlog. */
static void hear_listener(struct ingest_peers *p, bool hear)
{
	struct epoll_event event = {.events = hear ? EPOLLIN : 0, .data.u64 = ID_LISTENER};
	int rc = epoll_ctl(p->epoll, EPOLL_CTL_MOD, p->listener, &event);

	assert(rc == 0);
}

static void pause_accepting(struct ingest_peers *p)
{
	p->resume_ns = clock_mono_ns() + PAUSE_NS;
	hear_listener(p, false);
	expect_by(p, p->resume_ns);
}

static void resume_accepting(struct ingest_peers *p)
{
	p->resume_ns = 0;
	hear_listener(p, true);
}

/* The kernel says that there is no descriptor before it looks for who needs one. */
static bool somebody_waits(const struct ingest_peers *p)
{
	struct pollfd listener = {.fd = p->listener, .events = POLLIN};

	return poll(&listener, 1, 0) != 0;
}

/* True while there may be more; *refused counts how often there was no descriptor. */
static bool accept_one(struct ingest_peers *p, int *refused)
{
	int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	bool lacking;

	if (fd >= 0) {
		admit(p, fd);
		return true;
	}
	if (errno == EINTR || errno == ECONNABORTED)
		return true;
	if (errno == EWOULDBLOCK)
		return false;
	lacking = errno == EMFILE || errno == ENFILE;
	if (lacking && !somebody_waits(p))
		return false;
	if (lacking && ++*refused < REFUSALS_MAX && (make_place(p) || refuse_one(p)))
		return true;
	pause_accepting(p);
	return false;
}

static void accept_peers(struct ingest_peers *p)
{
	int refused = 0;

	for (int i = 0; i < ACCEPTS_MAX && !p->resume_ns; i++)
		if (!accept_one(p, &refused))
			return;
}

static void end_late(struct ingest_peers *p, enum peer_state state, enum ingest_closing why,
		     int64_t now_ns)
{
	struct peer **list = &p->lists[state];

	while (*list && (*list)->due_ns <= now_ns)
		end_peer(p, *list, why);
	if (*list)
		expect_by(p, (*list)->due_ns);
}

static void on_timer(struct ingest_peers *p)
{
	int64_t now_ns = clock_mono_ns();

	set_timer(p, 0);
	end_late(p, PEER_NEW, INGEST_CLOSING_NO_HELLO, now_ns);
	end_late(p, PEER_BEGUN, INGEST_CLOSING_SLOW, now_ns);
	end_late(p, PEER_IDLE, INGEST_CLOSING_SILENT, now_ns);
	if (p->resume_ns && p->resume_ns <= now_ns)
		resume_accepting(p);
	else if (p->resume_ns)
		expect_by(p, p->resume_ns);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* How many of the first bytes are the peer's hello: 0 once it is greeted; -EAGAIN, -EPROTO. */
static int greet(struct ingest_peers *p, struct peer *peer, const void *data, size_t len)
{
	int rc;

	if (peer->state != PEER_NEW)
		return 0;
	rc = wire_check_hello(data, len);
	if (rc)
		return rc;
	move(p, peer, PEER_IDLE);
	return WIRE_HELLO_LEN;
}

/*
 * Finds the first message in what was read of a peer; *used is how much of that is then done with,
 * also where there is none yet. 0, -EAGAIN, or an error that ends the connection. A message that
 * cannot be answered is passed over.
 */
static int find_message(struct ingest_peers *p, struct peer *peer, const uint8_t *data, size_t len,
			size_t *used, struct ingest_message *out)
{
	size_t head = wire_head_len(p->kind), message_len, stack;
	int rc = greet(p, peer, data, len);

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

/*
 * Of all that was read of the peer, these last bytes are kept: a message that has begun, or
 * anything.
 */
static void keep_rest(struct ingest_peers *p, struct peer *peer, const uint8_t *rest, size_t len,
		      bool begun)
{
	struct buf part = BUF_INIT;

	if (len)
		buf_add(&part, rest, len);
	drop_part(p, peer);
	peer->part = part;
	p->part_bytes += part.cap;
	if (peer->state != PEER_NEW)
		move(p, peer, !len ? PEER_IDLE : begun ? PEER_BEGUN : PEER_READY);
}

/*
 * Of what is kept of the peer. Many small messages are not moved each time that one is handed out.
 */
static int take_kept(struct ingest_peers *p, struct peer *peer, struct ingest_message *message)
{
	const uint8_t *at = (uint8_t *)peer->part.data + peer->taken;
	size_t len = peer->part.len - peer->taken, used;
	int rc = find_message(p, peer, at, len, &used, message);

	if (rc == -EAGAIN && (used || peer->taken))
		keep_rest(p, peer, at + used, len - used, true);
	else if (rc == -EAGAIN && peer->state != PEER_NEW)
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
 * Room for what is missing of the message that has begun, but hardly more than came already: what
 * was announced is not believed. Over the bound those who began before are closed; -ENOBUFS when
 * there is none.
 */
static int make_room(struct ingest_peers *p, struct peer *peer, size_t *room)
{
	size_t head = wire_head_len(p->kind), have = peer->part.len, before = peer->part.cap;
	size_t total;

	*room = have > PART_STEP ? have : PART_STEP;
	if (peer->state != PEER_NEW && !wire_get_head(p->kind, peer->part.data, have, &total) &&
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

/* How many bytes came, or a negative errno: -EAGAIN, -ECONNRESET at the end. */
static ssize_t receive(int fd, void *into, size_t room)
{
	ssize_t n = recv(fd, into, room, MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR || errno == EWOULDBLOCK ? -EAGAIN : -errno;
	return n ? n : -ECONNRESET;
}

/* The rest of a message, or some of it, to the part that is there. */
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

/* Because of an error that serving it had. */
static void end_failed(struct ingest_peers *p, struct peer *peer, int rc)
{
	if (rc == -EPROTO || rc == -EMSGSIZE)
		end_peer(p, peer, INGEST_CLOSING_PROTOCOL);
	else if (rc == -ENOBUFS)
		end_peer(p, peer, INGEST_CLOSING_MEMORY);
	else
		close_peer(p, peer); /* it has gone by itself */
}

/* 0 with a message, else -EAGAIN. */
static int serve(struct ingest_peers *p, struct peer *peer, struct ingest_message *message)
{
	int rc = peer->state == PEER_READY ? take_kept(p, peer, message)
					   : read_peer(p, peer, message);

	if (rc && rc != -EAGAIN)
		end_failed(p, peer, rc);
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
		on_timer(p);
		return -EAGAIN;
	case ID_READY:
		return -EAGAIN; /* those come first anyway */
	default:
		peer = find_peer(p, id);
		return peer ? serve(p, peer, message) : -EAGAIN;
	}
}

/*
 * Asks for events when the last ones are through. nanomsg gives a connection up that hears no hello
 * within a second, so that agents coming back in thousands would never get in behind the frames of
 * the others: while many ask, who knocks is let in before they are served.
 */
static bool look(struct ingest_peers *p)
{
	p->event_at = 0;
	p->event_count = epoll_wait(p->epoll, p->events, EVENTS_MAX, 0);
	if (p->event_count == EVENTS_MAX)
		accept_peers(p);
	return p->event_count > 0;
}

/* However busy strangers are without asking anything, the loop gets its turn. */
int ingest_peers_receive(struct ingest_peers *p, struct ingest_message *message)
{
	int rc = -EAGAIN, looks = 0;

	p->lender = NULL;
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

/* --- opening and closing ---------------------------------------------------------------------- */

static int64_t or_usual(int64_t wanted_ns, int64_t usual_ns)
{
	return wanted_ns ? wanted_ns : usual_ns;
}

static void be_patient(struct ingest_peers *p, const struct ingest_patience *wanted)
{
	p->patience.hello_ns = or_usual(wanted->hello_ns, HELLO_NS);
	p->patience.message_ns = or_usual(wanted->message_ns, MESSAGE_NS);
	p->patience.silent_ns = or_usual(wanted->silent_ns, SILENT_NS);
	p->patience.room_ns = or_usual(wanted->room_ns, ROOM_NS);
}

static size_t peers_most(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < PEERS_LEAST + DESCRIPTORS_KEPT)
		return PEERS_LEAST;
	return (size_t)files.rlim_cur - DESCRIPTORS_KEPT;
}

int ingest_peers_open(struct ingest_peers **out, int listener, enum endpoint_kind kind,
		      const struct ingest_patience *patience, struct ingest_counters *counters)
{
	struct ingest_peers *p = mem_zalloc(1, sizeof(*p));
	int rc;

	p->kind = kind;
	p->counters = counters;
	p->most = peers_most();
	be_patient(p, patience);
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
	for (size_t i = 0; i < p->room; i++)
		if (p->peers[i])
			close_peer(p, p->peers[i]);
	close_fd(p->listener);
	close_fd(p->timer);
	close_fd(p->ready_event);
	close_fd(p->epoll);
	close_fd(p->spare);
	buf_fini(&p->whole);
	free(p->peers);
	free(p);
}

int ingest_peers_fd(const struct ingest_peers *p)
{
	return p->epoll;
}
