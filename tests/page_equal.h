/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two pages say the same, member for member and bit for bit. */
#ifndef EVENKEEL_TESTS_PAGE_EQUAL_H
#define EVENKEEL_TESTS_PAGE_EQUAL_H

#include "aggregator/state/page.h"

/* Fails the test with the first member that differs; generations do not count. */
void page_equal_check(const struct node_page *a, const struct node_page *b);

#endif
