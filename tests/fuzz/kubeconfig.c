/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any kubeconfig is refused by one line, or names a server that a session can use; nothing leaks.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "aggregator/edge/kube/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kube_config c = {0}, copy;
	struct kube_url url = {0};
	struct error error = {""};
	const struct kubeconfig_file file = {"fuzz", "/folder", (const char *)data, size};

	if (kubeconfig_parse(&c, &file, 1, NULL, &error)) {
		assert(error.text[0] && !strchr(error.text, '\n'));
		assert(!c.server);
		return 0;
	}
	assert(kube_url_parse(&url, c.server, NULL) == 0);
	assert(!c.exec_command == !c.exec_api_version);
	assert(!(c.client_certificate_file || c.client_certificate_data) ==
	       !(c.client_key_file || c.client_key_data));
	kube_url_fini(&url);
	kube_config_copy(&copy, &c);
	kube_config_fini(&c);
	kube_config_fini(&copy);
	return 0;
}
