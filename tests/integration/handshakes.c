/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that begin a TLS handshake and do not end it: with a byte of a record, a part of one, or
 * a whole first word, or many of them at once; and clients that end it and begin a message of a
 * handshake then. The aggregator as it is shipped spends no CPU and little memory on them, answers
 * others, and ends when it is told to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aggregator/edge/http/connections.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_agent.h"
#include "tests/process.h"
#include "tests/sanitized.h"
#include "tests/stack.h"
#include "tests/stranger.h"
#include "tests/tls_server.h"

enum { EACH = 10, KINDS = 3, SPAN_S = 2 };

struct scene {
	struct stack *stack;
	char *certificate, *key;
	const char *more[5];
	int fds[KINDS * EACH];
	gnutls_session_t sessions[EACH];
	gnutls_certificate_credentials_t credentials;
};

static char *write_file(const struct scene *s, const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", s->stack->folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return path;
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct tls_identity authority, server;

	*state = s;
	s->stack = stack_new();
	tls_identity_make(&authority, &(struct tls_wish){.name = "authority"});
	tls_identity_make(&server, &(struct tls_wish){.name = "server",
						      .address = "127.0.0.1",
						      .issuer = &authority});
	s->certificate = write_file(s, "tls.crt", server.certificate);
	s->key = write_file(s, "tls.key", server.key);
	tls_identity_fini(&authority);
	tls_identity_fini(&server);
	s->more[0] = "--tls-cert";
	s->more[1] = s->certificate;
	s->more[2] = "--tls-key";
	s->more[3] = s->key;
	s->stack->aggregators[0].more = s->more;
	s->stack->aggregators[0].tls = true;
	stack_start_aggregator(s->stack, 0);
	gnutls_certificate_allocate_credentials(&s->credentials);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < EACH; i++)
		if (s->sessions[i])
			gnutls_deinit(s->sessions[i]);
	for (int i = 0; i < KINDS * EACH; i++)
		if (s->fds[i] > 0)
			close(s->fds[i]);
	gnutls_certificate_free_credentials(s->credentials);
	stack_free(s->stack, 0);
	free(s->certificate);
	free(s->key);
	free(s);
	return 0;
}

/* Clients that hear nothing, however fast the answer is. */
static bool deaf = true;

static ssize_t hear(gnutls_transport_ptr_t fd, void *data, size_t size)
{
	if (!deaf)
		return recv((int)(intptr_t)fd, data, size, 0);
	errno = EAGAIN;
	return -1;
}

/* Says the first word, and does not hear the answer. */
static void begin_handshake(struct scene *s, int i, int fd)
{
	gnutls_init(&s->sessions[i], GNUTLS_CLIENT | GNUTLS_NONBLOCK);
	gnutls_set_default_priority(s->sessions[i]);
	gnutls_credentials_set(s->sessions[i], GNUTLS_CRD_CERTIFICATE, s->credentials);
	gnutls_transport_set_int(s->sessions[i], fd);
	gnutls_transport_set_pull_function(s->sessions[i], hear);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(gnutls_handshake(s->sessions[i]), GNUTLS_E_AGAIN);
}

static void begin_all(struct scene *s)
{
	static const char part[] = "\x16\x03\x01\x02\x00\x01\x00";
	int port = s->stack->aggregators[0].http_port;

	for (int i = 0; i < KINDS * EACH; i++) {
		s->fds[i] = stranger_connect(port, NULL);
		assert_true(s->fds[i] > 0);
	}
	for (int i = 0; i < EACH; i++) {
		assert_true(stranger_say(s->fds[i], part, 1));
		assert_true(stranger_say(s->fds[EACH + i], part, sizeof(part) - 1));
		begin_handshake(s, i, s->fds[2 * EACH + i]);
	}
}

/* All threads', in seconds. */
static double cpu_seconds(pid_t pid)
{
	char *path = mem_printf("/proc/%d/stat", (int)pid), text[1024] = "";
	unsigned long user, system;
	FILE *f = fopen(path, "r");
	const char *at;

	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	free(path);
	at = strrchr(text, ')');
	assert_non_null(at);
	assert_int_equal(sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
				&system),
			 2);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static bool is_over(void *end_ns)
{
	return clock_mono_ns() >= *(int64_t *)end_ns;
}

