/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's sampling without its loop. The interval ends with its last tick, so it is shorter
 * than requested by less than one period. A signal ends it early. Output follows after the
 * measurement, so a failure leaves standard output empty.
 */
#include "agent/once.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/sampler.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/utf8.h"

/* Waits until due_ns; true if a signal came first. */
static bool wait_until(int64_t due_ns, const sigset_t *signals)
{
	for (;;) {
		int64_t left = due_ns - clock_mono_ns();
		struct timespec timeout = {0};

		if (left > 0)
			timeout = (struct timespec){.tv_sec = left / NS_PER_SEC,
						    .tv_nsec = left % NS_PER_SEC};
		if (sigtimedwait(signals, NULL, &timeout) >= 0)
			return true;
		if (errno == EAGAIN && left <= 0)
			return false;
	}
}

/* Ticks until the end of the interval; *end_ns becomes the time of the last tick. */
static int tick_through(struct sampling *s, int64_t begin_ns, int64_t interval_ns,
			const sigset_t *signals, int64_t *end_ns, struct error *reason)
{
	int64_t due = begin_ns + sampling_period_ns(s);

	*end_ns = begin_ns;
	while (due <= begin_ns + interval_ns && !wait_until(due, signals)) {
		int64_t period = sampling_period_ns(s), now = clock_mono_ns();
		int64_t missed = (now - due) / period;
		int rc = sampling_tick(s, (uint64_t)missed, reason);

		if (rc)
			return rc;
		*end_ns = now;
		due += missed * period + sampling_period_ns(s);
	}
	return 0;
}

static int measure(struct sampling *s, int64_t interval_ns, const sigset_t *signals,
		   struct interval **interval, struct error *reason)
{
	int64_t begin = clock_mono_ns(), wall = clock_wall_ns(), cpu = clock_process_cpu_ns(), end;
	int rc = tick_through(s, begin, interval_ns, signals, &end, reason);

	if (rc)
		return rc;
	cpu = clock_process_cpu_ns() - cpu;
	*interval = sampling_take(s, 1, wall, wall + (end - begin));
	if (!*interval)
		return error_fail(reason, -EINTR, "interrupted before there was anything to print");
	/* Without the start, which costs much more than sampling. */
	(*interval)->node.agent_cpu_ns = (uint64_t)cpu;
	return 0;
}

/* 0: standard output is no terminal. */
static size_t terminal_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return 0;
	return size.ws_col;
}

static int cannot_write(struct error *reason)
{
	return error_system(reason, -errno, "cannot write to standard output");
}

static int print(const struct once_config *config, const struct once_sample *sample,
		 struct error *reason)
{
	struct buf text = BUF_INIT, json = BUF_INIT;
	int rc;

	if (config->output == ONCE_JSON) {
		once_json_write(sample, &json);
		utf8_add_json(&text, json.data, json.len);
	} else {
		once_table_write(sample, terminal_width(), &text);
	}
	rc = fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout)
		     ? cannot_write(reason)
		     : 0;
	buf_fini(&json);
	buf_fini(&text);
	return rc;
}

static int sample_and_print(const struct once_config *config, struct sampling *sampling,
			    const sigset_t *signals, struct error *reason)
{
	struct once_sample sample = {.node = config->node};
	struct interval *interval;
	int rc = measure(sampling, config->interval_ns, signals, &interval, reason);

	if (rc)
		return rc;
	/* From here on a signal ends the program, even while output blocks. */
	sigprocmask(SIG_UNBLOCK, signals, NULL);
	sample.cgroups = sampling_cgroups(sampling);
	sample.interval = interval;
	rc = print(config, &sample, reason);
	interval_free(interval);
	return rc;
}

int once_run(const struct once_config *config, struct error *reason)
{
	struct sampling *sampling;
	sigset_t signals;
	int rc;

	/* A file opened below would become a closed standard output. */
	if (fcntl(STDOUT_FILENO, F_GETFD) < 0)
		return cannot_write(reason);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	rc = sampling_open(&sampling, &config->sampling, reason);
	if (rc)
		return rc;
	log_info("tier %s, %zu cgroups, %.3g s", sampler_tier_name(sampling_tier(sampling)),
		 sampling_cgroups(sampling), (double)config->interval_ns / NS_PER_SEC);
	rc = sample_and_print(config, sampling, &signals, reason);
	sampling_close(sampling);
	return rc;
}
