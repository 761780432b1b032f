/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a plugin prints is refused by one line, or holds a credential that can stand in a
 * header.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "aggregator/edge/kube/exec_credential.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct exec_credential cred = {0};
	struct error error = {""};

	if (exec_credential_parse(&cred, "client.authentication.k8s.io/v1", (const char *)data,
				  size, &error)) {
		assert(error.text[0] && !strchr(error.text, '\n'));
		assert(!cred.token && !cred.certificate && !cred.key);
		return 0;
	}
	assert(cred.token || cred.certificate);
	assert(!cred.certificate == !cred.key);
	for (const char *c = cred.token; c && *c; c++)
		assert(*c > ' ' && *c < 0x7f);
	exec_credential_fini(&cred);
	return 0;
}
