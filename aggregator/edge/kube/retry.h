/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request failed (the API's Status object, an HTTP status without one, or no answer), and
 * how long to wait before the next.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kube_status {
	int code; /* HTTP status; 0: no answer */
	/* the requested resource version is too old, or newer than the server */
	bool version_unavailable;
	int64_t retry_after_ns; /* the least wait that the server wants; 0: none */
	char message[192];
};

/* No answer, or an unusable one. */
void kube_status_set(struct kube_status *s, int code, const char *message);
/* A Status object of an event or an answer. Missing or odd members change nothing. */
void kube_status_read(struct kube_status *s, const cJSON *json);
/* An answer other than 200; the body may be anything. */
void kube_status_parse(struct kube_status *s, int code, const char *body, size_t len);
/* Keeps the longer wait; seconds may be nonsense. */
void kube_status_retry_after(struct kube_status *s, double seconds);

struct backoff_limits {
	int64_t first_ns, most_ns;
	int64_t reset_ns; /* after so long without a wait the next is the first again */
};

/* Zeroed at first. */
struct backoff {
	int64_t base_ns; /* of the newest wait, without jitter; 0: none yet */
	int64_t until_ns; /* its end */
};

/*
 * The next wait: base * (1 + random) with random in [0, 1), where base doubles from first_ns to
 * most_ns. The jitter spreads the clients of a server.
 */
int64_t backoff_next(struct backoff *b, const struct backoff_limits *limits, double random,
		     int64_t now_ns);
