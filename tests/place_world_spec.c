/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every field of a pod by which the kube-scheduler's filters decide, with values that meet those of
 * nodes and of other pods.
 */
#include "tests/place_world_spec.h"

static void write_amounts(struct place_world *w, struct buf *b, unsigned int each)
{
	const char *comma = "";

	buf_add_char(b, '{');
	if (place_world_chance(w, each))
		buf_printf(b, "\"cpu\":\"%s\"", PICK(w, "0", "50m", "100m", "100m", "250m", "1")),
			comma = ",";
	if (place_world_chance(w, each))
		buf_printf(b, "%s\"memory\":\"%s\"", comma, PICK(w, "64Mi", "64Mi", "100M", "1Gi")),
			comma = ",";
	if (place_world_chance(w, each / 8))
		buf_printf(b, "%s\"ephemeral-storage\":\"%s\"", comma, PICK(w, "512Mi", "2Gi")),
			comma = ",";
	if (place_world_chance(w, each / 8))
		buf_printf(b, "%s\"example.com/gpu\":\"%s\"", comma, PICK(w, "0", "1")),
			comma = ",";
	if (place_world_chance(w, each / 10))
		buf_printf(b, "%s\"hugepages-2Mi\":\"%s\"", comma, PICK(w, "32Mi", "64Mi"));
	buf_add_char(b, '}');
}

static void write_container(struct place_world *w, struct buf *b, const char *name, bool sidecar)
{
	buf_printf(b, "{\"name\":\"%s\",\"resources\":{\"requests\":", name);
	write_amounts(w, b, 70);
	if (place_world_chance(w, 20)) {
		buf_add_str(b, ",\"limits\":");
		write_amounts(w, b, 40);
	}
	buf_add_char(b, '}');
	if (sidecar)
		buf_add_str(b, ",\"restartPolicy\":\"Always\"");
	if (place_world_chance(w, 15)) {
		buf_printf(b, ",\"ports\":[{\"containerPort\":80,\"hostPort\":%s",
			   PICK(w, "80", "80", "443", "0"));
		if (place_world_chance(w, 50))
			buf_printf(b, ",\"protocol\":\"%s\"", PICK(w, "TCP", "TCP", "UDP"));
		if (place_world_chance(w, 50))
			buf_printf(b, ",\"hostIP\":\"%s\"",
				   PICK(w, "0.0.0.0", "10.0.0.1", "10.0.0.2", ""));
		buf_add_str(b, "}]");
	}
	buf_add_char(b, '}');
}

static void write_containers(struct place_world *w, struct buf *b)
{
	buf_add_str(b, "\"containers\":[");
	write_container(w, b, "c", false);
	if (place_world_chance(w, 20)) {
		buf_add_char(b, ',');
		write_container(w, b, "d", false);
	}
	buf_add_char(b, ']');
	if (place_world_chance(w, 25)) {
		buf_add_str(b, ",\"initContainers\":[");
		for (size_t i = 1 + place_world_draw(w, 3); i > 0; i--) {
			char name[] = {'i', (char)('0' + i), '\0'};

			write_container(w, b, name, place_world_chance(w, 40));
			buf_add_char(b, i > 1 ? ',' : ']');
		}
	}
	if (place_world_chance(w, 10))
		buf_printf(b, ",\"overhead\":{\"cpu\":\"%s\",\"memory\":\"%s\"}",
			   PICK(w, "50m", "250m"), PICK(w, "10Mi", "1Gi"));
}

static void write_label_selector(struct place_world *w, struct buf *b)
{
	if (place_world_chance(w, 8)) {
		buf_add_str(b, place_world_chance(w, 50) ? "null" : "{}");
		return;
	}
	if (place_world_chance(w, 70)) {
		buf_printf(b, "{\"matchLabels\":{\"app\":\"%s\"}}", PICK(w, "a", "b", "c"));
		return;
	}
	buf_printf(b, "{\"matchExpressions\":[{\"key\":\"%s\",", PICK(w, "app", "tier"));
	if (place_world_chance(w, 60))
		buf_printf(b, "\"operator\":\"%s\",\"values\":[\"%s\",\"%s\"]}]}",
			   PICK(w, "In", "NotIn"), PICK(w, "a", "x"), PICK(w, "b", "y"));
	else
		buf_printf(b, "\"operator\":\"%s\"}]}", PICK(w, "Exists", "DoesNotExist"));
}

