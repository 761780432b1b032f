/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll loop on one thread:
 *
 *   timer (10 Hz) --> [rescan] --> sampler pass --> account tick --(every interval)--> ring --> senders
 *   sender descriptors, sender deadlines ----------------------------------------------------> senders
 *   SIGHUP: keys again; SIGINT, SIGTERM: last interval, wait for acks (1 s at most), end
 *
 * A pass that fails closes its tier and opens a lower one, once per failure, with a line in the log; without any tier
 * left the agent ends with an error. A dead or absent aggregator only lets the ring fill. Nothing here blocks but
 * epoll_wait.
 */
#include "agent/agent.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/account.h"
#include "agent/cgroupfs.h"
#include "agent/machine.h"
#include "agent/ring.h"
#include "agent/sampler.h"
#include "agent/schedule.h"
#include "agent/sender.h"
#include "agent/topology.h"
#include "shared/clock.h"
#include "shared/frame.h"
#include "shared/keyring.h"
#include "shared/log.h"
#include "shared/mem.h"

#define RING_SPAN_NS  (15 * 60 * NS_PER_SEC)
#define RESCAN_NS     (10 * NS_PER_SEC)
#define SLOW_NS	      NS_PER_SEC
#define LAST_WORDS_NS NS_PER_SEC
#define REPLY_NS      (5 * NS_PER_SEC)
#define SILENCE_NS    (15 * NS_PER_SEC)
#define FULL_EVERY_NS (60 * NS_PER_SEC)

enum { SENDERS_MAX = 8 };

/* What the epoll entries of timer and signals carry instead of a sender's index. */
enum { EVENT_TIMER = 1000, EVENT_SIGNAL };

struct agent {
	/* fixed after start */
	const struct agent_config *config; /* borrowed */
	struct cgroupfs fs;
	struct machine_files *machine_files;
	struct sender *senders[SENDERS_MAX];
	size_t sender_count;
	int epoll, timer, signals; /* descriptors */
	uint8_t run[FRAME_RUN_LEN];

	/* loop */
	struct keyring keys;
	struct topology *topology;
	struct sampler *sampler;
	struct account *account;
	struct ring *ring;
	struct schedule schedule;
	struct machine machine;
	uint64_t pass; /* of sampler passes */
	uint64_t sequence; /* of the last interval */
	int64_t slow_due_ns, rescan_due_ns;
	bool rescan; /* the last pass met what the topology does not know */
	/* What not even the last rescan could place: paths too long, cgroups beyond the tables. */
	uint32_t unplaced_unknown, unplaced_missing;
	bool stop;
	char refusal_logged[SENDERS_MAX][sizeof(((struct sender_stats *)0)->last_reason)];
	bool silence_logged[SENDERS_MAX];
	int64_t opened_ns; /* monotonic */

	/* of the interval that is being measured */
	uint64_t passes, pass_ns_sum, missed_ticks;
	uint32_t overflow;
	int64_t cpu_start_ns; /* the agent's own CPU time when it began */
};

static int64_t own_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* --- sampling ------------------------------------------------------------------------------------------------- */

static int scan(struct agent *a, int64_t mono_ns, struct reason *reason)
{
	int rc = cgroupfs_scan(&a->fs, a->topology, reason);

	a->rescan_due_ns = mono_ns + RESCAN_NS;
	return rc;
}

/* The running tier failed: take a lower one. */
static int step_down(struct agent *a, struct reason *reason)
{
	enum sampler_tier failed = sampler_tier(a->sampler);

	sampler_close(a->sampler);
	a->sampler = NULL;
	if (failed == TIER_T3)
		return -EIO;
	log_warn("sampling tier %s failed (%s): going on with T3, at most 1 Hz",
		 sampler_tier_name(failed), reason->text);
	return sampler_choose(&a->sampler, TIER_T3, &a->fs, a->topology, reason);
}

static int64_t tick_ns(const struct agent *a)
{
	int hz = sampler_tier(a->sampler) == TIER_T3 ? 1 : a->config->rate_hz;

	return NS_PER_SEC / hz;
}

