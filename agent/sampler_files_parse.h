/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a cgroup for tier T3: values, cadence and parsers. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cgroupfs.h"
#include "agent/sampler.h"

/* How often a file is read. */
enum files_cadence {
	READ_FAST, /* every pass */
	READ_SLOW, /* every slow pass */
	READ_LIMITS, /* some slow passes: limits, which rarely change */
};

/* The values of READ_LIMITS; they stay valid between readings. */
#define FILES_LIMITS                                                                               \
	(HAVE_CPU_LIMIT | HAVE_MEMORY_LIMIT | HAVE_MEMORY_HIGH | HAVE_SWAP_LIMIT |                 \
	 HAVE_PIDS_LIMIT | USAGE_PROTECTED)

/* The target of the parsers. */
struct files_target {
	struct reading *reading;
	enum pass_kind kind;
	bool root; /* of the hierarchies */
	/* Internal: values that need two files. */
	unsigned int parts;
	int64_t memsw_limit_bytes;
};

enum files_resource { FILES_CPU, FILES_THROTTLE, FILES_MEMORY, FILES_GENERAL };

struct files_source {
	enum files_resource resource;
	bool v2;
	enum files_cadence cadence;
	const char *file;
	void (*parse)(const char *text, struct files_target *t); /* NULL: one value, as follows */
	/* Of a "key value" line; NULL: the file is a number, of READ_LIMITS a limit. */
	const char *key;
	uint32_t have; /* enum reading_have */
	size_t offset; /* in struct reading, of 64 bits */
};

enum { FILES_SOURCES = 26 };
/* Both versions, by cadence. */
extern const struct files_source files_sources[FILES_SOURCES];

/* Takes the values in the text of a file. */
void files_parse(const struct files_source *source, const char *text, struct files_target *t);
/* The hierarchy with this file, or -1. */
int files_hierarchy(const struct cgroupfs *fs, const struct files_source *source);
/* Before the files of READ_LIMITS are read: clears their values. */
void files_begin_limits(struct files_target *t);
/* After all files of this pass. */
void files_finish(struct files_target *t);
