/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, the release of hash tables, and of nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aggregator/api/act_box.h"
#include "aggregator/api/quota_session.h"
#include "aggregator/api/snapshot.h"
#include "aggregator/api/waiting_pods.h"
#include "aggregator/planner/place_cache.h"
#include "aggregator/planner/plan.h"
#include "aggregator/policy/drain/drain_pdb.h"
#include "aggregator/policy/slack/slack.h"
#include "aggregator/state/enrolment_tokens.h"
#include "aggregator/state/join_namespaces.h"
#include "aggregator/state/join_owners.h"
#include "aggregator/state/node_keys.h"
#include "aggregator/state/stats_json.h"
#include "aggregator/state/victim_log.h"
#include "aggregator/state/view_cache.h"
#include "aggregator/state/workload_memory.h"
#include "shared/hash.h"
#include "shared/mem.h"

struct element {
	int key;
	UT_hash_handle hh;
};

static void a_table_is_released_once_per_element(void **state)
{
	struct element *head = NULL, *e, *next;
	int sum = 0;

	(void)state;
	HASH_RELEASE (head, e, next)
		fail();
	for (int i = 1; i <= 100; i++) {
		e = mem_zalloc(1, sizeof(*e));
		e->key = i;
		HASH_ADD_INT(head, key, e);
	}
	HASH_RELEASE (head, e, next) {
		sum += e->key;
		free(e);
	}
	assert_null(head);
	assert_int_equal(sum, 5050);
}

static void nothing_is_freed(void **state)
{
	(void)state;
	act_box_free(NULL);
	drain_pdbs_free(NULL);
	enrolment_tokens_free(NULL);
	namespaces_free(NULL);
	node_keys_free(NULL);
	owners_free(NULL);
	place_cache_free(NULL);
	plan_core_free(NULL);
	quota_book_cache_free(NULL);
	quota_book_cache_tidy(NULL, 0);
	slack_state_free(NULL);
	snapshot_free(NULL);
	stats_json_set_free(NULL);
	victim_log_free(NULL);
	view_cache_free(NULL);
	waiting_pods_free(NULL);
	workload_memory_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_released_once_per_element),
		cmocka_unit_test(nothing_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
