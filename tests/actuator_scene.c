/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/actuator_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/mem.h"

int actuator_scene_setup(void **state)
{
	static const atomic_bool stopping;
	static struct actuator_scene s;
	struct error why = {""};

	s = (struct actuator_scene){.peer = kube_peer_new(), .now_ns = NS_PER_SEC};
	s.config.server = mem_strdup(kube_peer_url(s.peer));
	if (edge_open(&s.edge, &s.config, &stopping, &why))
		fail_msg("%s", why.text);
	*state = &s;
	return 0;
}

int actuator_scene_teardown(void **state)
{
	struct actuator_scene *s = *state;

	edge_close(&s->edge);
	kube_config_fini(&s->config);
	kube_peer_free(s->peer);
	return 0;
}

void actuator_scene_answer(struct actuator_scene *s, const char *part, int status, const char *body)
{
	kube_peer_script(s->peer, part, &(struct peer_answer){.status = status, .body = body});
}

void actuator_scene_expect_body(struct actuator_scene *s, const char *part, const char *body)
{
	size_t count = kube_peer_count(s->peer, part);
	char *seen = kube_peer_body(s->peer, part, count ? count - 1 : 0);

	assert_string_equal(seen, body);
	free(seen);
}
