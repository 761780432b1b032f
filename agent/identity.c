/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path is read from left to right. The name of each component has a meaning, which depends on
 * the path so far:
 *
 *	kubepods, QoS, pod	start over: the innermost Kubernetes names the workload, as a node
 *				itself may run in a container
 *	container		the outermost one below the pod, or without Kubernetes the outermost
 *				of all; all cgroups below belong to it
 *	anything else		one level deeper
 *
 * Below kubepods only a pod may have a container: a pod with a malformed UID, and all below it, is
 * nothing. The names are those of kubelet (systemd and cgroupfs driver, any cgroup root), of
 * containerd, CRI-O, docker and podman, and of a runtime that writes cgroupfs under a kubelet that
 * uses systemd ("SLICE:PREFIX:ID" as one directory).
 */
#include "agent/identity.h"

#include <stdbool.h>
#include <string.h>

/* Part of the path, not terminated. */
struct span {
	const char *text;
	size_t len;
};

enum component {
	COMPONENT_OTHER,
	COMPONENT_KUBEPODS,
	COMPONENT_QOS,
	COMPONENT_POD,
	COMPONENT_CONTAINER,
	COMPONENT_POD_CONTAINER, /* pod slice and container id in one name, joined by colons */
	COMPONENT_HELPER,
	COMPONENT_OVERHEAD, /* Kata's threads outside of their sandboxes, below it by sandbox */
};

/* The meaning of a component's name. */
struct meaning {
	enum cgroup_level above; /* the path so far */
	enum component component;
	enum qos_class qos;
	enum container_runtime runtime;
	struct span pod_uid;
	struct span container_id;
};

enum { UUID_LEN = 36, HASH_LEN = 32 };

struct runtime_name {
	const char *name; /* a prefix, or in id_parents a whole name */
	enum container_runtime runtime;
};

static const struct runtime_name container_prefixes[] = {
	{"cri-containerd", RUNTIME_CONTAINERD},
	{"nerdctl", RUNTIME_CONTAINERD},
	{"crio", RUNTIME_CRIO},
	{"docker", RUNTIME_DOCKER},
	{"libpod", RUNTIME_PODMAN},
	{"libpod-payload", RUNTIME_PODMAN},
};

static const struct runtime_name helper_prefixes[] = {
	{"crio-conmon-", RUNTIME_CRIO},
	{"libpod-conmon-", RUNTIME_PODMAN},
};

/* Parents of cgroups named by a bare container id. */
static const struct runtime_name id_parents[] = {
	{"docker", RUNTIME_DOCKER},
	{"moby", RUNTIME_DOCKER}, /* docker's namespace in containerd */
	{"ecs", RUNTIME_DOCKER},
	{"k8s.io", RUNTIME_CONTAINERD}, /* a namespace in containerd, as is the next */
	{"default", RUNTIME_CONTAINERD},
};

static const struct {
	const char *name;
	enum qos_class qos;
} qos_names[] = {
	{"burstable", QOS_BURSTABLE},
	{"besteffort", QOS_BEST_EFFORT},
	{"guaranteed", QOS_GUARANTEED},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.text, text, s.len);
}

/* Removes `text` from the end of s; false: it is not there. */
static bool cut_end(struct span *s, const char *text)
{
	size_t len = strlen(text);

	if (s->len < len || memcmp(s->text + s->len - len, text, len) != 0)
		return false;
	s->len -= len;
	return true;
}

static bool cut_start(struct span *s, const char *text)
{
	size_t len = strlen(text);

	if (s->len < len || memcmp(s->text, text, len) != 0)
		return false;
	s->text += len;
	s->len -= len;
	return true;
}

/* Removes the last word from a name whose words are joined by dashes. */
static bool cut_last_word(struct span *s, const char *word)
{
	struct span cut = *s;

	if (!cut_end(&cut, word) || (cut.len && !cut_end(&cut, "-")))
		return false;
	*s = cut;
	return true;
}

/* The runtimes and kubelet write lower case only. */
static bool is_hex(struct span s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.text[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
			return false;
	}
	return true;
}

static bool is_container_id(struct span s)
{
	return s.len == CONTAINER_ID_LEN && is_hex(s);
}

/* 8-4-4-4-12 with one kind of separator ('_' in systemd units, where '-' means nesting). */
static bool is_uuid(struct span s)
{
	if (s.len != UUID_LEN || (s.text[8] != '-' && s.text[8] != '_'))
		return false;
	for (size_t i = 0, begin = 0; i <= UUID_LEN; i++) {
		bool separator = i == 8 || i == 13 || i == 18 || i == 23;

		if (!separator && i < UUID_LEN)
			continue;
		if (separator && s.text[i] != s.text[8])
			return false;
		if (!is_hex((struct span){s.text + begin, i - begin}))
			return false;
		begin = i + 1;
	}
	return true;
}