static const char *pick_key(struct place_world *w)
{
	return PICK(w, "kubernetes.io/hostname", "topology.kubernetes.io/zone",
		    "topology.kubernetes.io/zone", "disk");
}

static void write_pod_term(struct place_world *w, struct buf *b)
{
	buf_printf(b, "{\"topologyKey\":\"%s\",\"labelSelector\":", pick_key(w));
	write_label_selector(w, b);
	if (place_world_chance(w, 20))
		buf_printf(b, ",\"namespaces\":[\"%s\"]", PICK(w, "one", "two"));
	if (place_world_chance(w, 25))
		buf_printf(b, ",\"namespaceSelector\":%s",
			   PICK(w, "{}", "{\"matchLabels\":{\"env\":\"prod\"}}",
				"{\"matchExpressions\":[{\"key\":\"env\",\"operator\":\"NotIn\","
				"\"values\":[\"prod\"]}]}"));
	if (place_world_chance(w, 10))
		buf_printf(b, ",\"%s\":[\"tier\"]", PICK(w, "matchLabelKeys", "mismatchLabelKeys"));
	buf_add_char(b, '}');
}

static void write_pod_terms(struct place_world *w, struct buf *b, const char *name)
{
	buf_printf(b, ",\"%s\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[", name);
	write_pod_term(w, b);
	if (place_world_chance(w, 25)) {
		buf_add_char(b, ',');
		write_pod_term(w, b);
	}
	buf_add_str(b, "]}");
}

static void write_node_expression(struct place_world *w, struct buf *b)
{
	const char *op = PICK(w, "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt");

	if (*op == 'G' || *op == 'L')
		buf_printf(b, "{\"key\":\"gen\",\"operator\":\"%s\",\"values\":[\"%s\"]}", op,
			   PICK(w, "-4", "0", "1", "4", "7"));
	else if (*op == 'E' || *op == 'D')
		buf_printf(b, "{\"key\":\"%s\",\"operator\":\"%s\"}", PICK(w, "disk", "gen"), op);
	else
		buf_printf(b, "{\"key\":\"%s\",\"operator\":\"%s\",\"values\":[\"%s\",\"%s\"]}",
			   PICK(w, "topology.kubernetes.io/zone", "disk"), op,
			   PICK(w, "a", "ssd", ""), PICK(w, "b", "hdd"));
}

static void write_node_term(struct place_world *w, struct buf *b)
{
	if (place_world_chance(w, 6)) {
		buf_add_str(b, "{}");
		return;
	}
	if (place_world_chance(w, 10)) {
		buf_printf(b,
			   "{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"%s\","
			   "\"values\":[\"%s\"]}]}",
			   PICK(w, "In", "NotIn"), PICK(w, "n0", "n1", "n2"));
		return;
	}
	buf_add_str(b, "{\"matchExpressions\":[");
	write_node_expression(w, b);
	if (place_world_chance(w, 30)) {
		buf_add_char(b, ',');
		write_node_expression(w, b);
	}
	buf_add_str(b, "]}");
}

static void write_affinity(struct place_world *w, struct buf *b)
{
	buf_add_str(b, ",\"affinity\":{\"none\":null");
	if (place_world_chance(w, 30)) {
		buf_add_str(b, ",\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution"
			       "\":{\"nodeSelectorTerms\":[");
		write_node_term(w, b);
		if (place_world_chance(w, 40)) {
			buf_add_char(b, ',');
			write_node_term(w, b);
		}
		buf_add_str(b, "]}}");
	}
	if (place_world_chance(w, 25))
		write_pod_terms(w, b, "podAntiAffinity");
	if (place_world_chance(w, 20))
		write_pod_terms(w, b, "podAffinity");
	buf_add_char(b, '}');
	if (place_world_chance(w, 15))
		buf_printf(b, ",\"nodeSelector\":{\"disk\":\"%s\"}", PICK(w, "ssd", "hdd"));
}

