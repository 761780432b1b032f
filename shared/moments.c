/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/moments.h"

#include <math.h>

void moments_add(struct moments *m, double value, double weight)
{
	double delta = value - m->mean;

	if (!(weight > 0) || !isfinite(weight) || !isfinite(value))
		return;
	if (!m->samples || value < m->min)
		m->min = value;
	if (!m->samples || value > m->max)
		m->max = value;
	m->samples++;
	m->weight += weight;
	m->mean += weight / m->weight * delta;
	m->m2 += weight * delta * (value - m->mean);
	m->last = value;
}

void moments_merge(struct moments *into, const struct moments *from)
{
	double weight = into->weight + from->weight;
	double delta = from->mean - into->mean;

	/* Samples without weight, possible on the wire, have no mean. */
	if (!from->samples || !(from->weight > 0))
		return;
	if (!into->samples || !(into->weight > 0)) {
		*into = *from;
		return;
	}
	into->m2 += from->m2 + delta * delta * (into->weight * from->weight / weight);
	into->mean += delta * (from->weight / weight);
	into->weight = weight;
	into->samples += from->samples;
	into->min = fmin(into->min, from->min);
	into->max = fmax(into->max, from->max);
	into->last = from->last;
}

double moments_stddev(const struct moments *m)
{
	return m->weight > 0 && m->m2 > 0 ? sqrt(m->m2 / m->weight) : 0;
}

struct moments32 moments_pack(const struct moments *m)
{
	return (struct moments32){
		.samples = m->samples > UINT32_MAX ? UINT32_MAX : (uint32_t)m->samples,
		.weight = (float)m->weight,
		.mean = (float)m->mean,
		.m2 = (float)m->m2,
		.min = (float)m->min,
		.max = (float)m->max,
		.last = (float)m->last,
	};
}

struct moments moments_unpack(const struct moments32 *m)
{
	return (struct moments){
		.samples = m->samples,
		.weight = m->weight,
		.mean = m->mean,
		.m2 = m->m2,
		.min = m->min,
		.max = m->max,
		.last = m->last,
	};
}
