/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kube_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"

/* The newest comes first. */
static const struct kube_version versions[] = {
	{
		.minor = 37,
		.scheduler_config = "kubescheduler.config.k8s.io/v1",
		.cron_jobs = "batch/v1",
		.budgets = "policy/v1",
		.installation = "packaging/kubernetes/install.yaml",
		.cache_size = "scheduler_cache_size",
		.kubelet_config = "failCgroupV1: false\n",
		/* PodGroups: spec.schedulingGroup of pods; members of pods that are alpha */
		.api_options = {"--feature-gates=GenericWorkload=true,EvictionRequestAPI=true,"
				"TaintTolerationComparisonOperators=true,"
				"UserNamespacesHostNetworkSupport=true",
				"--runtime-config=scheduling.k8s.io/v1beta1=true"},
		.scheduler_option = "--feature-gates=TaintTolerationComparisonOperators=true",
		.new_members = true,
		.sidecars = true,
	},
	/* Not built by tests/kube/build: EVENKEEL_KUBE names the folder of its programs. */
	{
		.minor = 33,
		.scheduler_config = "kubescheduler.config.k8s.io/v1",
		.cron_jobs = "batch/v1",
		.budgets = "policy/v1",
		.installation = "packaging/kubernetes/install.yaml",
		.cache_size = "scheduler_cache_size",
		.kubelet_config = "failCgroupV1: false\n",
		.sidecars = true,
	},
	{
		.minor = 20,
		.scheduler_config = "kubescheduler.config.k8s.io/v1beta1",
		.cron_jobs = "batch/v1beta1",
		.budgets = "policy/v1beta1",
		.installation = "packaging/kubernetes/install-1.20.yaml",
		.cache_size = "scheduler_scheduler_cache_size",
		.kubelet_flag = "--container-runtime=remote",
		.kubelet_config = "",
		.token_secrets = true,
		.plain_ports = true,
		.any_affinity_value = true,
	},
};
enum { VERSIONS = sizeof(versions) / sizeof(versions[0]) };

/* The folder of a version below the cache's. */
static char *built(const struct kube_version *v)
{
	const char *cache = getenv("EVENKEEL_CACHE"), *home = getenv("HOME");

	return cache ? mem_printf("%s/kube/1.%d/bin", cache, v->minor)
		     : mem_printf("%s/.cache/evenkeel/kube/1.%d/bin", home ? home : "", v->minor);
}

char *kube_version_programs(void)
{
	const char *given = getenv("EVENKEEL_KUBE");
	char *folder = given ? mem_strdup(given) : built(&versions[0]);

	for (int i = 1; i < VERSIONS && !given && access(folder, X_OK); i++) {
		free(folder);
		folder = built(&versions[i]);
	}
	return folder;
}

const struct kube_version *kube_version_of(const char *programs)
{
	char *program = mem_printf("%s/kube-apiserver", programs),
	     *argv[] = {program, (char *)"--version", NULL};
	struct buf out = BUF_INIT;
	int i = VERSIONS, minor;

	if (process_run(argv, &out, NULL) == 0 && out.data &&
	    sscanf(out.data, "Kubernetes v1.%d.", &minor) == 1)
		for (i = 0; i < VERSIONS && minor != versions[i].minor;)
			i++;
	buf_fini(&out);
	free(program);
	return i < VERSIONS ? &versions[i] : NULL;
}
