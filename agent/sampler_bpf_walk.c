/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a walk; the programs are in bpf/NAME.bpf.c:
 *
 *	T0  css     BPF_PROG_TEST_RUN of a program that walks the v2 hierarchy
 *	T1  cgroup  an iterator attached to the root of each hierarchy: bpf_iter_create() and read()
 *	T2  task    one iterator over all tasks, with the hierarchy set before each walk
 *
 * The links stay attached to the roots of the hierarchies, which cannot be removed. A walk makes
 * these system calls and close(); none takes a capability if the kernel lets holders of a
 * descriptor use it (5.19).
 */
#include "agent/sampler_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Generated; only the objects in them are used. */
#include "bpf/cgroup.skel.h"
#include "bpf/cgroup_plain.skel.h"
#include "bpf/css.skel.h"
#include "bpf/task.skel.h"

_Static_assert((int)WALK_UNIFIED == HIERARCHY_UNIFIED && (int)WALK_CPUACCT == HIERARCHY_CPUACCT &&
		       (int)WALK_CPU == HIERARCHY_CPU && (int)WALK_MEMORY == HIERARCHY_MEMORY,
	       "programs and topology number the hierarchies alike");

static const struct bpf_reason_need css_needs[] = {
	{"bpf_iter_css_new", "the kernel has no cgroup iterator for programs (bpf_iter_css_new)"},
	{"bpf_cgroup_from_id", "the kernel has no bpf_cgroup_from_id for programs"},
	{"bpf_rcu_read_lock", "the kernel has no bpf_rcu_read_lock for programs"},
	{"bpf_rdonly_cast", "the kernel has no bpf_rdonly_cast for programs"},
	{NULL, NULL},
};
static const struct bpf_reason_need cgroup_needs[] = {
	{"bpf_iter_cgroup", "the kernel has no BPF iterator over cgroups"},
	{NULL, NULL},
};
static const struct bpf_reason_need task_needs[] = {
	{"bpf_iter_task", "the kernel has no BPF iterator over tasks"},
	{NULL, NULL},
};

static int find_root_id(struct sampler_bpf_walks *w, int h, int root_fd)
{
	struct stat st;

	if (fstat(root_fd, &st))
		return -errno;
	w->root_id[h] = st.st_ino;
	return 0;
}

/* Reads an iterator to its end, which calls the program for every object. */
static int iterate(const struct bpf_link *link)
{
	int fd = bpf_iter_create(bpf_link__fd(link));
	char nothing[16];
	int err = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		n = read(fd, nothing, sizeof(nothing));
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
	if (n < 0)
		err = -errno;
	close(fd);
	return err;
}

/* --- T0 -------------------------------------------------------------------------------------- */

static bool suits_unified(unsigned int hierarchies, struct error *error)
{
	if (hierarchies == 1U << HIERARCHY_UNIFIED)
		return true;
	return error_fail(error, false,
			  "it reads cgroup v2 only, and here v1 hierarchies are in use");
}

static int attach_css(struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h,
		      int root_fd)
{
	(void)o;
	return find_root_id(w, h, root_fd);
}

static int walk_css(const struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h)
{
	struct bpf_test_run_opts run;

	memset(&run, 0, sizeof(run));
	run.sz = sizeof(run);
	o->state->root_id = w->root_id[h];
	o->state->hierarchy = (__u32)h;
	return bpf_prog_test_run_opts(bpf_program__fd(o->walk), &run);
}

const struct sampler_bpf_method sampler_bpf_css_method = {
	.source = {.elf = css_bpf__elf_bytes, .needs = css_needs},
	.meets_all = true,
	.nothing_met = "the kernel does not find the root by its id, as some do not in a private "
		       "cgroup namespace",
	.suits = suits_unified,
	.attach = attach_css,
	.walk = walk_css,
};

/* --- T1 -------------------------------------------------------------------------------------- */

static int attach_cgroup(struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h,
			 int root_fd)
{
	struct bpf_iter_attach_opts opts;
	union bpf_iter_link_info info;

	memset(&info, 0, sizeof(info));
	info.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
	info.cgroup.cgroup_fd = (__u32)root_fd;
	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	opts.link_info = &info;
	opts.link_info_len = sizeof(info);
	w->link[h] = bpf_program__attach_iter(o->walk, &opts);
	return w->link[h] ? 0 : -errno;
}

static int walk_cgroup(const struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h)
{
	o->state->hierarchy = (__u32)h;
	return iterate(w->link[h]);
}

#define CGROUP_METHOD(bytes)                                                                       \
	{                                                                                          \
		.source = {.elf = (bytes), .needs = cgroup_needs}, .meets_all = true,              \
		.nothing_met = "the root of the hierarchy is gone", .attach = attach_cgroup,       \
		.walk = walk_cgroup,                                                               \
	}

const struct sampler_bpf_method sampler_bpf_cgroup_method = CGROUP_METHOD(cgroup_bpf__elf_bytes);
const struct sampler_bpf_method sampler_bpf_cgroup_plain_method =
	CGROUP_METHOD(cgroup_plain_bpf__elf_bytes);

/* --- T2 -------------------------------------------------------------------------------------- */

/* One link serves all hierarchies. */
enum { TASK_LINK = 0 };

static int attach_task(struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h,
		       int root_fd)
{
	if (!w->link[TASK_LINK])
		w->link[TASK_LINK] = bpf_program__attach_iter(o->walk, NULL);
	return w->link[TASK_LINK] ? find_root_id(w, h, root_fd) : -errno;
}

static int walk_task(const struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h)
{
	o->state->root_id = w->root_id[h];
	o->state->hierarchy = (__u32)h;
	o->state->walk++;
	return iterate(w->link[TASK_LINK]);
}

/*
 * If all processes are visible, the walk meets every child with processes below it. Processes come
 * and go, so the count may be wrong for one walk.
 */
static int check_task(const struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h,
		      struct error *error)
{
	struct walk_state *state = o->state;

	for (int attempt = 0; attempt < 10; attempt++) {
		int err;

		state->blocks = state->cursor = state->overflow = state->populated = 0;
		err = walk_task(w, o, h);
		if (err)
			return error_system(error, err, "a walk over the processes failed");
		/* The root is nobody's child. */
		if (state->overflow || state->populated < state->cursor || !state->populated)
			return 0;
	}
	return error_fail(error, -ENOTSUP,
			  "of %u cgroups with processes only %u can be seen from this pid "
			  "namespace: it takes the host's",
			  state->populated + 1, state->cursor);
}

const struct sampler_bpf_method sampler_bpf_task_method = {
	.source = {.elf = task_bpf__elf_bytes, .needs = task_needs},
	.meets_all = false,
	.nothing_met = "no process that can be seen from this pid namespace is in these cgroups",
	.attach = attach_task,
	.check = check_task,
	.walk = walk_task,
};
