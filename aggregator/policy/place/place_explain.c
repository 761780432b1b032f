/* SPDX-License-Identifier: Apache-2.0 */
/* A sentence for each refusal, with its numbers. */
#include <stdio.h>
#include <string.h>

#include "aggregator/policy/place/place_internal.h"
#include "shared/buf.h"

static void tell_gone(struct place *p, const struct place_slot *s, place_node n,
		      struct error *error)
{
	const struct kube_node *node = p->nodes[n].object;
	unsigned int conditions = node ? place_ending(p, node) : 0;

	(void)s;
	if (!node)
		error_set(error, "the API knows no node %s", place_node_name(p, n));
	else if (conditions)
		error_set(error, "node %s has the condition %s", place_node_name(p, n),
			  node_lifecycle_name((enum node_lifecycle)__builtin_ctz(conditions)));
	else if (p->nodes[n].leaving)
		error_set(error, "node %s is in deletion", place_node_name(p, n));
	else
		error_set(error, "node %s is removed", place_node_name(p, n));
}

static void tell_fit(struct place *p, const struct place_slot *s, place_node n, struct error *error)
{
	const struct place_shape *shape = place_slot_shape(s);
	size_t at = (size_t)n * p->dim_room;

	if (place_free_of(p, n, RESOURCE_PODS) < 1) {
		error_set(error, "%lld of %lld pods are on the node",
			  (long long)p->used[at + RESOURCE_PODS],
			  (long long)p->available[at + RESOURCE_PODS]);
		return;
	}
	for (uint32_t i = 0; i < shape->count; i++) {
		uint32_t dim = shape->of[i].dim;

		if (shape->of[i].amount <= place_free_of(p, n, dim))
			continue;
		error_set(error, "%s%s: %lld requested, %lld free of %lld", place_dim_name(p, dim),
			  dim == RESOURCE_CPU ? " (millicores)" : "",
			  (long long)shape->of[i].amount, (long long)place_free_of(p, n, dim),
			  (long long)p->available[at + dim]);
		return;
	}
}

static void tell_taint(struct place *p, const struct place_slot *s, place_node n,
		       struct error *error)
{
	const struct taint *t = place_rules_untolerated(p, s->class->rules, n);

	if (t)
		error_set(error, "taint %.120s=%.120s:%s is not tolerated", t->key, t->value,
			  t->effect);
	else
		error_set(error, "the node has a taint whose effect is not known");
}

/* The domain of the node: "zone=a". */
static void tell_domain(const struct place *p, const struct place_counter *k, place_node n,
			char text[200])
{
	const struct place_key *key = &p->keys.of[k->key];
	const char *value = labels_find(&p->nodes[n].object->labels, key->name);

	snprintf(text, 200, "%.90s=%.90s", key->name, value ? value : "");
}

static void tell_anti(struct place *p, const struct place_slot *s, place_node n,
		      struct error *error)
{
	const struct place_counter *k = &p->counters.of[place_check_anti_affinity(p, s->class, n)];
	const struct place_key *key = &p->keys.of[k->key];
	uint32_t count = place_tally_get(&k->count, key->domain_of[n]);
	char where[200];

	tell_domain(p, k, n, where);
	if (k->kind == PLACE_COUNT_CARRIERS)
		error_set(error, "%u pods at %s will not have it beside them", count, where);
	else
		error_set(error, "%u pods at %s that it will not be beside", count, where);
}

static void tell_affinity(struct place *p, const struct place_slot *s, place_node n,
			  struct error *error)
{
	const struct place_counter *k = &p->counters.of[place_check_affinity(p, s->class, n)];
	const struct place_key *key = &p->keys.of[k->key];
	char where[200];

	tell_domain(p, k, n, where);
	if (key->domain_of[n] == PLACE_NONE)
		error_set(error, "the node has no label %s, by which pods should be together",
			  key->name);
	else
		error_set(error, "none of the pods it must be with is at %s; %u are elsewhere",
			  where, k->total);
}

static void tell_spread(struct place *p, const struct place_slot *s, place_node n,
			struct error *error)
{
	const struct place_spread *spread = place_check_spread(p, s->class, n);
	const struct place_counter *k = &p->counters.of[spread->counter];
	const struct place_key *key = &p->keys.of[k->key];
	uint32_t count;
	char where[200];

	if (key->domain_of[n] == PLACE_NONE) {
		error_set(error, "the node has no label %s, over which pods are spread", key->name);
		return;
	}
	tell_domain(p, k, n, where);
	count = place_tally_get(&k->count, key->domain_of[n]);
	error_set(error,
		  "%u pods at %s would become %u, the least of %u domains counts as %u, "
		  "maxSkew is %d",
		  count, where, count + spread->self, k->domains, place_spread_least(k, spread),
		  spread->max_skew);
}

static void tell_ports(struct place *p, const struct place_slot *s, place_node n,
		       struct error *error)
{
	const struct place_port *port = NULL;
	const struct place_slot *has = place_check_ports(p, s->class, n, &port);

	error_set(error, "port %d/%s of the host is taken by %s/%s", port->port, port->protocol,
		  has->record->object.namespace, has->record->object.name);
}

