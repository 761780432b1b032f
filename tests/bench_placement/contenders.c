/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench_placement/contenders.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/lab.h"

#define TLP  "TargetLoadPacking"
#define LVRB "LoadVariationRiskBalancing"

static const char *const no_options[] = {NULL};
static const char *const cap[] = {"--extender-use-cap-cpu", "0.85", NULL};
static const char *const open_watcher[] = {"--open-watcher", NULL};

const struct contender contenders[] = {
	{"stock", "stock kube-scheduler", CONTENDER_STOCK, NULL, no_options},
	{"unbatched", "stock, one by one", CONTENDER_UNBATCHED, NULL, no_options},
	{"echo", "stock, empty extender", CONTENDER_ECHO, NULL, no_options},
	{"ours", "evenkeel", CONTENDER_EXTENDER, NULL, no_options},
	{"cap", "evenkeel, cap 0.85", CONTENDER_EXTENDER, NULL, cap},
	{"tlp", "Trimaran TLP", CONTENDER_TRIMARAN, TLP, open_watcher},
	{"lvrb", "Trimaran LVRB", CONTENDER_TRIMARAN, LVRB, open_watcher},
};
const size_t contender_count = sizeof(contenders) / sizeof(contenders[0]);

const char *contender_program(const struct contender *c)
{
	return c->kind == CONTENDER_TRIMARAN ? getenv("PEER_SCHEDULER") : NULL;
}

bool contender_is_here(const struct contender *c)
{
	return c->kind != CONTENDER_TRIMARAN || getenv("PEER_SCHEDULER");
}

bool contender_asks(const struct contender *c)
{
	return c->kind == CONTENDER_EXTENDER || c->kind == CONTENDER_TRIMARAN;
}

/* With a resource that no pod has, a scheduler never asks the extender. */
static char *extender_configuration(int port, bool concerns_no_pod)
{
	static const char *const capable = "  nodeCacheCapable: true\n";
	char *address = mem_printf("127.0.0.1:%d", port), *text;
	char *managed = mem_printf("%s  managedResources: [{name: example.com/none}]\n", capable);
	struct lab_replacement r[] = {{LAB_EXTENDER_ADDRESS, address}, {capable, managed}};

	text = lab_scheduler_configuration(LAB_EXTENDER_FILE, r, concerns_no_pod ? 2 : 1);
	free(managed);
	free(address);
	return text;
}

/* Of its plugins only this contender's scores. */
static char *trimaran_configuration(const struct contender *c, int port)
{
	const char *other = strcmp(c->plugin, TLP) == 0 ? LVRB : TLP;
	char *address = mem_printf("http://127.0.0.1:%d", port), *text;
	char *enabled = mem_printf("      - {name: %s, weight: 1}\n", other);
	struct lab_replacement r[] = {
		{"https://evenkeel-aggregator.evenkeel.svc:2020", address},
		{"schedulerName: trimaran", "schedulerName: default-scheduler"},
		{enabled, ""},
	};

	text = lab_scheduler_configuration("trimaran-v1.yaml", r, sizeof(r) / sizeof(r[0]));
	free(enabled);
	free(address);
	return text;
}

char *contender_configuration(const struct contender *c, int port)
{
	switch (c->kind) {
	case CONTENDER_EXTENDER:
	case CONTENDER_ECHO:
		return extender_configuration(port, false);
	case CONTENDER_UNBATCHED:
		return extender_configuration(port, true);
	case CONTENDER_TRIMARAN:
		return trimaran_configuration(c, port);
	default:
		return NULL;
	}
}
