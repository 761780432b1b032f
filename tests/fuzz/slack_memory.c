/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever stands where slack's memory should: it is refused with a reason and changes nothing, or
 * a step goes on from it and what that remembers is read again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/slack_memory.h"
#include "aggregator/api/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char cluster[] =
	"{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":["
	"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n1\"},\"status\":{"
	"\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"110\"},\"conditions\":[{"
	"\"type\":\"Ready\",\"status\":\"True\"}]}},"
	"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n2\"},\"status\":{"
	"\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"110\"},\"conditions\":[{"
	"\"type\":\"Ready\",\"status\":\"True\"}]}},"
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"}"
	",\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\",\"resources\":{"
	"\"requests\":{\"cpu\":\"2\"}}}]}}]}";

static struct view *view;
static struct place *place;
static int64_t now_ns;

static void make_cluster(void)
{
	struct snapshot *s = snapshot_new();
	struct place_options o;

	if (snapshot_add(s, "cluster", cluster, strlen(cluster), NULL) ||
	    snapshot_view(s, &view, &now_ns, NULL))
		abort();
	snapshot_free(s);
	now_ns = 1800000000000000000;
	place_options_default(&o);
	place = place_new(view, &o);
}

static void step(struct slack_state *s)
{
	struct slack_options o;
	struct slack_result r;

	slack_options_default(&o);
	o.from_arrivals = true;
	/* A memory of many takes as long as they do; a few find the same. */
	o.placeholders_max = 500;
	place_update(place, view, now_ns);
	if (slack_step(s, place, view, now_ns, &o, &r, NULL))
		abort();
	slack_result_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slack_state *s = slack_state_new(), *next = slack_state_new();
	struct buf first = BUF_INIT, second = BUF_INIT;
	struct error error = {""};

	if (!view)
		make_cluster();
	if (slack_memory_read(s, (const char *)data, size, &error)) {
		assert(error.text[0]);
		slack_memory_write(s, &first);
		assert(strcmp(first.data, "{\"classes\":[]}") == 0);
	} else {
		step(s);
		slack_memory_write(s, &first);
		if (slack_memory_read(next, first.data, first.len, &error))
			abort();
		slack_memory_write(next, &second);
		assert(strcmp(first.data, second.data) == 0);
	}
	buf_fini(&first);
	buf_fini(&second);
	slack_state_free(s);
	slack_state_free(next);
	return 0;
}
