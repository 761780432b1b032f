/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_eligibility.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/drain/drain_groups.h"
#include "aggregator/policy/drain/drain_rules.h"
#include "aggregator/policy/slack/slack.h"

#define GPU "nvidia.com/gpu"

/* cluster-autoscaler takes a node that is older in deletion for one whose deletion failed. */
static const int64_t DELETION_MAX_SEC = 300;

int drain_taint_time(const struct kube_node *node, const char *key, int64_t *out_ns)
{
	const struct taint *t = taints_find(&node->taints, key);
	long long value;
	char *end;

	if (!t)
		return -ENOENT;
	errno = 0;
	value = strtoll(t->value, &end, 10);
	if (errno || end == t->value || *end || value < 0 || value > INT64_MAX / DRAIN_SECOND_NS)
		return -EINVAL;
	*out_ns = value * DRAIN_SECOND_NS;
	return 0;
}

static bool is_draining(const struct kube_node *node, struct error *why)
{
	if (node->lifecycle & 1U << NODE_DRAIN_IN_PROGRESS)
		return error_fail(why, true, "it has the condition DrainInProgress");
	if (!kube_node_is_draining(node))
		return false;
	return error_fail(why, true, "it is annotated evenkeel.io/draining");
}

static bool is_taken_away(const struct kube_node *node, struct error *why)
{
	static const char *const taints[] = {DRAIN_TAINT_DELETION, "karpenter.sh/disrupted",
					     "karpenter.sh/disruption"};

	if (node->deletion_ns != 0)
		return error_fail(why, true, "the node object is being deleted");
	for (size_t i = 0; i < sizeof(taints) / sizeof(taints[0]); i++) {
		if (!taints_find(&node->taints, taints[i]))
			continue;
		return error_fail(why, true, "it has the taint %s", taints[i]);
	}
	return false;
}

bool drain_is_in_deletion(enum drain_variant variant, const struct kube_node *node, int64_t now_ns,
			  struct error *why)
{
	int64_t since_ns;

	if (variant == DRAIN_UPSTREAM) {
		error_set(why, "it has the taint " DRAIN_TAINT_DELETION);
		return drain_taint_time(node, DRAIN_TAINT_DELETION, &since_ns) == 0 &&
		       now_ns - since_ns < DELETION_MAX_SEC * DRAIN_SECOND_NS;
	}
	return is_taken_away(node, why) || is_draining(node, why);
}

bool drain_is_empty(const struct kube_pod *const *pods, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (kube_pod_is_active(pods[i]) && !pods[i]->template->mirror &&
		    !drain_is_daemon_pod(pods[i]))
			return false;
	return true;
}

bool drain_is_drained(const struct kube_node *node, const struct kube_pod *const *pods,
		      size_t count)
{
	return node->unschedulable && !is_taken_away(node, NULL) && drain_is_empty(pods, count);
}

/* --- the steps, in their order; false: the reason is set */

static bool refuse(struct drain_eligible *out, enum drain_reason reason)
{
	out->reason = reason;
	return false;
}

static bool check_recent(const struct drain_options *o, const struct drain_candidate *c,
			 const struct drain_unremovable *failed, struct drain_eligible *out)
{
	const struct drain_failure *f =
		failed ? drain_unremovable_recent(failed, c->node->object.name) : NULL;

	if (!f)
		return true;
	out->recent = true;
	error_set(&out->error, "%s", f->why.text ? f->why.text : "");
	return refuse(out, o->variant == DRAIN_UPSTREAM || f->why.code == DRAIN_NONE
				   ? DRAIN_RECENTLY_UNREMOVABLE
				   : f->why.code);
}

static bool is_forbidden(const struct drain_options *o, const struct kube_node *node,
			 const char *key, struct error *why)
{
	const char *value = labels_find(&node->annotations, key);

	if (!value || strcmp(value, "false") == 0 ||
	    (o->variant == DRAIN_UPSTREAM && strcmp(value, "true") != 0))
		return false;
	return error_fail(why, true, "it is annotated %s=%.40s", key, value);
}