/* Removes a QoS class from the end of a slice's name. */
static enum qos_class cut_qos(struct span *name)
{
	for (size_t i = 0; i < COUNT(qos_names); i++)
		if (cut_last_word(name, qos_names[i].name))
			return qos_names[i].qos;
	return QOS_UNKNOWN;
}

/* "podUID", "podUID.slice" or "[ROOT-]kubepods[-QOS]-podUID.slice". */
static bool parse_pod(struct span name, struct meaning *m)
{
	static const size_t lengths[] = {UUID_LEN, HASH_LEN};
	bool slice = cut_end(&name, ".slice");

	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct span prefix = name, uid;

		if (name.len < lengths[i])
			continue;
		prefix.len -= lengths[i];
		uid = (struct span){name.text + prefix.len, lengths[i]};
		if (!(lengths[i] == UUID_LEN ? is_uuid(uid) : is_hex(uid)) ||
		    !cut_last_word(&prefix, "pod"))
			continue;
		m->qos = cut_qos(&prefix);
		if (prefix.len && !(slice && cut_last_word(&prefix, "kubepods")))
			return false;
		m->component = COMPONENT_POD;
		m->pod_uid = uid;
		return true;
	}
	return false;
}

/* PREFIX-ID, PREFIX-ID.scope or a bare ID; Kata Containers puts "kata_" before a sandbox's. */
static bool parse_container(struct span name, struct meaning *m)
{
	cut_start(&name, "kata_");
	m->component = COMPONENT_CONTAINER;
	m->container_id = name;
	if (is_container_id(name))
		return true;
	cut_end(&name, ".scope");
	for (size_t i = 0; i < COUNT(container_prefixes); i++) {
		struct span id = name;

		if (!cut_start(&id, container_prefixes[i].name) || !cut_start(&id, "-") ||
		    !is_container_id(id))
			continue;
		m->container_id = id;
		m->runtime = container_prefixes[i].runtime;
		return true;
	}
	return false;
}

/* SLICE:PREFIX:ID, a unit name for systemd, as a directory by a runtime that writes cgroupfs. */
static bool parse_joined(struct span name, struct meaning *m)
{
	struct span slice, prefix, id;
	const char *colon = memchr(name.text, ':', name.len), *second;

	if (!colon)
		return false;
	slice = (struct span){name.text, (size_t)(colon - name.text)};
	prefix.text = colon + 1;
	second = memchr(prefix.text, ':', name.len - slice.len - 1);
	if (!second)
		return false;
	prefix.len = (size_t)(second - prefix.text);
	id = (struct span){second + 1, name.len - slice.len - prefix.len - 2};
	if (!is_container_id(id))
		return false;
	for (size_t i = 0; i < COUNT(container_prefixes); i++)
		if (span_is(prefix, container_prefixes[i].name))
			m->runtime = container_prefixes[i].runtime;
	m->container_id = id;
	m->component = COMPONENT_CONTAINER;
	if (parse_pod(slice, m))
		m->component = COMPONENT_POD_CONTAINER;
	else if (memmem(slice.text, slice.len, "kubepods", strlen("kubepods")))
		return false; /* a pod with a malformed name */
	return m->runtime != RUNTIME_UNKNOWN;
}

static bool parse_helper(struct span name, struct meaning *m)
{
	m->component = COMPONENT_HELPER;
	for (size_t i = 0; i < COUNT(helper_prefixes); i++) {
		struct span rest = name;

		if (cut_start(&rest, helper_prefixes[i].name)) {
			m->runtime = helper_prefixes[i].runtime;
			return true;
		}
	}
	m->component = COMPONENT_OVERHEAD;
	return span_is(name, "kata_overhead");
}

/*
 * kubepods, [ROOT-]kubepods.slice, [ROOT-]kubepods-QOS.slice; a plain QOS directory only directly
 * below kubepods.
 */
static bool parse_kubepods(struct span name, struct meaning *m)
{
	m->component = COMPONENT_KUBEPODS;
	if (span_is(name, "kubepods"))
		return true;
	if (cut_end(&name, ".slice")) {
		m->qos = cut_qos(&name);
		if (m->qos != QOS_UNKNOWN)
			m->component = COMPONENT_QOS;
		return cut_last_word(&name, "kubepods");
	}
	m->component = COMPONENT_QOS;
	m->qos = cut_qos(&name);
	return m->above == LEVEL_KUBEPODS && m->qos != QOS_UNKNOWN && !name.len;
}

typedef bool parse_name(struct span name, struct meaning *m);

static struct meaning parse_component(struct span name, enum cgroup_level above)
{
	static parse_name *const parsers[] = {parse_joined, parse_kubepods, parse_pod, parse_helper,
					      parse_container};

	for (size_t i = 0; i < COUNT(parsers); i++) {
		struct meaning m = {.above = above};

		if (parsers[i](name, &m))
			return m;
	}
	return (struct meaning){.component = COMPONENT_OTHER};
}

