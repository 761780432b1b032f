/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel-aggregator: options, then the engine until it is told to stop. Exit: 0 ok, 1 error, 2
 * usage.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "aggregator/planner/drain_settings.h"
#include "aggregator/api/object_events.h"
#include "aggregator/api/policy_options.h"
#include "aggregator/edge/kube/requeuer.h"
#include "aggregator/engine.h"
#include "shared/log.h"
#include "shared/options.h"
#include "shared/program.h"
#include "shared/quantity.h"
#include "shared/syscalls.h"

/* Fewer than this are worth a word at the start. */
enum { OPEN_FILES_FEW = 8192, RECORD_LEAST = 1 << 20 };

/*
 * jemalloc reads this. What one large question took returns to the system after ten seconds even if
 * the thread that answered it sleeps from then on; by itself only a thread that allocates gives back.
 */
extern const char *malloc_conf;
const char *malloc_conf = "background_thread:true,max_background_threads:1";

struct aggregator_options {
	struct engine_config config; /* what options fill as it is */
	char *watcher_stddev;
	int allow_shared_key;
	int watcher_variant, watcher_denominator;
	char *extender_blend, *default_pod_cpu;
	int unlimited;
	char *quota_min, *quota_max;
	bool quota_cover_all;
	int64_t quota_critical;
	int quota_variant, quota_pdb;
	char *record_size;
	struct slack_option_values slack;
	struct drain_settings drain;
	char *events;
	struct access_options access;
	struct program_common common;
};

static const char *const watcher_variants[] = {"corrected", "upstream", NULL};
static const char *const unlimited_counts[] = {"expected", "allocatable", NULL};
static const char *const watcher_denominators[] = {"capacity", "allocatable", NULL};

static const char *const shared_key_choices[] = {"auto", "true", "false", NULL};
static const char *const quota_variants[] = {"corrected", "upstream", NULL};
static const char *const quota_pdbs[] = {"hard", "soft", NULL};

