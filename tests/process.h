/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs under test: started with their output in files, awaited by conditions, never left
 * behind.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "shared/buf.h"

/*
 * A fresh folder below TMPDIR for one test's files; the caller removes it with folder_remove() and
 * frees it.
 */
char *folder_make(void);
void folder_remove(char *folder);

/*
 * build/bin or what BIN says; "evenkeel-agent" -> "build/bin/evenkeel-agent". Static storage, one
 * at a time.
 */
const char *program_path(const char *name);

/* Starts argv[0] with stdout and stderr appended to log; the child dies with the test. */
pid_t process_start(const char *log, char *const argv[]);
/* Signal it and reap it; the exit status, or 128 + the signal that ended it. */
int process_stop(pid_t pid, int signal_number);
/* Runs to its end; stdout (and stderr if err) into buffers. Exit status as above. */
int process_run(char *const argv[], struct buf *out, struct buf *err);

/* Until the end, what this process writes to stderr goes to a file. */
struct stderr_log {
	FILE *file;
	int stderr_was;
};

void stderr_log_begin(struct stderr_log *l);
/* The text written since the begin; the caller frees it. */
char *stderr_log_end(struct stderr_log *l);

/* Seconds of the present threads of a process. */
struct process_cpu {
	double ran_s, waited_s; /* waited: ready to run, for a CPU */
};

/* Zeroes when there is no such process. */
struct process_cpu process_cpu(pid_t pid);

/* A TCP port of the loopback that is free now. */
int free_port(void);

/* GET; the status code, or 0 when nothing answers. Certificates are not verified. */
long http_get(const char *url, struct buf *body);
/* What a POST of JSON has for its headers; never freed. */
struct curl_slist *http_json_headers(void);
/* POST of JSON; as above. */
long http_post(const char *url, const char *json, struct buf *body);
/* GET that must answer 200 with JSON; the caller deletes it. NULL otherwise. */
cJSON *http_get_json(const char *url);

/* The seconds, times TEST_TIME_SCALE of the environment: a machine may be slow throughout. */
double scaled_s(double seconds);
/* Polls `done` every 50 ms until it is true or the time is over; returns its last value. */
bool await(bool (*done)(void *ctx), void *ctx, double seconds);
