/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/slack_fixture.h"
#include "tests/view_fixture.h"

const struct slack_class *slack_class_of(const struct slack_result *r, place_pod pod)
{
	for (size_t i = 0; i < r->placed_count; i++)
		if (r->placed[i].pod == pod)
			return &r->classes[r->placed[i].class];
	return NULL;
}

static size_t first_from(const struct slack_result *r, place_node n)
{
	size_t low = 0, high = r->placed_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->placed[middle].node < n)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct slack_placed *slack_on_node(const struct slack_result *r, place_node n, size_t *count)
{
	size_t first = first_from(r, n);

	*count = 0;
	while (first + *count < r->placed_count && r->placed[first + *count].node == n)
		++*count;
	return *count ? &r->placed[first] : NULL;
}

void slack_put(const struct slack_result *r, struct place *p, place_pod *pods)
{
	for (size_t i = 0; i < r->placed_count; i++) {
		place_pod pod = place_add_pod(p, r->classes[r->placed[i].class].record);

		place_put(p, pod, r->placed[i].node);
		if (pods)
			pods[i] = pod;
	}
}

void slack_fixture_init(struct slack_fixture *f)
{
	*f = (struct slack_fixture){.state = slack_state_new(), .now_ns = VIEW_FIXTURE_NOW_NS};
	place_fixture_init(&f->world);
	slack_options_default(&f->options);
	f->options.rate_ppm = 0;
}

void slack_fixture_fini(struct slack_fixture *f)
{
	slack_result_fini(&f->result);
	place_free(f->place);
	view_drop(f->view);
	slack_state_free(f->state);
	place_fixture_fini(&f->world);
}

void slack_fixture_node(struct slack_fixture *f, const char *name, const char *zone,
			const char *cpu, const char *memory, const char *spec)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','labels':{'zone':'%s','kubernetes.io/hostname':'%s'}},"
		"'spec':{%s},'status':{'allocatable':{'cpu':'%s','memory':'%s','pods':'110'},"
		"'conditions':[{'type':'Ready','status':'True'}]}}",
		name, zone, name, spec, cpu, memory);

	place_fixture_put(&f->world, OBJECT_NODE, json);
	free(json);
}

void slack_fixture_pod(struct slack_fixture *f, const char *name, const char *node, const char *cpu,
		       const char *memory, const char *head)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','namespace':'shop'%s},'spec':{'nodeName':'%s',"
		"'containers':[{'name':'c','resources':{'requests':{'cpu':'%s','memory':'%s'}}}]}}",
		name, head, node, cpu, memory);

	place_fixture_put(&f->world, OBJECT_POD, json);
	free(json);
}

void slack_fixture_workload(struct slack_fixture *f, const char *name, const char *slack,
			    int replicas, const char *cpu, const char *memory, const char *spec)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','namespace':'shop','uid':'uid-%s','annotations':{"
		"'evenkeel.io/slack':'%s'}},'spec':{'replicas':%d,'template':{'metadata':{"
		"'labels':{'app':'%.63s'}},'spec':{%s'containers':[{'name':'c','resources':{"
		"'requests':{'cpu':'%s','memory':'%s'}}}]}}}}",
		name, name, slack, replicas, name, spec, cpu, memory);

	place_fixture_put(&f->world, OBJECT_REPLICA_SET, json);
	free(json);
}

void slack_fixture_check(struct view *v, const struct slack_result *r, int64_t now_ns)
{
	place_pod *pods = mem_zalloc(r->placed_count + 1, sizeof(*pods));
	struct place_options o;
	struct place *p;

	place_options_default(&o);
	o.cap.on = false;
	o.now_ns = now_ns;
	p = place_new(v, &o);
	slack_put(r, p, pods);
	for (size_t i = 0; i < r->placed_count; i++) {
		struct error error = {""};

		place_take(p, pods[i]);
		if (place_explain(p, pods[i], r->placed[i].node, &error) != PLACE_FITS)
			fail_msg("%s on %s: %s", r->classes[r->placed[i].class].key,
				 place_node_name(p, r->placed[i].node), error.text);
		place_put(p, pods[i], r->placed[i].node);
	}
	place_free(p);
	free(pods);
}

static void check_sums(const struct slack_result *r)
{
	size_t placed = 0, held = 0;

	for (size_t i = 0; i < r->class_count; i++) {
		assert_int_equal(r->classes[i].placed + r->classes[i].unplaced,
				 r->classes[i].wanted);
		placed += r->classes[i].placed;
		held += r->classes[i].balloons;
	}
	assert_in_range(r->placed_count, placed > held ? placed - held : 0, placed);
	if (!held)
		assert_int_equal(placed, r->placed_count);
}

const struct slack_result *slack_fixture_step(struct slack_fixture *f)
{
	struct error error = {""};
	struct place_options o;

	view_drop(f->view);
	f->view = place_fixture_view(&f->world, f->node_stats, f->stats_count);
	place_options_default(&o);
	o.cap.on = false;
	o.now_ns = f->now_ns;
	if (f->place)
		place_update(f->place, f->view, f->now_ns);
	else
		f->place = place_new(f->view, &o);
	slack_result_fini(&f->result);
	if (slack_step(f->state, f->place, f->view, f->now_ns, &f->options, &f->result, &error))
		fail_msg("%s", error.text);
	if (!place_is_consistent(f->place, &error))
		fail_msg("%s", error.text);
	check_sums(&f->result);
	slack_fixture_check(f->view, &f->result, f->now_ns);
	return &f->result;
}

const struct slack_class *slack_fixture_class(const struct slack_fixture *f, const char *key)
{
	for (size_t i = 0; i < f->result.class_count; i++)
		if (strcmp(f->result.classes[i].key, key) == 0)
			return &f->result.classes[i];
	fail_msg("no class %s:\n%s", key, f->result.narration.data);
	return NULL;
}

const char *slack_fixture_where(const struct slack_fixture *f)
{
	static char text[4096];
	const struct slack_result *r = &f->result;
	size_t len = 0;

	for (place_node n = 0; n < f->view->node_count; n++) {
		size_t count;
		const struct slack_placed *at = slack_on_node(r, n, &count);

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s:", n ? " " : "",
					f->view->nodes[n]->name);
		for (size_t i = 0; i < count; i++) {
			const char *key = r->classes[at[i].class].key;
			const char *slash = strrchr(key, '/');

			len += (size_t)snprintf(text + len, sizeof(text) - len, " %s",
						slash ? slash + 1 : key);
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len, ";");
	}
	return text;
}
