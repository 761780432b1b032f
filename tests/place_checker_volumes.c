/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims that wait for their first pod, which the checker of plans does not judge: what they may be
 * bound to on a node. The capacity of storage is not known here.
 */
#include <string.h>

#include "tests/place_checker.h"

static bool refuse(const struct verify_question *q, const char *what, const char *name)
{
	error_set(q->error, "%s: %s", what, name);
	return false;
}

static const char *class_of(const cJSON *object)
{
	const char *class = document_annotation(object, "volume.beta.kubernetes.io/storage-class");

	return class ? class : verify_text(object, "spec.storageClassName");
}

/* The volume names this very claim. */
static bool is_reserved(const cJSON *volume, const cJSON *claim)
{
	const cJSON *ref = document_at(volume, "spec.claimRef");
	const char *uid = verify_text(ref, "uid");

	return verify_equal(document_text(ref, "name"), verify_name(claim)) &&
	       verify_equal(document_text(ref, "namespace"), verify_namespace(claim)) &&
	       (!*uid || verify_equal(uid, verify_text(claim, "metadata.uid")));
}

/*
 * What holds for every volume that the claim may be bound to, also for one that is reserved for it.
 */
static bool is_large_enough(const cJSON *volume, const cJSON *claim)
{
	const cJSON *want = object_json_find(claim, "spec"),
		    *have = object_json_find(volume, "spec");

	return verify_equal(class_of(claim), class_of(volume)) &&
	       verify_equal(document_text_or(want, "volumeMode", "Filesystem"),
			    document_text_or(have, "volumeMode", "Filesystem")) &&
	       !verify_is_deleted(volume) &&
	       verify_amount(object_json_find(have, "capacity"), "storage") >=
		       verify_amount(document_at(want, "resources.requests"), "storage");
}

/* An unbound volume that the claim could be bound to here. */
static bool volume_suits(const cJSON *volume, const cJSON *claim, const cJSON *node)
{
	const cJSON *want = object_json_find(claim, "spec"),
		    *have = object_json_find(volume, "spec");
	const cJSON *selector = object_json_find(want, "selector");

	if (object_json_find(have, "claimRef") || !is_large_enough(volume, claim) ||
	    !document_is(volume, "status.phase", "Available") ||
	    (selector && !verify_selects(selector, volume)))
		return false;
	VERIFY_EACH (mode, want, "accessModes")
		if (!verify_contains(have, "accessModes", mode->valuestring))
			return false;
	return verify_volume_reaches(volume, node);
}

/* Terms of a class's allowedTopologies: one of them, all of its expressions. */
static bool topologies_allow(const cJSON *class, const cJSON *node)
{
	VERIFY_EACH (term, class, "allowedTopologies") {
		bool all = document_first(term, "matchLabelExpressions");

		VERIFY_EACH (item, term, "matchLabelExpressions") {
			const char *value = document_label(node, verify_text(item, "key"));

			all &= value && verify_contains(item, "values", value);
		}
		if (all)
			return true;
	}
	return !document_first(class, "allowedTopologies");
}

/* The claims of one pod that wait for it, as far as they were served, and by what. */
struct served {
	const struct verify_question *q;
	size_t count;
	struct place_binding of[PLACE_CHECKER_CLAIMS];
};

static bool is_served(const struct served *s, const cJSON *volume)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->of[i].volume == volume)
			return true;
	return false;
}

static bool is_smaller(const cJSON *a, const cJSON *b)
{
	int64_t x = verify_amount(document_at(a, "spec.capacity"), "storage");
	int64_t y = verify_amount(document_at(b, "spec.capacity"), "storage");

	return x < y || (x == y && strcmp(verify_name(a), verify_name(b)) < 0);
}

static bool is_volume(const cJSON *object)
{
	return document_is(object, "kind", "PersistentVolume");
}

/* NULL: none; *reserved: one is there for this claim alone, so that no other will do. */
static const cJSON *find_reserved(const struct verify_world *w, const cJSON *claim)
{
	const cJSON *best = NULL;

	for (size_t i = 0; i < w->other_count; i++)
		if (is_volume(w->others[i]) && is_reserved(w->others[i], claim) &&
		    is_large_enough(w->others[i], claim) &&
		    (!best || is_smaller(w->others[i], best)))
			best = w->others[i];
	return best;
}

static const cJSON *find_volume(const struct served *s, const cJSON *claim)
{
	const struct verify_question *q = s->q;
	const cJSON *best = find_reserved(q->w, claim);

	if (best)
		return verify_volume_reaches(best, q->node) ? best : NULL;
	for (size_t i = 0; i < q->w->other_count; i++)
		if (is_volume(q->w->others[i]) && !is_served(s, q->w->others[i]) &&
		    volume_suits(q->w->others[i], claim, q->node) &&
		    (!best || is_smaller(q->w->others[i], best)))
			best = q->w->others[i];
	return best;
}

