/* SPDX-License-Identifier: Apache-2.0 */
/* Real aggregators and a real agent on this machine, for tests of the whole chain. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "shared/keyring.h"

enum { STACK_AGGREGATORS_MAX = 2 };

struct stack_aggregator {
	int http_port, ingest_port; /* 0: free ones are found */
	const char *ingest_host; /* borrowed; NULL: 127.0.0.1 */
	const char *key_path; /* borrowed; NULL: the stack's */
	const char *snapshot_path; /* borrowed; NULL: it knows no cluster */
	const char *const *more; /* borrowed: other words, ended by NULL; NULL: none */
	bool tls; /* by more */
	pid_t pid; /* 0: not running */
};

struct stack {
	char *folder; /* key, logs */
	char *key_path;
	struct stack_aggregator aggregators[STACK_AGGREGATORS_MAX];
	bool agent_enrols; /* it gets no key file */
	pid_t agent;
};

/* A folder with a fresh key; nothing runs yet. */
struct stack *stack_new(void);
/* Ends what runs, prints the logs when the test failed (`failed`), removes the folder. */
void stack_free(struct stack *s, int failed);
/* To stderr, what the programs logged. */
void stack_print_logs(const struct stack *s);
/* Starts aggregator i, on the ports it had before if it ran, and awaits its /readyz. */
void stack_start_aggregator(struct stack *s, int i);
/* The same without waiting. */
void stack_launch_aggregator(struct stack *s, int i);
void stack_kill_aggregator(struct stack *s, int i); /* SIGKILL */
/*
 * Starts the agent as node "test-node", reporting to the first `aggregators` of them; `more` ends
 * with NULL.
 */
void stack_start_agent(struct stack *s, int aggregators, const char *const *more);
/* GET http://aggregator i/path as JSON; NULL when it does not answer 200. */
cJSON *stack_get(const struct stack *s, int i, const char *path);
/* A sample of /metrics by its full name with labels; -1 when it is not there. */
double stack_metric(const struct stack *s, int i, const char *sample);
/* Ends it with the signal; its exit status. */
int stack_stop_agent(struct stack *s, int signal_number);

/* json.a.b.c for "a.b.c"; NULL when a part is missing. */
const cJSON *json_at(const cJSON *json, const char *path);
/* The item of a list object whose name is `name`, or NULL. */
const cJSON *json_item(const cJSON *list, const char *name);
