/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What records of objects leave out and yet decides where a pod of a request could be: refused by
 * its name.
 */
#ifndef EVENKEEL_AGGREGATOR_API_FIT_POD_CHECK_H
#define EVENKEEL_AGGREGATOR_API_FIT_POD_CHECK_H

#include "aggregator/api/fit_ask.h"

/*
 * 0, or -EINVAL: field ("pod.spec.volumes[0]") is what is wrong, or cannot be judged. pod is an
 * object.
 */
int fit_pod_check(const cJSON *pod, char field[FIT_FIELD_MAX], struct reason *reason);

#endif
