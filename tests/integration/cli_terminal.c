/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel --watch on terminals of several widths, over a real aggregator and the simulated agents
 * of a cluster: what is written fits, line by line, titles are whole, and different things have
 * different names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/fleet/load.h"
#include "tests/process.h"

#define HOME "\033[H\033[J"

enum { NODES = 12, TIMEOUT_S = 60, WORDS_MAX = 12, ROWS_MAX = 64 };

struct scene {
	struct stack *stack;
	pid_t fleet;
	char *dump, *server;
};

static int setup(void **state)
{
	static const char *const options[] = {"--nodes", "12", "--interval", "1s", NULL};
	struct scene *s = mem_zalloc(1, sizeof(*s));
	const char *folder = getenv("TB");
	char *fleet = mem_printf("%s/fleet", folder ? folder : "build/tests");
	char *argv[] = {fleet, (char *)"--nodes", (char *)"12", (char *)"--dump", NULL, NULL};

	*state = s;
	s->stack = stack_new();
	argv[4] = s->dump = mem_printf("%s/cluster.json", s->stack->folder);
	assert_int_equal(process_run(argv, NULL, NULL), 0);
	free(fleet);
	s->stack->aggregators[0].snapshot_path = s->dump;
	stack_start_aggregator(s->stack, 0);
	s->fleet = fleet_start(s->stack, options);
	assert_true(s->fleet > 0);
	s->server = mem_printf("http://127.0.0.1:%d", s->stack->aggregators[0].http_port);
	return isnan(load_await_fresh(s->stack, NODES, clock_mono_ns(), TIMEOUT_S)) ? -1 : 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	cJSON_Delete(fleet_stop(s->stack, s->fleet));
	stack_free(s->stack, 0);
	free(s->dump);
	free(s->server);
	free(s);
	return 0;
}

/* --- a terminal ------------------------------------------------------------------------------- */

struct terminal {
	int fd;
	pid_t pid;
};

/* words: "nodes -w -o wide". */
static struct terminal open_terminal(const char *words, const char *server, unsigned short columns)
{
	struct winsize size = {.ws_row = 24, .ws_col = columns};
	char *copy = mem_strdup(words), *save, *argv[WORDS_MAX] = {NULL};
	struct terminal t;
	size_t n = 1;

	argv[0] = (char *)program_path("evenkeel");
	for (char *w = strtok_r(copy, " ", &save); w && n < WORDS_MAX - 1;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	t.pid = forkpty(&t.fd, NULL, NULL, &size);
	assert_true(t.pid >= 0);
	if (t.pid == 0) {
		setenv("EVENKEEL_SERVER", server, 1);
		setenv("TERM", "xterm", 1);
		execv(argv[0], argv);
		_exit(127);
	}
	free(copy);
	return t;
}

/* Everything up to the second picture. */
static char *read_picture(const struct terminal *t)
{
	int64_t end_ns = clock_mono_ns() + (int64_t)(scaled_s(TIMEOUT_S) * NS_PER_SEC);
	struct buf text = BUF_INIT;
	const char *first, *second;

	buf_add_str(&text, "");
	while (clock_mono_ns() < end_ns) {
		struct pollfd p = {.fd = t->fd, .events = POLLIN};
		char bytes[4096];
		ssize_t got;

		buf_add_str(&text, "");
		first = strstr(text.data, HOME);
		second = first ? strstr(first + 1, HOME) : NULL;
		if (second)
			break;
		poll(&p, 1, 1000);
		got = p.revents ? read(t->fd, bytes, sizeof(bytes) - 1) : 0;
		if (got < 0)
			break;
		buf_add(&text, bytes, (size_t)got);
	}
	first = strstr(text.data, HOME);
	second = first ? strstr(first + 1, HOME) : NULL;
	if (!first || !second) {
		fail_msg("no picture is drawn again: %s", text.data);
		return NULL;
	}
	text.data[second - text.data] = '\0';
	memmove(text.data, first + strlen(HOME), strlen(first + strlen(HOME)) + 1);
	return buf_take(&text, NULL);
}

static void close_terminal(struct terminal *t)
{
	int status;

	kill(t->pid, SIGINT);
	waitpid(t->pid, &status, 0);
	close(t->fd);
}

/* Without colours and carriage returns; anything else that steers a terminal fails. */
static void strip(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		size_t len = *p == '\033' ? 2 + strspn(p + 2, "0123456789;") : 0;

		if (len && (p[1] != '[' || p[len] != 'm'))
			fail_msg("the terminal is steered: \\033%.*s", (int)len, p + 1);
		if (len)
			p += len;
		else if (*p != '\r')
			*to++ = *p;
	}
	*to = '\0';
}

/* --- what is on it ---------------------------------------------------------------------------- */

static size_t width_of(const char *line, size_t len)
{
	size_t width = 0;

	for (size_t i = 0; i < len; i++)
		width += ((unsigned char)line[i] & 0xc0) != 0x80;
	return width;
}

