/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands between a kube-scheduler and its extender on the loopback: passes on, remembers, and
 * meddles when told to.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

struct extender_tap;

/* What is asked of it, it asks of that port. */
struct extender_tap *extender_tap_start(int target_port);
void extender_tap_stop(struct extender_tap *t); /* NULL is allowed */
int extender_tap_port(const struct extender_tap *t);
/*
 * From now on it asks both ports in turn, about one pod each, and where one does not answer, the other:
 * a Service with two addresses. Before anything is asked.
 */
void extender_tap_alternate(struct extender_tap *t, int other_port);

/*
 * From now on pods are asked about without their uids, so nothing is reserved for them, and all get
 * the scores of the first one, as if the aggregator had the same view all the time.
 */
void extender_tap_freeze(struct extender_tap *t, bool freeze);
/*
 * The HostPriorityList that the pod of that name was answered with last; NULL: none. The caller
 * deletes it.
 */
cJSON *extender_tap_priorities(struct extender_tap *t, const char *pod);

/*
 * As soon as the extender has answered the next prioritize, the process that asked is stopped and
 * the answer kept from it, until it is released, and goes on with it.
 */
void extender_tap_hold(struct extender_tap *t, pid_t asker);
bool extender_tap_holds(struct extender_tap *t);
void extender_tap_release(struct extender_tap *t);