static int arm_timer(struct agent *a)
{
	int64_t ns = tick_ns(a);
	struct itimerspec spec = {
		.it_interval = {.tv_sec = ns / NS_PER_SEC, .tv_nsec = ns % NS_PER_SEC},
		.it_value = {.tv_sec = ns / NS_PER_SEC, .tv_nsec = ns % NS_PER_SEC},
	};

	return timerfd_settime(a->timer, 0, &spec, NULL) ? -errno : 0;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* scanned: the topology is as new as can be, so what does not match it now would not after another rescan either. */
static int pass(struct agent *a, enum pass_kind kind, bool scanned, struct reason *reason)
{
	struct pass_result result;
	int64_t begin = clock_mono_ns();
	int rc = sampler_pass(a->sampler, a->topology, kind, ++a->pass, &result, reason);

	if (rc)
		return rc;
	a->passes++;
	a->pass_ns_sum += (uint64_t)(clock_mono_ns() - begin);
	a->overflow =
		max_u32(a->overflow, max_u32(result.overflow, topology_overflow(a->topology)));
	if (scanned) {
		a->unplaced_unknown = result.unknown;
		a->unplaced_missing = result.missing;
	}
	a->rescan = result.unknown > a->unplaced_unknown || result.missing > a->unplaced_missing;
	return 0;
}

static int sample(struct agent *a, struct reason *reason)
{
	int64_t now = clock_mono_ns();
	/* Half a tick early is on time: timer expirations and the slow period are multiples of each other. */
	bool slow = now + tick_ns(a) / 2 >= a->slow_due_ns;
	bool changed = sampler_topology_changed(a->sampler), scanned = false;
	int rc;

	if (changed || a->rescan || now >= a->rescan_due_ns) {
		rc = scan(a, now, reason);
		if (rc)
			return rc;
		scanned = true;
	}
	rc = pass(a, slow ? PASS_SLOW : PASS_FAST, scanned, reason);
	if (rc) {
		rc = step_down(a, reason);
		if (!rc)
			rc = arm_timer(a);
		return rc ? rc : pass(a, slow ? PASS_SLOW : PASS_FAST, scanned, reason);
	}
	if (slow) {
		a->slow_due_ns = now + SLOW_NS;
		rc = machine_read(a->machine_files, &a->machine, reason);
		if (rc)
			return rc;
	}
	account_tick(a->account, a->topology, &a->machine, clock_mono_ns(), slow);
	return 0;
}

/* --- publishing ----------------------------------------------------------------------------------------------- */

/* Says once what a person must know of one aggregator: that it refuses, that it is silent, that it is back. */
static void log_sender(struct agent *a, size_t index, const struct sender_stats *stats,
		       int64_t mono_ns)
{
	const char *url = sender_url(a->senders[index]);
	int64_t heard = stats->last_ack_ns ? stats->last_ack_ns : a->opened_ns;
	bool silent = mono_ns - heard > SILENCE_NS + a->schedule.interval_ns;

	if (stats->refused && strcmp(stats->last_reason, a->refusal_logged[index]) != 0) {
		log_warn("%s did not take an interval: %s", url, stats->last_reason);
		memcpy(a->refusal_logged[index], stats->last_reason, sizeof(stats->last_reason));
	}
	if (silent && !a->silence_logged[index])
		log_warn("%s acknowledges nothing; is it running, with the same "
			 "key? "
			 "The last 15 minutes are kept for it",
			 url);
	if (!silent && a->silence_logged[index])
		log_info("%s acknowledges again; since the start %" PRIu64
			 " intervals were lost to it",
			 url, stats->skipped);
	a->silence_logged[index] = silent;
}

/* Lets every sender do what it can; returns the monotonic time of the next deadline. */
static int64_t step_senders(struct agent *a, int64_t mono_ns)
{
	int64_t deadline = INT64_MAX;
	uint64_t cursors[2 * SENDERS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < a->sender_count; i++) {
		struct sender_stats stats;
		int64_t wanted = sender_step(a->senders[i], a->ring, mono_ns);

		sender_get_stats(a->senders[i], &stats);
		count += sender_get_cursors(a->senders[i], cursors + count);
		log_sender(a, i, &stats, mono_ns);
		if (stats.interval_ms)
			schedule_set_interval(&a->schedule, stats.interval_ms * NS_PER_MS);
		if (wanted < deadline)
			deadline = wanted;
	}
	ring_set_cursors(a->ring, cursors, count);
	return deadline;
}

static void publish(struct agent *a, int64_t mono_ns)
{
	int64_t cpu = own_cpu_ns(), start, end;
	struct account_self self = {
		.tier = sampler_tier(a->sampler),
		.missed_ticks = (uint32_t)a->missed_ticks,
		.overflow = a->overflow,
		.pass_ns = a->passes ? a->pass_ns_sum / a->passes : 0,
		.agent_cpu_ns = (uint64_t)(cpu - a->cpu_start_ns),
	};
	struct interval *interval;

	schedule_end(&a->schedule, mono_ns, clock_wall_ns(), &start, &end);
	interval = account_publish(a->account, a->sequence + 1, start, end, &self);
	if (!interval)
		return;
	a->sequence++;
	a->passes = a->pass_ns_sum = a->missed_ticks = a->overflow = 0;
	a->cpu_start_ns = cpu;
	ring_push(a->ring, interval);
}

/* --- the loop ------------------------------------------------------------------------------------------------- */

static int on_timer(struct agent *a, struct reason *reason)
{
	uint64_t expirations = 0;
	int64_t now;
	int rc;

	if (read(a->timer, &expirations, sizeof(expirations)) != sizeof(expirations))
		return 0;
	a->missed_ticks += expirations - 1;
	rc = sample(a, reason);
	if (rc)
		return rc;
	now = clock_mono_ns();
	if (schedule_due(&a->schedule, now))
		publish(a, now);
	return 0;
}

static void reload_keys(struct agent *a)
{
	struct reason why;

	if (!a->config->key_path)
		return;
	if (keyring_load(&a->keys, a->config->key_path, &why))
		log_error("keeping the old keys: %s", why.text);
	else
		log_info("read the keys again");
}

static void on_signal(struct agent *a)
{
	struct signalfd_siginfo info;

	if (read(a->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		reload_keys(a);
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

/* Waits until the deadline or an event and handles what came. */
static int turn(struct agent *a, int64_t deadline_ns, struct reason *reason)
{
	struct epoll_event events[SENDERS_MAX + 2];
	int count = epoll_wait(a->epoll, events, SENDERS_MAX + 2, timeout_ms(deadline_ns));
	int rc = 0;

	for (int i = 0; i < count && !rc; i++) {
		if (events[i].data.u32 == EVENT_TIMER)
			rc = on_timer(a, reason);
		else if (events[i].data.u32 == EVENT_SIGNAL)
			on_signal(a);
	}
	return rc;
}

static bool all_acknowledged(const struct agent *a)
{
	for (size_t i = 0; i < a->sender_count; i++) {
		if (!sender_idle(a->senders[i], a->ring))
			return false;
	}
	return true;
}

/* nanomsg has no linger: what was sent just before close is lost, so wait for the acks. */
static void say_last_words(struct agent *a)
{
	int64_t now = clock_mono_ns(), until = now + LAST_WORDS_NS, deadline;
	struct reason ignored;

	epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->timer, NULL);
	publish(a, now);
	deadline = step_senders(a, now);
	while (!all_acknowledged(a) && clock_mono_ns() < until) {
		turn(a, deadline < until ? deadline : until, &ignored);
		deadline = step_senders(a, clock_mono_ns());
	}
}

int agent_run(struct agent *a, struct reason *reason)
{
	int rc = 0;

	while (!a->stop && !rc)
		rc = turn(a, step_senders(a, clock_mono_ns()), reason);
	if (!rc)
		say_last_words(a);
	return rc;
}

/* --- opening and closing -------------------------------------------------------------------------------------- */

static int watch(struct agent *a, int fd, uint32_t what, struct reason *reason)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = what};

	if (fd >= 0 && !epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &event))
		return 0;
	reason_set(reason, "cannot watch a descriptor: %s", strerror(errno));
	return -errno;
}

