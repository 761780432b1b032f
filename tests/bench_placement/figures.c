/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench_placement/figures.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/lab.h"

static double share(double milli)
{
	return milli / LAB_NODE_CPU_MILLI;
}

static bool has_room(struct figures_nodes *n, const struct burst_pod *pod)
{
	size_t best = NODES;

	for (size_t i = 0; i < NODES; i++)
		if (n->requested_milli[i] + pod->request_milli <= LAB_NODE_CPU_MILLI &&
		    (best == NODES || n->used_milli[i] < n->used_milli[best]))
			best = i;
	if (best == NODES || share(n->used_milli[best] + pod->use_milli) >= FIGURES_CAP)
		return false;
	n->used_milli[best] += pod->use_milli;
	n->requested_milli[best] += pod->request_milli;
	return true;
}

struct figures figures_of(struct figures_nodes nodes, const struct burst_pod *pending, size_t count)
{
	struct figures f = {.pending = (double)count};
	double mean = 0, squares = 0;

	for (size_t i = 0; i < NODES; i++) {
		double used = share(nodes.used_milli[i]);

		f.over += used > FIGURES_CAP;
		f.highest = fmax(f.highest, 100 * used);
		mean += 100 * used / NODES;
	}
	for (size_t i = 0; i < NODES; i++)
		squares += pow(100 * share(nodes.used_milli[i]) - mean, 2);
	f.deviation = sqrt(squares / NODES);
	for (size_t i = 0; i < count; i++)
		f.needless += has_room(&nodes, &pending[i]);
	return f;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread figures_spread(double *values, size_t count)
{
	struct spread s = {0};

	if (!count)
		return s;
	qsort(values, count, sizeof(*values), compare);
	for (size_t i = 0; i < count; i++)
		s.mean += values[i];
	s.mean /= (double)count;
	s.p95 = values[(size_t)ceil(0.95 * (double)count) - 1];
	s.max = values[count - 1];
	return s;
}