bool drain_is_disabled(const struct drain_options *o, const struct kube_node *node,
		       struct error *why)
{
	return is_forbidden(o, node, "cluster-autoscaler.kubernetes.io/scale-down-disabled", why) ||
	       (o->variant == DRAIN_CORRECTED &&
		is_forbidden(o, node, "karpenter.sh/do-not-disrupt", why));
}

static bool check_marks(const struct drain_options *o, const struct drain_candidate *c,
			int64_t now_ns, struct drain_eligible *out)
{
	if (drain_is_in_deletion(o->variant, c->node, now_ns, &out->error))
		return refuse(out, DRAIN_BEING_DELETED);
	if (drain_is_disabled(o, c->node, &out->error))
		return refuse(out, DRAIN_DISABLED_ANNOTATION);
	if (!c->grouped && o->variant == DRAIN_CORRECTED && drain_control_plane_label(c->node))
		return refuse(out,
			      error_fail(&out->error, DRAIN_CONTROL_PLANE,
					 "it is a node of the control plane: it has the label %s",
					 drain_control_plane_label(c->node)));
	if (!c->grouped)
		return refuse(out,
			      error_fail(&out->error, DRAIN_NOT_AUTOSCALED, "it is in no group"));
	return true;
}

static bool check_use(const struct drain_options *o, const struct drain_candidate *c,
		      int64_t now_ns, struct drain_eligible *out)
{
	const struct drain_utilization *u = &out->utilization;
	double threshold;

	if (c->hidden && o->variant == DRAIN_CORRECTED)
		return refuse(out, error_fail(&out->error, DRAIN_UNEXPECTED, "%s", c->hidden));
	if (drain_utilization(o, c->node, c->pods, c->pod_count, c->devices, c->gpu, now_ns,
			      &out->utilization, &out->error))
		return refuse(out, DRAIN_UNEXPECTED);
	out->measured = true;
	if (!c->node->ready && !o->drain_unready)
		return refuse(out,
			      error_fail(&out->error, DRAIN_UNREADY_DISABLED, "it is not ready"));
	threshold = u->gpu ? o->gpu_utilization : o->utilization;
	if (c->node->ready && u->share > threshold)
		return refuse(
			out,
			error_fail(&out->error, DRAIN_NOT_UNDERUTILIZED,
				   "pods request %.1f%% of its allocatable %s, more than %.1f%%",
				   u->share * 100, u->resource, threshold * 100));
	return true;
}

void drain_eligibility(const struct drain_options *o, const struct drain_candidate *c,
		       const struct drain_unremovable *failed, int64_t now_ns,
		       struct drain_eligible *out)
{
	memset(out, 0, sizeof(*out));
	out->reason = DRAIN_NONE;
	if (!c->node) {
		refuse(out, error_fail(&out->error,
				       o->variant == DRAIN_UPSTREAM ? DRAIN_UNEXPECTED
								    : DRAIN_NO_NODE_INFO,
				       "the Kubernetes API does not know the node"));
		return;
	}
	if (o->variant == DRAIN_UPSTREAM && !check_recent(o, c, failed, out))
		return;
	if (!check_marks(o, c, now_ns, out) || !check_use(o, c, now_ns, out))
		return;
	if (o->variant == DRAIN_CORRECTED && !check_recent(o, c, failed, out))
		return;
	error_set(&out->error, "%s", "");
	if (c->unmeasured && o->variant == DRAIN_CORRECTED)
		refuse(out, error_fail(&out->error, DRAIN_NOT_MEASURED,
				       "its agent is silent: it is not known to be idle"));
}

/* --- utilisation */

/* One resource of a node and its pods. */
struct sums {
	int64_t allocatable, requested, left_out;
};