static void test_unfinished_handshakes_cost_nothing(void **state)
{
	struct scene *s = *state;
	int64_t end_ns;
	double before;

	begin_all(s);
	/* They were all looked at: the one that came last is answered. */
	cJSON_Delete(stack_get(s->stack, 0, "/v1/status"));
	before = cpu_seconds(s->stack->aggregators[0].pid);
	end_ns = clock_mono_ns() + SPAN_S * NS_PER_SEC;
	assert_true(await(is_over, &end_ns, 10 * SPAN_S));
	assert_true(cpu_seconds(s->stack->aggregators[0].pid) - before < SPAN_S / 10.0);
}

static void test_others_are_answered(void **state)
{
	struct scene *s = *state;
	cJSON *status = stack_get(s->stack, 0, "/v1/status");

	assert_non_null(status);
	cJSON_Delete(status);
}

/* And who goes on with his handshake late. */
static void test_late_handshakes_end(void **state)
{
	struct scene *s = *state;
	int64_t end_ns = clock_mono_ns() + 20 * NS_PER_SEC;
	int rc;

	deaf = false;
	do
		rc = gnutls_handshake(s->sessions[0]);
	while (rc == GNUTLS_E_AGAIN && clock_mono_ns() < end_ns);
	assert_int_equal(rc, GNUTLS_E_SUCCESS);
}

/* Handshakes of one kind, in the order in which they came. */
struct crowd {
	struct scene *scene;
	int *fds;
	int first, count, cut; /* so many of them have to be */
};

static bool are_cut(void *ctx)
{
	const struct crowd *c = ctx;
	int cut = 0;

	for (int i = 0; i < c->count; i++)
		cut += stranger_is_cut(c->fds[c->first + i]);
	return cut == c->cut;
}

/* With all that a client may say before it is cut for that, but the end of its first word. */
static void begin_many(struct scene *s, const char *from, int *fds, int count)
{
	static const char word[HANDSHAKE_BYTES_MOST - 1] = "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc";

	for (int i = 0; i < count; i++) {
		fds[i] = stranger_connect(s->stack->aggregators[0].http_port, from);
		assert_true(fds[i] > 0);
		assert_true(stranger_say(fds[i], word, sizeof(word)));
	}
}

/* Whether as many connections are open as these and the one that asks, or as these without it. */
static bool are_open(void *ctx)
{
	const struct crowd *c = ctx;
	double open = stack_metric(c->scene->stack, 0, "evenkeel_http_connections");

	return open == c->count || open == c->count + 1;
}

/*
 * The oldest gives way, of who has too many and then of all; they cost what
 * packaging/docs/access.md says. Connections that come at the same time are accepted in any order,
 * so the first of them are there before the others begin.
 */
static void test_handshakes_are_bounded(void **state)
{
	enum {
		OVER = 10,
		CLIENTS = 4,
		ALL = HANDSHAKES_OF_CLIENT * (CLIENTS + 1) + OVER,
		MIB = 48
	};
	const struct rlimit files = {2 * ALL, 2 * ALL};
	static const char *const others[CLIENTS] = {"127.0.0.10", "127.0.0.11", "127.0.0.12",
						    "127.0.0.13"};
	struct scene *s = *state;
	pid_t pid = s->stack->aggregators[0].pid;
	double before_mib = bench_resident_mib(pid), grown_mib;
	static int fds[ALL];
	struct crowd none = {.scene = s}, first = {s, fds, 0, 2 * OVER, OVER};
	struct crowd c = {s, fds, 0, HANDSHAKES_OF_CLIENT + OVER, OVER};

	if (setrlimit(RLIMIT_NOFILE, &files)) {
		print_message("SKIP: only few files may be open\n");
		skip();
	}
	assert_true(await(are_open, &none, 60));
	begin_many(s, "127.0.0.9", fds, first.count);
	assert_true(await(are_open, &first, 60));
	begin_many(s, "127.0.0.9", fds + first.count, c.count - first.count);
	assert_true(await(are_cut, &c, 60));
	assert_true(are_cut(&first));
	for (int i = 0; i < CLIENTS; i++)
		begin_many(s, others[i], fds + c.count + i * HANDSHAKES_OF_CLIENT,
			   HANDSHAKES_OF_CLIENT);
	/* Those of earlier tests are older. */
	c = (struct crowd){s, fds, 0, ALL, ALL - HANDSHAKES_MOST};
	assert_true(await(are_cut, &c, 60));
	grown_mib = bench_resident_mib(pid) - before_mib;
	print_message("%d handshakes: %.1f MiB\n", HANDSHAKES_MOST, grown_mib);
	assert_true(SANITIZED || grown_mib < MIB);
	cJSON_Delete(stack_get(s->stack, 0, "/v1/status"));
	for (int i = 0; i < ALL; i++)
		close(fds[i]);
}

