/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shared/utf8.h"

static const char *log_program = "evenkeel";
static enum log_level log_most = LOG_LEVEL_INFO;

void log_start(const char *program, enum log_level most)
{
	log_program = program;
	log_most = most;
}

/* One fprintf per line, so lines of several threads do not mix. */
__attribute__((format(printf, 3, 0))) static void emit(enum log_level level, const char *word,
						       const char *format, va_list args)
{
	char text[1024];

	if (level > log_most)
		return;
	vsnprintf(text, sizeof(text), format, args);
	utf8_clean(text);
	fprintf(stderr, "%s: %s%s\n", log_program, word, text);
}

#define DEFINE_LOG(name, level, word)                                                              \
	void name(const char *format, ...)                                                         \
	{                                                                                          \
		va_list args;                                                                      \
		va_start(args, format);                                                            \
		emit(level, word, format, args);                                                   \
		va_end(args);                                                                      \
	}

DEFINE_LOG(log_error, LOG_LEVEL_ERROR, "error: ")
DEFINE_LOG(log_warn, LOG_LEVEL_WARN, "warning: ")
DEFINE_LOG(log_info, LOG_LEVEL_INFO, "")
DEFINE_LOG(log_debug, LOG_LEVEL_DEBUG, "debug: ")

void log_lines(const char *text)
{
	for (size_t len; text && *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		log_info("%.*s", (int)len, text);
	}
}
