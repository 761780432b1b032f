/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real-use cap over again, in plain doubles and from its definition: what the placement core is
 * held against. It shares no code with it.
 *
 *   CPU       mean of all, and z times the root of all variances, within 85 % of the allocatable
 *   memory    largest working sets of all within 90 %
 *   by hour   what each pod used at its peak in each hour of the day (its mean and largest, where
 *             it has none) likewise, both
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/error.h"

enum { USE_HOURS = 24 };

struct use_pod {
	bool measured;
	double cpu_milli, sigma_milli, mem_bytes;
	double peak_cpu_milli[USE_HOURS], peak_mem_bytes[USE_HOURS]; /* NaN: none */
};

/* A node by itself: the kubelet, the kernel, pods that nobody knows. */
struct use_node {
	double cpu_milli, sigma_milli, mem_bytes;
	double cpu_allocatable_milli, mem_allocatable_bytes;
};

struct use_sum {
	double cpu_milli, variance, mem_bytes;
	double hour_cpu_milli[USE_HOURS], hour_mem_bytes[USE_HOURS];
};

/* A pod that is not measured: so much, all the time. */
struct use_pod use_pod_steady(double cpu_milli, double mem_bytes);
/* No less than that. */
void use_pod_at_least(struct use_pod *p, double cpu_milli, double mem_bytes);
/* What the node, measured as a whole, uses beyond the pods that were measured on it. */
void use_sum_init(struct use_sum *s, const struct use_node *n, const struct use_pod *const *pods,
		  size_t count);
void use_sum_add(struct use_sum *s, const struct use_pod *p);
/* The most that it comes to: of the whole time, and of any hour. */
double use_sum_cpu(const struct use_sum *s);
double use_sum_mem(const struct use_sum *s);
/* False: the reason says what is exceeded, and when. */
bool use_sum_fits(const struct use_sum *s, const struct use_node *n, struct error *error);
