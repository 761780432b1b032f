/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the versions of Kubernetes that tests/kube/build makes. */
#pragma once

#include <stdbool.h>

struct kube_version {
	int minor; /* of 1.x */
	const char *scheduler_config; /* apiVersion of KubeSchedulerConfiguration */
	const char *cron_jobs; /* API of CronJobs: "batch/v1" */
	const char *budgets; /* API of PodDisruptionBudgets and Evictions: "policy/v1" */
	const char *installation; /* file of the manifests for it */
	const char *cache_size; /* metric of the scheduler: the nodes and pods it knows, by type */
	const char *
		kubelet_flag; /* names the container runtime interface; NULL: kubelet knows no other */
	const char *
		kubelet_config; /* lines of KubeletConfiguration that a node with cgroups v1 needs */
	const char *api_options
		[2]; /* of the API server, for what it does not do by itself; NULL: no more */
	const char *scheduler_option; /* likewise of the scheduler; NULL: no more */
	/*
	 * Nodes declare features, tolerations compare numbers, and pods name their group and
	 * resources of their own
	 */
	bool new_members;
	bool token_secrets; /* a ServiceAccount gets a Secret with a token */
	bool sidecars; /* init containers may restart always, and pods are resized in place */
	bool plain_ports; /* scheduler and controllers listen without TLS, too */
	bool any_affinity_value; /* node affinity may name values that no label can have */
};

/*
 * The folder of the programs: EVENKEEL_KUBE, or where tests/kube/build puts the newest version that
 * is there. The caller frees it.
 */
char *kube_version_programs(void);

/* The version of the API server in a folder of programs; NULL: it does not run, or is another. */
const struct kube_version *kube_version_of(const char *programs);