static int open_events(struct agent *a, struct reason *reason)
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

static int open_senders(struct agent *a, struct reason *reason)
{
	const struct agent_config *c = a->config;
	struct sender_config config = {
		.node = c->node,
		.keys = &a->keys,
		.reply_timeout_ns = REPLY_NS,
		.full_every_ns = FULL_EVERY_NS,
	};
	int rc = 0;

	if (c->aggregators.count > SENDERS_MAX) {
		reason_set(reason, "--aggregator: %zu given, at most %d are possible",
			   c->aggregators.count, SENDERS_MAX);
		return -EINVAL;
	}
	if (c->key_path)
		rc = keyring_load(&a->keys, c->key_path, reason);
	memcpy(config.run, a->run, sizeof(config.run));
	for (size_t i = 0; i < c->aggregators.count && !rc; i++) {
		rc = sender_open(&a->senders[i], c->aggregators.items[i], &config, reason);
		if (rc)
			break;
		a->sender_count++;
		rc = watch(a, sender_fd(a->senders[i]), (uint32_t)i, reason);
	}
	return rc;
}

static int open_sampling(struct agent *a, struct reason *reason)
{
	int64_t now = clock_mono_ns();
	int rc;

	rc = machine_open(&a->machine_files, reason);
	if (!rc)
		rc = machine_read(a->machine_files, &a->machine, reason);
	if (!rc)
		rc = cgroupfs_open(&a->fs, a->config->cgroup_root, NULL, reason);
	if (!rc)
		rc = scan(a, now, reason);
	if (!rc)
		rc = sampler_choose(&a->sampler, a->config->tier, &a->fs, a->topology, reason);
	return rc;
}

