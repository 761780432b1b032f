/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much is kept of an object at most. Whoever may create objects writes most of it, and the API
 * server bounds little; an object beyond a bound cannot be read.
 */
#pragma once

#include <stddef.h>

/* The text of a pod's template, and that of any other object, in bytes. */
enum { OBJECT_BOUND_POD_TEXT = 64 << 10, OBJECT_BOUND_TEXT = 256 << 10 };

/* Of the name of a member. */
enum { OBJECT_BOUND_KEY = 253 + 1 + 63 };

/*
 * The bound that is exceeded by a string of so many bytes, or by so many elements or members of a
 * list or object; 0: none is. It is what is said of `parent`, which it is in, or else of its own
 * key; each may be NULL.
 */
size_t object_bound_of_string(const char *parent, const char *key, size_t len);
size_t object_bound_of_list(const char *key, size_t count);
