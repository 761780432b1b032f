/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll over the senders' descriptors and the signals. An agent is stepped when its descriptor is readable or its
 * time has come; whose time comes next is found by looking at all, which for a few hundred costs less than keeping
 * them sorted. An agent whose life ends is closed as it is, without a farewell, as if it had been killed.
 */
#include "tests/fleet/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"

#define LAST_ACKS_NS (10 * NS_PER_SEC)

enum { EVENTS = 64 };

struct seat {
	struct agent_sim *agent; /* owned; NULL: it is dead */
	int64_t due_ns;
	int64_t change_ns; /* Unix time at which it dies or is started again */
	bool readable;
};

struct worker {
	const struct agent_sim_config *config; /* borrowed */
	struct seat *seats; /* owned; of the nodes from `first` on */
	uint32_t first, count;
	int epoll, signals;
	bool last; /* no more intervals: what is left is to be answered */
	bool failed; /* one could not be started again */
	struct tally *tally; /* borrowed */
};

static int fail(struct reason *reason, const char *what)
{
	int error = errno;

	reason_set(reason, "%s: %s", what, strerror(error));
	return -error;
}

/* The signals' number is beyond all seats. */
static int watch(struct worker *w, int fd, uint32_t seat, struct reason *reason)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = seat};

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event)
		       ? fail(reason, "cannot watch a descriptor")
		       : 0;
}

static int open_events(struct worker *w, struct reason *reason)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	/* Before nanomsg starts its thread, so that it inherits this. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->epoll < 0 || w->signals < 0)
		return fail(reason, "cannot wait for events");
	return watch(w, w->signals, UINT32_MAX, reason);
}

/* Begins the life of a seat's agent, unless it is a time at which that is dead. */
static int open_agent(struct worker *w, uint32_t seat, struct reason *reason)
{
	struct seat *s = &w->seats[seat];
	int fds[AGENT_SIM_FDS], rc;
	size_t count = 0;
	uint32_t life;

	if (trouble_is_down(&w->config->trouble, w->config->cluster, w->first + seat,
			    clock_wall_ns(), &life, &s->change_ns))
		return 0;
	rc = agent_sim_open(&s->agent, w->config, w->first + seat, reason);
	if (!rc && !life)
		agent_sim_remember(s->agent, w->tally);
	if (!rc)
		count = agent_sim_fds(s->agent, fds);
	for (size_t i = 0; i < count && !rc; i++)
		rc = watch(w, fds[i], seat, reason);
	s->due_ns = 0;
	w->tally->restarts += life > 0;
	return rc;
}

static int open_agents(struct worker *w, uint32_t count, struct reason *reason)
{
	int rc = 0;

	w->seats = mem_zalloc(count, sizeof(*w->seats));
	while (w->count < count && !rc)
		rc = open_agent(w, w->count++, reason);
	return rc;
}

/* Its descriptor leaves the epoll by being closed. */
static void close_agent(struct worker *w, struct seat *s)
{
	if (!s->agent)
		return;
	agent_sim_tell(s->agent, w->tally);
	agent_sim_close(s->agent);
	s->agent = NULL;
}

static void change_life(struct worker *w, uint32_t seat)
{
	struct seat *s = &w->seats[seat];
	struct reason why;

	close_agent(w, s);
	if (!w->last && open_agent(w, seat, &why)) {
		log_error("node %u: %s", w->first + seat, why.text);
		w->failed = w->last = true;
	}
}

static void close_all(struct worker *w)
{
	for (uint32_t i = 0; i < w->count; i++)
		agent_sim_close(w->seats[i].agent);
	free(w->seats);
	if (w->epoll >= 0)
		close(w->epoll);
	if (w->signals >= 0)
		close(w->signals);
}

/* Steps those that have something to do; returns when the next one has. Lives end within a second of their time. */
static int64_t step_agents(struct worker *w)
{
	int64_t next = INT64_MAX, wall = clock_wall_ns();

	for (uint32_t i = 0; i < w->count; i++) {
		struct seat *s = &w->seats[i];
		/* Read for each: a step may take a while. */
		int64_t now = clock_mono_ns();

		if (!w->last && s->change_ns <= wall)
			change_life(w, i);
		if (!s->agent)
			continue;
		if (s->readable || s->due_ns <= now) {
			s->readable = false;
			s->due_ns = agent_sim_step(s->agent, now, w->last, w->tally);
		}
		if (s->due_ns < next)
			next = s->due_ns;
	}
	return next;
}

static void await_events(struct worker *w, int64_t until_ns)
{
	struct epoll_event events[EVENTS];
	int64_t wait = until_ns - clock_mono_ns();
	int ms = wait <= 0 ? 0 : wait > NS_PER_SEC ? 1000 : (int)(wait / NS_PER_MS) + 1;
	int count = epoll_wait(w->epoll, events, EVENTS, ms);

	for (int i = 0; i < count; i++) {
		if (events[i].data.u32 == UINT32_MAX)
			w->last = true;
		else
			w->seats[events[i].data.u32].readable = true;
	}
}

static bool all_idle(const struct worker *w)
{
	for (uint32_t i = 0; i < w->count; i++) {
		if (w->seats[i].agent && !agent_sim_idle(w->seats[i].agent))
			return false;
	}
	return true;
}

static void run(struct worker *w, int64_t stop_ns)
{
	int64_t until;

	while (!w->last) {
		await_events(w, step_agents(w));
		w->last |= stop_ns && clock_mono_ns() >= stop_ns;
	}
	/* Readable for ever by now. */
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->signals, NULL);
	until = clock_mono_ns() + LAST_ACKS_NS;
	while (!all_idle(w) && clock_mono_ns() < until)
		await_events(w, step_agents(w));
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int worker_run(const struct agent_sim_config *config, uint32_t first, uint32_t count,
	       int64_t stop_ns, struct tally *tally, struct reason *reason)
{
	struct worker w = {
		.config = config, .first = first, .epoll = -1, .signals = -1, .tally = tally};
	int rc = open_events(&w, reason);

	if (!rc)
		rc = open_agents(&w, count, reason);
	if (!rc) {
		run(&w, stop_ns);
		for (uint32_t i = 0; i < w.count; i++)
			close_agent(&w, &w.seats[i]);
		tally->cpu_seconds = cpu_seconds();
	}
	if (!rc && w.failed) {
		reason_set(reason, "an agent could not be started again");
		rc = -EIO;
	}
	close_all(&w);
	return rc;
}
