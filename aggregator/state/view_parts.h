/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of view_node_renew(), one file each. Pure. */
#pragma once

#include <stdbool.h>

#include "aggregator/state/view.h"

/*
 * Fills pods and pod_count out of stats and model, as view.h orders them. before may be NULL in
 * each.
 */
void view_pods_join(struct view_node *n, const struct view_node *before);
/* Whether both list the same pods, of which all is the same but what they use. */
bool view_pods_same(const struct view_node *n, const struct view_node *before);
/* Fills sums out of pods and allocatable. There is a model. */
void view_sums_add(struct view_node *n, const struct view_node *before);
/* Fills recents out of stats and pods. There is a model. */
void view_recents_find(struct view_node *n);
