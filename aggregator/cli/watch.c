/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --watch draws over the last picture on a terminal and appends otherwise, a blank line between
 * tables. Each picture is written at once, so it does not flicker; the last good one stays while
 * the server is away. Signals are blocked but while waiting, so none is missed between the check
 * and the wait; a request under way sees watch_stop within a second. A server that goes away is
 * shown and asked again, since what watches usually outlives restarts; one that was never there
 * ends it.
 */
#include "aggregator/cli/commands.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/lines.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/table.h"
#include "shared/utf8.h"

volatile sig_atomic_t watch_stop;

static void on_signal(int number)
{
	(void)number;
	watch_stop = 1;
}

void watch_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static void terminal_size(size_t *columns, size_t *rows)
{
	struct winsize size;

	*columns = 0;
	*rows = 0;
	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return;
	*columns = size.ws_col;
	*rows = size.ws_row;
}

void watch_look_at_terminal(struct cli *cli)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	size_t rows;

	terminal_size(&cli->width, &rows);
	cli->terminal = isatty(STDOUT_FILENO);
	cli->color = cli->options->color == COLOR_ALWAYS;
	if (cli->options->color == COLOR_AUTO)
		cli->color = cli->terminal && !(no_color && no_color[0]) &&
			     !(term && strcmp(term, "dumb") == 0);
}

static int write_all(const char *data, size_t len)
{
	while (len > 0) {
		ssize_t done = write(STDOUT_FILENO, data, len);

		if (done < 0 && errno == EINTR && !watch_stop)
			continue;
		if (done < 0)
			return -errno;
		data += done;
		len -= (size_t)done;
	}
	return 0;
}

int watch_flush(struct cli *cli)
{
	int rc = write_all(cli->out.data, cli->out.len);

	buf_clear(&cli->out);
	buf_add_str(&cli->out, "");
	return rc;
}

static void print_reason(struct cli *cli)
{
	if (cli->reason.text[0])
		log_info("%s", cli->reason.text);
}

int watch_run(struct cli *cli, const struct command *command)
{
	buf_clear(&cli->out);
	buf_add_str(&cli->out, "");
	buf_clear(&cli->rows);
	cli->reason.text[0] = '\0';
	return output_finish(cli, command->run(cli));
}

int watch_once(struct cli *cli, const struct command *command)
{
	int code = watch_run(cli, command);
	int rc = watch_flush(cli);

	if (rc)
		code = error_fail(&cli->reason, CLI_ERROR, "cannot write: %s", strerror(-rc));
	print_reason(cli);
	return code;
}

static void add_line(struct buf *picture, const char *line, size_t columns)
{
	size_t len = strcspn(line, "\n");

	table_add_cut(picture, line, len, columns ? columns : len);
	buf_add_char(picture, '\n');
}

/* As many lines as the screen holds, with a note when that is not all. */
static void add_screen(struct buf *picture, const char *text, size_t lines, size_t columns)
{
	const char *p = text;
	size_t left = 0;

	for (; *p && lines > 0; lines--, p += strcspn(p, "\n") + 1)
		add_line(picture, p, columns);
	for (; *p; p += strcspn(p, "\n") + 1)
		left++;
	if (left)
		buf_printf(picture, "(%zu more lines)\n", left);
}

/* How many lines it took, with the empty one after it. */
static size_t add_reason(struct cli *cli, struct buf *picture)
{
	size_t begin = picture->len, lines = 0;

	buf_add_str(picture, cli->color ? "\033[33m" : "");
	lines_add(cli, cli->reason.text, picture);
	buf_add_str(picture, cli->color ? "\033[0m\n" : "\n");
	for (const char *p = picture->data + begin; (p = strchr(p, '\n')); p++)
		lines++;
	return lines;
}

/* text is the newest table that could be made, the reason what stands above it. */
static int draw(struct cli *cli, const struct command *command, const char *text)
{
	struct buf picture = BUF_INIT;
	size_t columns, rows, used = 4;
	char *head;
	int rc;

	terminal_size(&columns, &rows);
	head = mem_printf("evenkeel %s, every %gs from %s; Ctrl-C ends", command->name,
			  (double)cli->options->watch_ns / NS_PER_SEC, client_server(cli->client));
	utf8_clean(head);
	buf_add_str(&picture, "\033[H\033[J"); /* home, then clear to the end */
	add_line(&picture, head, columns);
	buf_add_char(&picture, '\n');
	if (cli->reason.text[0])
		used += add_reason(cli, &picture);
	add_screen(&picture, text, rows > used + 4 ? rows - used : 4, columns);
	rc = write_all(picture.data, picture.len);
	buf_fini(&picture);
	free(head);
	return rc;
}

static int append(struct cli *cli, bool first)
{
	int rc = 0;

	if (!first && cli->out.len && cli->options->output != OUTPUT_JSON)
		rc = write_all("\n", 1);
	if (rc == 0)
		rc = write_all(cli->out.data, cli->out.len);
	print_reason(cli);
	return rc;
}

/* Signals get through only in here. */
void watch_wait(int64_t start_ns, int64_t period_ns)
{
	int64_t left = period_ns - (clock_mono_ns() - start_ns);
	sigset_t caught, before;

	sigemptyset(&caught);
	sigaddset(&caught, SIGINT);
	sigaddset(&caught, SIGTERM);
	sigprocmask(SIG_BLOCK, &caught, &before);
	while (!watch_stop && left > 0) {
		struct timespec timeout = {left / NS_PER_SEC, left % NS_PER_SEC};

		ppoll(NULL, 0, &timeout, &before);
		left = period_ns - (clock_mono_ns() - start_ns);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int watch_loop(struct cli *cli, const struct command *command)
{
	bool drawn = isatty(STDOUT_FILENO) && cli->options->output != OUTPUT_JSON;
	struct buf shown = BUF_INIT;
	bool first = true;
	int code = CLI_OK;

	while (!watch_stop) {
		int64_t start_ns = clock_mono_ns();
		int rc;

		watch_look_at_terminal(cli);
		code = watch_run(cli, command);
		if (watch_stop)
			break;
		if (first && (code == CLI_ERROR || code == CLI_USAGE)) {
			print_reason(cli);
			goto free_shown;
		}
		if (code != CLI_ERROR) {
			buf_clear(&shown);
			buf_add(&shown, cli->out.data, cli->out.len);
		}
		rc = drawn ? draw(cli, command, shown.data) : append(cli, first);
		if (rc && !watch_stop) {
			error_set(&cli->reason, "cannot write: %s", strerror(-rc));
			print_reason(cli);
			code = CLI_ERROR;
			goto free_shown;
		}
		first = false;
		watch_wait(start_ns, cli->options->watch_ns);
	}
	code = CLI_OK;
free_shown:
	buf_fini(&shown);
	return code;
}
