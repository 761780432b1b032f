/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is not said is not guessed: half a pair of files, or a certificate authority without TLS,
 * stops the start.
 */
#include "aggregator/edge/http/access_options.h"

#include <errno.h>
#include <string.h>

static const char *bad_host(const struct option_list *hosts)
{
	struct host_name name;

	for (size_t i = 0; i < hosts->count; i++)
		if (!host_parse(hosts->items[i], strlen(hosts->items[i]), &name))
			return hosts->items[i];
	return NULL;
}

int access_options_check(const struct access_options *o, struct reason *reason)
{
	const char *bad = bad_host(&o->allowed_hosts);

	if (!o->certificate != !o->key)
		reason_set(reason, "--tls-cert and --tls-key: give both, or neither");
	else if (o->client_ca && !o->certificate)
		reason_set(reason, "--tls-client-ca: client certificates need TLS: give --tls-cert "
				   "and --tls-key");
	else if (o->audience && !o->token_review)
		reason_set(reason, "--token-audience is of --token-review: give that, too");
	else if (bad)
		reason_set(reason, "--allowed-host: \"%s\" is no name of a host", bad);
	else
		return 0;
	return -EINVAL;
}

void access_options_apply(const struct access_options *o, struct http_config *config)
{
	config->tls = (struct tls_files){o->certificate, o->key, o->client_ca};
	config->plain_tokens = o->plain_tokens;
	config->insecure_open = o->insecure_open;
	config->gate.allowed_hosts = &o->allowed_hosts;
	config->gate.token_file = o->token_file;
	config->gate.open_watcher = o->open_watcher;
	config->gate.requests_per_second = o->rate;
}