#define AT(member)	 offsetof(struct aggregator_options, member)
#define AT_SLACK(member) AT(slack.member)
static const struct option_spec specs[] = {
	TEXT_OPTION("listen", AT(config.listen), "ADDRESS", "127.0.0.1:2020",
		    "Address and port of the HTTP API."),
	TEXT_OPTION("ingest", AT(config.ingest), "URL", "tcp://127.0.0.1:2021",
		    "Where agents report: tcp://HOST:PORT or ipc:///PATH."),
	TEXT_OPTION("peer", AT(config.peer), "URL", NULL,
		    "The --ingest of a second aggregator for the same schedulers, "
		    "tcp://HOST:PORT; HOST may have the addresses of both. Both exchange "
		    "reservations for pods, plans, and with --enrolment-key requests to the "
		    "actuator. Both need the same --enrolment-key or --key-file."),
	TEXT_OPTION(
		"key-file", AT(config.key_path), "FILE", NULL,
		"Keys that open frames: a file of 32 random bytes, or a directory of such files."),
	TEXT_OPTION("enrolment-key", AT(config.enrolment_key_path), "FILE", NULL,
		    "Private key by which agents enrol, so that each node has a key of its own; "
		    "made if it is missing. FILE.pub gets the public key, for --aggregator-key of "
		    "the agents."),
	TEXT_OPTION("join-token-file", AT(config.join_token_path), "FILE", NULL,
		    "Join tokens of agents: lines of a token and the names of the nodes that it "
		    "enrols, or patterns of them (TOKEN node-1 web-*)."),
	TEXT_OPTION(
		"enrol-service-account", AT(config.enrol_service_account), "NAMESPACE/NAME", NULL,
		"Agents enrol by tokens of this ServiceAccount, of the audience evenkeel-ingest, "
		"which the Kubernetes API reviews; a token enrols the node of its pod."),
	TEXT_OPTION("own-secrets", AT(config.own_secrets), "NAMESPACE", NULL,
		    "Keep certificates and keys in Secrets of this namespace: create evenkeel-tls "
		    "and evenkeel-enrolment if they are missing, and renew the certificate. The "
		    "files of --tls-cert, --tls-key and --tls-client-ca are overwritten by them. "
		    "--enrolment-key names a new or empty folder. "
		    "packaging/kubernetes/core/secrets.yaml has the roles."),
	CHOICE_OPTION("allow-shared-key", AT(allow_shared_key), "auto|true|false", "auto",
		      shared_key_choices,
		      "Accept frames of any node under a key of --key-file; auto: only without "
		      "--enrolment-key."),
	TEXT_OPTION("state-dir", AT(config.state_dir), "DIR", NULL,
		    "Directory of the database, which keeps windows of nodes and timers of plans "
		    "over a restart. Of one aggregator alone."),
	RANGE_OPTION(OPTION_DURATION, "save-interval", AT(config.save_interval_ns), "DURATION",
		     "60s", 1e9, 3600e9, "Time between two saves; a stop saves, too."),
	RANGE_OPTION(
		OPTION_DURATION, "shutdown-delay", AT(config.shutdown_delay_ns), "DURATION", "0s",
		0, 300e9,
		"Time between SIGTERM and the end. Meanwhile /readyz answers 503, other requests "
		"are served, and each answer ends its connection, so that load balancers use "
		"another aggregator."),
	TEXT_OPTION("record", AT(config.record_dir), "DIR", NULL,
		    "Directory of a record of the received intervals and Kubernetes objects, for "
		    "evenkeel replay. Of one aggregator alone."),
	RANGE_OPTION(OPTION_DURATION, "record-keep", AT(config.record_keep_ns), "DURATION", "24h",
		     60e9, 366 * 86400e9, "Delete what was recorded longer ago."),
	TEXT_OPTION("record-size", AT(record_size), "QUANTITY", "10Gi",
		    "Delete the oldest of the record beyond this size."),
	TEXT_OPTION("kubeconfig", AT(config.kubeconfig), "FILE", NULL,
		    "Kubeconfig of the Kubernetes API. Default: in a pod its own cluster, else no "
		    "API."),
	TEXT_OPTION("context", AT(config.kube_context), "NAME", NULL,
		    "The context of the kubeconfig to use instead of its current one."),
	LIST_OPTION("snapshot", AT(config.snapshots), "FILE", NULL,
		    "Take the cluster's objects from a file of kubectl get -o json, or of "
		    "/v1/snapshot, instead of an API."),
	FLAG_OPTION("standalone", 0, AT(config.standalone),
		    "Use no Kubernetes API, even in a pod."),
	CHOICE_OPTION("watcher-variant", AT(watcher_variant), "VARIANT", "corrected",
		      watcher_variants,
		      "Answers of /watcher without data: corrected, or as load-watcher answers."),
	CHOICE_OPTION("watcher-denominator", AT(watcher_denominator), "capacity|allocatable",
		      "capacity", watcher_denominators, "Base of the percentages of /watcher."),
	TEXT_OPTION("watcher-stddev", AT(watcher_stddev), "raw|smoothed:N", "raw",
		    "STD of /watcher: of samples, or divided by sqrt(N) for plugins that expect "
		    "the deviation of means."),
	RANGE_OPTION(OPTION_NUMBER, "extender-use-cap-cpu",
		     AT(config.extender.limits.use_cap[SCORE_CPU]), "SHARE", "0", 0, 100,
		     "/extender/filter refuses a node whose real CPU use may exceed this share of "
		     "its allocatable with the pod (0.85). 0: it does not."),
	RANGE_OPTION(OPTION_NUMBER, "extender-use-cap-memory",
		     AT(config.extender.limits.use_cap[SCORE_MEMORY]), "SHARE", "0", 0, 100,
		     "The same for memory (0.90)."),
	RANGE_OPTION(OPTION_NUMBER, "extender-use-z", AT(config.extender.limits.z), "Z", "2.33", 0,
		     10,
		     "Deviations that are added to the mean use of a node without reports for 30s, "
		     "or without percentiles: 2.33 is exceeded once in a hundred."),
	RANGE_OPTION(OPTION_NUMBER, "extender-limit-ratio-cpu",
		     AT(config.extender.limits.ratio[SCORE_CPU]), "RATIO", "0", 0, 1e6,
		     "/extender/filter refuses a node whose pods' CPU limits would sum up to more "
		     "than this many times its allocatable; a missing limit counts as --unlimited "
		     "says. 0: it does not."),
	RANGE_OPTION(OPTION_NUMBER, "extender-limit-ratio-memory",
		     AT(config.extender.limits.ratio[SCORE_MEMORY]), "RATIO", "0", 0, 1e6,
		     "The same for memory."),
	FLAG_OPTION("extender-refuse-unmeasured", 0, AT(config.extender.limits.refuse_unmeasured),
		    "/extender/filter refuses nodes that are not measured while others are."),
	TEXT_OPTION("default-pod-cpu", AT(default_pod_cpu), "QUANTITY", "100m",
		    "Expected CPU use of a pod without measurement, request and limit."),
	CHOICE_OPTION("unlimited", AT(unlimited), "expected|allocatable", "expected",
		      unlimited_counts,
		      "Limit of a container that has none, for LimitAware and the limit ratios: "
		      "its expected use, or the allocatable of its node."),
	RANGE_OPTION(OPTION_NUMBER, "oom-kill-cost", AT(config.extender.oom_cost), "SHARE", "0.1",
		     0, 1,
		     "Share of its score that a node loses for 5 OOM kills in 5 minutes; fewer or "
		     "older kills cost less."),
	TEXT_OPTION("extender-blend", AT(extender_blend), "PLUGIN=WEIGHT,..", "",
		    "Plugins of /extender/prioritize with their weights; empty: the default blend "
		    "of /v1/scores."),
	TEXT_OPTION("quota-default-min", AT(quota_min), "LIST", NULL,
		    "min of namespaces without an ElasticQuota, such as cpu=2,memory=4Gi. Without "
		    "this option and --quota-default-max they have no quota."),
	TEXT_OPTION("quota-default-max", AT(quota_max), "LIST", NULL,
		    "max of namespaces without an ElasticQuota."),
	FLAG_OPTION("quota-cover-all", 0, AT(quota_cover_all),
		    "Namespaces without an ElasticQuota get one with a min of 0: all their use is "
		    "borrowed, and preemption may take it back."),
	RANGE_OPTION(OPTION_INTEGER, "quota-critical-priority", AT(quota_critical), "N",
		     "2000000000", 1, 2147483647,
		     "Quotas do not hold pods of this priority and above."),
	CHOICE_OPTION("quota-variant", AT(quota_variant), "VARIANT", "corrected", quota_variants,
		      "Rules of quotas: corrected, or as scheduler-plugins has them."),
	CHOICE_OPTION("quota-pdb", AT(quota_pdb), "hard|soft", "hard", quota_pdbs,
		      "Preemption never breaks a PodDisruptionBudget (hard), or as a last resort "
		      "(soft)."),
	RANGE_OPTION(OPTION_DURATION, "plan-interval", AT(config.plan_interval_ns), "DURATION",
		     "10s", 1e9, 3600e9,
		     "Time between two plans (/v1/slack, /v1/drain); longer if planning would take "
		     "more than a fortieth of a CPU."),
	SLACK_OPTION_SPECS(AT_SLACK, ""),
	DRAIN_SETTINGS_OPTIONS(AT(drain)),
	FLAG_OPTION("write-quota-status", 0, AT(config.write_quota_status),
		    "Write the use of quotas into status.used of their objects; needs the rule in "
		    "packaging/kubernetes/clusterrole-quota-status.yaml."),
	TEXT_OPTION(
		"nudge-claim", AT(config.nudge_claim), "NAMESPACE/NAME", NULL,
		"Change an annotation of this PersistentVolumeClaim when a pod that "
		"/extender/filter refused would pass, at most once a second: kube-schedulers ask "
		"again then. packaging/kubernetes/core/nudge.yaml has the claim and the Role."),
	TEXT_OPTION("events", AT(events), "nodes,quotas,pods", NULL,
		    "Write Events about these: changes of nodes' drain verdicts, quotas over their "
		    "max or with findings, pods that /extender/filter refused. At most one for "
		    "each object and reason in five minutes, and one a second of all after a burst "
		    "of 25; needs the rule in packaging/kubernetes/overlays/events."),
	ACCESS_OPTIONS(AT(access)),
	PROGRAM_COMMON_OPTIONS(AT(common)),
};

