/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/engine_reviewer.h"

#include <errno.h>

#include "aggregator/edge/kube/config.h"
#include "aggregator/edge/kube/token_review.h"

int reviewer_open(struct reviewer *r, const char *kubeconfig, const char *context,
		  const char *audience, struct reason *reason)
{
	struct kube_config config = {0};
	int rc = kubeconfig ? kube_config_read(&config, kubeconfig, context, reason)
			    : kube_config_in_cluster(&config, NULL, reason);

	if (rc == -ENOENT && !kubeconfig)
		reason_set(reason, "this is no pod: give --kubeconfig");
	if (!rc)
		rc = token_reviewer_new(&r->tokens, &config, audience, reason);
	kube_config_fini(&config);
	if (rc) {
		reason_prefix(reason, "--token-review");
		return -EINVAL;
	}
	r->access = (struct access_reviewer){r->tokens, token_reviewer_ask, TOKEN_REVIEWS_AT_ONCE};
	return 0;
}

void reviewer_stop(struct reviewer *r)
{
	token_reviewer_stop(r->tokens);
}

void reviewer_close(struct reviewer *r)
{
	token_reviewer_free(r->tokens);
	*r = (struct reviewer){0};
}
