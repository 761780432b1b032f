/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll over the senders' sockets (plain_socket.h) and the signals. An agent is stepped when
 * its socket has something for it or its time has come. Whose time comes next is found by looking
 * at all, but at most once a millisecond: what an event makes due earlier than was known is noted
 * as it is stepped. An agent whose life ends is closed as it is, without a farewell, as if it had
 * been killed.
 */
#include "tests/fleet/worker.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "tests/fleet/plain_socket.h"

enum { EVENTS = 256, HEAP_KEPT_BYTES = 64 << 20 };

struct seat {
	struct agent_sim *agent; /* owned; NULL: it is dead */
	int64_t due_ns;
	int64_t change_ns; /* Unix time at which it dies or is started again */
};

struct worker {
	const struct agent_sim_config *config; /* borrowed */
	struct seat *seats; /* owned; of the nodes from `first` on */
	uint32_t first, count;
	int64_t next_ns; /* when the next agent is due, at the latest */
	int64_t scanned_ns; /* when all were looked at */
	int epoll, signals;
	bool last; /* no more intervals: what is left is to be answered */
	bool failed; /* one could not be started again */
	struct tally *tally; /* borrowed */
};

static int fail(struct error *reason, const char *what)
{
	int error = errno;

	error_set(reason, "%s: %s", what, strerror(error));
	return -error;
}

/* The signals' number is beyond all seats. */
static int watch(struct worker *w, int fd, uint32_t seat, struct error *reason)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = seat};

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event)
		       ? fail(reason, "cannot watch a descriptor")
		       : 0;
}

static int open_events(struct worker *w, struct error *reason)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->epoll < 0 || w->signals < 0)
		return fail(reason, "cannot wait for events");
	return watch(w, w->signals, UINT32_MAX, reason);
}

/* Begins the life of a seat's agent, unless it is a time at which that is dead. */
static int open_agent(struct worker *w, uint32_t seat, struct error *reason)
{
	struct seat *s = &w->seats[seat];
	uint32_t life;
	int rc;

	if (trouble_is_down(&w->config->trouble, w->config->cluster, w->first + seat,
			    clock_wall_ns(), &life, &s->change_ns))
		return 0;
	plain_socket_report_to(w->epoll, seat, w->first + seat);
	rc = agent_sim_open(&s->agent, w->config, w->first + seat, reason);
	if (!rc && !life)
		agent_sim_remember(s->agent, w->tally);
	s->due_ns = 0;
	w->tally->restarts += life > 0;
	return rc;
}

static int open_agents(struct worker *w, uint32_t count, struct error *reason)
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
	struct error why;

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

static void step_agent(struct worker *w, struct seat *s, int64_t now)
{
	s->due_ns = agent_sim_step(s->agent, now, w->last, w->tally);
	if (s->due_ns < w->next_ns)
		w->next_ns = s->due_ns;
}

/* Steps those whose time has come. Lives end within a second of their time. */
static void step_due(struct worker *w)
{
	int64_t now = clock_mono_ns(), wall = clock_wall_ns();

	w->scanned_ns = now;
	w->next_ns = now + NS_PER_SEC;
	for (uint32_t i = 0; i < w->count; i++) {
		struct seat *s = &w->seats[i];

		if (!w->last && s->change_ns <= wall)
			change_life(w, i);
		if (!s->agent)
			continue;
		/* A step may take a while. */
		if (s->due_ns <= now)
			step_agent(w, s, now = clock_mono_ns());
		else if (s->due_ns < w->next_ns)
			w->next_ns = s->due_ns;
	}
}

/* For epoll, and at least what is left of the millisecond since all were looked at. */
static int wait_ms(const struct worker *w, int64_t now)
{
	int64_t next = w->next_ns, soonest = w->scanned_ns + NS_PER_MS;

	if (next < soonest)
		next = soonest;
	if (next <= now)
		return 0;
	return next - now > NS_PER_SEC ? 1000 : (int)((next - now) / NS_PER_MS) + 1;
}

/* Waits for the next time or event; a signal to stop is one that comes but once. */
static void step_agents(struct worker *w)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(w->epoll, events, EVENTS, wait_ms(w, clock_mono_ns()));

	for (int i = 0; i < count; i++) {
		uint32_t seat = events[i].data.u32;

		if (seat == UINT32_MAX)
			w->last = true;
		else if (w->seats[seat].agent)
			step_agent(w, &w->seats[seat], clock_mono_ns());
	}
	if (wait_ms(w, clock_mono_ns()) == 0)
		step_due(w);
}

static bool all_idle(const struct worker *w)
{
	for (uint32_t i = 0; i < w->count; i++) {
		if (w->seats[i].agent && !agent_sim_idle(w->seats[i].agent))
			return false;
	}
	return true;
}

static void run(struct worker *w, int64_t stop_ns, int64_t last_acks_ns)
{
	int64_t until;

	while (!w->last) {
		step_agents(w);
		w->last |= stop_ns && clock_mono_ns() >= stop_ns;
	}
	/* Readable for ever by now. */
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->signals, NULL);
	until = clock_mono_ns() + last_acks_ns;
	w->next_ns = 0;
	while (!all_idle(w) && clock_mono_ns() < until)
		step_agents(w);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int worker_run(const struct agent_sim_config *config, uint32_t first, uint32_t count,
	       int64_t stop_ns, int64_t last_acks_ns, struct tally *tally, struct error *reason)
{
	struct worker w = {
		.config = config, .first = first, .epoll = -1, .signals = -1, .tally = tally};
	int rc = open_events(&w, reason);

	/*
	 * What an interval frees the next one takes, instead of asking the kernel for fresh pages.
	 */
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT_BYTES);
	mallopt(M_MMAP_THRESHOLD, HEAP_KEPT_BYTES);
	if (!rc)
		rc = open_agents(&w, count, reason);
	if (!rc) {
		run(&w, stop_ns, last_acks_ns);
		for (uint32_t i = 0; i < w.count; i++)
			close_agent(&w, &w.seats[i]);
		tally->cpu_seconds = cpu_seconds();
	}
	if (!rc && w.failed) {
		error_set(reason, "an agent could not be started again");
		rc = -EIO;
	}
	close_all(&w);
	return rc;
}