static void write_toleration(struct place_world *w, struct buf *b)
{
	switch (place_world_draw(w, 6)) {
	case 0:
		buf_add_str(b, "{\"operator\":\"Exists\"}");
		return;
	case 1:
		buf_printf(b, "{\"operator\":\"Exists\",\"effect\":\"%s\"}",
			   PICK(w, "NoSchedule", "NoExecute"));
		return;
	case 2:
		buf_printf(b, "{\"key\":\"%s\",\"operator\":\"Exists\"}",
			   PICK(w, "team", "node.kubernetes.io/unschedulable"));
		return;
	default:
		buf_printf(b, "{\"key\":\"team\",\"value\":\"%s\"", PICK(w, "a", "b"));
		if (place_world_chance(w, 50))
			buf_add_str(b, ",\"operator\":\"Equal\"");
		if (place_world_chance(w, 40))
			buf_printf(b, ",\"effect\":\"%s\"", PICK(w, "NoSchedule", "NoExecute"));
		buf_add_char(b, '}');
	}
}

static void write_tolerations(struct place_world *w, struct buf *b)
{
	buf_add_str(b, ",\"tolerations\":[");
	if (place_world_chance(w, 70)) {
		write_toleration(w, b);
		if (place_world_chance(w, 40)) {
			buf_add_char(b, ',');
			write_toleration(w, b);
		}
	}
	buf_add_char(b, ']');
}

static void write_constraint(struct place_world *w, struct buf *b)
{
	bool hard = place_world_chance(w, 85);

	buf_printf(b,
		   "{\"topologyKey\":\"%s\",\"maxSkew\":%s,\"whenUnsatisfiable\":\"%s\","
		   "\"labelSelector\":",
		   pick_key(w), PICK(w, "1", "1", "2"), hard ? "DoNotSchedule" : "ScheduleAnyway");
	write_label_selector(w, b);
	if (hard && place_world_chance(w, 25))
		buf_printf(b, ",\"minDomains\":%s", PICK(w, "1", "2", "3", "4"));
	if (place_world_chance(w, 25))
		buf_printf(b, ",\"nodeAffinityPolicy\":\"%s\"", PICK(w, "Honor", "Ignore"));
	if (place_world_chance(w, 25))
		buf_printf(b, ",\"nodeTaintsPolicy\":\"%s\"", PICK(w, "Honor", "Ignore"));
	if (place_world_chance(w, 15))
		buf_printf(b, ",\"matchLabelKeys\":[\"%s\"]", PICK(w, "tier", "absent"));
	buf_add_char(b, '}');
}

static void write_spread(struct place_world *w, struct buf *b)
{
	buf_add_str(b, ",\"topologySpreadConstraints\":[");
	if (place_world_chance(w, 60)) {
		write_constraint(w, b);
		if (place_world_chance(w, 30)) {
			buf_add_char(b, ',');
			write_constraint(w, b);
		}
	}
	buf_add_char(b, ']');
}

void place_world_write_spec(struct place_world *w, struct buf *b)
{
	write_containers(w, b);
	if (place_world_chance(w, 70))
		write_affinity(w, b);
	if (place_world_chance(w, 60))
		write_tolerations(w, b);
	if (place_world_chance(w, 50))
		write_spread(w, b);
	if (place_world_chance(w, 8))
		buf_printf(b, ",\"resources\":{\"requests\":{\"%s}}",
			   PICK(w, "cpu\":\"300m\"", "memory\":\"2Gi\"",
				"cpu\":\"100m\",\"memory\":\"1Gi\""));
	if (place_world_chance(w, 3))
		buf_add_str(b, ",\"resourceClaims\":[{\"name\":\"gpu\"}]");
}
