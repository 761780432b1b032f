/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As packaging/docs/install-kubernetes.md says: one file is applied. The cluster's part
 * (tests/node/cluster.yaml) is a user without rights in Kubernetes who may ask evenkeel.
 */
#include "tests/node_install.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

#define SERVER	      "https://evenkeel-aggregator.evenkeel.svc.cluster.local:2020"
#define TOKEN_SECONDS 60
#define MADE_SECONDS  180

/* --- what is there before --------------------------------------------------------------------- */

static void import_image(struct node_bed *b, const char *name)
{
	const char *folder = getenv("IMAGES");
	char *archive =
		mem_printf("%s/%s-" EVENKEEL_VERSION ".tar", folder ? folder : "build/image", name);

	node_bed_import(b, archive);
	free(archive);
}

/* Plugins of kubectl are programs whose names begin so, in PATH. */
static void offer_plugin(struct node_bed *b)
{
	char *program = realpath(program_path("evenkeel"), NULL),
	     *link = mem_printf("%s/kubectl-evenkeel", b->folder),
	     *path = mem_printf("%s:%s", b->folder, getenv("PATH"));

	if (!program || symlink(program, link) || setenv("PATH", path, 1))
		fail_msg("cannot offer kubectl-evenkeel");
	free(program);
	free(link);
	free(path);
}

static void apply(struct node_bed *b, const char *option, const char *what)
{
	const char *const words[] = {"apply", option, what, NULL};
	struct buf out = BUF_INIT;

	control_plane_kubectl(b->plane, words, &out);
	buf_fini(&out);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file))
		fail_msg("cannot write %s", path);
}

/* The authority of the aggregator, once that made it. */
static bool take_authority(void *ctx)
{
	struct node_install *i = ctx;
	const char *const show = "go-template={{range .items}}{{index .data \"ca.crt\" | "
				 "base64decode}}{{end}}";
	const char *const words[] = {"get",
				     "secrets",
				     "-nevenkeel",
				     "--field-selector",
				     "metadata.name=evenkeel-tls",
				     "--output",
				     show,
				     NULL};
	struct buf out = BUF_INIT;
	bool taken;

	control_plane_kubectl(i->bed->plane, words, &out);
	taken = out.len > 0;
	if (taken)
		write_text(i->ca_path, out.data);
	buf_fini(&out);
	return taken;
}

/* --- the user who looks ----------------------------------------------------------------------- */

/* The token of the ServiceAccount, once the cluster made one. */
static bool take_token(void *ctx)
{
	struct node_install *i = ctx;
	const char *const create[] = {"create", "token", "viewer", "--audience", "evenkeel", NULL};
	/* Of the ServiceAccount's Secret, whose name is the cluster's choice. */
	const char *const find = "go-template={{range .items}}"
				 "{{if eq (index .metadata.annotations "
				 "\"kubernetes.io/service-account.name\") \"viewer\"}}"
				 "{{.data.token | base64decode}}{{end}}{{end}}";
	const char *const get[] = {"get", "secrets", "--output", find, NULL};
	struct buf out = BUF_INIT;
	bool taken;

	control_plane_kubectl(i->bed->plane, i->bed->plane->version->token_secrets ? get : create,
			      &out);
	taken = out.len > 0;
	if (taken)
		write_text(i->token_path, out.data);
	buf_fini(&out);
	return taken;
}

/* --- all of it -------------------------------------------------------------------------------- */

struct node_install *node_install_new(struct node_bed *b, const char *file)
{
	struct node_install *i = mem_zalloc(1, sizeof(*i));

	i->bed = b;
	i->token_path = mem_printf("%s/viewer-token", b->folder);
	i->ca_path = mem_printf("%s/ca.crt", b->folder);
	import_image(b, "evenkeel-agent");
	import_image(b, "evenkeel-aggregator");
	offer_plugin(b);
	apply(b, "-f", "tests/node/cluster.yaml");
	i->applied_ns = clock_mono_ns();
	apply(b, "-f", file);
	if (!await(take_token, i, TOKEN_SECONDS))
		fail_msg("no token came for the ServiceAccount");
	if (!await(take_authority, i, MADE_SECONDS))
		fail_msg("the aggregator made no Secret evenkeel-tls");
	return i;
}

void node_install_free(struct node_install *i)
{
	if (!i)
		return;
	free(i->token_path);
	free(i->ca_path);
	free(i);
}

static int number_at(const cJSON *json, const char *path)
{
	const cJSON *item = json_at(json, path);

	return cJSON_IsNumber(item) ? item->valueint : 0;
}

bool node_install_is_rolled_out(struct node_install *i, const char *kind, const char *name)
{
	char *path = mem_printf("/apis/apps/v1" INSTALL_NAMESPACE "/%s/%s", kind, name);
	cJSON *set = node_bed_get(i->bed, path);
	bool daemons = strcmp(kind, "daemonsets") == 0;
	int wanted = number_at(set, daemons ? "status.desiredNumberScheduled" : "spec.replicas"),
	    all = daemons ? wanted : number_at(set, "status.replicas"),
	    newest = number_at(set, daemons ? "status.updatedNumberScheduled"
					    : "status.updatedReplicas"),
	    ready = number_at(set, daemons ? "status.numberAvailable" : "status.availableReplicas");
	bool current = number_at(set, "status.observedGeneration") ==
		       number_at(set, "metadata.generation");

	cJSON_Delete(set);
	free(path);
	return current && wanted > 0 && all == wanted && newest == wanted && ready == wanted;
}

cJSON *node_install_ask(struct node_install *i, const char *const *words)
{
	char *program = mem_printf("%s/kubectl", i->bed->bin);
	char *argv[24] = {program, (char *)"evenkeel"};
	const char *const access[] = {"--output=json", "--server",  SERVER,	"--token-file",
				      i->token_path,   "--ca-file", i->ca_path, NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *json = NULL;
	size_t n = 2;

	while (*words && n < 12)
		argv[n++] = (char *)*words++;
	for (size_t k = 0; access[k]; k++)
		argv[n++] = (char *)access[k];
	if (process_run(argv, &out, &err) == 0)
		json = cJSON_Parse(out.data);
	else
		snprintf(i->said, sizeof(i->said), "%s", err.data ? err.data : "nothing");
	buf_fini(&out);
	buf_fini(&err);
	free(program);
	return json;
}
