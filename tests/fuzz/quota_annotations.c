/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever stands in a quota's annotations, each is read within its bounds or noted as bad and
 * absent. Lines are their values, in the order of the enum.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_annotations.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DAYS_30_NS (30 * 86400 * 1000000000LL)

static void check(const struct quota_annotations *a, const struct quota_annotation_notes *notes,
		  unsigned int bad)
{
	unsigned int noted = 0;

	for (int i = 0; i < QUOTA_ANNOTATIONS; i++)
		noted += notes->of[i].text[0] != '\0';
	assert(noted == bad);
	assert(a->weight >= 0.001 && a->weight <= 1e6);
	assert(a->min_runtime_ns >= 0 && a->min_runtime_ns <= DAYS_30_NS);
	assert(a->evictions_ns == 0
		       ? a->evictions_max == 0
		       : a->evictions_ns >= 1000000000 && a->evictions_ns <= DAYS_30_NS);
	assert(!notes->of[QUOTA_WEIGHT].text[0] || a->weight == 1);
	assert(!notes->of[QUOTA_MIN_RUNTIME].text[0] || a->min_runtime_ns == 0);
	assert(!notes->of[QUOTA_MAX_EVICTIONS].text[0] || a->evictions_ns == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Sorted by key, as labels are. */
	static const enum quota_annotation order[] = {QUOTA_MAX_EVICTIONS, QUOTA_MIN_RUNTIME,
						      QUOTA_WEIGHT};
	char *text = mem_strndup((const char *)data, size), *rest = text;
	struct label labels[QUOTA_ANNOTATIONS];
	struct labels all = {0, labels};
	struct quota_annotations a;
	struct quota_annotation_notes notes;
	unsigned int bad;

	while (all.count < QUOTA_ANNOTATIONS && rest) {
		labels[all.count].key = quota_annotation_key(order[all.count]);
		labels[all.count++].value = strsep(&rest, "\n");
	}
	bad = quota_annotations_read(&all, &a, &notes);
	check(&a, &notes, bad);
	free(text);
	return 0;
}
