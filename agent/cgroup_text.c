/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats as in the kernel's cgroup-v1 and cgroup-v2 documents. The parsers accept exactly what
 * kernels print. A file whose meaning changes in a later kernel then reads as "not measured", never
 * as a wrong number.
 */
#include "agent/cgroup_text.h"

#include <string.h>

#include "shared/interval.h"

/* v1 prints "no limit" as the page counter's maximum in bytes, which depends on the page size. */
#define LIMIT_BELOW (INT64_MAX / 2)

enum { NS_PER_US = 1000 };

bool cgroup_text_digits(const char **text, const char *ends, uint64_t *value)
{
	const char *at = *text;
	uint64_t n = 0;

	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*at - '0'), &n))
			return false;
	}
	if (*at && !strchr(ends, *at))
		return false;
	*text = at;
	*value = n;
	return true;
}

bool cgroup_text_number(const char *text, uint64_t *value)
{
	return cgroup_text_digits(&text, "\n", value);
}

/* Moves past the word if it stands here, up to one of the ends. */
static bool take_word(const char **text, const char *ends, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*text, word, len) != 0 || !strchr(ends, (*text)[len]))
		return false;
	*text += len;
	return true;
}

static bool take_limit(const char **text, const char *ends, int64_t *limit)
{
	uint64_t value;

	if (take_word(text, ends, "max") || take_word(text, ends, "-1")) {
		*limit = LIMIT_NONE;
		return true;
	}
	if (!cgroup_text_digits(text, ends, &value))
		return false;
	*limit = value < LIMIT_BELOW ? (int64_t)value : LIMIT_NONE;
	return true;
}

bool cgroup_text_limit(const char *text, int64_t *limit)
{
	return take_limit(&text, "\n", limit);
}

const char *cgroup_text_line(const char *text, const char *word)
{
	size_t len = strlen(word);

	while (*text) {
		if (strncmp(text, word, len) == 0 && text[len] == ' ')
			return text + len + 1;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return NULL;
}

bool cgroup_text_key(const char *text, const char *key, uint64_t *value)
{
	const char *at = cgroup_text_line(text, key);

	return at && cgroup_text_digits(&at, "\n", value);
}

bool cgroup_text_cpus(const char **text, unsigned int *first, unsigned int *last)
{
	const char *at = *text + (**text == ',');
	uint64_t from, to;

	if (!cgroup_text_digits(&at, "-,\n", &from))
		return false;
	to = from;
	if (*at == '-') {
		at++;
		if (!cgroup_text_digits(&at, ",\n", &to))
			return false;
	}
	if (from > to || to >= CPUS_MAX)
		return false;
	*first = (unsigned int)from;
	*last = (unsigned int)to;
	*text = at;
	return true;
}

bool cgroup_text_us_to_ns(uint64_t us, uint64_t *ns)
{
	uint64_t product;

	if (__builtin_mul_overflow(us, NS_PER_US, &product))
		return false;
	*ns = product;
	return true;
}

bool cgroup_text_cpu_max(const char *text, int64_t *quota_ns, int64_t *period_ns)
{
	int64_t quota, period;

	if (!take_limit(&text, " ", &quota) || *text != ' ')
		return false;
	text++;
	if (!take_limit(&text, "\n", &period) || period <= 0)
		return false;
	if (quota > LIMIT_BELOW / NS_PER_US)
		quota = LIMIT_NONE;
	if (period > LIMIT_BELOW / NS_PER_US)
		return false;
	*quota_ns = quota == LIMIT_NONE ? LIMIT_NONE : quota * NS_PER_US;
	*period_ns = period * NS_PER_US;
	return true;
}

bool cgroup_text_pressure(const char *text, const char *line, uint64_t *total_ns)
{
	const char *at = cgroup_text_line(text, line);
	const char *total = at ? strstr(at, " total=") : NULL;
	uint64_t us;

	if (!total || total > at + strcspn(at, "\n"))
		return false;
	total += strlen(" total=");
	return cgroup_text_digits(&total, "\n", &us) && cgroup_text_us_to_ns(us, total_ns);
}
