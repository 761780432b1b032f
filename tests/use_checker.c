/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/use_checker.h"

#include <math.h>

static const double CPU_SHARE = 0.85, MEM_SHARE = 0.90, Z = 2.33;
/*
 * What is summed in thousandths of a millicore elsewhere is rounded there, by less than this in
 * all.
 */
static const double CPU_SLACK = 0.1, MEM_SLACK = 100;

struct use_pod use_pod_steady(double cpu_milli, double mem_bytes)
{
	struct use_pod p = {.cpu_milli = cpu_milli, .mem_bytes = mem_bytes};

	for (int h = 0; h < USE_HOURS; h++)
		p.peak_cpu_milli[h] = p.peak_mem_bytes[h] = NAN;
	return p;
}

void use_pod_at_least(struct use_pod *p, double cpu_milli, double mem_bytes)
{
	p->cpu_milli = fmax(p->cpu_milli, cpu_milli);
	p->mem_bytes = fmax(p->mem_bytes, mem_bytes);
}

static double at_least_0(double value)
{
	return value > 0 ? value : 0;
}

void use_sum_init(struct use_sum *s, const struct use_node *n, const struct use_pod *const *pods,
		  size_t count)
{
	*s = (struct use_sum){
		n->cpu_milli, n->sigma_milli * n->sigma_milli, n->mem_bytes, {0}, {0}};
	for (size_t i = 0; i < count; i++) {
		if (!pods[i]->measured)
			continue;
		s->cpu_milli -= pods[i]->cpu_milli;
		s->variance -= pods[i]->sigma_milli * pods[i]->sigma_milli;
		s->mem_bytes -= pods[i]->mem_bytes;
	}
	s->cpu_milli = at_least_0(s->cpu_milli);
	s->variance = at_least_0(s->variance);
	s->mem_bytes = at_least_0(s->mem_bytes);
	for (int h = 0; h < USE_HOURS; h++) {
		s->hour_cpu_milli[h] = s->cpu_milli;
		s->hour_mem_bytes[h] = s->mem_bytes;
	}
}

void use_sum_add(struct use_sum *s, const struct use_pod *p)
{
	s->cpu_milli += p->cpu_milli;
	s->variance += p->sigma_milli * p->sigma_milli;
	s->mem_bytes += p->mem_bytes;
	for (int h = 0; h < USE_HOURS; h++) {
		double cpu = p->peak_cpu_milli[h], mem = p->peak_mem_bytes[h];

		s->hour_cpu_milli[h] += isnan(cpu) ? p->cpu_milli : cpu;
		s->hour_mem_bytes[h] += isnan(mem) ? p->mem_bytes : mem;
	}
}

static double whole_time_cpu(const struct use_sum *s)
{
	return s->cpu_milli + Z * sqrt(s->variance);
}

double use_sum_cpu(const struct use_sum *s)
{
	double most = whole_time_cpu(s);

	for (int h = 0; h < USE_HOURS; h++)
		most = fmax(most, s->hour_cpu_milli[h]);
	return most;
}

double use_sum_mem(const struct use_sum *s)
{
	double most = s->mem_bytes;

	for (int h = 0; h < USE_HOURS; h++)
		most = fmax(most, s->hour_mem_bytes[h]);
	return most;
}

bool use_sum_fits(const struct use_sum *s, const struct use_node *n, struct error *error)
{
	double cpu_most = CPU_SHARE * n->cpu_allocatable_milli + CPU_SLACK;
	double mem_most = MEM_SHARE * n->mem_allocatable_bytes + MEM_SLACK;

	if (whole_time_cpu(s) > cpu_most) {
		error_set(error, "%.1f of %.1f millicores", whole_time_cpu(s), cpu_most);
		return false;
	}
	if (s->mem_bytes > mem_most) {
		error_set(error, "%.0f of %.0f bytes", s->mem_bytes, mem_most);
		return false;
	}
	for (int h = 0; h < USE_HOURS; h++) {
		if (s->hour_cpu_milli[h] <= cpu_most && s->hour_mem_bytes[h] <= mem_most)
			continue;
		error_set(error, "at %d h %.1f of %.1f millicores, %.0f of %.0f bytes", h,
			  s->hour_cpu_milli[h], cpu_most, s->hour_mem_bytes[h], mem_most);
		return false;
	}
	return true;
}
