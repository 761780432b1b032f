/* SPDX-License-Identifier: Apache-2.0 */
/* Hard limits of a node with one more pod, by sums of limits and by real use. Pure. */
#pragma once

#include <stdbool.h>

#include "aggregator/policy/score/score.h"

/* By SCORE_CPU and SCORE_MEMORY; 0: no such limit. */
struct node_limits {
	/* Sum of the pods' limits by allocatable; unlimited containers count as for LimitAware. */
	double ratio[SCORE_RESOURCES];
	/* Highest recent use, and expected use of recent pods and this one, by allocatable. */
	double use_cap[SCORE_RESOURCES];
	double z; /* exceeded once in a hundred if use is normally distributed */
	bool refuse_unmeasured; /* nodes that are not measured while others are */
};

enum node_refusal {
	NODE_PASSES,
	NODE_OVER_USE_CAP_CPU,
	NODE_OVER_USE_CAP_MEMORY,
	NODE_OVER_LIMIT_RATIO_CPU,
	NODE_OVER_LIMIT_RATIO_MEMORY,
	NODE_UNMEASURED,
	NODE_REFUSALS
};

enum { NODE_REFUSAL_TEXT = 256 };

bool node_limits_any(const struct node_limits *l);
bool node_limits_cap_use(const struct node_limits *l);
/*
 * The first limit that the node would exceed with the query's pod, in the order of the enum, and a
 * text with the numbers and what helps. The node is prepared as for scores: late data has a wider
 * sigma, and recent pods are counted (score_node_assume()). A limit without its numbers does not
 * apply: see node_limits_use_known().
 */
enum node_refusal node_limits_check(const struct node_limits *l, const struct score_query *q,
				    const struct score_node *node, char text[NODE_REFUSAL_TEXT]);
/* Whether node_limits_check() would refuse the node for its use. */
bool node_limits_over_cap(const struct node_limits *l, const struct score_query *q,
			  const struct score_node *node);
/* Whether real use of all capped resources is measured, so that the caps apply. */
bool node_limits_use_known(const struct node_limits *l, const struct score_node *node);
