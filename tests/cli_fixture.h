/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the CLI from items of a list, without a server. */
#pragma once

#include "aggregator/cli/usage.h"

enum { CLI_FIXTURE_NAMES = 3, CLI_FIXTURE_ITEMS = 5 };

struct cli_fixture {
	struct cli_options options;
	bool color;
	char *names[CLI_FIXTURE_NAMES];
	size_t name_count;
	const char *items[CLI_FIXTURE_ITEMS]; /* JSON; a NULL ends fewer */
	const char *total; /* JSON of the list's total; NULL: none */
};

/*
 * Shows the items as one list as of 2026-01-31T12:00:03Z; *out and *reason are replaced, and *out
 * is the caller's.
 */
int cli_fixture_render(const struct cli_fixture *f, const struct usage_kind *kind, struct buf *out,
		       struct error *reason);
/* Expects this exit code, text (any if NULL) and reason. */
void cli_fixture_check(const struct cli_fixture *f, const struct usage_kind *kind, int code,
		       const char *text, const char *reason);

struct cli_fixture_exit {
	struct cli_fixture given;
	int code;
	const char *reason;
};

void cli_fixture_check_exits(const struct cli_fixture_exit *cases, size_t count,
			     const struct usage_kind *kind);
