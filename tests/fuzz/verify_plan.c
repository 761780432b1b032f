/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is read as a plan and judged in a small cluster, or refused with a reason.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = {""};
	struct verify_report report;
	struct verify_plan p;
	cJSON *snapshot;
	int err = verify_plan_read((const char *)data, size, &p, &error);

	assert(err == 0 || (err == -EINVAL && *error.text));
	if (err)
		return 0;
	snapshot = cJSON_Parse(cluster);
	assert(verify_judge(&p, snapshot, &report, &error) == 0);
	for (size_t i = 0; i < report.count; i++)
		assert(*report.of[i].text.text);
	verify_report_fini(&report);
	verify_plan_fini(&p);
	cJSON_Delete(snapshot);
	return 0;
}
