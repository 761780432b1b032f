/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/drain_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shared/mem.h"

void drain_world_init(struct drain_world *w)
{
	*w = (struct drain_world){.state = drain_state_new()};
	place_fixture_init(&w->cluster);
	drain_config_default(&w->config);
}

void drain_world_fini(struct drain_world *w)
{
	drain_plan_free(w->plan);
	drain_state_free(w->state);
	for (size_t i = 0; i < w->stats_count; i++)
		node_stats_drop(w->stats[i]);
	place_fixture_fini(&w->cluster);
}

/* Takes the text over. */
static void put(struct drain_world *w, enum object_kind kind, char *json)
{
	place_fixture_put(&w->cluster, kind, json);
	free(json);
}

void drain_world_node_with(struct drain_world *w, const char *name, const char *labels,
			   const char *annotations, const char *spec)
{
	put(w, OBJECT_NODE,
	    mem_printf(
		    "{'metadata':{'name':'%s','uid':'uid-%s','labels':{'kubernetes.io/hostname':"
		    "'%s'%s%s},'annotations':{%s}},'spec':{%s},'status':{'allocatable':{'cpu':'4',"
		    "'memory':'8Gi','pods':'110'},'conditions':[{'type':'Ready','status':"
		    "'True'}]}}",
		    name, name, name, *labels ? "," : "", labels, annotations, spec));
}

void drain_world_node(struct drain_world *w, const char *name)
{
	drain_world_node_with(w, name, "", "", "");
}

void drain_world_owner(struct drain_world *w, const char *name, int replicas)
{
	put(w, OBJECT_REPLICA_SET,
	    mem_printf("{'metadata':{'namespace':'default','name':'%s','uid':'rs-%s'},'spec':{"
		       "'replicas':%d},'status':{'replicas':%d}}",
		       name, name, replicas, replicas));
}

void drain_world_pod_with(struct drain_world *w, const char *name, const char *owner,
			  const char *node, int cpu_milli, bool ready, const char *spec)
{
	put(w, OBJECT_POD,
	    mem_printf("{'metadata':{'namespace':'default','name':'%s','uid':'uid-%s','labels':{"
		       "'app':'%s'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet',"
		       "'name':'%s','uid':'rs-%s','controller':true}]},'spec':{'nodeName':'%s',"
		       "'containers':[{'name':'c','resources':{'requests':{'cpu':'%dm','memory':"
		       "'128Mi'}}}]%s%s},'status':{'phase':'%s','conditions':[{'type':'Ready',"
		       "'status':'%s'}]}}",
		       name, name, owner, owner, owner, node, cpu_milli, *spec ? "," : "", spec,
		       *node ? "Running" : "Pending", ready ? "True" : "False"));
}

void drain_world_pod(struct drain_world *w, const char *name, const char *owner, const char *node,
		     int cpu_milli)
{
	drain_world_pod_with(w, name, owner, node, cpu_milli, true, "");
}

void drain_world_budget(struct drain_world *w, const char *owner, int allowed)
{
	put(w, OBJECT_POD_DISRUPTION_BUDGET,
	    mem_printf("{'metadata':{'namespace':'default','name':'%s'},'spec':{'selector':{"
		       "'matchLabels':{'app':'%s'}},'unhealthyPodEvictionPolicy':'AlwaysAllow'},"
		       "'status':{'disruptionsAllowed':%d}}",
		       owner, owner, allowed));
}

void drain_world_step(struct drain_world *w, int64_t now_ns)
{
	struct view *v = place_fixture_view(&w->cluster, w->stats, w->stats_count);
	struct place_options o;

	place_options_default(&o);
	o.now_ns = now_ns;
	place_free(w->cluster.place);
	w->cluster.place = place_new(v, &o);
	w->input.place = w->cluster.place;
	w->input.view = v;
	w->input.now_ns = now_ns;
	drain_plan_free(w->plan);
	w->plan = drain_step(w->state, &w->input, &w->config);
	view_drop(v);
}

const struct drain_plan_node *drain_world_get(const struct drain_world *w, const char *name)
{
	const struct drain_plan_node *n = drain_plan_find(w->plan, name);

	assert_non_null(n);
	return n;
}

void drain_world_verdict(const struct drain_world *w, const char *name, const char *verdict)
{
	assert_string_equal(drain_verdict_name(drain_world_get(w, name)->verdict), verdict);
}

void drain_world_reason(const struct drain_world *w, const char *name, size_t number,
			const char *code, const char *text)
{
	const struct drain_plan_node *n = drain_world_get(w, name);

	assert_true(number < n->reason_count);
	assert_string_equal(drain_reason_name(n->reasons[number].code), code);
	assert_string_equal(n->reasons[number].text, text);
}
