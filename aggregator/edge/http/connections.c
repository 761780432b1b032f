/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop that serves a connection sets its next deadline without a lock. The thread that
 * looks for overdue ones holds the list's lock, under which no descriptor is closed.
 *
 * Clients with connections are in a hash table, with their counts. Handshakes are a list of their
 * own: beyond the bound the oldest is shut down, so a client that continues its handshake gets in
 * however many others do not.
 */
#include "aggregator/edge/http/connections.h"
#include "shared/endpoint.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <utlist.h>

#include "shared/hash.h"
#include "shared/mem.h"

/* --- handshakes ------------------------------------------------------------------------------- */

static void await_client(struct handshake *h)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = h};

	if (epoll_ctl(h->all->epoll, EPOLL_CTL_MOD, h->fd, &event) < 0 &&
	    epoll_ctl(h->all->epoll, EPOLL_CTL_ADD, h->fd, &event) < 0)
		return; /* no memory: the library asks again */
	h->waits = true;
	DL_APPEND(h->all->waiting, h);
	MHD_suspend_connection(h->connection);
}

static ssize_t pull(gnutls_transport_ptr_t ptr, void *data, size_t size)
{
	struct handshake *h = ptr;
	ssize_t n = recv(h->fd, data, size, 0);
	int error = errno;

	if (n > 0)
		h->bytes += (size_t)n;
	if (n >= 0 && h->bytes <= h->most)
		return n;
	if (n >= 0)
		error = ECONNABORTED;
	if ((error == EAGAIN || error == EWOULDBLOCK) && !h->done && !h->waits)
		await_client(h);
	gnutls_transport_set_errno(h->session, error);
	return -1;
}

static int pull_timeout(gnutls_transport_ptr_t ptr, unsigned int ms)
{
	const struct handshake *h = ptr;
	struct pollfd fd = {.fd = h->fd, .events = POLLIN};

	return poll(&fd, 1, (int)ms);
}

void handshake_note_progress(struct handshake *h)
{
	h->bytes = 0;
	h->most = REQUEST_BYTES_MOST;
}

/* After the client's Finished message no handshake byte is read. */
static int on_finished(gnutls_session_t session, unsigned int type, unsigned int when,
		       unsigned int incoming, const gnutls_datum_t *message)
{
	gnutls_transport_ptr_t received, sent;
	struct handshake *h;

	(void)type, (void)when, (void)message;
	gnutls_transport_get_ptr2(session, &received, &sent);
	h = received;
	if (incoming) {
		h->done = true;
		h->bytes = 0;
		h->most = FIRST_BYTES_MOST;
	}
	return 0;
}

void handshake_begin(struct handshake *h, struct handshakes *all, struct MHD_Connection *connection,
		     gnutls_session_t session, int fd)
{
	gnutls_transport_ptr_t receive, send;

	*h = (struct handshake){.all = all,
				.connection = connection,
				.session = session,
				.fd = fd,
				.most = HANDSHAKE_BYTES_MOST};
	gnutls_transport_get_ptr2(session, &receive, &send);
	gnutls_transport_set_ptr2(session, h, send);
	gnutls_transport_set_pull_function(session, pull);
	gnutls_transport_set_pull_timeout_function(session, pull_timeout);
	gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
					   on_finished);
}

void handshake_go_on(struct handshake *h)
{
	if (!h->waits)
		return;
	h->waits = false;
	DL_DELETE(h->all->waiting, h);
	MHD_resume_connection(h->connection);
}

void handshake_end(struct handshake *h)
{
	if (h->waits)
		DL_DELETE(h->all->waiting, h);
	h->waits = false;
}

/* --- connections ------------------------------------------------------------------------------ */

struct connections_client {
	UT_hash_handle hh;
	uint64_t id;
	unsigned int has; /* at least one */
	unsigned int handshakes;
};

struct connections {
	/* fixed after start */
	unsigned int of_client_most;
	uint8_t key[PEER_KEY_LEN];

	pthread_mutex_t lock;
	/* under lock */
	struct connection *first;
	struct connections_client *clients;
	struct connection *handshakes; /* oldest first */
	unsigned int handshake_count;
	atomic_size_t count; /* read without the lock */
};

struct connections *connections_new(unsigned int of_client_most)
{
	struct connections *cs = mem_zalloc(1, sizeof(*cs));