static void check_widths(const char *words, const char *picture, size_t columns)
{
	size_t lines = 0;

	for (const char *line = picture; *line; lines++) {
		size_t len = strcspn(line, "\n");

		if (width_of(line, len) > columns)
			fail_msg("%s on %zu columns: %zu are written:\n%.*s", words, columns,
				 width_of(line, len), (int)len, line);
		line += len + (line[len] == '\n');
	}
	assert_true(lines <= 24);
}

/* The line of titles, which begins with that one. */
static const char *find_titles(const char *words, const char *picture, const char *title)
{
	char *begin = mem_printf("\n%s ", title);
	const char *found = strstr(picture, begin);

	free(begin);
	if (!found)
		fail_msg("%s: no line of titles begins with %s:\n%s", words, title, picture);
	return found + 1;
}

/* `names` columns make a name; what stands below the titles, up to an empty line. */
static void check_names(const char *words, const char *titles, size_t names)
{
	char seen[ROWS_MAX][160];
	size_t count = 0;

	for (const char *line = strchr(titles, '\n') + 1; *line && *line != '\n' && *line != '(';
	     line = strchr(line, '\n') + 1) {
		size_t len = 0;

		for (size_t i = 0; i < names; i++)
			len += strspn(line + len, " ") +
			       strcspn(line + len + strspn(line + len, " "), " \n");
		snprintf(seen[count], sizeof(seen[0]), "%.*s", (int)len, line);
		for (size_t i = 0; i < count; i++)
			if (strcmp(seen[i], seen[count]) == 0)
				fail_msg("%s: two rows are \"%s\"", words, seen[i]);
		assert_true(++count < ROWS_MAX);
	}
	assert_true(count > 1);
}

static const struct view_case {
	const char *words, *title;
	size_t names; /* columns that name a row */
	const char *last; /* a column that 80 columns must not lose; or NULL */
} cases[] = {
	{"nodes -w=200ms", "NAME", 1, NULL},
	{"nodes -w=200ms -o wide", "NAME", 1, NULL},
	{"nodes -w=200ms --color always", "NAME", 1, NULL},
	{"pods -w=200ms", "NAMESPACE", 2, NULL},
	{"pods -w=200ms --containers", "NAMESPACE", 3, "CONTAINER"},
	{"pods -w=200ms -o wide", "NAMESPACE", 2, NULL},
	{"scores -w=200ms", "NODE", 1, "RUNG"},
	{"quota -w=200ms", "NAMESPACE", 2, "STATE"},
	{"quota -w=200ms -o wide", "NAMESPACE", 3, NULL},
	{"slack -w=200ms", "CLASS", 1, "STATE"},
	{"slack -w=200ms -o wide", "CLASS", 1, NULL},
	{"drain -w=200ms", "NODE", 1, "REASON"},
	{"drain -w=200ms -o wide", "NODE", 1, NULL},
};

static void check_case(const struct scene *s, const struct view_case *c, unsigned short columns)
{
	struct terminal t = open_terminal(c->words, s->server, columns);
	char *picture = read_picture(&t);
	const char *titles;

	close_terminal(&t);
	strip(picture);
	check_widths(c->words, picture, columns);
	if (columns >= 80) {
		titles = find_titles(c->words, picture, c->title);
		if (memmem(titles, strcspn(titles, "\n"), "…", strlen("…")))
			fail_msg("%s: a title is shortened: %s", c->words, titles);
		check_names(c->words, titles, c->names);
		if (c->last && !memmem(titles, strcspn(titles, "\n"), c->last, strlen(c->last)))
			fail_msg("%s: no %s in %s", c->words, c->last, titles);
	}
	free(picture);
}

static void fits_a_terminal_of_80_columns(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(*state, &cases[i], 80);
}

static void fits_other_terminals(void **state)
{
	static const unsigned short widths[] = {20, 47, 100, 132};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(*state, &cases[i], widths[i % (sizeof(widths) / sizeof(widths[0]))]);
}

/* Elsewhere it is as the API wrote it. */
static void json_has_line_breaks_on_a_terminal(void **state)
{
	const struct scene *s = *state;
	struct terminal t = open_terminal("version -o json", s->server, 80);
	struct buf text = BUF_INIT;
	char bytes[512];
	ssize_t got;

	while ((got = read(t.fd, bytes, sizeof(bytes))) > 0)
		buf_add(&text, bytes, (size_t)got);
	close_terminal(&t);
	assert_memory_equal(text.data, "{\r\n  \"", 6);
	assert_memory_equal(text.data + text.len - 6, "\"\r\n}\r\n", 6);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fits_a_terminal_of_80_columns),
		cmocka_unit_test(fits_other_terminals),
		cmocka_unit_test(json_has_line_breaks_on_a_terminal),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
