/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/actuator/lease.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/document.h"
#include "aggregator/edge/kube/kube_writer.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

#define RENEW_NS  (2 * NS_PER_SEC)
#define EXPIRE_NS (15 * NS_PER_SEC)
#define FENCE_NS  (6 * NS_PER_SEC)
#define HANG_NS	  (300 * NS_PER_SEC)

/* --- what the Lease says ---------------------------------------------------------------------- */

static void copy(char *to, size_t size, const cJSON *json, const char *path)
{
	snprintf(to, size, "%s", document_text_or(json, path, ""));
}

bool lease_read(const cJSON *json, int64_t now_ns, struct lease_record *r)
{
	struct lease_record before = *r;
	const char *paused = document_annotation(json, LEASE_PAUSED);

	if (!document_text(json, "metadata.resourceVersion"))
		return false;
	copy(r->holder, sizeof(r->holder), json, "spec.holderIdentity");
	copy(r->renewed, sizeof(r->renewed), json, "spec.renewTime");
	copy(r->version, sizeof(r->version), json, "metadata.resourceVersion");
	r->transitions = document_count(json, "spec.leaseTransitions", 1e9, 0);
	r->paused = paused && strcmp(paused, "false") != 0;
	if (!before.changed_ns || strcmp(before.holder, r->holder) != 0 ||
	    strcmp(before.renewed, r->renewed) != 0)
		r->changed_ns = now_ns;
	return true;
}

enum lease_move lease_decide(const struct lease_record *r, const char *holder, int64_t now_ns)
{
	if (strcmp(r->holder, holder) == 0)
		return LEASE_RENEW;
	return now_ns - r->changed_ns > EXPIRE_NS ? LEASE_TAKE : LEASE_WAIT;
}

/* A MicroTime has six digits. */
static void write_time(struct jsonw *w, const char *key, int64_t wall_ns)
{
	char text[TIMEFMT_LEN];
	size_t end;

	timefmt_rfc3339_exact(wall_ns, text);
	end = strlen(text) - 4; /* "789Z" of nine digits */
	text[end] = 'Z';
	text[end + 1] = '\0';
	jsonw_key_string(w, key, text);
}

void lease_write(const struct lease_record *r, const char *holder, int64_t wall_ns,
		 struct buf *body)
{
	struct jsonw w;

	jsonw_begin(&w, body);
	jsonw_key_object(&w, "metadata");
	jsonw_key_string(&w, "resourceVersion", r->version);
	jsonw_object_close(&w);
	jsonw_key_object(&w, "spec");
	jsonw_key_string(&w, "holderIdentity", holder);
	jsonw_key_int(&w, "leaseDurationSeconds", EXPIRE_NS / NS_PER_SEC);
	write_time(&w, "renewTime", wall_ns);
	if (strcmp(r->holder, holder) != 0) {
		write_time(&w, "acquireTime", wall_ns);
		jsonw_key_int(&w, "leaseTransitions", r->transitions + 1);
	}
	jsonw_object_close(&w);
	jsonw_object_close(&w);
}

/* --- the thread ------------------------------------------------------------------------------- */

struct lease {
	struct kube_writer writer;

	/* fixed after start */
	const char *name, *holder; /* borrowed */
	char *folder, *path; /* owned: of all leases of the namespace, of this one */

	/* the thread's */
	struct lease_record seen;
	bool failing, told; /* logged */

	atomic_int_least64_t asked_ns; /* monotonic: the last lease_get() */
	pthread_mutex_t lock;
	struct lease_state state; /* under lock */
};

static bool read_answer(struct lease *l)
{
	cJSON *json = cJSON_Parse(kube_writer_answer(&l->writer));
	bool fine = lease_read(json, clock_mono_ns(), &l->seen);

	cJSON_Delete(json);
	return fine;
}

static void tell(struct lease *l, bool held, int64_t until_ns)
{
	const struct lease_record *r = &l->seen;

	if (held && (!l->state.held || l->state.transitions != r->transitions))
		log_info("the lease is held: transition %" PRId64, r->transitions);
	else if (!held && (l->state.held || !l->told))
		log_info("the lease is held by %s", *r->holder ? r->holder : "nobody");
	l->told = true;
	pthread_mutex_lock(&l->lock);
	l->state = (struct lease_state){held, r->paused, r->transitions, until_ns};
	pthread_mutex_unlock(&l->lock);
}

static long ask(struct lease *l, enum kube_method method, const char *path, struct buf *body)
{
	long status = kube_writer_send(&l->writer, method, path, body);
	bool fine = status == 200 || status == 201 || status == 404 || status == 409;

	if (!fine && status && !l->failing)
		log_warn("the lease is refused (%ld): %s", status, kube_writer_answer(&l->writer));
	l->failing = !fine;
	return status;
}

static void create(struct lease *l)
{
	struct buf body = BUF_INIT;

	buf_printf(&body,
		   "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		   "\"name\":\"%s\"},\"spec\":{\"leaseTransitions\":0}}",
		   l->name);
	ask(l, KUBE_POST, l->folder, &body);
	buf_fini(&body);
}

static void round_of(struct lease *l)
{
	long status = ask(l, KUBE_GET, l->path, NULL);
	struct buf body = BUF_INIT;
	int64_t begin_ns;

	if (status == 404)
		create(l);
	if (status != 200 || !read_answer(l))
		return;
	if (lease_decide(&l->seen, l->holder, clock_mono_ns()) == LEASE_WAIT) {
		tell(l, false, 0);
		return;
	}
	lease_write(&l->seen, l->holder, clock_wall_ns(), &body);
	begin_ns = clock_mono_ns();
	if (ask(l, KUBE_MERGE, l->path, &body) == 200 && read_answer(l))
		tell(l, true, begin_ns + FENCE_NS);
	buf_fini(&body);
}

static void *run(void *arg)
{
	struct lease *l = arg;

	/* A holder that does not step gives way. */
	do
		if (clock_mono_ns() - atomic_load(&l->asked_ns) <= HANG_NS)
			round_of(l);
	while (kube_writer_wait(&l->writer, RENEW_NS));
	return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

int lease_start(struct lease **out, const struct lease_options *o, struct error *error)
{
	struct lease *l = mem_zalloc(1, sizeof(*l));
	int rc;

	l->name = o->name;
	l->holder = o->holder;
	l->asked_ns = clock_mono_ns();
	l->folder = mem_printf("/apis/coordination.k8s.io/v1/namespaces/%s/leases", o->namespace);
	l->path = mem_printf("%s/%s", l->folder, o->name);
	pthread_mutex_init(&l->lock, NULL);
	rc = kube_writer_start(&l->writer, o->config, "the lease is not renewed", run, l, error);
	if (rc)
		lease_stop(l);
	else
		*out = l;
	return rc;
}

void lease_stop(struct lease *l)
{
	if (!l)
		return;
	kube_writer_stop(&l->writer);
	pthread_mutex_destroy(&l->lock);
	free(l->folder);
	free(l->path);
	free(l);
}

void lease_get(struct lease *l, struct lease_state *out)
{
	atomic_store(&l->asked_ns, clock_mono_ns());
	pthread_mutex_lock(&l->lock);
	*out = l->state;
	pthread_mutex_unlock(&l->lock);
}
