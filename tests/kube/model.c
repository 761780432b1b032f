/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <stdio.h>
#include <signal.h>
#include "tests/process.h"

#include "tests/control_plane.h"
int main(void)
{
	struct control_plane *c = control_plane_new(getenv("EVENKEEL_KUBE"));
	control_plane_start_controllers(c);
	cJSON *j = control_plane_kubectl_get(c, "nodes,namespaces");
	puts(cJSON_Print(j));
	control_plane_compact(c);
	control_plane_kill_api(c, 0);
	control_plane_start_api(c, 1, true);
	control_plane_start_api(c, 0, false);
	control_plane_kill_api(c, 1);
	if (getenv("HOLD")) {
		printf("%s %d\n", c->folder, c->apis[0].port);
		fflush(stdout);
		getchar();
	}
	control_plane_free(c, 0);
	return 0;
}
