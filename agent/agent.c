/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll loop on one thread:
 *
 *	timer				--> sampling tick --(every interval)--> publisher
 *	publisher's descriptor, deadline --> publisher
 *	SIGHUP				--> read the keys again
 *	SIGINT, SIGTERM			--> last interval, wait for acks (2 s at most), end
 *
 * The agent ends with an error only when no sampling tier is left. Nothing here blocks but
 * epoll_wait().
 */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/confine.h"
#include "agent/liveness.h"
#include "agent/sampler.h"
#include "agent/schedule.h"
#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/file.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/program.h"

enum { DESCRIPTORS = 36 }; /* without cgroups' files: maps, sockets, events */

#define LAST_ACKS_NS (2 * NS_PER_SEC)

enum event { EVENT_TIMER, EVENT_SIGNAL, EVENT_PUBLISHER, EVENTS };

struct agent {
	/* fixed after start */
	const struct agent_config *config; /* borrowed */
	int epoll, timer, signals; /* descriptors */
	int status_fd; /* -1: no status file */

	/* loop */
	struct sampling *sampling;
	struct publisher *publisher;
	struct schedule schedule;
	struct error status; /* as in the status file */
	int64_t period_ns; /* what the timer is set to */
	uint64_t sequence; /* of the last interval */
	bool stop;
};

/* Sets the timer to the period of sampling if that changed. */
static int arm_timer(struct agent *a, struct error *reason)
{
	int64_t ns = sampling_period_ns(a->sampling);
	struct itimerspec spec = {
		.it_interval = {.tv_sec = ns / NS_PER_SEC, .tv_nsec = ns % NS_PER_SEC},
		.it_value = {.tv_sec = ns / NS_PER_SEC, .tv_nsec = ns % NS_PER_SEC},
	};

	if (ns == a->period_ns)
		return 0;
	if (timerfd_settime(a->timer, 0, &spec, NULL))
		return error_system(reason, -errno, "cannot set the timer");
	a->period_ns = ns;
	return 0;
}

static void publish(struct agent *a, int64_t mono_ns)
{
	struct interval *interval;
	int64_t start, end, boot_ns = clock_boot_ns();

	schedule_end(&a->schedule, mono_ns, clock_wall_ns(), &start, &end);
	interval = sampling_take(a->sampling, a->sequence + 1, start, end);
	if (!interval)
		return;
	interval->end_boot_ns = boot_ns;
	a->sequence++;
	publisher_push(a->publisher, interval);
}

static int64_t step_publisher(struct agent *a)
{
	int64_t deadline = publisher_step(a->publisher, clock_mono_ns());
	int64_t ordered = publisher_ordered_interval_ns(a->publisher);
	const char *status = publisher_trouble(a->publisher);

	schedule_set_interval(&a->schedule, ordered ? ordered : a->config->publisher.interval_ns);
	if (a->status_fd >= 0 && strcmp(status, a->status.text) != 0) {
		error_set(&a->status, "%s", status);
		liveness_write(a->status_fd, &a->status);
	}
	return deadline;
}

/* --- the loop --------------------------------------------------------------------------------- */

static int on_timer(struct agent *a, struct error *reason)
{
	uint64_t expirations = 0;
	int64_t now;
	int rc;

	if (read(a->timer, &expirations, sizeof(expirations)) != sizeof(expirations))
		return 0;
	rc = sampling_tick(a->sampling, expirations - 1, reason);
	if (!rc)
		rc = arm_timer(a, reason);
	if (rc)
		return rc;
	now = clock_mono_ns();
	/* At the tick nearest to the due time, so a slow rate makes no interval longer. */
	if (schedule_due(&a->schedule, now + a->period_ns / 2))
		publish(a, now);
	return 0;
}

