/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel-actuator on a testbed: its programs, their common log, and the rules of its roles. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "tests/kube_testbed.h"

enum { KUBE_ACTUATORS = 2 };

struct kube_actuator {
	struct kube_testbed *bed; /* borrowed */
	const char *act; /* of --act; borrowed */
	char *account; /* owned: a kubeconfig of the rights of the ServiceAccount */
	char *log; /* owned: a path */
	pid_t pids[KUBE_ACTUATORS]; /* 0: it does not run */
};

/*
 * Applies the overlay actuator without pods, and the file of rights of another overlay
 * ("actuator-slack/slack.yaml"), unless it is NULL.
 */
void kube_actuator_install(struct kube_actuator *a, struct kube_testbed *bed, const char *act,
			   const char *rights);
void kube_actuator_fini(struct kube_actuator *a);
/* The log of the programs that start from now on. */
void kube_actuator_name_log(struct kube_actuator *a, const char *name);
/* Starts one of them, with --max-pod-wait=60s. */
void kube_actuator_start(struct kube_actuator *a, size_t i);
/* Ends those that run. Their statuses must be 0 after a SIGTERM. */
void kube_actuator_stop(struct kube_actuator *a, int signal_number);
char *kube_actuator_read_log(const struct kube_actuator *a); /* the caller frees it */
bool kube_actuator_says(const struct kube_actuator *a, const char *text);
/* Awaits the text in the log; else the test fails. */
void kube_actuator_expect(const struct kube_actuator *a, const char *text, int seconds);

/* A rule of a role (path below rbac.authorization.k8s.io/v1), without which this is in the log. */
struct kube_actuator_rule {
	const char *role, *verb, *resource, *says;
};

/*
 * Takes each rule away in turn, starts so many programs with a log of their own, and awaits what they
 * say; meanwhile (unless NULL) is called again and again.
 */
void kube_actuator_expect_rules(struct kube_actuator *a, const struct kube_actuator_rule *rules,
				size_t count, size_t programs, void (*meanwhile)(void *ctx),
				void *ctx);
