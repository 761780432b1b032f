/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each step removes what an earlier one needs:
 *
 *	bounding set	needs CAP_SETPCAP; without it the set stays, and no_new_privs makes it
 *			useless
 *	effective set	cleared, still permitted
 *	trial		works: the permitted, inheritable and ambient sets are cleared
 *			fails: CAP_BPF and CAP_PERFMON come back, all others go, second trial
 *	no_new_privs	no program and no file gives a capability back
 *	not dumpable	the key is in memory: no core file, no reading by processes of the same user
 *	system calls	shared/syscalls.c
 *
 * A trial replaces a list of kernels: through 5.18 bpf() refuses everything without CAP_BPF if
 * kernel.unprivileged_bpf_disabled is set, later kernels refuse only new programs and maps, and
 * vendors backport either.
 *
 * Capabilities belong to threads, so this comes before the first thread. What can fail: the trial,
 * even with both capabilities. Nothing is undone.
 */
#include "agent/confine.h"

#include <cap-ng.h>
#include <errno.h>
#include <sys/prctl.h>

#include "shared/log.h"
#include "shared/syscalls.h"

static const unsigned int kept_capabilities[] = {CAP_BPF, CAP_PERFMON};

static int refuse(const char *what, struct error *reason)
{
	return error_system(reason, errno ? -errno : -EPERM, "cannot confine the process: %s",
			    what);
}

/* Applies the state of libcap-ng to the thread. */
static int apply(struct error *reason)
{
	errno = 0;
	if (capng_apply(CAPNG_SELECT_CAPS) || capng_apply(CAPNG_SELECT_AMBIENT))
		return refuse("capabilities", reason);
	return 0;
}

/* Clears the effective set; the permitted set stays. */
static int lower_all(struct error *reason)
{
	if (capng_get_caps_process())
		return refuse("capabilities cannot be read", reason);
	/* It fails without CAP_SETPCAP. */
	capng_clear(CAPNG_SELECT_BOUNDS);
	capng_apply(CAPNG_SELECT_BOUNDS);
	for (unsigned int c = 0; !capng_update(CAPNG_DROP, CAPNG_EFFECTIVE, c);)
		c++;
	return apply(reason);
}

/* Drops all capabilities, or all but those that are kept. */
static int drop(bool keep, struct error *reason)
{
	enum { KEPT = sizeof(kept_capabilities) / sizeof(kept_capabilities[0]) };
	bool permitted[KEPT];

	for (int i = 0; i < KEPT; i++)
		permitted[i] = capng_have_capability(CAPNG_PERMITTED, kept_capabilities[i]);
	capng_clear(CAPNG_SELECT_CAPS | CAPNG_SELECT_AMBIENT);
	for (int i = 0; i < KEPT; i++) {
		if (keep && permitted[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED,
				     kept_capabilities[i]);
	}
	return apply(reason);
}

static int drop_capabilities(const struct confine_config *config, bool *kept, struct error *reason)
{
	struct error why = {""};
	int rc = lower_all(reason);

	if (rc)
		return rc;
	*kept = config->trial(config->ctx, &why) != 0;
	rc = drop(*kept, reason);
	if (rc || !*kept)
		return rc;
	rc = config->trial(config->ctx, reason);
	if (rc)
		error_prefix(reason, "without most capabilities (--no-confine keeps them)");
	else
		log_warn("keeping CAP_BPF and CAP_PERFMON, since without any capability: %s",
			 why.text);
	return rc;
}

static int forbid_gains(struct error *reason)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return refuse("no_new_privs", reason);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return refuse("core dumps", reason);
	return 0;
}

int confine(const struct confine_config *config, struct error *reason)
{
	struct error why = {""};
	bool kept = false;
	int rc = drop_capabilities(config, &kept, reason), filter, fd;

	if (!rc)
		rc = forbid_gains(reason);
	if (rc)
		return rc;
	filter = syscalls_prepare(config->unix_sockets ? SYSCALLS_AGENT_IPC : SYSCALLS_AGENT, &fd,
				  &why);
	if (!filter)
		filter = syscalls_restrict(fd, &why);
	if (filter && filter != -ENOSYS)
		return error_fail(reason, filter, "%s", why.text);
	if (filter)
		log_warn("system calls stay unrestricted: %s", why.text);
	log_info("confined: %s%s", kept ? "CAP_BPF and CAP_PERFMON alone" : "no capabilities",
		 filter ? "" : ", system calls filtered");
	return 0;
}