static void tell_volumes(struct place *p, const struct place_slot *s, place_node n,
			 struct error *error)
{
	const struct place_claim *claim = place_volumes_refuse(p, s->class, n);

	if (claim->missing)
		error_set(error, "%s", claim->missing);
	else if (place_claim_is_taken(claim))
		error_set(error, "claim %s is for one pod only (ReadWriteOncePod) and in use",
			  claim->key);
	else if (!claim->waits || claim->given)
		error_set(error, "volume %s of claim %s cannot be used on this node",
			  claim->given ? claim->given->name : claim->bound->name, claim->key);
	else if (claim->made_on || claim->given_on != PLACE_NONE)
		error_set(error, "the volume of claim %s is made on node %s", claim->key,
			  claim->made_on ? claim->made_on : place_node_name(p, claim->given_on));
	else if (claim->provisioned)
		error_set(error, "storage class %s makes no volume for claim %s on this node",
			  claim->class, claim->key);
	else
		error_set(error, "no free volume of class %s suits claim %s on this node",
			  claim->class, claim->key);
}

static void tell_limit(struct place *p, const struct place_slot *s, place_node n,
		       struct error *error)
{
	uint32_t used = 0;
	const struct csi_limit *limit = place_volumes_exceed(p, s->class, n, &used);

	error_set(error, "driver %.120s: %u of at most %d volumes are in use on the node",
		  limit->driver, used, limit->volumes);
}

static void tell_devices(struct place *p, const struct place_slot *s, place_node n,
			 struct error *error)
{
	place_allocate_ask(p, s, n, error);
}

static void tell_unknown(struct place *p, const struct place_slot *s, place_node n,
			 struct error *error)
{
	const struct place_class *c = s->class;
	uint32_t dim = place_check_backed(p, s, n);

	if (c->unknown || place_volumes_unknown(c))
		error_set(error, "%s", c->unknown ? c->unknown : place_volumes_unknown(c)->unknown);
	else if (dim != PLACE_NONE)
		error_set(error, "%s: a device class stands in for it, which is not judged",
			  place_dim_name(p, dim));
	else
		place_allocate_ask(p, s, n, error);
}

static void tell_use(struct place *p, const struct place_slot *s, place_node n, struct error *error)
{
	struct place_use_limits l;
	const char *of = "measured use";
	char hour[48];

	place_use_fits(p, n, &s->use, &l);
	if (l.hour >= 0) {
		snprintf(hour, sizeof(hour), "peaks between %02d:00 and %02d:00 UTC", l.hour,
			 (l.hour + 1) % PLACE_HOURS);
		of = hour;
	}
	if (l.cpu > l.cpu_limit)
		error_set(error, "PredictedUse cpu %.2f/%.2f cores by %s", l.cpu / 1000,
			  l.cpu_limit / 1000, of);
	else
		error_set(error, "PredictedUse memory %.0f/%.0f MiB by %s", l.mem / 1048576,
			  l.mem_limit / 1048576, of);
}

static void tell_silent(struct place *p, const struct place_slot *s, place_node n,
			struct error *error)
{
	(void)s;
	if (p->nodes[n].use_unknown)
		error_set(error, "the node's real use is not known (%s)",
			  freshness_name(node_stats_freshness(p->nodes[n].view->stats,
							      p->options.now_ns)));
	else
		error_set(error,
			  "the node's pods wait %.1f %% of the time, and more than %.1f %% "
			  "is too much",
			  100 * p->nodes[n].contention, 100 * p->options.cap.contention);
}

/* The first term that no node can match; NULL: none. */
static const struct place_requirement *find_dropped(const struct place_terms *t, uint32_t *term)
{
	for (*term = 0; *term < t->count; ++*term)
		for (uint32_t i = 0; i < t->of[*term].count; i++)
			if (t->of[*term].of[i].never)
				return &t->of[*term].of[i];
	return NULL;
}

/* "disk=ssd" of nodeSelector, or "disk In (ssd, nvme)". */
static void add_requirement(struct buf *out, const struct place_requirement *r)
{
	buf_printf(out, "%.100s %s", r->key, place_operators[r->op]);
	for (uint32_t i = 0; i < r->value_count; i++)
		buf_printf(out, "%s%.100s", i ? ", " : " (", r->values[i]);
	if (r->op == PLACE_GT || r->op == PLACE_LT)
		buf_printf(out, " %lld", (long long)r->number);
	else if (r->value_count)
		buf_add_char(out, ')');
}

static void add_label(struct buf *out, const struct kube_node *node, const char *key)
{
	const char *value = labels_find(&node->labels, key);

	if (value)
		buf_printf(out, ", and the node has %.100s=%.100s", key, value);
	else
		buf_printf(out, ", and the node has no label %.100s", key);
}

/* The first label that the node lacks. False: it has all of nodeSelector. */
static bool add_selector(struct buf *out, const struct place_rules *rules,
			 const struct kube_node *node)
{
	for (size_t i = 0; i < rules->selector.count; i++) {
		const struct label *want = &rules->selector.of[i];
		const char *value = labels_find(&node->labels, want->key);

		if (value && strcmp(value, want->value) == 0)
			continue;
		buf_printf(out, "nodeSelector asks for %.100s=%.100s", want->key, want->value);
		add_label(out, node, want->key);
		return true;
	}
	return false;
}