static void add_pod(const struct drain_options *o, const struct kube_pod *pod, const char *name,
		    int64_t now_ns, struct sums *s)
{
	int64_t amount = 0;

	if (o->variant == DRAIN_CORRECTED && (!kube_pod_is_active(pod) || slack_is_balloon(pod)))
		return;
	resources_find(kube_pod_requests(pod), name, &amount);
	if ((o->ignore_daemon_sets && drain_is_daemon_pod(pod)) ||
	    (o->ignore_mirror && pod->template->mirror))
		s->left_out = add_saturating(s->left_out, amount);
	else if (!drain_is_long_terminating(pod, now_ns))
		s->requested = add_saturating(s->requested, amount);
}

static int share_of(const struct drain_options *o, const struct kube_node *node,
		    const struct kube_pod *const *pods, size_t count, const char *name,
		    int64_t now_ns, double *out, struct error *error)
{
	struct sums s = {0};

	if (!resources_find(&node->allocatable, name, &s.allocatable) || s.allocatable == 0)
		return error_fail(error, -EINVAL, "the node has no allocatable %s", name);
	for (size_t i = 0; i < count; i++)
		add_pod(o, pods[i], name, now_ns, &s);
	if (o->variant == DRAIN_CORRECTED && s.left_out >= s.allocatable)
		return error_fail(
			error, -EINVAL,
			"DaemonSets and mirror pods request all of its allocatable %s (%" PRId64
			" of %" PRId64 ")",
			name, s.left_out, s.allocatable);
	*out = (double)s.requested / (double)(s.allocatable - s.left_out);
	return 0;
}

bool drain_has_gpu(const struct kube_node *node, enum drain_variant variant)
{
	static const char *const labels[] = {"cloud.google.com/gke-accelerator",
					     "k8s.amazonaws.com/accelerator", "accelerator"};
	int64_t amount;

	for (size_t i = 0; variant == DRAIN_UPSTREAM && i < sizeof(labels) / sizeof(labels[0]); i++)
		if (labels_find(&node->labels, labels[i]))
			return true;
	return resources_find(&node->allocatable, GPU, &amount) && amount > 0;
}

/* The fullest pool, the first of equal ones. */
static int share_of_devices(const struct drain_devices *d, struct drain_utilization *out,
			    struct error *error)
{
	double fullest = -1;

	if (d->incomplete)
		return error_fail(error, -EINVAL, "a pool of its devices is not published in full");
	for (size_t i = 0; i < d->count; i++) {
		const struct drain_device_pool *p = &d->pools[i];
		double share = p->devices > 0 ? (double)p->allocated / (double)p->devices : 0;

		if (share <= fullest)
			continue;
		fullest = share;
		out->share = share;
		out->resource = p->name;
	}
	return 0;
}

int drain_utilization(const struct drain_options *o, const struct kube_node *node,
		      const struct kube_pod *const *pods, size_t count,
		      const struct drain_devices *devices, enum drain_gpu gpu, int64_t now_ns,
		      struct drain_utilization *out, struct error *error)
{
	struct drain_utilization u = {.resource = "memory"};

	if (gpu == DRAIN_GPU_DETECT ? drain_has_gpu(node, o->variant) : gpu == DRAIN_GPU_EXTENDED) {
		u.gpu = true;
		u.resource = GPU;
		if (share_of(o, node, pods, count, GPU, now_ns, &u.share, NULL))
			u.share = 0; /* its GPUs do not work: upstream lets such a node go */
	} else if (devices && (devices->count > 0 || devices->incomplete)) {
		if (share_of_devices(devices, &u, error))
			return -EINVAL;
	} else {
		if (share_of(o, node, pods, count, "cpu", now_ns, &u.cpu, error) ||
		    share_of(o, node, pods, count, "memory", now_ns, &u.memory, error))
			return -EINVAL;
		u.share = u.cpu > u.memory ? u.cpu : u.memory;
		if (u.cpu > u.memory)
			u.resource = "cpu";
	}
	*out = u;
	return 0;
}
