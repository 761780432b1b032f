/* SPDX-License-Identifier: Apache-2.0 */
/* Any file given as measurements is refused with a reason, or makes pages that answers can be made from. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/policy/score.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char nodes[] =
	"{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":\"Node\",\"apiVersion\":"
	"\"v1\","
	"\"metadata\":{\"name\":\"node-1\"},\"status\":{\"capacity\":{\"cpu\":\"4\",\"memory\":"
	"\"8Gi\"}}},"
	"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\"}}]}";

static void look_at(const struct view *v, int64_t now_ns)
{
	struct score_node node;

	for (size_t i = 0; i < v->node_count; i++) {
		const struct node_page *p = v->nodes[i]->page;
		struct page_usage usage;

		assert(page_age_ns(p, now_ns) >= 0);
		score_node_from_page(p, now_ns, SCORE_CORRECTED, &node);
		for (size_t k = 0; k < p->pod_count; k++)
			page_pod_usage(p, &p->pods[k], &usage);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot *s = snapshot_new();
	struct reason reason = {""};
	struct view *v = NULL;
	int64_t now_ns;

	if (snapshot_add(s, "nodes", nodes, sizeof(nodes) - 1, &reason) ||
	    snapshot_add_usage(s, "fuzz", (const char *)data, size, &reason) ||
	    snapshot_view(s, &v, &now_ns, &reason))
		assert(reason.text[0]);
	else
		look_at(v, now_ns);
	view_drop(v);
	snapshot_free(s);
	return 0;
}