/* The first failed requirement of each term. */
static void add_affinity(struct buf *out, const struct place_rules *rules,
			 const struct kube_node *node)
{
	buf_add_str(out, "required node affinity asks for ");
	for (uint32_t t = 0; t < rules->affinity.count; t++) {
		const struct place_one_term *term = &rules->affinity.of[t];
		uint32_t i = 0;

		while (i < term->count &&
		       place_requirement_match(&term->of[i], &node->labels, node->object.name))
			i++;
		if (i == term->count)
			continue;
		buf_add_str(out, t ? ", or " : "");
		add_requirement(out, &term->of[i]);
		if (!term->of[i].field)
			add_label(out, node, term->of[i].key);
	}
}

static void tell_node_affinity(struct place *p, const struct place_slot *s, place_node n,
			       struct error *error)
{
	const struct place_rules *rules = s->class->rules;
	const struct kube_node *node = p->nodes[n].object;
	const struct place_requirement *r;
	struct buf text = BUF_INIT;
	uint32_t term;

	if (s->bound_to) {
		error_set(error, "a DaemonSet's pod is for its own node");
		return;
	}
	if (!add_selector(&text, rules, node))
		add_affinity(&text, rules, node);
	r = rules->has_affinity ? find_dropped(&rules->affinity, &term) : NULL;
	if (r)
		buf_printf(&text,
			   "; nodeSelectorTerms[%u] is dropped, as the values of %.100s are %s",
			   term, r->key,
			   r->op == PLACE_GT || r->op == PLACE_LT ? "no whole number"
								  : "no values of labels");
	error_set(error, "%s", text.data);
	buf_fini(&text);
}

static void tell_feature(struct place *p, const struct place_slot *s, place_node n,
			 struct error *error)
{
	error_set(error, "the node does not declare the feature %s",
		  declared_features_name(place_rules_missing(p, s->class->rules, n)));
}

static void tell_cordon(struct place *p, const struct place_slot *s, place_node n,
			struct error *error)
{
	(void)p;
	(void)s;
	(void)n;
	error_set(error, "the node is cordoned");
}

static const struct {
	const char *name;
	void (*tell)(struct place *p, const struct place_slot *s, place_node n,
		     struct error *error);
} filters[PLACE_FILTERS] = {
	[PLACE_FITS] = {"fits", NULL},
	[PLACE_GONE] = {"NodeGone", tell_gone},
	[PLACE_FIT] = {"NodeResourcesFit", tell_fit},
	[PLACE_TAINTS] = {"TaintToleration", tell_taint},
	[PLACE_NODE_AFFINITY] = {"NodeAffinity", tell_node_affinity},
	[PLACE_FEATURES] = {"NodeDeclaredFeatures", tell_feature},
	[PLACE_UNSCHEDULABLE] = {"NodeUnschedulable", tell_cordon},
	[PLACE_ANTI_AFFINITY] = {"InterPodAntiAffinity", tell_anti},
	[PLACE_AFFINITY] = {"InterPodAffinity", tell_affinity},
	[PLACE_SPREAD] = {"PodTopologySpread", tell_spread},
	[PLACE_HOST_PORTS] = {"NodePorts", tell_ports},
	[PLACE_VOLUMES] = {"VolumeBinding", tell_volumes},
	[PLACE_VOLUME_LIMITS] = {"NodeVolumeLimits", tell_limit},
	[PLACE_DEVICES] = {"DynamicResources", tell_devices},
	[PLACE_USE_CAP] = {"RealUseCap", tell_use},
	[PLACE_SILENT] = {"NodeSilent", tell_silent},
	[PLACE_UNKNOWN] = {"Unknown", tell_unknown},
};

const char *place_filter_name(enum place_filter f)
{
	return filters[f].name;
}

void place_counts_write(const struct place_counts *c, struct jsonw *w)
{
	jsonw_key_object(w, "refused");
	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (c->of[f])
			jsonw_key_int(w, filters[f].name, c->of[f]);
	jsonw_object_close(w);
}

static void tell(struct place *p, const struct place_slot *s, place_node n, enum place_filter f,
		 struct error *error)
{
	if (filters[f].tell)
		filters[f].tell(p, s, n, error);
	else
		error_set(error, "it fits");
}

enum place_filter place_explain(struct place *p, place_pod pod, place_node n, struct error *error)
{
	enum place_filter f = place_check(p, pod, n);

	tell(p, place_slot(p, pod), n, f, error);
	return error_at(error, f, "%s", place_filter_name(f));
}

enum place_filter place_explain_admission(struct place *p, place_pod pod, place_node n,
					  struct error *error)
{
	const struct place_slot *s = place_slot(p, pod);
	enum place_filter f = p->nodes[n].object ? place_check_admission(p, s, n) : PLACE_GONE;

	if (error)
		tell(p, s, n, f, error);
	return f;
}
