/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of 500 out of 150,000 pods costs a walk, not a sort of them all: twice as many items as the
 * page has are gathered, sorted, and cut to the page, whose last item then refuses what is behind
 * it. Every request walks the view anew and there is no state between requests, so a list that is
 * read page by page is as of several moments; each item that exists all along appears exactly once,
 * because pages continue after a name, not after a number.
 *
 * The continue token is base64url of NAMESPACE "\n" NAME "\n" NODE of the last item, of which none
 * can hold a newline.
 */
#include "aggregator/api/list.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/route.h"
#include "shared/hash.h"
#include "shared/mem.h"

#define TOKEN_VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING
#define TOKEN_MOST    4096

static bool read_limit(const char *text, struct list_query *q, struct api_response *rs)
{
	char *end;
	long value;

	if (!text)
		return true;
	errno = 0;
	value = strtol(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value < 1 || value > LIST_LIMIT_MOST)
		return api_fail(rs, FAIL_BAD_REQUEST, "limit",
				"limit \"%s\" is not a whole number from 1 to %d", text,
				LIST_LIMIT_MOST);
	q->limit = (size_t)value;
	return true;
}

static bool read_continue(const char *token, struct list_query *q, struct api_response *rs)
{
	char *text, *name, *node;
	size_t most, len;

	if (!token || !*token)
		return true;
	if (q->sort != LIST_BY_NAME)
		return api_fail(
			rs, FAIL_BAD_REQUEST, "continue",
			"only a list sorted by name can be continued: use changes meanwhile");
	most = strlen(token);
	text = mem_alloc(most + 1);
	if (most > TOKEN_MOST || sodium_base642bin((unsigned char *)text, most, token, most, NULL,
						   &len, NULL, TOKEN_VARIANT) != 0)
		len = 0;
	text[len] = '\0';
	name = strchr(text, '\n');
	node = name ? strchr(name + 1, '\n') : NULL;
	if (!node || strlen(text) != len) {
		free(text);
		return api_fail(rs, FAIL_BAD_REQUEST, "continue",
				"this is no token of an earlier answer");
	}
	*name = *node = '\0';
	q->after_namespace = text;
	q->after_name = name + 1;
	q->after_node = node + 1;
	return true;
}

/* An empty value is as good as none: scripts pass variables that may be empty. */
static const char *read_text(const struct api_request *rq, const char *name)
{
	const char *value = rq->query(rq, name);

	return value && *value ? value : NULL;
}

bool list_selector_read(const struct api_request *rq, struct selector **selector,
			struct api_response *rs)
{
	const char *text = read_text(rq, "labelSelector");
	struct error error = {""};

	if (!text || selector_parse(text, selector, &error) == 0)
		return true;
	return api_fail(rs, FAIL_BAD_REQUEST, "labelSelector", "%s", error.text);
}

bool list_query_read(const struct api_request *rq, const struct view *v, struct list_query *q,
		     struct api_response *rs)
{
	*q = (struct list_query){.limit = LIST_LIMIT_DEFAULT};
	q->node = read_text(rq, "node");
	q->namespace = rq->in_namespace ? rq->in_namespace : read_text(rq, "namespace");
	q->sort = (enum list_sort)api_query_choice(rq, "sort", api_sorts);
	if (read_limit(read_text(rq, "limit"), q, rs) &&
	    read_continue(read_text(rq, "continue"), q, rs) &&
	    list_selector_read(rq, &q->selector, rs)) {
		if (!q->selector || v->cluster)
			return true;
		api_fail(rs, FAIL_BAD_REQUEST, "labelSelector",
			 "labels are unknown here: no Kubernetes API is followed");
	}
	list_query_fini(q);
	return false;
}

void list_query_fini(struct list_query *q)
{
	free(q->after_namespace);
	selector_free(q->selector);
	*q = (struct list_query){0};
}

const struct labels *list_node_labels(const struct view_node *n)
{
	static const struct labels none;

	return n && n->model && n->model->node ? &n->model->node->labels : &none;
}

static bool is_pod(const struct list_item *item)
{
	return item->pod.pod || item->pod.use;
}

static const char *item_namespace(const struct list_item *item)
{
	return is_pod(item) ? view_pod_namespace(&item->pod) : "";
}

static const char *item_name(const struct list_item *item)
{
	return is_pod(item) ? view_pod_name(&item->pod) : item->node->name;
}

static const char *item_node(const struct list_item *item)
{
	return item->node ? item->node->name : "";
}

static int compare_names(const struct list_item *a, const char *namespace, const char *name,
			 const char *node)
{
	return strcmp(item_namespace(a), namespace)
		?: strcmp(item_name(a), name)
		?: strcmp(item_node(a), node);
}

