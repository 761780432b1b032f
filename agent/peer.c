/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/log.h"

/* Two reply timeouts: an aggregator that is there has answered by then. */
#define ANSWER_NS (10 * NS_PER_SEC)

int peer_open(struct peer *p, const struct endpoint *endpoint, const struct address *address,
	      const struct sender_config *config, int64_t silence_ns, int64_t mono_ns,
	      struct reason *reason)
{
	bool v6 = address && strchr(address->text, ':');
	struct sender *sender;
	char url[ENDPOINT_URL_MAX + 1];
	int rc;

	if (address)
		snprintf(url, sizeof(url), "tcp://%s%s%s:%u", v6 ? "[" : "", address->text,
			 v6 ? "]" : "", endpoint->port);
	rc = sender_open(&sender, address ? url : endpoint->url, config, reason);
	if (rc)
		return rc;
	*p = (struct peer){
		.sender = sender,
		.endpoint = endpoint,
		.opened_ns = mono_ns,
		.silence_ns = silence_ns,
		.answering = true,
	};
	if (address)
		p->address = *address;
	return 0;
}

void peer_close(struct peer *p)
{
	sender_close(p->sender);
	p->sender = NULL;
}

/* "tcp://aggregator:2021 (10.0.0.7)" */
struct peer_name {
	char text[ENDPOINT_URL_MAX + sizeof(struct address) + 4];
};

static struct peer_name name_of(const struct peer *p)
{
	struct peer_name name;
	bool named = p->address.text[0];

	snprintf(name.text, sizeof(name.text), "%s%s%s%s", p->endpoint->url, named ? " (" : "",
		 p->address.text, named ? ")" : "");
	return name;
}

static void tell_refusal(struct peer *p)
{
	if (!(p->stats.refused + p->stats.held) || !strcmp(p->stats.last_reason, p->refusal_told))
		return;
	log_warn("%s did not take an interval: %s", name_of(p).text, p->stats.last_reason);
	memcpy(p->refusal_told, p->stats.last_reason, sizeof(p->refusal_told));
}

static void tell_silence(struct peer *p, bool silent)
{
	if (silent && !p->silent)
		log_warn("%s acknowledges nothing; is it running, with the same "
			 "key? The last 15 minutes are kept for it",
			 name_of(p).text);
	if (!silent && p->silent)
		log_info("%s acknowledges again; since the start %" PRIu64
			 " intervals were lost to it",
			 name_of(p).text, p->stats.skipped);
	p->silent = silent;
}

int64_t peer_step(struct peer *p, const struct ring *ring, int64_t mono_ns)
{
	int64_t wanted = sender_step(p->sender, ring, mono_ns), heard;
	bool idle;

	sender_get_stats(p->sender, &p->stats);
	heard = p->stats.last_ack_ns ? p->stats.last_ack_ns : p->opened_ns;
	idle = sender_idle(p->sender, ring);
	p->answering = idle || mono_ns - heard < ANSWER_NS;
	tell_refusal(p);
	/* One that is asked nothing need not say anything. */
	tell_silence(p, mono_ns - heard > p->silence_ns && (p->silent || !idle));
	return wanted;
}
