/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a page in JSON, each for both directions: for the files that write and read them. */
#ifndef EVENKEEL_AGGREGATOR_STATE_PAGE_JSON_PARTS_H
#define EVENKEEL_AGGREGATOR_STATE_PAGE_JSON_PARTS_H

#include "aggregator/state/page.h"
#include "aggregator/state/page_json_io.h"

extern const char *const page_json_pressures[PRESSURES];

/* A pod between JSON and its page. */
struct page_json_pod {
	const char *node;
	int64_t end_ns; /* of the node's page; 0: never heard */
	struct page_pod pod; /* without limits, containers, peaks and usage, which are: */
	struct kernel_limits limits;
	struct pod_peaks peaks;
	bool has_peaks;
	struct page_usage usage;
};

void page_json_do_node(struct page_json_io *io, struct node_page *p);
void page_json_do_pod(struct page_json_io *io, struct page_json_pod *p); /* but its containers */
void page_json_do_container(struct page_json_io *io, size_t index, struct page_container *c,
			    struct kernel_limits *limits);
/* "usage":{..} */
void page_json_do_usage(struct page_json_io *io, struct page_usage *u);
/* "recent":{..} */
void page_json_do_recent(struct page_json_io *io, struct window_recent *r);
/* The members of one. */
void page_json_do_latest(struct page_json_io *io, struct page_latest *l);

#endif
