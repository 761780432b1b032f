/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The made-up cluster: what a scheduler would have refused is not in it, and the same seed makes
 * the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/fleet/cluster.h"

static const struct cluster_config sizes[] = {
	{.nodes = 1, .pods_per_node = 1, .containers = 1, .seed = 1},
	{.nodes = 2, .pods_per_node = 30, .containers = 3, .seed = 2},
	{.nodes = 50, .pods_per_node = 12, .containers = 2, .seed = 7},
	{.nodes = 300, .pods_per_node = 30, .containers = 8, .seed = 0},
	{.nodes = 20, .pods_per_node = 250, .containers = 2, .seed = 4},
};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static struct cluster *clusters[SIZES];

static int setup(void **state)
{
	(void)state;
	for (int i = 0; i < SIZES; i++)
		clusters[i] = cluster_new(&sizes[i]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < SIZES; i++)
		cluster_free(clusters[i]);
	return 0;
}

static void check_node(const struct cluster *c, uint32_t node)
{
	const struct cluster_node *n = &c->nodes[node];
	int64_t cpu_milli = 0, mem_bytes = 0;
	double peak_milli = pattern_peak_milli(&n->system),
	       peak_bytes = pattern_peak_working_set(&n->system);

	for (size_t i = 0; i < n->pods; i++) {
		const struct cluster_pod *p = &c->pods[c->by_node[n->first + i]];
		const struct workload *w = cluster_workload(c, p);

		assert_int_equal(p->node, node);
		assert_true(w->kind == WORKLOAD_DAEMON_SET || w->batch == n->batch);
		cpu_milli += w->cpu_milli;
		mem_bytes += w->mem_bytes;
		peak_milli += pattern_peak_milli(&p->pattern);
		peak_bytes += pattern_peak_working_set(&p->pattern);
	}
	assert_true(cpu_milli <= n->allocatable_cpu_milli);
	assert_true(mem_bytes <= n->allocatable_mem_bytes);
	assert_true(n->crowded || peak_milli <= (double)n->cpu_milli);
	assert_true(peak_bytes <= (double)n->mem_bytes);
}

static void test_pods_fit_their_nodes(void **state)
{
	(void)state;
	for (int i = 0; i < SIZES; i++) {
		size_t placed = 0;

		for (uint32_t k = 0; k < clusters[i]->config.nodes; k++) {
			check_node(clusters[i], k);
			placed += clusters[i]->nodes[k].pods;
		}
		/* Something waits, the rest runs; and there are about as many as were wanted. */
		assert_true(placed < clusters[i]->pod_count);
		assert_true(placed <= (size_t)sizes[i].nodes * (sizes[i].pods_per_node + 1));
		assert_true(sizes[i].nodes < 50 ||
			    placed >= (size_t)sizes[i].nodes * sizes[i].pods_per_node * 9 / 10);
	}
}

static void check_workload(const struct cluster *c, const struct workload *w)
{
	uint32_t zones[CLUSTER_ZONES] = {0}, most = 0, least = UINT32_MAX;

	for (uint32_t i = 0; i < w->replicas; i++) {
		const struct cluster_pod *p = &c->pods[w->first_pod + i];

		assert_ptr_equal(cluster_workload(c, p), w);
		assert_int_equal(p->ordinal, i);
		if (p->node < 0)
			continue;
		zones[c->nodes[p->node].zone]++;
		for (uint32_t k = 0; w->apart && k < i; k++)
			assert_int_not_equal(p->node, c->pods[w->first_pod + k].node);
	}
	for (int i = 0; i < CLUSTER_ZONES; i++) {
		most = zones[i] > most ? zones[i] : most;
		least = zones[i] < least ? zones[i] : least;
	}
	if (w->spread)
		assert_true(most - least <= 1);
}

static void test_workloads_keep_apart_and_spread(void **state)
{
	int apart = 0, spread = 0;

	(void)state;
	for (int i = 0; i < SIZES; i++) {
		for (size_t k = 0; k < clusters[i]->workload_count; k++) {
			const struct workload *w = &clusters[i]->workloads[k];

			check_workload(clusters[i], w);
			apart += w->apart;
			spread += w->spread;
		}
	}
	assert_true(apart > 10 && spread > 10);
}

static void test_parts_of_a_pod_add_up(void **state)
{
	(void)state;
	for (uint32_t containers = 1; containers <= CLUSTER_CONTAINERS_MAX; containers++) {
		struct workload w = {.containers = containers};
		double share = 0;
		int64_t amount = 0;

		for (uint32_t k = 0; k < containers; k++) {
			share += cluster_container_share(&w, k);
			amount += cluster_container_part(&w, k, 1003);
			assert_true(cluster_container_part(&w, k, 1003) > 0);
		}
		assert_true(fabs(share - 1) < 1e-9);
		assert_int_equal(amount, 1003);
	}
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void test_names_and_uids_are_unique(void **state)
{
	const struct cluster *c = clusters[3];
	char(*uids)[POD_UID_LEN + 1] = mem_zalloc(c->pod_count, sizeof(*uids));
	char(*names)[2 * CLUSTER_NAME_MAX] = mem_zalloc(c->pod_count, sizeof(*names));

	(void)state;
	for (size_t i = 0; i < c->pod_count; i++) {
		size_t len;

		cluster_pod_uid(c, i, 0, uids[i]);
		assert_int_equal(strlen(uids[i]), POD_UID_LEN);
		cluster_namespace_name(cluster_workload(c, &c->pods[i])->namespace, names[i]);
		len = strlen(names[i]);
		names[i][len] = '/';
		cluster_pod_name(c, i, names[i] + len + 1);
	}
	qsort(uids, c->pod_count, sizeof(*uids), compare);
	qsort(names, c->pod_count, sizeof(*names), compare);
	for (size_t i = 1; i < c->pod_count; i++) {
		assert_string_not_equal(uids[i - 1], uids[i]);
		assert_string_not_equal(names[i - 1], names[i]);
	}
	free(uids);
	free(names);
}

static void test_the_seed_decides(void **state)
{
	struct cluster_config other = sizes[2];
	struct cluster *same = cluster_new(&sizes[2]), *another;

	(void)state;
	other.seed++;
	another = cluster_new(&other);
	assert_int_equal(same->pod_count, clusters[2]->pod_count);
	for (size_t i = 0; i < same->pod_count; i++) {
		assert_int_equal(same->pods[i].node, clusters[2]->pods[i].node);
		assert_int_equal(same->pods[i].pattern.phase_ns,
				 clusters[2]->pods[i].pattern.phase_ns);
	}
	assert_int_not_equal(another->pods[0].pattern.phase_ns, same->pods[0].pattern.phase_ns);
	cluster_free(same);
	cluster_free(another);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pods_fit_their_nodes),
		cmocka_unit_test(test_workloads_keep_apart_and_spread),
		cmocka_unit_test(test_parts_of_a_pod_add_up),
		cmocka_unit_test(test_names_and_uids_are_unique),
		cmocka_unit_test(test_the_seed_decides),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
