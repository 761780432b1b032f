/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the option parser and of cli_spec; internal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/options.h"
#include "shared/error.h"

/* One unparsed value of one level (defaults, file, environment, command line). */
struct setting {
	const struct option_spec *spec;
	char *text; /* owned; NULL: the empty list */
	/* owned: "EVENKEEL_RATE", "agent.yaml:3"; NULL: the command line or the table */
	char *origin;
};

struct settings {
	struct setting *items; /* owned */
	size_t count;
};

/* text has len bytes and is copied; NULL is the empty list. */
void settings_add(struct settings *s, const struct option_spec *spec, const char *text, size_t len,
		  const char *origin);
void settings_fini(struct settings *s);

/* Its member is a struct option_list. */
bool options_is_list(const struct option_spec *spec);
/* By its name, or by its letter if that is not 0. */
const struct option_spec *options_find(const struct option_spec *specs, const char *name,
				       char letter);
/* By its name or a former one. */
const struct option_spec *options_of(const struct option_program *program, const char *name);
/* --help, --version and OPTION_TYPED_LIST: not for files and the environment. */
bool options_only_typed(const struct option_spec *spec);
/* "EVENKEEL_KEY_FILE"; the caller frees it. */
char *options_env_name(const struct option_program *program, const char *option);
/* "; did you mean --rate?", or otherwise; before: prefix of the name. */
void options_suggest(const struct option_program *program, const char *word, const char *before,
		     const char *otherwise, char *out, size_t out_len);
/* A flag with default true: shown as --no-name. */
bool options_is_on(const struct option_spec *spec);
/* The placeholder or the choices: "URL", "table|wide|json"; empty for flags. */
void options_value_word(const struct option_spec *spec, struct buf *out);
/* The help text, then [default; range; variable]. */
void options_meaning(const struct option_program *program, const struct option_spec *spec,
		     struct buf *out);
/* "1s to 15s", "at least 1"; empty: any value. */
void options_range(const struct option_spec *spec, struct buf *out);

/* -EINVAL with the reason: the quoted text, then why. */
int options_refuse(const char *text, const char *why, struct error *error);
/* Reads one value into its member. -EINVAL with the reason. */
int options_set(const struct option_spec *spec, const char *text, void *values,
		struct error *error);
/* The settings of a YAML file, in order. -EINVAL with the reason. */
int options_read_yaml(const struct option_program *program, const char *path, struct settings *out,
		      struct error *error);
/* The same from memory; name: for reasons. */
int options_parse_yaml(const struct option_program *program, const char *name, const char *text,
		       size_t len, struct settings *out, struct error *error);

enum { QUOTED_LEN = 72 };
/* text as one printable line within double quotes, cut when long. */
void options_quote(const char *text, char out[QUOTED_LEN]);