static const struct option_note manual[] = {
	{"DESCRIPTION", NULL,
	 "The aggregator gathers what evenkeel-agent(8) measures on every node, keeps windows of "
	 "5, 10 and 15 minutes, joins them with the objects of the Kubernetes API where there is "
	 "one, and answers over HTTP: schedulers (/watcher, /extender), people (evenkeel(1)) and "
	 "monitoring (/metrics). It needs no capability."},
	{"FILES", "/etc/evenkeel/aggregator.yaml", "The configuration that the service reads."},
	{NULL, "/etc/evenkeel/keys/",
	 "Keys of the service. All are accepted; each agent is answered with the key that it "
	 "used."},
	{NULL, "/var/lib/evenkeel-aggregator/",
	 "The database of the service. One that cannot be read is set aside there, never deleted."},
	{"SIGNALS", "SIGHUP",
	 "Reads the keys again, and tokens and certificates of the HTTP API at once; these are "
	 "looked at every ten seconds anyway."},
	{NULL, "SIGTERM, SIGINT", "Save and end, after --shutdown-delay or a second signal."},
	{"EXIT STATUS", "0", "It was told to end."},
	{NULL, "1", "It cannot start, or not go on."},
	{NULL, "2", "Wrong options."},
	{"SEE ALSO", NULL, "evenkeel-agent(8), evenkeel(1)"},
	{0},
};

