/* SPDX-License-Identifier: Apache-2.0 */
/* The member "nodes" of a request: names of the nodes that an answer is to list. */
#ifndef EVENKEEL_AGGREGATOR_API_ASKED_NODES_H
#define EVENKEEL_AGGREGATOR_API_ASKED_NODES_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "aggregator/state/view.h"
#include "shared/reason.h"

enum { ASKED_NODES_FIELD_MAX = 32 };

/* Whether it is a list of names; else -EINVAL, and field ("nodes[3]") is what is wrong. */
int asked_nodes_check(const cJSON *list, char field[ASKED_NODES_FIELD_MAX], struct reason *reason);
/*
 * Which of the view's nodes are asked for, by their places, in *chosen, the caller's to free; NULL
 * for all, where the list is NULL. It has passed asked_nodes_check(). -EINVAL: the view does not
 * have one.
 */
int asked_nodes_choose(const cJSON *list, const struct view *v, bool **chosen,
		       char field[ASKED_NODES_FIELD_MAX], struct reason *reason);

#endif
