/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Editors of a quota write these, so each annotation is parsed strictly and by itself: an error
 * quotes the value and says what is allowed, the others count. No locale counts.
 */
#include "aggregator/policy/quota/quota_annotations.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/duration.h"
#include "shared/quantity.h"

#define SECOND_NS     1000000000LL
#define DAYS_30_NS    (30 * 86400 * SECOND_NS)
#define WEIGHT_MAX    1000000
#define EVICTIONS_MAX 1000000

/* Most characters quoted of a bad value. */
enum { QUOTED = 40 };

typedef bool read_annotation(const char *text, struct quota_annotations *out, struct error *error);

/* A weight has digits and a point only, no suffix or exponent, so thousandths hold it exactly. */
static bool read_weight(const char *text, struct quota_annotations *out, struct error *error)
{
	int64_t milli;

	if (text[strspn(text, "0123456789.")] || quantity_parse_milli(text, &milli, NULL) ||
	    milli < 1 || milli > WEIGHT_MAX * 1000LL)
		return error_fail(
			error, false,
			"\"%.*s\" is not a number from 0.001 to %d, like \"2\" or \"0.5\"", QUOTED,
			text, WEIGHT_MAX);
	out->weight = (double)milli / 1000;
	return true;
}

static bool read_min_runtime(const char *text, struct quota_annotations *out, struct error *error)
{
	int64_t ns;

	if (duration_parse(text, &ns, NULL) || ns < 0 || ns > DAYS_30_NS)
		return error_fail(error, false,
				  "\"%.*s\" is not a duration up to 720h, like \"30m\"", QUOTED,
				  text);
	out->min_runtime_ns = ns;
	return true;
}

static bool read_max_evictions(const char *text, struct quota_annotations *out, struct error *error)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long count = digits <= 7 ? strtoul(text, NULL, 10) : ULONG_MAX;
	int64_t ns;

	if (!digits || text[digits] != '/' || count > EVICTIONS_MAX ||
	    duration_parse(text + digits + 1, &ns, NULL) || ns < SECOND_NS || ns > DAYS_30_NS)
		return error_fail(
			error, false,
			"\"%.*s\" is not how many in which time, like \"5/1h\": at most %d, in "
			"1s to 720h",
			QUOTED, text, EVICTIONS_MAX);
	out->evictions_max = (uint32_t)count;
	out->evictions_ns = ns;
	return true;
}

static const struct {
	const char *key;
	read_annotation *read;
} annotations_known[QUOTA_ANNOTATIONS] = {
	[QUOTA_WEIGHT] = {"evenkeel.io/weight", read_weight},
	[QUOTA_MIN_RUNTIME] = {"evenkeel.io/min-runtime", read_min_runtime},
	[QUOTA_MAX_EVICTIONS] = {"evenkeel.io/max-evictions", read_max_evictions},
};

const char *quota_annotation_key(enum quota_annotation a)
{
	return annotations_known[a].key;
}

unsigned int quota_annotations_read(const struct labels *annotations, struct quota_annotations *out,
				    struct quota_annotation_notes *notes)
{
	unsigned int bad = 0;

	*out = (struct quota_annotations){.weight = 1};
	for (unsigned int i = 0; i < QUOTA_ANNOTATIONS; i++) {
		const char *text = labels_find(annotations, annotations_known[i].key);
		struct error *error = notes ? &notes->of[i] : NULL;

		if (error)
			error->text[0] = '\0';
		bad += text && !annotations_known[i].read(text, out, error);
	}
	return bad;
}