static const struct option_former former[] = {{"plan-every", "plan-interval"},
					      {"save-every", "save-interval"},
					      {0}};

static const struct option_program program = {
	.name = "evenkeel-aggregator",
	.summary = "Gathers what the agents measure and answers schedulers, people and monitoring.",
	.usage = "[OPTION..]",
	.specs = specs,
	.former = former,
	.env_prefix = "EVENKEEL_",
	.config_name = "config",
	.manual = manual,
};

/* "raw" is 1, "smoothed:N" is N in 1..1000. */
static int parse_smoothing(const char *text, int *smoothed, struct error *error)
{
	char *end;
	long n;

	*smoothed = 1;
	if (!strcmp(text, "raw"))
		return 0;
	if (!strncmp(text, "smoothed:", 9)) {
		n = strtol(text + 9, &end, 10);
		*smoothed = (int)n;
		if (end != text + 9 && !*end && n >= 1 && n <= 1000)
			return 0;
	}
	return error_fail(
		error, -1,
		"--watcher-stddev: \"%s\" is neither raw nor smoothed:N with N from 1 to 1000",
		text);
}

static int read_extender(const struct aggregator_options *o, struct extender_options *extender,
			 struct error *error)
{
	extender->unlimited_is_allocatable = o->unlimited == 1;
	if (quantity_parse_milli(o->default_pod_cpu, &extender->default_pod_cpu_milli, error))
		return error_at(error, -1, "--default-pod-cpu");
	if (extender->default_pod_cpu_milli < 0)
		return error_fail(error, -1, "--default-pod-cpu: \"%s\" is below 0",
				  o->default_pod_cpu);
	if (!extender_options_parse_blend(extender, o->extender_blend, error))
		return 0;
	return error_at(error, -1, "--extender-blend");
}

/* The caller frees config->quota with quota_options_fini(). */
static int read_quota(const struct aggregator_options *o, struct engine_config *config,
		      struct error *error)
{
	quota_options_default(&config->quota);
	preempt_options_default(&config->preempt);
	config->quota.variant = o->quota_variant == 1 ? QUOTA_UPSTREAM : QUOTA_CORRECTED;
	config->quota.critical_priority = (int32_t)o->quota_critical;
	config->preempt.pdb_hard = o->quota_pdb == 0;
	return quota_options_set_default(&config->quota, o->quota_min, o->quota_max,
					 o->quota_cover_all, error);
}

static int read_record(const struct aggregator_options *o, struct engine_config *config,
		       struct error *error)
{
	int64_t bytes;

	if (quantity_parse_units(o->record_size, &bytes, error))
		return error_at(error, -1, "--record-size");
	if (bytes < RECORD_LEAST)
		return error_fail(error, -1, "--record-size: \"%.100s\" is below 1Mi",
				  o->record_size);
	config->record_bytes_most = (uint64_t)bytes;
	return 0;
}

static int read_events(const struct aggregator_options *o, struct engine_config *config,
		       struct error *error)
{
	int rc = o->events ? object_events_parse(o->events, &config->events, error) : 0;

	if (rc)
		error_prefix(error, "--events");
	return rc;
}

/* Contradicting options are refused. */
static int check_api_options(const struct aggregator_options *o, struct error *error)
{
	const struct engine_config *c = &o->config;

	if (c->snapshots.count && (c->kubeconfig || c->standalone))
		error_set(error, "--snapshot stands in for an API: give neither --kubeconfig nor "
				 "--standalone with it");
	else if (c->standalone && c->kubeconfig)
		error_set(error, "--standalone asks no API, --kubeconfig does: give one of them");
	else if (c->kube_context && !c->kubeconfig)
		error_set(error, "--context: there is no --kubeconfig that it could be in");
	else if (o->access.token_review && (c->snapshots.count || c->standalone))
		error_set(error, "--token-review asks the Kubernetes API: give neither --snapshot "
				 "nor --standalone with it");
	else if (c->nudge_claim && (c->snapshots.count || c->standalone))
		error_set(error, "--nudge-claim is of the Kubernetes API: give neither --snapshot "
				 "nor --standalone with it");
	else if (o->events && (c->snapshots.count || c->standalone))
		error_set(error, "--events are of the Kubernetes API: give neither --snapshot nor "
				 "--standalone with it");
	else if (c->own_secrets && (c->snapshots.count || c->standalone))
		error_set(error, "--own-secrets needs the Kubernetes API: give neither --snapshot "
				 "nor --standalone with it");
	else if (c->own_secrets && !c->enrolment_key_path && !o->access.certificate)
		error_set(error, "--own-secrets needs --enrolment-key, or --tls-cert and "
				 "--tls-key: the files that it writes");
	else if (c->nudge_claim && !requeuer_claim_namespace(c->nudge_claim))
		error_set(error, "--nudge-claim: \"%.300s\" is no NAMESPACE/NAME", c->nudge_claim);
	else
		return 0;
	return -1;
}

