/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/actuator/mark.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shared/jsonw.h"
#include "shared/timefmt.h"
#include "shared/utf8.h"

static const char *const names[MARK_PHASES] = {
	[MARK_NONE] = "none",
	[MARK_CLAIMED] = "claimed",
	[MARK_TAINTED] = "tainted",
	[MARK_EVICTING] = "evicting",
	[MARK_VERIFIED] = "verified",
	[MARK_DRAINED] = "drained",
	[MARK_ROLLED_BACK] = "rolledBack",
};

const char *mark_phase_name(enum mark_phase phase)
{
	return phase < MARK_PHASES ? names[phase] : "unreadable";
}

bool mark_is_active(enum mark_phase phase)
{
	return phase >= MARK_CLAIMED && phase <= MARK_VERIFIED;
}

bool mark_may_follow(enum mark_phase from, enum mark_phase to)
{
	if (to == MARK_CLAIMED)
		return from == MARK_NONE || from == MARK_DRAINED || from == MARK_ROLLED_BACK;
	if (to == MARK_ROLLED_BACK)
		return true; /* of a taint without a readable annotation, too */
	return to > MARK_CLAIMED && to <= MARK_DRAINED && from + 1 == to;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* False: the member is no text, empty, or longer than the room. */
static bool copy_text(const cJSON *json, const char *key, char *to, size_t size)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));

	return text && *text && snprintf(to, size, "%s", text) < (int)size;
}

static int refuse(struct error *error, const char *what)
{
	return error_fail(error, -EINVAL, "the annotation " MARK_ANNOTATION " is unreadable: %s",
			  what);
}

static int read_members(const cJSON *json, struct mark *m, struct error *error)
{
	char phase[16], since[64];

	if (!cJSON_IsObject(json))
		return refuse(error, "it is no JSON object");
	if (!copy_text(json, "plan", m->plan, sizeof(m->plan)))
		return refuse(error, "plan is missing");
	if (!copy_text(json, "holder", m->holder, sizeof(m->holder)))
		return refuse(error, "holder is missing");
	if (!copy_text(json, "since", since, sizeof(since)) ||
	    timefmt_parse(since, &m->since_ns, NULL))
		return refuse(error, "since is no time");
	if (copy_text(json, "phase", phase, sizeof(phase)))
		for (m->phase = MARK_CLAIMED; m->phase < MARK_PHASES; m->phase++)
			if (strcmp(names[m->phase], phase) == 0)
				break;
	if (m->phase == MARK_NONE || m->phase == MARK_PHASES)
		return refuse(error, "phase is unknown");
	m->cordoned = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "cordoned"));
	return 0;
}

int mark_read(const char *text, struct mark *m, struct error *error)
{
	cJSON *json = utf8_is_valid(text, strlen(text)) ? cJSON_Parse(text) : NULL;
	int rc;

	*m = (struct mark){.phase = MARK_NONE};
	rc = read_members(json, m, error);
	if (rc)
		*m = (struct mark){.phase = MARK_GARBLED};
	cJSON_Delete(json);
	return rc;
}

void mark_write(const struct mark *m, struct buf *out)
{
	struct jsonw w;

	jsonw_begin(&w, out);
	jsonw_key_string(&w, "plan", m->plan);
	jsonw_key_string(&w, "holder", m->holder);
	jsonw_key_time(&w, "since", m->since_ns);
	jsonw_key_string(&w, "phase", mark_phase_name(m->phase));
	jsonw_key_bool(&w, "cordoned", m->cordoned);
	jsonw_object_close(&w);
}