/* A first word of 118 KB, of which the last byte is missing, is not waited for. */
static void test_long_words_are_cut(void **state)
{
	enum { WORD = 118000, RECORD = 16384, HEAD = 5 };
	static unsigned char record[HEAD + RECORD] = {
		0x16,	    3, 1, RECORD >> 8, RECORD & 0xff, 1, WORD >> 16, WORD >> 8 & 0xff,
		WORD & 0xff};
	struct scene *s = *state;
	int fd = stranger_connect(s->stack->aggregators[0].http_port, NULL);
	struct buf got = BUF_INIT;
	bool open = true;

	for (int sent = 0; open && sent + RECORD < WORD; sent += RECORD) {
		open = stranger_say(fd, record, sizeof(record));
		memset(record + HEAD, 0, RECORD);
	}
	assert_true(stranger_hear(fd, 5000, &got));
	buf_fini(&got);
	close(fd);
}

/* --- after the handshake ---------------------------------------------------------------------- */

enum { PIECE = 16000, RECORD_MOST = PIECE + 64, IV = 12, CROWD = 100 };

/* A client of TLS 1.3, whose records the test writes itself from the first one that is no request. */
struct client {
	int fd;
	gnutls_session_t session; /* NULL: plain */
	uint64_t sequence;
};

static void shake_hands(struct scene *s, struct client *c)
{
	int rc;

	gnutls_init(&c->session, GNUTLS_CLIENT);
	gnutls_priority_set_direct(c->session,
				   "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM", NULL);
	gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, s->credentials);
	gnutls_transport_set_int(c->session, c->fd);
	do
		rc = gnutls_handshake(c->session);
	while (rc < 0 && !gnutls_error_is_fatal(rc));
	assert_int_equal(rc, 0);
}

static void ask_once(const struct client *c)
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
	char answer[4096];
	ssize_t n;

	if (c->session) {
		gnutls_record_send(c->session, request, sizeof(request) - 1);
		do
			n = gnutls_record_recv(c->session, answer, sizeof(answer));
		while (n < 0 && !gnutls_error_is_fatal((int)n));
	} else {
		assert_true(stranger_say(c->fd, request, sizeof(request) - 1));
		n = recv(c->fd, answer, sizeof(answer), 0);
	}
	assert_true(n > 12 && !memcmp(answer, "HTTP/1.1 200", 12));
}

static struct client connect_client(struct scene *s, int aggregator, bool asks)
{
	struct client c = {stranger_connect(s->stack->aggregators[aggregator].http_port, NULL),
			   NULL, 0};

	assert_true(c.fd > 0);
	if (s->stack->aggregators[aggregator].tls)
		shake_hands(s, &c);
	if (asks)
		ask_once(&c);
	return c;
}

static void close_client(struct client *c)
{
	if (c->session)
		gnutls_deinit(c->session);
	close(c->fd);
}

/* RFC 8446, 5.2 and 5.3, by the keys that the library has. False: the connection has ended. */
static bool say_handshake(struct client *c, const char *data, size_t len)
{
	static char plain[RECORD_MOST], sealed[RECORD_MOST];
	size_t sealed_len = sizeof(sealed), whole = len + 1 + 16;
	unsigned char head[] = {23, 3, 3, (unsigned char)(whole >> 8), (unsigned char)whole};
	unsigned char nonce[IV], sequence[8];
	gnutls_aead_cipher_hd_t cipher;
	gnutls_datum_t key, iv;

	assert_int_equal(gnutls_record_get_state(c->session, 0, NULL, &iv, &key, sequence), 0);
	assert_int_equal(iv.size, IV);
	memcpy(nonce, iv.data, IV);
	sequence[7] += (unsigned char)c->sequence; /* few: none is carried over */
	for (unsigned int i = 0; i < 8; i++)
		nonce[IV - 8 + i] ^= sequence[i];
	c->sequence++;
	memcpy(plain, data, len);
	plain[len] = 22;
	gnutls_aead_cipher_init(&cipher, GNUTLS_CIPHER_AES_128_GCM, &key);
	assert_int_equal(gnutls_aead_cipher_encrypt(cipher, nonce, IV, head, sizeof(head), 16,
						    plain, len + 1, sealed, &sealed_len),
			 0);
	gnutls_aead_cipher_deinit(cipher);
	return stranger_say(c->fd, head, sizeof(head)) && stranger_say(c->fd, sealed, sealed_len);
}