int agent_open(struct agent **out, const struct agent_config *config, struct reason *reason)
{
	struct agent *a = mem_zalloc(1, sizeof(*a));
	int64_t now;
	int rc;

	a->config = config;
	a->epoll = a->timer = a->signals = -1;
	for (int h = 0; h < HIERARCHIES; h++)
		a->fs.root_fd[h] = -1;
	a->topology = topology_new();
	a->account = account_new();
	a->ring = ring_new(RING_BYTES_DEFAULT, RING_SPAN_NS);
	randombytes_buf(a->run, sizeof(a->run));
	rc = open_events(a, reason);
	if (!rc)
		rc = open_senders(a, reason);
	if (!rc)
		rc = open_sampling(a, reason);
	now = clock_mono_ns();
	schedule_start(&a->schedule, config->node, config->interval_ns, now, clock_wall_ns());
	a->cpu_start_ns = own_cpu_ns();
	a->opened_ns = now;
	if (!rc)
		rc = sample(a, reason);
	if (!rc)
		rc = arm_timer(a);
	if (rc) {
		agent_close(a);
		return rc;
	}
	log_info("node %s: tier %s, %zu cgroups, an interval every %.3g s", config->node,
		 sampler_tier_name(sampler_tier(a->sampler)), topology_count(a->topology),
		 (double)config->interval_ns / NS_PER_SEC);
	*out = a;
	return 0;
}

void agent_close(struct agent *a)
{
	if (!a)
		return;
	sampler_close(a->sampler);
	cgroupfs_close(&a->fs);
	machine_close(a->machine_files);
	for (size_t i = 0; i < a->sender_count; i++)
		sender_close(a->senders[i]);
	keyring_wipe(&a->keys);
	if (a->signals >= 0)
		close(a->signals);
	if (a->timer >= 0)
		close(a->timer);
	if (a->epoll >= 0)
		close(a->epoll);
	ring_free(a->ring);
	account_free(a->account);
	topology_free(a->topology);
	free(a);
}
