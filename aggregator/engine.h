/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator as one object: the loop that owns all state, between the ingest and the HTTP edge.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/planner/drain_settings.h"
#include "aggregator/api/policy_options.h"
#include "aggregator/edge/http/http.h"
#include "aggregator/policy/quota/preempt.h"
#include "aggregator/policy/slack/slack.h"
#include "shared/options.h"
#include "shared/error.h"

struct engine_config {
	const char *listen; /* HTTP address */
	const struct access_options *access; /* to it */
	const char *ingest; /* where agents connect: tcp://HOST:PORT or ipc://PATH */
	const char *peer; /* the ingest of another aggregator; NULL: there is none */
	const char *key_path; /* NULL: no key (ipc:// only) */
	const char *enrolment_key_path; /* NULL: nodes get no keys of their own */
	const char *join_token_path; /* NULL: no join tokens */
	const char *enrol_service_account; /* "NAMESPACE/NAME"; NULL: no tokens of Kubernetes */
	const char *
		own_secrets; /* namespace of the Secrets that are kept in these files; NULL: none */
	bool shared_keys; /* frames under key_path's keys count, too */
	const char *state_dir; /* NULL: nothing is kept */
	int64_t save_interval_ns;
	const char *record_dir; /* NULL: nothing is recorded */
	int64_t record_keep_ns;
	uint64_t record_bytes_most;
	struct option_list snapshots; /* files with the cluster's objects; empty: an API, or none */
	const char *kubeconfig; /* NULL: the API of the cluster this is a pod of, if it is one */
	const char *kube_context; /* NULL: the kubeconfig's current one */
	bool standalone; /* no API */
	bool watcher_upstream;
	int watcher_smoothed; /* N of "smoothed:N"; 1: raw */
	bool watcher_allocatable; /* percent of allocatable instead of capacity */
	struct extender_options extender;
	struct quota_options quota; /* borrowed with what it owns */
	struct preempt_options preempt;
	struct slack_options slack;
	struct drain_setup drain; /* borrowed with what it owns */
	int64_t plan_interval_ns;
	bool write_quota_status; /* into the objects of the API */
	const char *nudge_claim; /* "NAMESPACE/NAME"; NULL: schedulers are not made to ask again */
	unsigned int events; /* about objects: bits of enum object_events_of */
	int64_t shutdown_delay_ns; /* it serves for so long after the signal that ends it */
	int filter; /* of system calls (shared/syscalls.h), for when all is open; -1: none */
};

struct engine;

/* Binds both addresses. config is borrowed for the engine's life. */
int engine_open(struct engine **e, const struct engine_config *config, struct error *error);
/*
 * Runs until SIGINT or SIGTERM, and the shutdown delay or another such signal after it; SIGHUP reads keys, certificates and tokens again. 0, or -errno with
 * the reason when it cannot go on.
 */
int engine_run(struct engine *e, struct error *error);
void engine_close(struct engine *e);