/* The state of the walk along the path. */
struct walk {
	struct identity *identity;
	bool lost; /* below kubepods, but in no pod */
	bool overhead; /* at or below kata_overhead */
	bool libpod_parent; /* the last component was podman's root for its cgroupfs driver */
	enum container_runtime id_runtime; /* who owns bare container ids here */
};

static void enter_kubepods(struct walk *w, const struct meaning *m)
{
	*w->identity = (struct identity){
		.level = m->component == COMPONENT_QOS ? LEVEL_QOS : LEVEL_KUBEPODS,
		.qos = m->qos,
	};
	*w = (struct walk){.identity = w->identity, .overhead = w->overhead};
}

static void enter_pod(struct walk *w, const struct meaning *m)
{
	enum qos_class qos = m->qos;

	if (qos == QOS_UNKNOWN && w->identity->level == LEVEL_QOS)
		qos = w->identity->qos;
	*w->identity = (struct identity){
		.level = LEVEL_POD,
		.qos = qos == QOS_UNKNOWN ? QOS_GUARANTEED : qos,
	};
	*w = (struct walk){.identity = w->identity, .overhead = w->overhead};
	for (size_t i = 0; i < m->pod_uid.len; i++)
		w->identity->pod_uid[i] = m->pod_uid.text[i] == '_' ? '-' : m->pod_uid.text[i];
}

/* One level deeper, into a component without a meaning. */
static void enter_other(struct walk *w)
{
	switch (w->identity->level) {
	case LEVEL_KUBEPODS:
	case LEVEL_QOS:
		w->lost = true;
		/* fall through */
	case LEVEL_ROOT:
		w->identity->level = LEVEL_NONE;
		break;
	case LEVEL_POD:
		w->identity->level = LEVEL_POD_SUB;
		break;
	case LEVEL_CONTAINER:
		w->identity->level = LEVEL_CONTAINER_SUB;
		break;
	case LEVEL_NONE:
	case LEVEL_POD_SUB:
	case LEVEL_CONTAINER_SUB:
	case LEVEL_HELPER:
		break;
	}
}

/* Elsewhere helpers and containers are one more level. */
static bool may_enter_container(const struct walk *w)
{
	enum cgroup_level level = w->identity->level;

	return level == LEVEL_POD || level == LEVEL_POD_SUB || level == LEVEL_ROOT ||
	       (level == LEVEL_NONE && !w->lost);
}

static void enter_container(struct walk *w, const struct meaning *m)
{
	/* There podman's pods have bare ids, its containers never. */
	bool podman_pod = w->libpod_parent && m->runtime == RUNTIME_UNKNOWN;

	if (!may_enter_container(w) || podman_pod) {
		enter_other(w);
		return;
	}
	w->identity->level = LEVEL_CONTAINER;
	w->identity->runtime = m->runtime != RUNTIME_UNKNOWN ? m->runtime : w->id_runtime;
	memcpy(w->identity->container_id, m->container_id.text, CONTAINER_ID_LEN);
}

static void enter_helper(struct walk *w, const struct meaning *m)
{
	if (!may_enter_container(w)) {
		enter_other(w);
		return;
	}
	w->identity->level = LEVEL_HELPER;
	w->identity->runtime = m->runtime;
}

static void enter(struct walk *w, struct span name)
{
	struct meaning m = parse_component(name, w->identity->level);

	switch (m.component) {
	case COMPONENT_KUBEPODS:
	case COMPONENT_QOS:
		enter_kubepods(w, &m);
		break;
	case COMPONENT_POD:
		enter_pod(w, &m);
		break;
	case COMPONENT_POD_CONTAINER:
		enter_pod(w, &m);
		enter_container(w, &m);
		break;
	case COMPONENT_CONTAINER:
		enter_container(w, &m);
		break;
	case COMPONENT_HELPER:
		enter_helper(w, &m);
		break;
	case COMPONENT_OVERHEAD:
		w->overhead = w->overhead || may_enter_container(w);
		enter_other(w);
		break;
	case COMPONENT_OTHER:
		enter_other(w);
		break;
	}
	w->libpod_parent = span_is(name, "libpod_parent");
	for (size_t i = 0; i < COUNT(id_parents); i++)
		if (span_is(name, id_parents[i].name))
			w->id_runtime = id_parents[i].runtime;
}

void identity_parse(const char *path, struct identity *identity)
{
	struct span rest = {path, strlen(path)};
	struct walk walk = {.identity = identity};

	*identity = (struct identity){.level = LEVEL_ROOT};
	/* The suffix of a removed cgroup that still has processes. */
	cut_end(&rest, " (deleted)");
	while (rest.len) {
		const char *slash = memchr(rest.text, '/', rest.len);
		size_t len = slash ? (size_t)(slash - rest.text) : rest.len;

		if (len)
			enter(&walk, (struct span){rest.text, len});
		len += slash ? 1 : 0;
		rest.text += len;
		rest.len -= len;
	}
	if (walk.overhead)
		identity->level = LEVEL_HELPER;
}
