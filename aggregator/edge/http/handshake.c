/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/edge/http/handshake.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utlist.h>

static void await_client(struct handshake *h)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = h};

	if (epoll_ctl(h->all->epoll, EPOLL_CTL_MOD, h->fd, &event) < 0 &&
	    epoll_ctl(h->all->epoll, EPOLL_CTL_ADD, h->fd, &event) < 0)
		return; /* no memory for it: the library asks again */
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

/* With the client's last word nothing more has to be read. */
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

void handshakes_go_on(struct handshakes *all)
{
	while (all->waiting)
		handshake_go_on(all->waiting);
}
