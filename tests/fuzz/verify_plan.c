/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is read as a plan and judged in a small cluster, or refused with a reason; a text that is
 * a Snapshot is the cluster instead, for a plan that is fixed.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "aggregator/verify/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char cluster[] =
	"{\"kind\":\"Snapshot\",\"time\":\"2026-01-01T12:00:00Z\",\"list\":{\"items\":["
	"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n0\",\"uid\":\"uid-n0\"}},"
	"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"uid-n1\"}},"
	"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p0\",\"namespace\":\"d\",\"uid\":\"uid-p0\"},"
	"\"spec\":{\"nodeName\":\"n0\"}}]}}";

static const char fixed[] =
	"{\"apiVersion\":\"evenkeel.io/"
	"v1\",\"kind\":\"DrainWave\",\"planned\":\"T\",\"viewVersion\":1,"
	"\"cap\":{\"cpuShare\":0.85,\"memoryShare\":0.9,\"z\":2.33,\"contention\":0.1},"
	"\"limits\":{\"nodes\":1,\"drains\":1,\"ownerShare\":0.5},"
	"\"groups\":[{\"name\":\"g\",\"nodes\":[\"n0\",\"n2\"]}],"
	"\"reserved\":[{\"uid\":\"uid-p2\",\"to\":\"n1\",\"after\":0}],"
	"\"nodes\":[{\"name\":\"n0\",\"uid\":\"uid-n0\",\"moves\":["
	"{\"namespace\":\"d\",\"name\":\"p0\",\"uid\":\"uid-p0\",\"to\":\"n1\",\"step\":1},"
	"{\"namespace\":\"d\",\"name\":\"p1\",\"uid\":\"uid-p1\",\"to\":\"n1\",\"step\":2}],"
	"\"guests\":[{\"uid\":\"uid-p3\",\"to\":\"n1\",\"after\":1}]}]}";

static void judge(const struct verify_plan *p, const cJSON *snapshot, bool sound)
{
	struct error error = {""};
	struct verify_report report;
	int err = verify_judge(p, snapshot, &report, &error);

	assert(err == 0 || (!sound && (err == -EINVAL || err == -ENODATA) && *error.text));
	if (err)
		return;
	for (size_t i = 0; i < report.count; i++)
		assert(*report.of[i].text.text);
	verify_report_fini(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = {""};
	struct verify_plan p;
	cJSON *document = cJSON_ParseWithLength((const char *)data, size);
	const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(document, "kind"));
	bool is_snapshot = kind && strcmp(kind, "Snapshot") == 0;
	cJSON *snapshot = is_snapshot ? document : cJSON_Parse(cluster);
	int err = verify_plan_read(is_snapshot ? fixed : (const char *)data,
				   is_snapshot ? sizeof(fixed) - 1 : size, &p, &error);

	assert(err == 0 || (!is_snapshot && err == -EINVAL && *error.text));
	if (!err) {
		judge(&p, snapshot, !is_snapshot);
		verify_plan_fini(&p);
	}
	if (!is_snapshot)
		cJSON_Delete(document);
	cJSON_Delete(snapshot);
	return 0;
}