	cs->of_client_most = of_client_most;
	crypto_shorthash_keygen(cs->key);
	pthread_mutex_init(&cs->lock, NULL);
	return cs;
}

void connections_free(struct connections *cs)
{
	if (!cs)
		return;
	pthread_mutex_destroy(&cs->lock);
	free(cs);
}

/* Under lock. */
static struct connections_client *find_client(struct connections *cs, uint64_t id)
{
	struct connections_client *client;

	HASH_FIND(hh, cs->clients, &id, sizeof(id), client);
	if (client)
		return client;
	client = mem_zalloc(1, sizeof(*client));
	client->id = id;
	HASH_ADD(hh, cs->clients, id, sizeof(id), client);
	return client;
}

struct connection *connections_begin(struct connections *cs, const struct sockaddr *from, int fd,
				     int64_t due_ns)
{
	uint64_t id = peer_hash(cs->key, from);
	struct connections_client *client;
	struct connection *c = NULL;

	pthread_mutex_lock(&cs->lock);
	client = find_client(cs, id);
	if (client->has < cs->of_client_most) {
		c = mem_zalloc(1, sizeof(*c));
		c->fd = fd;
		atomic_init(&c->due_ns, due_ns);
		c->owner = client;
		client->has++;
		cs->count++;
		DL_APPEND(cs->first, c);
	}
	pthread_mutex_unlock(&cs->lock);
	return c;
}

void connection_expect(struct connection *c, int64_t due_ns)
{
	atomic_store_explicit(&c->due_ns, due_ns, memory_order_relaxed);
}

/* Under lock. */
static void shut(struct connection *c)
{
	connection_expect(c, INT64_MAX);
	shutdown(c->fd, SHUT_RDWR);
}

/* Under lock. */
static void leave_handshakes(struct connections *cs, struct connection *c)
{
	if (!c->shakes)
		return;
	c->shakes = false;
	c->owner->handshakes--;
	cs->handshake_count--;
	DL_DELETE2(cs->handshakes, c, older, newer);
}

/* Under lock. The connection to shut down for one more of that client, or NULL. */
static struct connection *find_too_many(struct connections *cs, struct connections_client *client)
{
	struct connection *c = cs->handshakes;

	if (client->handshakes < HANDSHAKES_OF_CLIENT)
		return cs->handshake_count < HANDSHAKES_MOST ? NULL : c;
	while (c->owner != client)
		c = c->newer;
	return c;
}

bool connections_shake(struct connections *cs, struct connection *c)
{
	struct connection *cut;

	pthread_mutex_lock(&cs->lock);
	cut = find_too_many(cs, c->owner);
	if (cut) {
		leave_handshakes(cs, cut);
		shut(cut);
	}
	c->shakes = true;
	c->owner->handshakes++;
	cs->handshake_count++;
	DL_APPEND2(cs->handshakes, c, older, newer);
	pthread_mutex_unlock(&cs->lock);
	return cut;
}

void connections_shaken(struct connections *cs, struct connection *c)
{
	pthread_mutex_lock(&cs->lock);
	leave_handshakes(cs, c);
	pthread_mutex_unlock(&cs->lock);
}

struct connection *connections_find_bad(struct connections *cs, const struct handshakes *loop)
{
	struct connection *c;

	pthread_mutex_lock(&cs->lock);
	for (c = cs->first; c; c = c->next)
		if (c->loop == loop && !c->refused && framing_is_length_bad(c->library))
			break;
	pthread_mutex_unlock(&cs->lock);
	return c;
}

void connections_end(struct connections *cs, struct connection *c)
{
	pthread_mutex_lock(&cs->lock);
	DL_DELETE(cs->first, c);
	leave_handshakes(cs, c);
	if (!--c->owner->has) {
		HASH_DEL(cs->clients, c->owner);
		free(c->owner);
	}
	cs->count--;
	pthread_mutex_unlock(&cs->lock);
	tls_set_drop(c->tls);
	free(c);
}

size_t connections_cut(struct connections *cs, int64_t now_ns)
{
	size_t cut = 0;

	pthread_mutex_lock(&cs->lock);
	for (struct connection *c = cs->first; c; c = c->next) {
		if (atomic_load_explicit(&c->due_ns, memory_order_relaxed) > now_ns)
			continue;
		shut(c);
		cut++;
	}
	pthread_mutex_unlock(&cs->lock);
	return cut;
}

size_t connections_count(struct connections *cs)
{
	return atomic_load(&cs->count);
}