static void on_signal(struct agent *a)
{
	struct signalfd_siginfo info;

	if (read(a->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		publisher_reload_keys(a->publisher);
	else
		a->stop = true;
}

static int timeout_ms(int64_t deadline_ns)
{
	int64_t wait = deadline_ns - clock_mono_ns();

	if (wait <= 0)
		return 0;
	return wait > 60 * NS_PER_SEC ? 60000 : (int)(wait / NS_PER_MS) + 1;
}

/* Waits for events until the deadline and handles them. */
static int turn(struct agent *a, int64_t deadline_ns, struct error *reason)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(a->epoll, events, EVENTS, timeout_ms(deadline_ns));
	int rc = 0;

	for (int i = 0; i < count && !rc; i++) {
		if (events[i].data.u32 == EVENT_TIMER)
			rc = on_timer(a, reason);
		else if (events[i].data.u32 == EVENT_SIGNAL)
			on_signal(a);
	}
	return rc;
}

int agent_run(struct agent *a, struct error *reason)
{
	int rc = 0;

	while (!a->stop && !rc)
		rc = turn(a, step_publisher(a), reason);
	if (!rc) {
		int64_t now = clock_mono_ns(), until = now + LAST_ACKS_NS, deadline;
		struct error ignored;

		/* nanomsg has no linger: close loses what was just sent, so wait for the acks. */
		epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->timer, NULL);
		publish(a, now);
		deadline = step_publisher(a);
		while (!publisher_idle(a->publisher) && clock_mono_ns() < until) {
			turn(a, deadline < until ? deadline : until, &ignored);
			deadline = step_publisher(a);
		}
	}
	return rc;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int watch(struct agent *a, int fd, enum event what, struct error *reason)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = what};

	if (fd >= 0 && !epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &event))
		return 0;
	/* Of a failed open, or of epoll_ctl(). */
	return error_system(reason, -errno, "cannot watch a descriptor");
}

static int open_events(struct agent *a, struct error *reason)
{
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	rc = watch(a, a->timer, EVENT_TIMER, reason);
	return rc ? rc : watch(a, a->signals, EVENT_SIGNAL, reason);
}

static int open_publisher(struct agent *a, struct error *reason)
{
	int rc = publisher_open(&a->publisher, &a->config->publisher, reason);

	return rc ? rc : watch(a, publisher_fd(a->publisher), EVENT_PUBLISHER, reason);
}

static bool has_ipc(const struct option_list *urls)
{
	struct endpoint endpoint;

	for (size_t i = 0; i < urls->count; i++) {
		if (!endpoint_parse(&endpoint, urls->items[i], NULL) &&
		    endpoint.kind == ENDPOINT_IPC)
			return true;
	}
	return false;
}

/* After the last step that needs privileges, before the first thread: threads inherit. */
static int drop_privileges(struct agent *a, struct error *reason)
{
	const struct confine_config config = {
		.trial = sampling_try,
		.ctx = a->sampling,
		.unix_sockets = has_ipc(a->config->publisher.aggregators),
	};

	if (a->config->confine)
		return confine(&config, reason);
	log_warn("--no-confine: keeping all capabilities and system calls");
	return 0;
}

int agent_open(struct agent **out, const struct agent_config *config, struct error *reason)
{
	const struct publisher_config *publisher = &config->publisher;
	struct agent *a = mem_zalloc(1, sizeof(*a));
	int rc;

	a->config = config;
	a->epoll = a->timer = a->signals = a->status_fd = -1;
	rc = program_check_descriptors(DESCRIPTORS, reason);
	if (!rc)
		rc = open_events(a, reason);
	if (!rc)
		rc = open_publisher(a, reason);
	if (!rc && config->status_path)
		rc = a->status_fd = liveness_open(config->status_path, reason);
	if (rc >= 0)
		rc = sampling_open(&a->sampling, &config->sampling, reason);
	if (!rc)
		rc = drop_privileges(a, reason);
	if (!rc)
		rc = publisher_start(a->publisher, reason);
	if (!rc)
		rc = arm_timer(a, reason);
	if (rc) {
		agent_close(a);
		return rc;
	}
	schedule_start(&a->schedule, publisher->node, publisher->interval_ns, clock_mono_ns(),
		       clock_wall_ns());
	log_info("node %s: tier %s, %zu cgroups, an interval every %.3g s", publisher->node,
		 sampler_tier_name(sampling_tier(a->sampling)), sampling_cgroups(a->sampling),
		 (double)publisher->interval_ns / NS_PER_SEC);
	*out = a;
	return 0;
}

void agent_close(struct agent *a)
{
	if (!a)
		return;
	sampling_close(a->sampling);
	publisher_close(a->publisher);
	file_close(a->status_fd);
	file_close(a->signals);
	file_close(a->timer);
	file_close(a->epoll);
	free(a);
}
