/* SPDX-License-Identifier: Apache-2.0 */
/*
 * every 5 s: the newest view --> quotas with another status.used --PATCH, one by one--> the API
 *
 * Server-side apply as field manager "evenkeel", without force, of status.used alone. If another
 * manager owns it (the controller of scheduler-plugins), the API answers 409, nothing changes, and
 * that quota waits ten minutes. To give it to evenkeel, stop that controller and remove its entry
 * of metadata.managedFields. A resource in status.used that evenkeel does not apply and never owned
 * stays there after a 200: that quota waits ten minutes, too, until the resource is removed by hand.
 *
 * The value is what the scheduler counts: requests of pods with a node, with overhead and
 * sidecars, and 0 for other resources of min and max; without reservations (quota.h has the
 * other variant). It is written only while the model is in sync. The watch returns the status, and
 * a missed change is written five seconds later, so the only memory is the backoff set.
 *
 * A failure of one quota (a missing rule in one namespace, a failing webhook) makes that quota
 * wait a minute, and the next is written. If the API is not reached, rejects the credential, or
 * asks to wait, all quotas wait a minute. Each kind of failure is logged once in a row.
 */
#include "aggregator/edge/kube/status_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/kube_writer.h"
#include "aggregator/model/object_json.h"
#include "shared/clock.h"
#include "shared/hash.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/mem.h"

#define EVERY_NS  (5 * NS_PER_SEC)
#define PACE_NS	  (50 * NS_PER_MS) /* between two requests */
#define DENIED_NS (60 * NS_PER_SEC)
#define OTHERS_NS (600 * NS_PER_SEC)

struct status_writer {
	struct kube_writer writer;

	/* fixed after start */
	struct view_slot *views;
	const struct quota_options *options;
	struct quota_counters *counters;

	/* the thread's */
	struct backoff_set backoff; /* quotas by "NAMESPACE/NAME" */
	bool denied; /* the last round was; logged */
	bool refused; /* one of the last round was; logged */
};

/* --- the request ------------------------------------------------------------------------------ */

static bool is_same(const cJSON *used, const struct resources *wanted)
{
	char field[OBJECT_FIELD_MAX];
	struct error why;
	struct object_fault fault = {field, sizeof(field), &why, false};
	const struct object_json of = {used, &fault, NULL, "", 0};
	struct resources there = RESOURCES_NONE;
	bool same;

	object_json_resources(&of, "used", &there);
	same = !fault.found && resources_equal(&there, wanted);
	resources_fini(&there);
	return same;
}

static void write_body(struct jsonw *w, const cJSON *json, const struct object *object,
		       const struct resources *used)
{
	const char *name;
	int64_t amount;

	jsonw_object_open(w);
	jsonw_key_string(w, "apiVersion",
			 cJSON_GetStringValue(object_json_find(json, "apiVersion")));
	jsonw_key_string(w, "kind", "ElasticQuota");
	jsonw_key_object(w, "metadata");
	jsonw_key_string(w, "namespace", object->namespace);
	jsonw_key_string(w, "name", object->name);
	jsonw_object_close(w);
	jsonw_key_object(w, "status");
	jsonw_key_object(w, "used");
	for (size_t at = 0; resources_next(used, &at, &name, &amount);) {
		struct quota_text text = quota_amount_text(name, amount);

		/*
		 * Quantities in canonical form: the API server takes "4.0" for "4", a comparison of
		 * texts does not.
		 */
		if (strcmp(name, "cpu") == 0)
			snprintf(text.text, sizeof(text.text), amount % 1000 ? "%lldm" : "%lld",
				 (long long)(amount % 1000 ? amount : amount / 1000));
		jsonw_key_string(w, name, text.text);
	}
	jsonw_object_close(w);
	jsonw_object_close(w);
	jsonw_object_close(w);
}

bool status_writer_request(const struct object *object, const struct resources *used,
			   struct buf *path, struct buf *body)
{
	cJSON *json = cJSON_Parse(object->text);
	const char *version = cJSON_GetStringValue(object_json_find(json, "apiVersion"));
	struct jsonw w;
	bool differs = version && !is_same(object_json_find(json, "status"), used);

	if (differs) {
		buf_printf(path,
			   "/apis/%s/namespaces/%s/elasticquotas/%s/status?fieldManager=evenkeel",
			   version, object->namespace, object->name);
		jsonw_init(&w, body);
		write_body(&w, json, object, used);
	}
	cJSON_Delete(json);
	return differs;
}

bool status_writer_leftover(const char *answer, const struct resources *used, char name[256])
{
	cJSON *json = cJSON_Parse(answer);
	const cJSON *item, *there = object_json_find(object_json_find(json, "status"), "used");
	bool found = false;
	int64_t amount;

	cJSON_ArrayForEach (item, there) {
		found = item->string && !resources_find(used, item->string, &amount);
		if (!found)
			continue;
		snprintf(name, 256, "%s", item->string);
		break;
	}
	cJSON_Delete(json);
	return found;
}

/* --- backoff ---------------------------------------------------------------------------------- */

struct backoff_set_entry {
	char *name; /* owned */
	int64_t until_ns;
	UT_hash_handle hh;
};

void backoff_set_fini(struct backoff_set *l)
{
	backoff_set_expire(l, INT64_MAX);
}

void backoff_set_add(struct backoff_set *l, const char *name, int64_t until_ns)
{
	struct backoff_set_entry *e;

	HASH_INTERN(l->entries, e, name, name);
	e->until_ns = until_ns;
}

