/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/helm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/kube_version.h"
#include "tests/manifests.h"
#include "tests/process.h"

static char *program(void)
{
	char *folder = kube_version_programs(), *path = mem_printf("%s/helm", folder);

	free(folder);
	return path;
}

bool helm_is_here(void)
{
	char *path = program();
	bool here = access(path, X_OK) == 0;

	if (!here)
		printf("SKIP: no %s here: tests/kube/build 1.37 makes it with Go 1.26\n", path);
	free(path);
	return here;
}

int helm_run(const char *const *words, struct buf *out, struct buf *err)
{
	static const char *const homes[] = {"HELM_CACHE_HOME", "HELM_CONFIG_HOME",
					    "HELM_DATA_HOME"};
	char *folder = folder_make(), *argv[18] = {program()};
	int status;

	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++)
		setenv(homes[i], folder, 1);
	for (size_t n = 0; words[n]; n++) {
		assert_true(n < 16);
		argv[n + 1] = (char *)words[n];
	}
	buf_clear(out);
	buf_clear(err);
	status = process_run(argv, out, err);
	free(argv[0]);
	folder_remove(folder);
	return status;
}

cJSON *helm_render(const char *const *sets)
{
	const char *words[16] = {"template", "evenkeel", HELM_CHART};
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *objects;

	for (size_t n = 3; *sets; sets++) {
		assert_true(n < 15);
		words[n++] = "--set";
		words[n++] = *sets;
	}
	if (helm_run(words, &out, &err))
		fail_msg("helm template: %s", err.data ? err.data : "no word");
	objects = manifests_parse(HELM_CHART, out.data ? out.data : "");
	buf_fini(&out);
	buf_fini(&err);
	return objects;
}

void helm_expect_same(const char *name_a, const cJSON *a, const char *name_b, const cJSON *b)
{
	const cJSON *object;

	cJSON_ArrayForEach (object, a) {
		const char *kind = manifests_text(object, "kind"),
			   *name = manifests_text(object, "metadata.name");
		const cJSON *other = manifests_find(b, kind, name);

		if (!cJSON_Compare(object, other, true))
			fail_msg("%s %s:\n%s: %s\n%s: %s", kind, name, name_a,
				 cJSON_PrintUnformatted(object), name_b,
				 other ? cJSON_PrintUnformatted(other) : "none");
	}
	assert_int_equal(cJSON_GetArraySize(a), cJSON_GetArraySize(b));
}
