/* SPDX-License-Identifier: Apache-2.0 */
/* How complete the view's knowledge of the Kubernetes API is. */
#ifndef EVENKEEL_AGGREGATOR_API_SOURCES_H
#define EVENKEEL_AGGREGATOR_API_SOURCES_H

#include <stdbool.h>

#include "aggregator/state/view.h"

/* True when what is not in the model is not in the API either, or was not when last heard. */
bool sources_are_complete(const struct view *v, enum object_kind kind);
/* How many objects of the kind are known. */
uint64_t sources_count(const struct cluster *c, enum object_kind kind);

#endif
