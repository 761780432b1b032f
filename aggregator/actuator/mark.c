/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/actuator/mark.h"

#include <cjson/cJSON.h>
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

/* False: a member is missing or invalid. */
static bool read_members(const cJSON *json, struct mark *m)
{
	char phase[16], since[64];

	if (!copy_text(json, "plan", m->plan, sizeof(m->plan)) ||
	    !copy_text(json, "holder", m->holder, sizeof(m->holder)) ||
	    !copy_text(json, "since", since, sizeof(since)) ||
	    timefmt_parse(since, &m->since_ns, NULL) || m->since_ns < 0 ||
	    !copy_text(json, "phase", phase, sizeof(phase)))
		return false;
	m->phase = MARK_CLAIMED;
	while (m->phase < MARK_PHASES && strcmp(names[m->phase], phase) != 0)
		m->phase++;
	m->cordoned = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "cordoned"));
	return m->phase < MARK_PHASES;
}

void mark_read(const char *text, struct mark *m)
{
	cJSON *json = utf8_is_valid(text, strlen(text)) ? cJSON_Parse(text) : NULL;

	*m = (struct mark){.phase = MARK_NONE};
	if (!read_members(json, m))
		*m = (struct mark){.phase = MARK_GARBLED};
	cJSON_Delete(json);
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
