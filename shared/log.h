/* SPDX-License-Identifier: Apache-2.0 */
/* One line per decision on stderr, safe for terminals: "program: level: text". Not in pure code. */
#pragma once

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Called once at start, before any thread; program is borrowed for the life of the process. */
void log_start(const char *program, enum log_level most);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_lines(const char *text); /* logs each line by log_info(); NULL: nothing */
