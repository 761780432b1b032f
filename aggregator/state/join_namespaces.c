/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/state/view.h"

#include <stdlib.h>

/* A table is one block: names and lists of resources lie behind the rows. */
void namespace_table_drop(struct namespace_table *t)
{
	if (t && atomic_fetch_sub_explicit(&t->users, 1, memory_order_acq_rel) == 1)
		free(t);
}
