/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs a request to be let in: the check alone, as schedulers' requests meet it. */
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/edge/http/auth.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"

enum { ROUNDS = 20000, TRIES = 9, TOKENS = 16 };

/* Of this thread alone: other programs may be busy, too. */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* Microseconds for one check, the middle of several tries. */
static double time_checks(struct auth *g, const struct auth_request *rq)
{
	double us[TRIES];

	for (int t = 0; t < TRIES; t++) {
		int64_t start = cpu_ns();

		for (int i = 0; i < ROUNDS; i++) {
			struct auth_refusal refusal;

			if (auth_check(g, rq, &refusal) != AUTH_PASS) {
				fprintf(stderr, "not let in: %s\n", refusal.text);
				exit(1);
			}
		}
		us[t] = (double)(cpu_ns() - start) / ROUNDS / 1000;
	}
	return bench_median(us, TRIES);
}

static void allow(void *ctx, const struct access_question *q, struct access_answer *a)
{
	(void)ctx, (void)q;
	*a = (struct access_answer){.verdict = ACCESS_ALLOWED};
}

static double time_auth(const struct auth_options *options, struct auth_request *rq)
{
	struct access_counters counters = {0};
	struct error error = {""};
	struct auth_refusal refusal;
	struct auth *g;
	double us;

	if (auth_open(&g, options, &counters, &error)) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	if (auth_check(g, rq, &refusal) == AUTH_REVIEW)
		auth_review(g, rq, &refusal);
	rq->now_ns = clock_mono_ns();
	us = time_checks(g, rq);
	auth_close(g);
	return us;
}

int main(void)
{
	const struct sockaddr_in from = {.sin_family = AF_INET};
	const struct review_client client = {NULL, allow, 1};
	struct auth_options by_file = {0}, by_review = {.review_client = &client},
			    by_certificate = {.certificates = true, .requests_per_second = 1e6};
	struct auth_request rq = {.method = "POST",
				  .path = "/extender/filter",
				  .content_type = "application/json",
				  .from = (const struct sockaddr *)&from};
	char path[] = "/tmp/evenkeel-bench-XXXXXX", jwt[1100] = "Bearer ";
	int fd = mkstemp(path);

	if (sodium_init() < 0 || fd < 0)
		return 1;
	for (int i = 0; i < TOKENS; i++)
		dprintf(fd, "token-number-%032d\n", i);
	memset(jwt + 7, 'x', sizeof(jwt) - 8);
	bench_begin("access");
	by_file.token_file = path;
	rq.authorization = "Bearer token-number-00000000000000000000000000000003";
	bench_row("a token of a file of 16", "us", 5, 0, time_auth(&by_file, &rq));
	rq.authorization = jwt;
	bench_row("a token of 1 KiB that was reviewed", "us", 10, 0, time_auth(&by_review, &rq));
	rq.certificate = AUTH_CERTIFICATE_GOOD;
	bench_row("a client certificate, with a rate limit", "us", 5, 0,
		  time_auth(&by_certificate, &rq));
	bench_end();
	close(fd);
	unlink(path);
	return 0;
}