static int check_enrolment(const struct aggregator_options *o, struct error *error)
{
	const struct engine_config *c = &o->config;

	if (c->join_token_path && !c->enrolment_key_path)
		error_set(error, "--join-token-file: agents need --enrolment-key to enrol");
	else if (c->enrol_service_account && !c->enrolment_key_path)
		error_set(error, "--enrol-service-account: agents need --enrolment-key to enrol");
	else if (c->enrol_service_account && (c->snapshots.count || c->standalone))
		error_set(error, "--enrol-service-account asks the Kubernetes API: give neither "
				 "--snapshot nor --standalone with it");
	else if (c->enrol_service_account && !requeuer_claim_namespace(c->enrol_service_account))
		error_set(error, "--enrol-service-account: \"%.300s\" is no NAMESPACE/NAME",
			  c->enrol_service_account);
	else if (c->enrolment_key_path && !*c->enrolment_key_path)
		error_set(error, "--enrolment-key: \"\" is no path");
	else if (c->enrolment_key_path && !c->join_token_path && !c->enrol_service_account &&
		 o->allow_shared_key != 1)
		error_set(error,
			  "--enrolment-key: no agent could report: give --join-token-file or "
			  "--enrol-service-account, or --allow-shared-key true during a change");
	else if (o->allow_shared_key == 2 && !c->enrolment_key_path)
		error_set(
			error,
			"--allow-shared-key false: without --enrolment-key no agent could report");
	else if (o->allow_shared_key == 1 && !c->key_path)
		error_set(error, "--allow-shared-key true: no --key-file has a shared key");
	else
		return 0;
	return -1;
}

/*
 * An agent is a descriptor here, and the usual soft limit of 1024 is there for programs that call
 * select().
 */
static void raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		log_warn("the limit of open files cannot be raised: %s", strerror(errno));
	else if (limit.rlim_max < OPEN_FILES_FEW)
		log_warn("at most %llu open files, of which every agent needs one: raise the hard "
			 "limit (LimitNOFILE= of the service, ulimit -Hn) for more nodes",
			 (unsigned long long)limit.rlim_max);
}

/* Keys and tokens are in memory: no core file, no reading by other processes of the same user. */
static void hide_memory(void)
{
	const struct rlimit none = {0, 0};

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || setrlimit(RLIMIT_CORE, &none))
		log_warn("others may read this process's memory: %s", strerror(errno));
}

/* While there is one thread; the engine installs it when all is open. */
static int prepare_filter(int *fd, struct error *error)
{
	int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	*fd = -1;
	if (rc)
		return error_system(error, rc, "no_new_privs");
	rc = syscalls_prepare(SYSCALLS_AGGREGATOR, fd, error);
	if (rc != -ENOSYS)
		return rc;
	log_warn("system calls stay unrestricted: %s", error->text);
	return 0;
}

static int run(const void *values, struct error *error)
{
	const struct aggregator_options *o = values;
	struct engine_config config = o->config;
	struct engine *engine;
	int rc;

	config.access = &o->access;
	config.shared_keys =
		o->allow_shared_key == 0 ? !config.enrolment_key_path : o->allow_shared_key == 1;
	config.watcher_upstream = o->watcher_variant == 1;
	config.watcher_allocatable = o->watcher_denominator == 1;
	if (read_events(o, &config, error) || read_record(o, &config, error) ||
	    parse_smoothing(o->watcher_stddev, &config.watcher_smoothed, error) ||
	    read_extender(o, &config.extender, error) || check_api_options(o, error) ||
	    check_enrolment(o, error) || access_options_check(&o->access, error) ||
	    slack_options_read(&o->slack, &config.slack, error) || read_quota(o, &config, error))
		return 2;
	if (drain_setup_init(&config.drain, &o->drain, error)) {
		quota_options_fini(&config.quota);
		return 2;
	}
	hide_memory();
	raise_open_files();
	rc = prepare_filter(&config.filter, error);
	if (!rc)
		rc = engine_open(&engine, &config, error);
	if (!rc) {
		rc = engine_run(engine, error);
		engine_close(engine);
	}
	drain_setup_fini(&config.drain);
	quota_options_fini(&config.quota);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct aggregator_options options = {0};

	return program_main(&program, &options, &options.common, run, argc, argv);
}
