/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library stands beside the tests: in build/tests, or below what TB says. Sanitizers want to be
 * loaded first and know allocations by themselves: with them it is built without those, and the
 * order is not checked.
 */
#include "tests/seam.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/seam/control.h"

struct seam {
	char *path;
	struct seam_control *control;
};

const char *seam_call_name(enum seam_call call)
{
	static const char *const names[SEAM_CALLS] = {
		[SEAM_SOCKET] = "socket",
		[SEAM_BIND] = "bind",
		[SEAM_LISTEN] = "listen",
		[SEAM_ACCEPT] = "accept",
		[SEAM_CONNECT] = "connect",
		[SEAM_OPTION] = "setsockopt",
		[SEAM_SEND] = "send",
		[SEAM_RECEIVE] = "receive",
		[SEAM_DESCRIPTOR] = "descriptor",
		[SEAM_POLL] = "poll",
		[SEAM_THREAD] = "thread",
		[SEAM_NN_OPEN] = "nn open",
		[SEAM_NN_SEND] = "nn send",
		[SEAM_NN_RECEIVE] = "nn receive",
		[SEAM_ALLOCATE] = "allocate",
	};

	return names[call];
}

static void fatal(const char *what)
{
	perror(what);
	abort();
}

struct seam *seam_open(const char *folder, const char *name)
{
	struct seam *s = mem_zalloc(1, sizeof(*s));
	int fd;

	s->path = mem_printf("%s/%s.seam", folder, name);
	fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*s->control)))
		fatal(s->path);
	s->control = mmap(NULL, sizeof(*s->control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s->control == MAP_FAILED)
		fatal(s->path);
	close(fd);
	return s;
}

void seam_close(struct seam *s)
{
	if (!s)
		return;
	munmap(s->control, sizeof(*s->control));
	free(s->path);
	free(s);
}

static char *library(void)
{
	const char *folder = getenv("TB");
	char *path = mem_printf("%s/seam.so", folder ? folder : "build/tests"), *full;

	full = realpath(path, NULL);
	if (!full)
		fatal(path);
	free(path);
	return full;
}

/* A variable of the environment that is another one while programs are started with a seam. */
struct lent {
	const char *name;
	char *before; /* NULL: there was none */
	bool lent;
};

static struct lent preload = {.name = "LD_PRELOAD"}, sanitizer = {.name = "ASAN_OPTIONS"};

static void give_back(struct lent *l)
{
	if (!l->lent)
		return;
	if (l->before)
		setenv(l->name, l->before, 1);
	else
		unsetenv(l->name);
	free(l->before);
	l->before = NULL;
	l->lent = false;
}

/* Puts the value in front of what was there, or behind it. */
static void lend(struct lent *l, const char *value, bool in_front)
{
	const char *before = getenv(l->name);
	char *both;

	l->before = before ? mem_strdup(before) : NULL;
	l->lent = true;
	both = !before || !*before ? mem_strdup(value)
	       : in_front	   ? mem_printf("%s:%s", value, before)
				   : mem_printf("%s:%s", before, value);
	setenv(l->name, both, 1);
	free(both);
}

void seam_enter(struct seam *s)
{
	char *path;

	give_back(&preload);
	give_back(&sanitizer);
	unsetenv(SEAM_ENVIRONMENT);
	if (!s)
		return;
	path = library();
	lend(&preload, path, true);
	lend(&sanitizer, "verify_asan_link_order=0", false);
	setenv(SEAM_ENVIRONMENT, s->path, 1);
	for (int i = 0; i < SEAM_CALLS; i++)
		atomic_store(&s->control->of[i].calls, 0);
	free(path);
}

void seam_set(struct seam *s, enum seam_call call, int error, int64_t after, int64_t times)
{
	struct seam_counters *c = &s->control->of[call];

	/* None fails while it is set. */
	atomic_store(&c->times, 0);
	atomic_store(&c->error, error);
	atomic_store(&c->after, after);
	atomic_store(&c->met, 0);
	atomic_store(&c->times, times);
}

void seam_heal(struct seam *s)
{
	for (int i = 0; i < SEAM_CALLS; i++)
		atomic_store(&s->control->of[i].times, 0);
}

int64_t seam_met(const struct seam *s, enum seam_call call)
{
	return atomic_load(&s->control->of[call].met);
}

int64_t seam_calls(const struct seam *s, enum seam_call call)
{
	return atomic_load(&s->control->of[call].calls);
}
