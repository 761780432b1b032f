/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/edge/kube/config_file.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/file.h"
#include "shared/mem.h"

const char *kube_text_line(const char *text, char *out, size_t size)
{
	size_t len = 0;

	assert(size > 2);
	for (; text && *text && len < size - 3; text++)
		out[len++] = (char)((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text);
	for (size_t dots = text && *text ? 2 : 0; dots; dots--)
		out[len++] = '.';
	out[len] = '\0';
	return out;
}

void kube_bytes_wipe(char *bytes, size_t len)
{
	if (bytes)
		sodium_memzero(bytes, len);
	free(bytes);
}

void kube_text_wipe(char *text)
{
	kube_bytes_wipe(text, text ? strlen(text) : 0);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int token_take(const char *text, size_t len, char **token, struct error *error)
{
	while (len && is_blank(text[len - 1]))
		len--;
	for (; len && is_blank(*text); text++)
		len--;
	if (len == 0)
		return error_fail(error, -EINVAL, "the token is empty");
	if (len > TOKEN_MAX)
		return error_fail(error, -EINVAL, "the token is longer than %d KiB",
				  TOKEN_MAX / 1024);
	for (size_t i = 0; i < len; i++) {
		if (text[i] > ' ' && text[i] < 0x7f)
			continue;
		return error_fail(error, -EINVAL, "byte %zu of the token is no printable ASCII",
				  i + 1);
	}
	*token = mem_strndup(text, len);
	return 0;
}

int token_read(const char *path, char **token, struct error *error)
{
	struct secret file;
	/* Room for line ends; token_take() refuses longer ones. */
	int rc = secret_read(&file, path, TOKEN_MAX + 64, false, error);

	if (rc)
		return rc;
	rc = token_take(file.text, file.len, token, error);
	if (rc)
		error_prefix(error, "%s", path);
	secret_free(&file);
	return rc;
}
