/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small cluster in which each node is told something else about drains, as a dump and with
 * measurements:
 *
 *	alpha    requests 55 % of its CPU          NotUnderutilized
 *	bravo    shop/web-1, which fits on alpha   goes
 *	charlie  tool/scratch has an emptyDir      BlockedByPod, LocalStorageRequested
 *	delta    a pod of a DaemonSet              goes, empty
 *	echo     has the taint of a deletion       CurrentlyBeingDeleted
 *	foxtrot  shop/web-2                        NotEnoughPdb: its budget lets one go, and web-1 does
 *	golf     tool/index, which wants its disk  NoPlaceToMovePods
 *	hotel    is annotated                      ScaleDownDisabledAnnotation
 */
#pragma once

#include <stdint.h>

/* What kubectl prints, as YAML. */
extern const char drain_scene_dump[];
/* What a load watcher answers: all nodes use a tenth of their CPU and of their memory. */
extern const char drain_scene_usage[];
/* Unix time of the newest thing in it. */
extern const int64_t drain_scene_now_ns;
