/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/place_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

static char *with_quotes(const char *text)
{
	char *copy = mem_strdup(text);

	for (char *at = copy; *at; at++)
		if (*at == '\'')
			*at = '"';
	return copy;
}

void place_fixture_init(struct place_fixture *f)
{
	*f = (struct place_fixture){.model = model_new(), .join = join_new()};
	for (int k = 0; k < OBJECT_KINDS; k++)
		model_fixture_sync(f->model, (enum object_kind)k);
}

void place_fixture_fini(struct place_fixture *f)
{
	place_free(f->place);
	join_free(f->join);
	model_free(f->model);
}

static struct object *read_object(enum object_kind kind, const char *json)
{
	char *text = with_quotes(json);
	struct object *o = model_fixture_object(kind, text);

	free(text);
	return o;
}

void place_fixture_put(struct place_fixture *f, enum object_kind kind, const char *json)
{
	model_put(f->model, read_object(kind, json));
}

void place_fixture_node(struct place_fixture *f, const char *name, const char *labels,
			const char *spec)
{
	char *json = mem_printf("{'metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s'"
				"%s%s}},'spec':{%s},'status':{'allocatable':{'cpu':'4',"
				"'memory':'8Gi','pods':'110'}}}",
				name, name, *labels ? "," : "", labels, spec);

	place_fixture_put(f, OBJECT_NODE, json);
	free(json);
}

struct kube_pod *place_fixture_record(const char *name, const char *node, const char *labels,
				      const char *spec)
{
	bool own = strstr(spec, "'containers'") != NULL;
	char *json = mem_printf("{'metadata':{'namespace':'default','name':'%s','uid':'uid-%s',"
				"'labels':{%s}},'spec':{'nodeName':'%s'%s%s%s}}",
				name, name, labels, node,
				own ? ""
				    : ",'containers':[{'name':'c','resources':{'requests':{"
				      "'cpu':'100m','memory':'128Mi'}}}]",
				*spec ? "," : "", spec);
	struct object *o = read_object(OBJECT_POD, json);

	free(json);
	return (struct kube_pod *)o;
}

void place_fixture_pod(struct place_fixture *f, const char *name, const char *node,
		       const char *labels, const char *spec)
{
	model_put(f->model, &place_fixture_record(name, node, labels, spec)->object);
}

void place_fixture_remove(struct place_fixture *f, enum object_kind kind, const char *namespace,
			  const char *name)
{
	if (model_remove(f->model, kind, namespace, name))
		abort();
}

struct view *place_fixture_view(struct place_fixture *f, struct node_stats *const *node_stats,
				size_t count)
{
	return join_view(f->join, node_stats, count, model_cluster(f->model), VIEW_FIXTURE_NOW_NS);
}

struct place *place_fixture_build(struct place_fixture *f)
{
	struct view *v = place_fixture_view(f, NULL, 0);
	struct place_options o;

	place_options_default(&o);
	o.now_ns = VIEW_FIXTURE_NOW_NS;
	place_free(f->place);
	f->place = place_new(v, &o);
	view_drop(v);
	return f->place;
}

const char *place_fixture_ask(struct place *p, const char *pod, const char *node)
{
	place_pod handle = place_find_pod(p, "default", pod);
	place_node n = place_find_node(p, node);
	struct error why;
	enum place_filter f;

	if (handle == PLACE_NONE || n == PLACE_NONE) {
		fprintf(stderr, "no pod %s, or no node %s\n", pod, node);
		abort();
	}
	f = place_check(p, handle, n);
	if (place_explain(p, handle, n, &why) != f ||
	    strncmp(why.text, place_filter_name(f), strlen(place_filter_name(f))) != 0) {
		fprintf(stderr, "%s is explained as: %s\n", place_filter_name(f), why.text);
		abort();
	}
	return place_filter_name(f);
}

char *place_fixture_describe(const struct place *p, const char *const *pods, size_t count)
{
	struct buf b = BUF_INIT;

	buf_add_str(&b, "");
	for (size_t i = 0; i < count; i++) {
		place_pod pod = place_find_pod(p, "default", pods[i]);
		place_node n = pod == PLACE_NONE ? PLACE_NONE : place_where(p, pod);

		buf_printf(&b, "%s%s=%s", i ? " " : "", pods[i],
			   pod == PLACE_NONE ? "?"
			   : n == PLACE_NONE ? "-"
					     : place_node_name(p, n));
	}
	return buf_take(&b, NULL);
}
