/* SPDX-License-Identifier: Apache-2.0 */
/* One table of options gives flags, environment variables, a YAML file, --help and validation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "shared/buf.h"
#include "shared/duration.h"
#include "shared/error.h"

enum option_kind {
	OPTION_FLAG, /* bool; --name, --no-name; in the environment and YAML true/false */
	OPTION_STRING, /* char *, owned by the options once parsed */
	OPTION_LIST, /* struct option_list; repeatable on the command line, comma separated in the environment, a
			    sequence in YAML */
	OPTION_RECORDS, /* the same of texts "key=value,key=value", so that they are ";" separated in the environment; in
			    YAML each may be a mapping, of scalars or sequences: {key: value, other: [a, b]} */
	OPTION_TYPED_LIST, /* a list that only the command line gives: the variable is that of another option */
	OPTION_INTEGER, /* int64_t, min..max */
	OPTION_NUMBER, /* double, min..max */
	/* int64_t nanoseconds: "300ms", "5s", "10m", "2h"; min..max in nanoseconds */
	OPTION_DURATION,
	OPTION_PERIOD, /* the same; alone it is choices[0], and only "=" gives it another: --name=5s, -x=5s. --no-name is 0; true and
			    false in the environment and YAML, too */
	OPTION_CHOICE, /* int: index into choices */
};

struct option_list {
	char **items; /* owned */
	size_t count;
};

struct option_spec {
	const char *name; /* long name without dashes; NULL ends the table */
	char letter; /* short flag, or 0 */
	enum option_kind kind;
	size_t offset; /* of the member in the caller's struct */
	const char *value; /* placeholder for --help: "URL", "FILE", ..; NULL for flags */
	const char *initial; /* default, as text; NULL: none (NULL / empty list / false) */
	double min, max; /* for INTEGER, NUMBER, DURATION; both 0: no bound */
	const char *const *choices; /* NULL-terminated; for strings: candidates of completion */
	const char *help; /* one sentence */
};

/* clang-format off */
/* Rows of a table; at: offset of the member. */
#define FLAG_OPTION(name, letter, at, help) \
	{name, letter, OPTION_FLAG, at, NULL, NULL, 0, 0, NULL, help}
#define TEXT_OPTION(name, at, value, initial, help) \
	{name, 0, OPTION_STRING, at, value, initial, 0, 0, NULL, help}
#define LIST_OPTION(name, at, value, initial, help) \
	{name, 0, OPTION_LIST, at, value, initial, 0, 0, NULL, help}
#define CHOICE_OPTION(name, at, value, initial, choices, help) \
	{name, 0, OPTION_CHOICE, at, value, initial, 0, 0, choices, help}
/* kind: OPTION_INTEGER, OPTION_NUMBER or OPTION_DURATION; min and max 0: no bound. */
#define RANGE_OPTION(kind, name, at, value, initial, min, max, help) \
	{name, 0, kind, at, value, initial, min, max, NULL, help}
/* clang-format on */

/* A paragraph of a manual page. */
struct option_note {
	const char *section; /* its title; NULL: as before */
	const char *term; /* the term it explains, or NULL */
	const char *text; /* an example if it begins with a tab */
};

/* A former name of an option, which is still read. */
struct option_former {
	const char *was, *name; /* without dashes; NULL ends the table */
};

struct option_program {
	const char *name; /* "evenkeel-agent" */
	const char *summary; /* one sentence under the usage line */
	const char *usage; /* what follows the name: "[OPTION..]" */
	const struct option_spec *specs;
	const struct option_former *former; /* or NULL */
	/* "EVENKEEL_": --key-file is EVENKEEL_KEY_FILE; NULL: no environment */
	const char *env_prefix;
	const char *config_name; /* name of the option whose value is a YAML file, or NULL */
	const struct option_note *manual; /* ended by a NULL text; or NULL */
};

/*
 * Fills `values` (a zeroed struct): defaults, then the YAML file, the environment and the command
 * line, each overriding the one before; a list at one level replaces the level below. Operands go
 * to *operands in order (NULL: not allowed). "--" ends the options; "--name=value" and "--name
 * value", "-xvalue" and "-x value" are the same. 0 or -EINVAL; the reason is one line with the
 * option, its origin (flag, variable, or file:line), the bad value and what is allowed, for an
 * unknown name with a suggestion.
 */
int options_parse(const struct option_program *program, void *values, int argc, char **argv,
		  struct option_list *operands, struct error *error);
void options_free(const struct option_program *program, void *values);
void option_list_free(struct option_list *list);
/* Rows of a table, without its end. */
size_t options_count(const struct option_spec *specs);
/* Whether the next word on a command line is not its value. */
bool options_stands_alone(const struct option_spec *spec);
/* The text of --help. */
void options_help(const struct option_program *program, struct buf *out);
/* Its rows of options. */
void options_help_rows(const struct option_program *program, struct buf *out);
enum { OPTIONS_WIDTH = 80 }; /* of help */

/* The known name that a mistyped word most likely means. */
struct suggestion {
	const char *word; /* borrowed: the mistyped word */
	const char *best; /* borrowed: the closest name so far; NULL: none is close enough */
	size_t distance; /* of best */
};

void suggestion_init(struct suggestion *s, const char *word);
/* Of equally close names the first one offered wins. */
void suggestion_offer(struct suggestion *s, const char *name);

/* Appends text from column `at`, wrapped at the width; further lines begin at column `indent`. */
void options_wrap(struct buf *out, const char *text, size_t width, size_t indent, size_t at);
