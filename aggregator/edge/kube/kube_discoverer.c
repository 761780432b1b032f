/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run takes a request for the groups and one for each version that may have a kind it looks for,
 * one after the other on one connection. There is one at the start, and then one every few seconds
 * as long as a kind is not there, which is the request for the groups where its group is not there;
 * a kind that stays lost (404 of a list) asks for no more of them. What failed is asked for again as lists are: backed
 * off, once a minute if forbidden, and once at once after a 401.
 */
#include "aggregator/edge/kube/kube_discoverer.h"

#include "shared/clock.h"

enum { ANSWER_MAX = 4 << 20, SILENCE_S = 30 };

static void ask(struct discoverer *d, int64_t now_ns);

static void on_open(void *ctx)
{
	struct discoverer *d = ctx;

	d->renewed = false;
	buf_clear(&d->body);
}

static bool on_data(void *ctx, const char *data, size_t len)
{
	struct discoverer *d = ctx;

	if (d->body.len + len > ANSWER_MAX)
		return false;
	buf_add(&d->body, data, len);
	return true;
}

/* --- the end of a run ------------------------------------------------------------------------- */

static int64_t wait_ns(struct discoverer *d, const struct kube_status *fault, int64_t now_ns)
{
	int64_t wait;

	if (!fault)
		return d->timing->absent_ns;
	if (fault->code == 403)
		return d->timing->forbidden_ns;
	if (fault->code == 401) {
		kube_session_unauthorized(d->transfer.session);
		if (!d->renewed) {
			d->renewed = true;
			return 0;
		}
	}
	wait = backoff_next(&d->backoff, &d->timing->backoff, d->random(d->random_ctx), now_ns);
	return fault->retry_after_ns > wait ? fault->retry_after_ns : wait;
}

static void tell(struct discoverer *d, struct feed *f, const struct kube_status **fault,
		 struct kube_status *why)
{
	const char *version = NULL;

	switch (discovery_find(&d->discovery, f->reflector.kind, &version, why)) {
	case DISCOVERY_SERVED:
		feed_discovered(f, REFLECTOR_SERVED, version, NULL);
		break;
	case DISCOVERY_UNSERVED:
		feed_discovered(f, REFLECTOR_UNSERVED, NULL, NULL);
		break;
	case DISCOVERY_FAULT:
		feed_discovered(f, REFLECTOR_UNDISCOVERED, NULL, why);
		*fault = why;
		break;
	}
}

static void finish(struct discoverer *d, int64_t now_ns)
{
	struct kube_status why;
	const struct kube_status *fault = NULL;

	d->running = false;
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		if (feed_is_unknown(&d->feeds[kind]))
			tell(d, &d->feeds[kind], &fault, &why);
	d->next_ns = now_ns + wait_ns(d, fault, now_ns);
}

static void on_end(void *ctx, const struct kube_status *fault)
{
	struct discoverer *d = ctx;

	discovery_answer(&d->discovery, d->body.data, d->body.len, fault);
	buf_clear(&d->body);
	ask(d, clock_mono_ns());
}

/* --- life ------------------------------------------------------------------------------------- */

static const struct transfer_hooks hooks = {on_open, on_data, on_end};

static void ask(struct discoverer *d, int64_t now_ns)
{
	char path[DISCOVERY_PATH_MAX];
	struct transfer_request rq = {.path = path, .gzip = true, .silence_s = SILENCE_S};

	if (discovery_next(&d->discovery, path))
		transfer_start(&d->transfer, &rq, now_ns);
	else
		finish(d, now_ns);
}

void discoverer_init(struct discoverer *d, struct feed *feeds, const struct kube_timing *timing,
		     double (*random)(void *ctx), void *random_ctx, struct kube_session *session,
		     CURLM *multi)
{
	*d = (struct discoverer){
		.feeds = feeds, .timing = timing, .random = random, .random_ctx = random_ctx};
	transfer_init(&d->transfer, session, multi, &hooks, d);
}

void discoverer_fini(struct discoverer *d)
{
	transfer_fini(&d->transfer);
	buf_fini(&d->body);
}

/* Kinds, as bits. */
static uint32_t needed(const struct discoverer *d)
{
	uint32_t kinds = 0;

	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		if (feed_is_unknown(&d->feeds[kind]))
			kinds |= 1U << kind;
	return kinds;
}

int64_t discoverer_wake(struct discoverer *d, int64_t now_ns)
{
	uint32_t wanted = needed(d);

	if (d->running || !wanted)
		return INT64_MAX;
	if (now_ns < d->next_ns)
		return d->next_ns;
	d->running = true;
	discovery_begin(&d->discovery, wanted);
	ask(d, now_ns);
	return d->running ? INT64_MAX : d->next_ns;
}
