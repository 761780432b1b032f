/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads are found by key in a hash. A table is a sorted copy, made once a minute, when
 * join_owners.c notes its owners. Readers may hold it.
 */
#include "aggregator/state/workload_memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/refs.h"
#include "shared/utf8.h"

#define SECOND_NS 1000000000LL
#define KEEP_NS	  (WORKLOAD_DAYS * 86400 * SECOND_NS)
/* No machine has more; exact in JSON. */
#define AMOUNT_MAX 1e15

struct workload {
	struct workload_use use; /* the key is owned */
	UT_hash_handle hh;
};

struct workload_memory {
	struct workload *hash;
};

/* --- names ------------------------------------------------------------------------------------ */

/* How long the name is without what its controller added to it. */
static size_t own_length(const struct owner_ref *owner, const char *template_hash)
{
	const char *dash = strrchr(owner->name, '-');
	size_t digits;

	if (!dash || dash == owner->name)
		return strlen(owner->name);
	digits = strspn(dash + 1, "0123456789");
	if ((strcmp(owner->kind, "ReplicaSet") == 0 && template_hash &&
	     strcmp(dash + 1, template_hash) == 0) ||
	    (strcmp(owner->kind, "Job") == 0 && digits >= 8 && !dash[1 + digits]))
		return (size_t)(dash - owner->name);
	return strlen(owner->name);
}

void workload_key(const char *namespace, const struct owner_ref *owner, const char *template_hash,
		  char key[WORKLOAD_KEY_MAX + 1])
{
	size_t len = own_length(owner, template_hash);
	bool shortened = owner->name[len];
	const char *kind = !shortened			     ? owner->kind
			   : strcmp(owner->kind, "Job") == 0 ? "CronJob"
							     : "Deployment";
	int written = -1;

	if (*owner->name)
		written = snprintf(key, WORKLOAD_KEY_MAX + 1, "%s/%s/%.*s", namespace, kind,
				   (int)len, owner->name);
	if (written < 0 || written > WORKLOAD_KEY_MAX)
		*key = '\0';
}

void workload_key_of(const struct kube_pod *pod, char key[WORKLOAD_KEY_MAX + 1])
{
	workload_key(pod->object.namespace, &pod->template->owner,
		     labels_find(&pod->template->labels, "pod-template-hash"), key);
}

/* --- what is remembered ----------------------------------------------------------------------- */

struct workload_memory *workload_memory_new(void)
{
	return mem_zalloc(1, sizeof(struct workload_memory));
}

static void forget(struct workload_memory *m, struct workload *w)
{
	/* It is in the hash, whose list uthash keeps. */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference,clang-analyzer-unix.Malloc) */
	HASH_DEL(m->hash, w);
	free((char *)w->use.key);
	free(w);
}

void workload_memory_free(struct workload_memory *m)
{
	struct workload *w, *next;

	if (!m)
		return;
	HASH_ITER(hh, m->hash, w, next)
	{
		forget(m, w);
	}
	free(m);
}

void workload_memory_note(struct workload_memory *m, const struct workload_use *use)
{
	double before, all;
	struct workload *w;

	HASH_INTERN(m->hash, w, use.key, use->key);
	if (w->use.seen_ns != use->seen_ns)
		w->use.pods = 0;
	before = w->use.pods;
	all = before + use->pods > 0 ? before + use->pods : 1;
	w->use.cpu_milli = (w->use.cpu_milli * before + use->cpu_milli * use->pods) / all;
	w->use.cpu_p95_milli =
		(w->use.cpu_p95_milli * before + use->cpu_p95_milli * use->pods) / all;
	w->use.working_set_bytes =
		(w->use.working_set_bytes * before + use->working_set_bytes * use->pods) / all;
	w->use.seen_ns = use->seen_ns;
	w->use.pods += use->pods;
}

static int newest_first(struct workload *a, struct workload *b)
{
	if (a->use.seen_ns != b->use.seen_ns)
		return a->use.seen_ns > b->use.seen_ns ? -1 : 1;
	return strcmp(a->use.key, b->use.key);
}

static void forget_old(struct workload_memory *m, int64_t now_ns)
{
	struct workload *w, *next;
	size_t count = 0;

	if (HASH_COUNT(m->hash) > WORKLOADS_MAX)
		HASH_SORT(m->hash, newest_first);
	HASH_ITER(hh, m->hash, w, next)
	{
		if (++count > WORKLOADS_MAX || now_ns - w->use.seen_ns > KEEP_NS)
			forget(m, w);
		else if (w->use.seen_ns > now_ns) /* the clock was set back: else never too old */
			w->use.seen_ns = now_ns;
	}
}

