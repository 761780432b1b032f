/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token goes into a header line, so nothing may be in it that ends one. Reasons never show it,
 * not even a byte of it.
 */
#include "aggregator/edge/kube/token.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/config_file.h"
#include "shared/mem.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int token_take(const char *text, size_t len, char **token, struct reason *reason)
{
	while (len && is_blank(text[len - 1]))
		len--;
	for (; len && is_blank(*text); text++)
		len--;
	if (len == 0) {
		reason_set(reason, "the token is empty");
		return -EINVAL;
	}
	if (len > TOKEN_MAX) {
		reason_set(reason, "the token is longer than %d KiB", TOKEN_MAX / 1024);
		return -EINVAL;
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] > ' ' && text[i] < 0x7f)
			continue;
		reason_set(reason, "byte %zu of the token is no printable ASCII", i + 1);
		return -EINVAL;
	}
	*token = mem_strndup(text, len);
	return 0;
}

int token_read(const char *path, char **token, struct reason *reason)
{
	char *text;
	size_t len;
	/* Room for the line ends around it; what is longer still, token_take() refuses. */
	int rc = kube_file_read(path, TOKEN_MAX + 64, &text, &len, reason);

	if (rc)
		return rc;
	rc = token_take(text, len, token, reason);
	if (rc)
		reason_prefix(reason, "%s", path);
	kube_bytes_wipe(text, len);
	return rc;
}