/* Unknown sorts below any use. */
static double item_use(const struct list_item *item, enum list_sort sort)
{
	const struct latest_usage *u = !is_pod(item)   ? &item->node->stats->usage.latest
				       : item->pod.use ? &item->pod.use->usage.latest
						       : NULL;
	const struct latest *l = !u ? NULL : sort == LIST_BY_CPU ? &u->cpu_milli : &u->mem_bytes;

	return l && l->known && l->value >= 0 ? (double)l->value : -1;
}

/* For qsort_r(): below 0: a comes first. */
static int compare_items(const void *left, const void *right, void *by)
{
	const struct list_item *a = left, *b = right;
	enum list_sort sort = *(const enum list_sort *)by;

	if (sort != LIST_BY_NAME) {
		double use_a = item_use(a, sort), use_b = item_use(b, sort);

		if (use_a != use_b)
			return use_a > use_b ? -1 : 1;
	}
	return compare_names(a, item_namespace(b), item_name(b), item_node(b));
}

void list_pick_init(struct list_pick *p, const struct list_query *q)
{
	*p = (struct list_pick){.query = q};
	p->items = mem_zalloc(q->limit, 2 * sizeof(*p->items));
}

void list_pick_fini(struct list_pick *p)
{
	free(p->items);
}

/* Whether the items that are sure to be before it fill the limit. */
static bool is_past(const struct list_pick *p, const struct list_item *item)
{
	const struct list_query *q = p->query;

	return p->more && compare_items(item, &p->items[q->limit - 1], (void *)&q->sort) >= 0;
}

void list_pick_offer(struct list_pick *p, struct list_item item)
{
	const struct list_query *q = p->query;

	if ((q->after_name &&
	     compare_names(&item, q->after_namespace, q->after_name, q->after_node) <= 0) ||
	    is_past(p, &item))
		return;
	p->items[p->count++] = item;
	if (p->count == 2 * q->limit)
		list_pick_sort(p);
}

bool list_pick_is_past(const struct list_pick *p, const struct list_item *item)
{
	return p->query->sort == LIST_BY_NAME && is_past(p, item);
}

void list_pick_sort(struct list_pick *p)
{
	const struct list_query *q = p->query;

	qsort_r(p->items, p->count, sizeof(*p->items), compare_items, (void *)&q->sort);
	p->more |= p->count > q->limit;
	if (p->count > q->limit)
		p->count = q->limit;
}

void list_write_continue(struct jsonw *w, const char *namespace, const char *name, const char *node)
{
	char *plain = mem_printf("%s\n%s\n%s", namespace, name, node);
	size_t len = strlen(plain);
	size_t size = sodium_base64_encoded_len(len, TOKEN_VARIANT);
	char *token = mem_alloc(size);

	sodium_bin2base64(token, size, (const unsigned char *)plain, len, TOKEN_VARIANT);
	jsonw_key_string(w, "continue", token);
	free(token);
	free(plain);
}

void list_answer_open(struct api_response *rs, struct jsonw *w, const char *kind, int64_t now_ns)
{
	rs->content_type = "application/json";
	jsonw_begin(w, &rs->body);
	jsonw_key_string(w, "apiVersion", "evenkeel.io/v1");
	jsonw_key_string(w, "kind", kind);
	jsonw_key_time(w, "time", now_ns);
}

void list_answer_close(struct jsonw *w)
{
	jsonw_object_close(w);
	buf_add_char(w->out, '\n');
}

void list_write_lines(struct jsonw *w, const char *key, const char *text)
{
	struct buf line = BUF_INIT;

	jsonw_key_array(w, key);
	while (text && *text) {
		size_t len = strcspn(text, "\n");

		buf_clear(&line);
		buf_add(&line, text, len);
		jsonw_string(w, line.data ? line.data : "");
		text += len + (text[len] == '\n');
	}
	jsonw_array_close(w);
	buf_fini(&line);
}

void list_write_pod_use(struct jsonw *w, bool shared)
{
	if (shared)
		jsonw_key_string(w, "podUse", "shared out of their nodes");
}

void list_write_close(struct jsonw *w, const struct list_pick *p)
{
	const struct list_item *last = p->count ? &p->items[p->count - 1] : NULL;

	if (last && p->more && p->query->sort == LIST_BY_NAME)
		list_write_continue(w, item_namespace(last), item_name(last), item_node(last));
	list_answer_close(w);
}

uint64_t list_etag(const struct view *v, int64_t now_ns)
{
	uint64_t hash = hash_bytes(HASH_BEGIN, &v->version, sizeof(v->version));

	hash = hash_bytes(hash, &v->time_ns, sizeof(v->time_ns));
	for (size_t i = 0; i < v->node_count; i++) {
		uint8_t freshness = (uint8_t)node_stats_freshness(v->nodes[i]->stats, now_ns);

		hash = hash_bytes(hash, &freshness, sizeof(freshness));
	}
	return hash ? hash : 1;
}