/* So many pieces of a message of 127 kB; how many were taken before the connection ended. */
static int say_pieces(struct client *c, int pieces)
{
	char piece[PIECE] = {11, 127000 >> 16, 127000 >> 8 & 0xff, 127000 & 0xff};
	struct buf got = BUF_INIT;
	int said = 0;

	while (said < pieces && say_handshake(c, piece, sizeof(piece)) &&
	       !stranger_hear(c->fd, 50, &got)) {
		memset(piece, 0, sizeof(piece));
		said++;
	}
	buf_fini(&got);
	return said;
}

/*
 * Whether or not a request came before: three records are more than any request begins with. A busy
 * machine may cut the connection later, but without the end of the message, which is not said.
 */
static void test_long_words_after_the_handshake_are_cut(void **state)
{
	struct buf got = BUF_INIT;

	for (int asks = 0; asks < 2; asks++) {
		struct client c = connect_client(*state, 0, asks);
		int said = say_pieces(&c, 7);

		print_message("cut after %d kB\n", said * PIECE / 1000);
		assert_true(said < 7 || stranger_hear(c.fd, 10000, &got));
		close_client(&c);
	}
	buf_fini(&got);
}

static double cost_kib(struct scene *s, int aggregator, bool asks, int pieces)
{
	struct client crowd[CROWD];
	pid_t pid = s->stack->aggregators[aggregator].pid;
	double before_mib = bench_resident_mib(pid), grown_mib;

	for (int i = 0; i < CROWD; i++) {
		crowd[i] = connect_client(s, aggregator, asks);
		assert_int_equal(say_pieces(&crowd[i], pieces), pieces);
	}
	grown_mib = bench_resident_mib(pid) - before_mib;
	for (int i = 0; i < CROWD; i++)
		close_client(&crowd[i]);
	return grown_mib * 1024 / CROWD;
}

/* The memory of each, as the page on access has it, in a process that has had none of them before. */
static void test_connections_cost_little(void **state)
{
	static const struct {
		const char *what;
		int aggregator, pieces;
		bool asks;
		double most_kib;
	} kinds[] = {
		{"plain, after a request", 1, 0, true, 32},
		{"TLS, before a request", 0, 0, false, 32},
		{"TLS, after a request", 0, 0, true, 48},
		{"TLS, with the most of a message before a request", 0, 1, false, 64},
		{"TLS, with the most of a message after a request", 0, 2, true, 100},
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		double kib;

		if (s->stack->aggregators[kinds[i].aggregator].pid)
			stack_kill_aggregator(s->stack, kinds[i].aggregator);
		stack_start_aggregator(s->stack, kinds[i].aggregator);
		kib = cost_kib(s, kinds[i].aggregator, kinds[i].asks, kinds[i].pieces);
		print_message("%s: %.0f KiB\n", kinds[i].what, kib);
		assert_true(SANITIZED || kib < kinds[i].most_kib);
	}
}

static void test_they_hold_up_no_end(void **state)
{
	struct scene *s = *state;

	assert_int_equal(process_stop(s->stack->aggregators[0].pid, SIGTERM), 0);
	s->stack->aggregators[0].pid = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unfinished_handshakes_cost_nothing),
		cmocka_unit_test(test_others_are_answered),
		cmocka_unit_test(test_late_handshakes_end),
		cmocka_unit_test(test_long_words_are_cut),
		cmocka_unit_test(test_long_words_after_the_handshake_are_cut),
		cmocka_unit_test(test_connections_cost_little),
		cmocka_unit_test(test_handshakes_are_bounded),
		cmocka_unit_test(test_they_hold_up_no_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
