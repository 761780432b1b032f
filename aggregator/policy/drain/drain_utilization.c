/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_utilization.h"

#include <errno.h>
#include <inttypes.h>

#include "aggregator/policy/drain/drain_rules.h"
#include "aggregator/policy/slack/slack.h"

/* One resource of a node and its pods. */
struct sums {
	int64_t allocatable, requested, left_out;
};

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void add_pod(const struct drain_options *o, const struct kube_pod *pod, const char *name,
		    int64_t now_ns, struct sums *s)
{
	int64_t amount = 0;

	if (o->variant == DRAIN_CORRECTED && (!kube_pod_is_active(pod) || slack_is_balloon(pod)))
		return;
	resources_find(kube_pod_requests(pod), name, &amount);
	if ((o->ignore_daemon_sets && drain_is_daemon_pod(pod)) ||
	    (o->ignore_mirror && pod->template->mirror))
		s->left_out = add(s->left_out, amount);
	else if (!drain_is_long_terminating(pod, now_ns))
		s->requested = add(s->requested, amount);
}

static int share_of(const struct drain_options *o, const struct kube_node *node,
		    const struct kube_pod *const *pods, size_t count, const char *name,
		    int64_t now_ns, double *out, struct error *error)
{
	struct sums s = {0};

	if (!resources_find(&node->allocatable, name, &s.allocatable) || s.allocatable == 0) {
		error_set(error, "the node has no allocatable %s", name);
		return -EINVAL;
	}
	for (size_t i = 0; i < count; i++)
		add_pod(o, pods[i], name, now_ns, &s);
	if (o->variant == DRAIN_CORRECTED && s.left_out >= s.allocatable) {
		error_set(error,
			  "DaemonSets and mirror pods request all of its allocatable %s (%" PRId64
			  " of %" PRId64 ")",
			  name, s.left_out, s.allocatable);
		return -EINVAL;
	}
	*out = (double)s.requested / (double)(s.allocatable - s.left_out);
	return 0;
}

static bool has_gpu_label(const struct drain_options *o, const struct kube_node *node)
{
	for (size_t i = 0; i < o->gpu_label_count; i++)
		if (labels_find(&node->labels, o->gpu_labels[i]))
			return true;
	return false;
}

static bool has_gpus(const struct drain_options *o, const struct kube_node *node)
{
	int64_t amount;

	return resources_find(&node->allocatable, o->gpu_resource, &amount) && amount > 0;
}

static bool is_gpu_node(const struct drain_options *o, const struct kube_node *node,
			enum drain_gpu gpu)
{
	if (gpu != DRAIN_GPU_DETECT)
		return gpu == DRAIN_GPU_EXTENDED;
	return has_gpus(o, node) || (o->variant == DRAIN_UPSTREAM && has_gpu_label(o, node));
}

/* The fullest pool, the first of equal ones. */
static int share_of_devices(const struct drain_devices *d, struct drain_utilization *out,
			    struct error *error)
{
	double fullest = -1;

	if (d->incomplete) {
		error_set(error, "a pool of its devices is not published in full");
		return -EINVAL;
	}
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
	int err = 0;

	if (is_gpu_node(o, node, gpu)) {
		u.gpu = true;
		u.resource = o->gpu_resource;
		if (share_of(o, node, pods, count, o->gpu_resource, now_ns, &u.share, NULL))
			u.share = 0; /* its GPUs do not work: upstream lets such a node go */
	} else if (devices && (devices->count > 0 || devices->incomplete)) {
		err = share_of_devices(devices, &u, error);
	} else {
		err = share_of(o, node, pods, count, "cpu", now_ns, &u.cpu, error);
		if (!err)
			err = share_of(o, node, pods, count, "memory", now_ns, &u.memory, error);
		u.share = u.cpu > u.memory ? u.cpu : u.memory;
		if (u.cpu > u.memory)
			u.resource = "cpu";
	}
	if (!err)
		*out = u;
	return err;
}
