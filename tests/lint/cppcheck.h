/* SPDX-License-Identifier: Apache-2.0 */
/* Loop macros of libraries, for cppcheck, which does not read their headers. */
#pragma once

#define HASH_ITER(hh, head, el, tmp)                                                               \
	for ((el) = (head), (tmp) = (el) ? (void *)(el)->hh.next : 0; (el);                        \
	     (el) = (tmp), (tmp) = (tmp) ? (void *)(tmp)->hh.next : 0)
#define cJSON_ArrayForEach(element, array)                                                         \
	for ((element) = (array) ? (array)->child : 0; (element); (element) = (element)->next)
