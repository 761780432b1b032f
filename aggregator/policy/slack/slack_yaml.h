/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of slack as Kubernetes objects, in YAML for kubectl apply, for clusters whose
 * autoscaler does not know evenkeel. Pure.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_YAML_H
#define EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_YAML_H

#include "aggregator/policy/slack/slack.h"
#include "shared/buf.h"

enum slack_yaml {
	/*
	 * Pods that do nothing, of a Deployment for each class, with a priority below all others:
	 * the scheduler preempts them, and they wait again, for which an autoscaler adds a node.
	 * For Kubernetes 1.20 and later.
	 */
	SLACK_YAML_BALLOONS,
	/*
	 * CapacityBuffers, for a cluster autoscaler that knows them (autoscaling.x-k8s.io/v1beta1).
	 */
	SLACK_YAML_BUFFERS,
};

struct slack_yaml_options {
	enum slack_yaml kind;
	const char *image; /* of balloons and templates; "registry.k8s.io/pause:3.9" */
	/* of balloons; -10: the least that still makes the cluster autoscaler add nodes */
	int32_t priority;
};

void slack_yaml_options_default(struct slack_yaml_options *o);
/*
 * Appends a document for each object, in the order of classes; classes of which none is wanted have
 * none.
 */
void slack_yaml_write(const struct slack_result *r, const struct slack_yaml_options *o,
		      struct buf *out);

#endif