static bool can_be_made(const struct verify_question *q, const cJSON *claim)
{
	const cJSON *class = verify_find_other(q->w, "StorageClass", "", class_of(claim));
	const char *provisioner = verify_text(class, "provisioner");

	if (!*provisioner || verify_equal(provisioner, "kubernetes.io/no-provisioner"))
		return refuse(q, "no volume suits", verify_name(claim));
	return topologies_allow(class, q->node) ||
	       refuse(q, "the class does not reach", verify_name(class));
}

/* A claim that waits for its first pod, which is this one. */
static bool serve(struct served *s, const cJSON *claim)
{
	const char *chosen = document_annotation(claim, "volume.kubernetes.io/selected-node");
	const cJSON *volume = chosen ? NULL : find_volume(s, claim);

	if (chosen && !verify_equal(chosen, verify_name(s->q->node)))
		return refuse(s->q, "a volume is made elsewhere", verify_name(claim));
	if (!volume && !can_be_made(s->q, claim))
		return false;
	s->of[s->count++] = (struct place_binding){claim, volume};
	return true;
}

/* What names its volume and is not bound waits for the controller. */
static bool waits_for_pod(const struct verify_question *q, const cJSON *claim)
{
	const cJSON *class = verify_find_other(q->w, "StorageClass", "", class_of(claim));

	return !*verify_text(claim, "spec.volumeName") &&
	       verify_equal(document_text_or(class, "volumeBindingMode", "Immediate"),
			    "WaitForFirstConsumer");
}

static bool claim_allows(const struct verify_question *q, const char *name)
{
	const cJSON *claim =
		verify_find_other(q->w, "PersistentVolumeClaim", verify_namespace(q->pod), name);

	if (!claim)
		return refuse(q, "there is no claim", name);
	if (!verify_claim_is_free(q, claim))
		return false;
	if (verify_is_bound(claim))
		return verify_bound_allows(q, claim);
	return waits_for_pod(q, claim) || refuse(q, "unbound immediate claim", name);
}

static const cJSON *claim_at(const struct verify_question *q, const cJSON *volume)
{
	return verify_find_other(q->w, "PersistentVolumeClaim", verify_namespace(q->pod),
				 verify_text(volume, "persistentVolumeClaim.claimName"));
}

static int64_t size_of(const cJSON *claim)
{
	return verify_amount(document_at(claim, "spec.resources.requests"), "storage");
}

/* Its claims that wait, each once, the smallest first, equal ones by name. */
static size_t find_waiting(const struct verify_question *q, const cJSON *out[PLACE_CHECKER_CLAIMS])
{
	size_t count = 0, at;

	VERIFY_EACH (item, q->pod, "spec.volumes") {
		const cJSON *claim = claim_at(q, item);
		bool known = false;

		for (size_t i = 0; i < count; i++)
			known |= out[i] == claim;
		if (!claim || known || verify_is_bound(claim) || count == PLACE_CHECKER_CLAIMS)
			continue;
		for (at = count++;
		     at > 0 && (size_of(claim) < size_of(out[at - 1]) ||
				(size_of(claim) == size_of(out[at - 1]) &&
				 strcmp(verify_name(claim), verify_name(out[at - 1])) < 0));
		     at--)
			out[at] = out[at - 1];
		out[at] = claim;
	}
	return count;
}

/* Every claim may be used here, and all that wait get something. */
static bool serve_all(struct served *s)
{
	const cJSON *waiting[PLACE_CHECKER_CLAIMS];
	size_t count = find_waiting(s->q, waiting);

	VERIFY_EACH (item, s->q->pod, "spec.volumes") {
		const char *name = document_text(item, "persistentVolumeClaim.claimName");

		if (name && !claim_allows(s->q, name))
			return false;
	}
	for (size_t i = 0; i < count; i++)
		if (!serve(s, waiting[i]))
			return false;
	return true;
}

bool place_checker_volumes(const struct verify_question *q)
{
	struct served s = {.q = q};

	return serve_all(&s);
}

size_t place_checker_bindings(const struct verify_world *w, size_t pod, size_t node,
			      struct place_binding out[PLACE_CHECKER_CLAIMS])
{
	const struct verify_question q = {.w = w,
					  .pod_at = pod,
					  .node_at = node,
					  .pod = w->pods[pod],
					  .node = w->nodes[node]};
	struct served s = {.q = &q};

	if (!serve_all(&s))
		return 0;
	memcpy(out, s.of, s.count * sizeof(*out));
	return s.count;
}
