/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Kubernetes has a bound it is that one: names of objects (253), namespaces and values of
 * labels (63), names of labels, annotations and resources (253, a slash and 63), disruptedPods
 * (2000). The others are several times what clusters have; lists whose elements become more in
 * memory than they are as text have lower ones.
 */
#include "aggregator/model/object_bounds.h"

#include <string.h>

/* No row has less than LEAST: what is shorter needs none to be looked for. */
enum {
	NAME = 253,
	LABEL = 63,
	TEXT = 16 << 10,
	ELEMENTS = 256,
	MEMBERS = 1024,
	VALUES = 4096, /* of a selector: it may name nodes */
	LEAST = LABEL,
};

/* Members of one name, wherever they are. */
static const struct bound {
	const char *member; /* NULL: all others */
	size_t bytes; /* of the string, or of each string right below */
	size_t count; /* of elements or members right below */
} bounds[] = {
	{"containerStatuses", TEXT, ELEMENTS},
	{"containers", TEXT, ELEMENTS},
	{"disruptedPods", LABEL, 2000},
	{"initContainerStatuses", TEXT, ELEMENTS},
	{"initContainers", TEXT, ELEMENTS},
	{"labels", LABEL, MEMBERS},
	{"matchLabels", LABEL, MEMBERS},
	{"name", NAME, MEMBERS},
	{"namespace", LABEL, MEMBERS},
	{"nodeName", NAME, MEMBERS},
	{"nodeSelector", LABEL, MEMBERS},
	{"nominatedNodeName", NAME, MEMBERS},
	{"priorityClassName", NAME, MEMBERS},
	{"qosClass", LABEL, MEMBERS},
	{"taints", TEXT, ELEMENTS},
	{"tolerations", TEXT, ELEMENTS},
	{"uid", NAME, MEMBERS},
	{"values", NAME, VALUES},
	{NULL, TEXT, MEMBERS},
};

static const struct bound *find(const char *member)
{
	const struct bound *b = bounds;

	while (b->member && (!member || strcmp(b->member, member) != 0))
		b++;
	return b;
}

size_t object_bound_of_string(const char *parent, const char *key, size_t len)
{
	const struct bound *b;

	if (len <= LEAST)
		return 0;
	b = find(parent);
	if (!b->member)
		b = find(key);
	return len > b->bytes ? b->bytes : 0;
}

size_t object_bound_of_list(const char *key, size_t count)
{
	const struct bound *b;

	if (count <= LEAST)
		return 0;
	b = find(key);
	return count > b->count ? b->count : 0;
}
