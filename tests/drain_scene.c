/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/drain_scene.h"

/* clang-format off */
#define NODE(name, metadata, spec) \
	"- {apiVersion: v1, kind: Node, metadata: {name: " name ", uid: uid-" name ", labels: {kubernetes.io/hostname: " name ", pool: main}" metadata "}, spec: {" spec "}, " \
	"status: {capacity: {cpu: 4, memory: 16Gi, pods: 110}, allocatable: {cpu: 4, memory: 16Gi, pods: 110}, " \
	"conditions: [{type: Ready, status: 'True', lastHeartbeatTime: '2026-01-01T12:00:00Z', lastTransitionTime: '2026-01-01T00:00:00Z'}]}}\n"

#define POD(space, name, owner, node, cpu, memory, more) \
	"- {apiVersion: v1, kind: Pod, metadata: {namespace: " space ", name: " name ", uid: uid-" name ", labels: {app: " owner "}, " \
	"creationTimestamp: '2026-01-01T00:00:00Z', " \
	"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: " owner ", uid: uid-" owner ", controller: true}]}, " \
	"spec: {nodeName: " node ", " more "containers: [{name: c, resources: {requests: {cpu: " cpu ", memory: " memory "}}}]}, " \
	"status: {phase: Running, startTime: '2026-01-01T00:00:00Z', conditions: [{type: Ready, status: 'True'}]}}\n"

#define OWNER(space, name, replicas) \
	"- {apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: " space ", name: " name ", uid: uid-" name "}, " \
	"spec: {replicas: " replicas "}, status: {replicas: " replicas ", readyReplicas: " replicas "}}\n"

const char drain_scene_dump[] =
	"apiVersion: v1\nkind: List\nitems:\n"
	NODE("alpha", "", "")
	NODE("bravo", "", "")
	NODE("charlie", "", "")
	NODE("delta", "", "")
	NODE("echo", "", "taints: [{key: ToBeDeletedByClusterAutoscaler, value: '1767268740', effect: NoSchedule}]")
	NODE("foxtrot", "", "")
	NODE("golf", "", "")
	NODE("hotel", ", annotations: {cluster-autoscaler.kubernetes.io/scale-down-disabled: 'true'}", "")
	OWNER("shop", "web", "3")
	OWNER("tool", "scratch", "1")
	OWNER("tool", "index", "1")
	POD("shop", "web-0", "web", "alpha", "2200m", "4Gi", "")
	POD("shop", "web-1", "web", "bravo", "500m", "1Gi", "")
	POD("shop", "web-2", "web", "foxtrot", "500m", "1Gi", "")
	POD("tool", "scratch-0", "scratch", "charlie", "250m", "512Mi", "volumes: [{name: tmp, emptyDir: {}}], ")
	POD("tool", "index-0", "index", "golf", "250m", "512Mi", "nodeSelector: {kubernetes.io/hostname: golf}, ")
	"- {apiVersion: v1, kind: Pod, metadata: {namespace: kube-system, name: proxy-x, uid: uid-proxy-x, ownerReferences: "
	"[{apiVersion: apps/v1, kind: DaemonSet, name: proxy, uid: uid-proxy, controller: true}]}, spec: {nodeName: delta, "
	"containers: [{name: c, resources: {requests: {cpu: 100m}}}]}, status: {phase: Running}}\n"
	"- {apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: kube-system, name: proxy, uid: uid-proxy}, spec: {}}\n"
	"- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: shop, name: web}, spec: {minAvailable: 2, "
	"selector: {matchLabels: {app: web}}}, status: {disruptionsAllowed: 1, expectedPods: 3, currentHealthy: 3, desiredHealthy: 2}}\n";

#define USE(name) "\"" name "\":{\"metrics\":[{\"type\":\"CPU\",\"operator\":\"AVG\",\"value\":10}," \
	"{\"type\":\"CPU\",\"operator\":\"STD\",\"value\":1}," \
	"{\"type\":\"Memory\",\"operator\":\"AVG\",\"value\":10},{\"type\":\"Memory\",\"operator\":\"STD\",\"value\":1}]}"

const char drain_scene_usage[] =
	"{\"timestamp\":1767268800,\"window\":{\"duration\":\"15m\",\"start\":1767267900,\"end\":1767268800},\"source\":\"test\",\"data\":{"
	"\"NodeMetricsMap\":{" USE("alpha") "," USE("bravo") "," USE("charlie") "," USE("delta") "," USE("echo") "," USE("foxtrot") ","
	USE("golf") "," USE("hotel") "}}}";
/* clang-format on */

const int64_t drain_scene_now_ns = 1767268800000000000;