/* The hash is not empty where an item of it was freed: uthash moves its head. */
/* NOLINTBEGIN(clang-analyzer-unix.Malloc) */
struct workload_table *workload_memory_table(struct workload_memory *m, int64_t now_ns)
{
	struct workload_table *t;
	struct workload *w;
	size_t size = 0;
	char *text;

	forget_old(m, now_ns);
	for (w = m->hash; w; w = w->hh.next)
		size += strlen(w->use.key) + 1;
	t = mem_alloc(sizeof(*t) + HASH_COUNT(m->hash) * sizeof(t->of[0]));
	atomic_init(&t->users, 1);
	t->text = text = mem_alloc(size + 1);
	t->count = 0;
	for (w = m->hash; w; w = w->hh.next) {
		struct workload_use *use = &t->of[t->count++];

		*use = w->use;
		use->key = mem_put_text(&text, w->use.key);
	}
	array_sort(t->of, t->count, sizeof(t->of[0]), array_compare_text);
	return t;
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

struct workload_table *workload_table_hold(struct workload_table *t)
{
	if (t)
		refs_hold(&t->users);
	return t;
}

void workload_table_drop(struct workload_table *t)
{
	if (!t || !refs_drop(&t->users))
		return;
	free(t->text);
	free(t);
}

const struct workload_use *workload_table_find(const struct workload_table *t, const char *key)
{
	return t ? array_search_name(t->of, t->count, sizeof(t->of[0]), key) : NULL;
}

/* --- as JSON ---------------------------------------------------------------------------------- */

void workload_table_write_list(const struct workload_table *t, struct jsonw *w)
{
	jsonw_array_open(w);
	for (size_t i = 0; t && i < t->count; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "key", t->of[i].key);
		jsonw_key_fixed(w, "cpuMillicores", t->of[i].cpu_milli, 3);
		jsonw_key_fixed(w, "cpuP95Millicores", t->of[i].cpu_p95_milli, 3);
		jsonw_key_fixed(w, "workingSetBytes", t->of[i].working_set_bytes, 0);
		jsonw_key_int(w, "seen", t->of[i].seen_ns / SECOND_NS);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

void workload_table_write(const struct workload_table *t, struct buf *out)
{
	struct jsonw w;

	jsonw_begin(&w, out);
	jsonw_key(&w, "workloads");
	workload_table_write_list(t, &w);
	jsonw_object_close(&w);
}

static bool read_amount(const cJSON *item, const char *name, double *out)
{
	const cJSON *number = cJSON_GetObjectItemCaseSensitive(item, name);

	if (!cJSON_IsNumber(number) ||
	    !(number->valuedouble >= 0 && number->valuedouble <= AMOUNT_MAX))
		return false;
	*out = number->valuedouble;
	return true;
}

/* False: it is no workload. The key lives in the item. */
static bool read_workload(const cJSON *item, struct workload_use *use)
{
	const cJSON *key = cJSON_GetObjectItemCaseSensitive(item, "key");
	double seen;

	*use = (struct workload_use){.pods = 1};
	if (!cJSON_IsString(key) || !*key->valuestring ||
	    strlen(key->valuestring) > WORKLOAD_KEY_MAX ||
	    !utf8_is_valid(key->valuestring, strlen(key->valuestring)) ||
	    !read_amount(item, "cpuMillicores", &use->cpu_milli) ||
	    !read_amount(item, "cpuP95Millicores", &use->cpu_p95_milli) ||
	    !read_amount(item, "workingSetBytes", &use->working_set_bytes) ||
	    !read_amount(item, "seen", &seen) || seen > 9e9)
		return false;
	use->key = key->valuestring;
	use->seen_ns = (int64_t)seen * SECOND_NS;
	return true;
}

int workload_memory_read(struct workload_memory *m, const char *text, size_t len,
			 struct error *error)
{
	cJSON *tree = cJSON_ParseWithLength(text, len);
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, "workloads"), *item;
	struct workload_use use;
	size_t index = 0;
	bool good = cJSON_IsArray(list);

	if (!good)
		error_set(error, "workloads: must be a list");
	for (item = good ? list->child : NULL; good && item; item = item->next, index++) {
		good = index < WORKLOADS_MAX && read_workload(item, &use);
		if (!good)
			error_set(error,
				  "workloads[%zu]: is no workload with key, amounts and "
				  "time, or one too many",
				  index);
	}
	for (item = good ? list->child : NULL; item; item = item->next)
		if (read_workload(item, &use))
			workload_memory_note(m, &use);
	cJSON_Delete(tree);
	return good ? 0 : -EINVAL;
}