bool backoff_set_has(const struct backoff_set *l, const char *name, int64_t now_ns)
{
	const struct backoff_set_entry *e;

	HASH_FIND_STR(l->entries, name, e);
	return e && e->until_ns > now_ns;
}

void backoff_set_expire(struct backoff_set *l, int64_t now_ns)
{
	struct backoff_set_entry *e, *next;

	HASH_ITER(hh, l->entries, e, next)
	{
		if (e->until_ns > now_ns)
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-*): uthash keeps the list, and it is in the hash */
		HASH_DEL(l->entries, e);
		free(e->name);
		free(e);
	}
}

size_t backoff_set_count(const struct backoff_set *l)
{
	/* NOLINTNEXTLINE(clang-analyzer-*): likewise */
	return HASH_COUNT(l->entries);
}

int64_t status_writer_rest_ns(long status)
{
	switch (status) {
	case 0: /* not reached */
	case 401:
	case 429:
	case 503:
		return -1;
	case 200:
	case 404: /* deleted meanwhile */
		return 0;
	case 409:
		return OTHERS_NS;
	default:
		return DENIED_NS;
	}
}

static void leave_alone(struct status_writer *w, const char *key, long status, int64_t now_ns)
{
	const char *answer = kube_writer_answer(&w->writer);

	backoff_set_add(&w->backoff, key, now_ns + status_writer_rest_ns(status));
	if (status == 409) {
		log_warn("the status of quota %s is another's: %s", key, answer);
		return;
	}
	if (!w->refused)
		log_warn("the status of quota %s is refused (%ld); next try in a minute: %s", key,
			 status, answer);
	w->refused = true;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* False: all quotas wait. */
static bool write_status(struct status_writer *w, const struct object *object,
			 const struct resources *used)
{
	char *key = mem_printf("%s/%s", object->namespace, object->name);
	struct buf path = BUF_INIT, body = BUF_INIT;
	int64_t now_ns = clock_mono_ns();
	char name[256];
	long status = 200;

	if (!backoff_set_has(&w->backoff, key, now_ns) &&
	    status_writer_request(object, used, &path, &body)) {
		status = kube_writer_send(&w->writer, KUBE_APPLY, path.data, &body);
		counter_add(status == 200 ? &w->counters->status_written
					  : &w->counters->status_failed,
			    1);
		if (status_writer_rest_ns(status) > 0)
			leave_alone(w, key, status, now_ns);
		else if (status == 200 &&
			 status_writer_leftover(kube_writer_answer(&w->writer), used, name)) {
			backoff_set_add(&w->backoff, key, now_ns + OTHERS_NS);
			log_warn("status.used[\"%s\"] of quota %s is another's; next write in ten "
				 "minutes: remove it by hand",
				 name, key);
		}
		if (status_writer_rest_ns(status) >= 0)
			kube_writer_wait(&w->writer, PACE_NS);
	}
	buf_fini(&path);
	buf_fini(&body);
	free(key);
	return status_writer_rest_ns(status) >= 0;
}

static bool is_in_sync(const struct view *v)
{
	return v->cluster && v->cluster->sources[OBJECT_ELASTIC_QUOTA].state == SOURCE_SYNCED &&
	       v->cluster->sources[OBJECT_POD].state == SOURCE_SYNCED;
}

/* False: all quotas wait. */
static bool write_all(struct status_writer *w, struct view *v)
{
	struct quota_book *b = quota_book_new(v, NULL, w->options);
	struct resources *used = quota_status_new(b, v);
	bool going = true;

	backoff_set_expire(&w->backoff, clock_mono_ns());
	w->refused = w->refused && backoff_set_count(&w->backoff);
	for (size_t i = 0; i < quota_book_count(b) && going && !kube_writer_stops(&w->writer);
	     i++) {
		const struct quota *q = quota_book_at(b, i);
		const struct object *object =
			cluster_find(v->cluster, OBJECT_ELASTIC_QUOTA, q->namespace, q->name);

		going = !object || write_status(w, object, &used[i]);
	}
	quota_status_free(b, used);
	quota_book_free(b);
	return going;
}

static void *run(void *arg)
{
	struct status_writer *w = arg;
	int64_t wait_ns = EVERY_NS;

	while (kube_writer_wait(&w->writer, wait_ns)) {
		struct view *v = view_slot_take(w->views);
		bool accepted = !is_in_sync(v) || write_all(w, v);

		view_drop(v);
		if (!accepted && !w->denied && !kube_writer_stops(&w->writer))
			log_warn("the status of quotas is not written; next try in a minute: %s",
				 kube_writer_answer(&w->writer));
		w->denied = !accepted;
		wait_ns = accepted ? EVERY_NS : DENIED_NS;
	}
	return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

int status_writer_start(struct status_writer **out, const struct kube_config *config,
			struct view_slot *views, const struct quota_options *options,
			struct quota_counters *counters, struct error *error)
{
	struct status_writer *w = *out = mem_zalloc(1, sizeof(*w));

	w->views = views;
	w->options = options;
	w->counters = counters;
	return kube_writer_start(&w->writer, config, "the status of quotas is not written", run, w,
				 error);
}

void status_writer_stop(struct status_writer *w)
{
	if (!w)
		return;
	kube_writer_stop(&w->writer);
	backoff_set_fini(&w->backoff);
	free(w);
}
