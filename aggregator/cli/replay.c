/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay feeds the recorded inputs to the code that the live aggregator ran (usage_apply(),
 * usage_build_stats(), join_view()), in the same order, so its views are the same. BUILT entries are
 * needed since a view has the stats that were built so far.
 *
 * A view counts from its VIEW entry on, so the replay reads one entry ahead. Where segments before the first are
 * deleted, windows and peaks begin empty, and each node with its first full interval, which agents
 * send every minute.
 */
#include "aggregator/cli/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/model/model.h"
#include "aggregator/state/bytes.h"
#include "aggregator/state/workload_demand.h"
#include "aggregator/state/join.h"
#include "aggregator/state/record.h"
#include "aggregator/state/usage.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

enum { PAST = 64 };

#define VIEW_GAP_NS (15 * NS_PER_SEC) /* an aggregator without changes publishes every 5 to 15 s */

/* --- entries ---------------------------------------------------------------------------------- */

struct reader {
	struct record_segments segments;
	size_t opened; /* segments */
	gzFile file; /* the last of them; NULL: none is open */
	bool cut; /* the segment before it does not reach its end */
	struct error damage; /* of the last damaged segment, "" else */
	size_t damaged; /* segments */
	/* the entry at hand */
	enum record_type type;
	struct buf data; /* owned */
};

static int reader_open(struct reader *r, const char *dir, struct error *error)
{
	*r = (struct reader){0};
	if (record_segments_find(&r->segments, dir, error))
		return -EINVAL;
	if (r->segments.count)
		return 0;
	error_set(error, "%s: there is no record in it (evenkeel-aggregator --record)", dir);
	record_segments_fini(&r->segments);
	return -EINVAL;
}

static void reader_close(struct reader *r)
{
	if (r->file)
		gzclose(r->file);
	record_segments_fini(&r->segments);
	buf_fini(&r->data);
}

static const char *segment_path(const struct reader *r)
{
	return r->segments.paths[r->opened - 1];
}

/* Of the open segment: the rest of it is passed over. */
static void note_damage(struct reader *r, const char *why)
{
	error_set(&r->damage, "%s is damaged before byte %lld of its content: %s", segment_path(r),
		  (long long)gztell(r->file), why);
	r->damaged++;
	r->cut = true;
	gzclose(r->file);
	r->file = NULL;
}

/* False at the end of the segment, which a kill may have cut anywhere, or where it is damaged. */
static bool read_bytes(struct reader *r, void *to, uint32_t len, bool may_end)
{
	int got = gzread(r->file, to, len), rc;
	const char *why;

	if (got == (int)len)
		return true;
	why = gzerror(r->file, &rc);
	if (rc != Z_OK && rc != Z_BUF_ERROR) {
		note_damage(r, why);
		return false;
	}
	r->cut = !may_end || got || rc;
	gzclose(r->file);
	r->file = NULL;
	return false;
}

/* Whether the checksum behind the data is right. An older version has none; read_begin() refuses it. */
static bool is_sound(const struct reader *r, const uint8_t *head)
{
	const uint8_t *data = (const uint8_t *)r->data.data;
	struct bytes tail = {.in = data + r->data.len, .left = RECORD_TAIL};
	uLong sum = crc32_z(crc32_z(0, head, RECORD_HEAD), data, r->data.len);

	return bytes_number(&tail, 0, RECORD_TAIL) == sum ||
	       (r->type == RECORD_BEGIN && data[0] && data[0] < RECORD_VERSION);
}

/* False at the end of the segment, which is closed then. */
static bool read_entry(struct reader *r)
{
	uint8_t head[RECORD_HEAD];
	struct bytes b = {.in = head + 1, .left = RECORD_HEAD - 1};
	uint32_t len = 0;

	if (!read_bytes(r, head, RECORD_HEAD, true))
		return false;
	bytes_u32(&b, &len);
	if (head[0] < RECORD_BEGIN || head[0] > RECORD_STANDS || len > RECORD_ENTRY_MOST) {
		note_damage(r, "this is no entry");
		return false;
	}
	r->type = (enum record_type)head[0];
	buf_clear(&r->data);
	buf_reserve(&r->data, len + RECORD_TAIL);
	if (!read_bytes(r, r->data.data, len + RECORD_TAIL, false))
		return false;
	r->data.len = len;
	if (!is_sound(r, head)) {
		note_damage(r, "its checksum is wrong");
		return false;
	}
	r->data.data[len] = '\0';
	return true;
}

/* 1: there is one; 0: the record is at its end. */
static int next_entry(struct reader *r, struct error *error)
{
	while (!r->file || !read_entry(r)) {
		const char *path;

		if (r->opened == r->segments.count)
			return 0;
		path = r->segments.paths[r->opened++];
		r->file = gzopen(path, "rbe");
		if (!r->file)
			return error_fail(error, -EINVAL, "%s: %s", path, strerror(errno));
	}
	return 1;
}

static int64_t number(const struct reader *r, size_t len)
{
	struct bytes b = {.in = (const uint8_t *)r->data.data, .left = r->data.len};

	return (int64_t)bytes_number(&b, 0, len);
}

/*
 * *goes_on: the segment continues the previous one, so the state stays valid. -EPROTO with the reason:
 * another version.
 */
static int read_begin(const struct reader *r, bool *goes_on, struct error *error)
{
	struct bytes b = {.in = (const uint8_t *)r->data.data, .left = r->data.len};
	int64_t before_ns = 0;
	int version = (int)bytes_number(&b, 0, 1);

	bytes_i64(&b, &before_ns);
	if (version != RECORD_VERSION || b.bad || b.left)
		return error_fail(error, -EPROTO,
				  "%s: the record has version %d; this evenkeel reads version %d",
				  segment_path(r), version, RECORD_VERSION);
	*goes_on = !r->cut && r->opened > 1 && r->segments.start_ns[r->opened - 2] == before_ns;
	return 0;
}

/* Entries that begin with a time; the year 2116 is the last. */
static bool has_good_time(const struct reader *r)
{
	switch (r->type) {
	case RECORD_GATHERED:
	case RECORD_VIEW:
	case RECORD_STANDS:
	case RECORD_PLAN:
		return r->data.len >= 8 && number(r, 8) > 0 && number(r, 8) <= INT64_MAX / 2;
	default:
		return true;
	}
}

int replay_measure(const char *dir, struct replay_extent *x, struct error *error)
{
	struct reader r;
	bool goes_on;
	int rc = reader_open(&r, dir, error);

	if (rc)
		return rc;
	*x = (struct replay_extent){.segments = r.segments.count};
	for (size_t i = 0; i < r.segments.count; i++) {
		struct stat s = {0};

		if (stat(r.segments.paths[i], &s) == 0)
			x->bytes += (uint64_t)s.st_size;
	}
	while ((rc = next_entry(&r, error)) == 1) {
		if (r.type == RECORD_BEGIN) {
			rc = read_begin(&r, &goes_on, error);
			if (rc)
				break;
			x->gaps += r.opened > 1 && !goes_on;
		}
		x->intervals += r.type == RECORD_INTERVAL;
		if (r.type != RECORD_VIEW || !has_good_time(&r))
			continue;
		x->to_ns = number(&r, 8);
		if (!x->views++)
			x->from_ns = x->to_ns;
	}
	x->damaged = r.damaged;
	x->damage = r.damage;
	reader_close(&r);
	return rc;
}

/* --- the state -------------------------------------------------------------------------------- */

struct replay {
	struct reader reader;
	char *name; /* owned; of the directory */
	struct usage_state *usage;
	struct model *model;
	bool follows; /* an API */
	struct join *join;
	struct demand *demand;
	struct interval *interval; /* reused */
	bool passes_base; /* of a segment that goes on */
	bool recalled; /* what is in the base alone */
	struct buf state; /* as told last */
	struct view *made; /* held; that was gathered last; NULL: it is published */
	struct view *shown; /* held; that was published last; NULL: none */
	struct offline_moment now, next; /* next.at_ns 0: nothing is read ahead */
	int64_t first_ns; /* of the first view; 0: none yet */
	struct view *past[PAST]; /* held; the newest, by number: plans are made of these */
	uint64_t views;
	struct plan_moment plan; /* the newest; its view is held */
};

static void drop_state(struct replay *r)
{
	/* The join may hold stats. */
	join_free(r->join);
	usage_free(r->usage);
	demand_free(r->demand);
	model_free(r->model);
	view_drop(r->made);
	view_drop(r->shown);
	r->made = r->shown = NULL;
}

static void reset_state(struct replay *r)
{
	drop_state(r);
	r->usage = usage_new(&usage_default_limits);
	r->model = model_new();
	r->join = join_new();
	r->demand = demand_new();
	usage_set_demand(r->usage, r->demand);
	join_set_demand(r->join, r->demand);
	r->follows = r->recalled = false;
	view_drop(r->plan.view);
	r->plan = (struct plan_moment){0};
}

static int apply_interval(struct replay *r, struct error *error)
{
	struct record_interval i = {.interval = r->interval};
	struct usage_answer answer;
	int rc = record_interval_read(&i, r->reader.data.data, r->reader.data.len, error);

	if (rc)
		return rc;
	usage_apply(r->usage, i.node, i.run, i.nonce, i.interval, i.now_ns, &answer);
	/* The run is not known, as its beginning is not in the record. */
	if (answer.verdict == USAGE_NEED_FULL && i.verdict == USAGE_APPLIED)
		usage_apply(r->usage, i.node, i.run, NULL, i.interval, i.now_ns, &answer);
	return 0;
}

static void gather(struct replay *r)
{
	int64_t now_ns = number(&r->reader, 8);
	size_t count;
	struct node_stats *const *stats = usage_gather_stats(r->usage, now_ns, &count);

	view_drop(r->made);
	r->made = join_view(r->join, stats, count, r->follows ? model_cluster(r->model) : NULL,
			    now_ns);
}

/* Of the base; a record has the rest of it in its intervals. */
static int recall(struct replay *r, struct error *error)
{
	const struct buf *text = &r->reader.data;
	cJSON *state = cJSON_ParseWithLength(text->data, text->len);
	const cJSON *demand = cJSON_GetObjectItemCaseSensitive(state, "demand");
	int rc = 0;

	if (cJSON_GetObjectItemCaseSensitive(state, "workloads"))
		rc = join_recall(r->join, text->data, text->len, error);
	if (!rc && demand)
		rc = demand_read_records(r->demand, demand, error);
	cJSON_Delete(state);
	return rc;
}

static int take_state(struct replay *r, struct error *error)
{
	const struct buf *text = &r->reader.data;

	buf_clear(&r->state);
	buf_add(&r->state, text->data, text->len);
	if (r->recalled)
		return 0;
	r->recalled = true;
	return recall(r, error);
}

static void take_plan(struct replay *r)
{
	struct bytes b = {.in = (const uint8_t *)r->reader.data.data, .left = r->reader.data.len};
	int64_t view_ns = 0;

	view_drop(r->plan.view);
	r->plan = (struct plan_moment){0};
	bytes_i64(&b, &r->plan.now_ns);
	bytes_i64(&b, &view_ns);
	bytes_i64(&b, &r->plan.every_ns);
	bytes_u64(&b, &r->plan.version);
	bytes_u64(&b, &r->plan.run);
	bytes_u64(&b, &r->plan.looks);
	for (int i = 0; i < PAST && !r->plan.view; i++)
		if (r->past[i] && r->past[i]->time_ns == view_ns)
			r->plan.view = view_hold(r->past[i]);
	if (!r->plan.view)
		r->plan.now_ns = 0;
}

static struct offline_moment make_moment(int64_t at_ns, struct view *view, const struct buf *state,
					 const struct plan_moment *plan)
{
	struct offline_moment m = {at_ns, view_hold(view), BUF_INIT, *plan};

	if (plan->view)
		view_hold(plan->view);
	buf_add(&m.state, state->data, state->len);
	return m;
}

/* A moment begins: the view that is shown, with the newest state and plan. */
static void stand(struct replay *r)
{
	r->next = make_moment(number(&r->reader, 8), r->shown, &r->state, &r->plan);
	if (!r->first_ns)
		r->first_ns = r->next.at_ns;
}

static void publish(struct replay *r)
{
	struct view **past = &r->past[r->views++ % PAST];

	view_drop(r->shown);
	r->shown = r->made;
	r->made = NULL;
	view_drop(*past);
	*past = view_hold(r->shown);
	stand(r);
}

static int begin(struct replay *r, struct error *error)
{
	int rc = read_begin(&r->reader, &r->passes_base, error);

	if (!rc && !r->passes_base)
		reset_state(r);
	return rc;
}

static int take_entry(struct replay *r, struct error *error)
{
	const struct buf *data = &r->reader.data;

	if (r->reader.type == RECORD_BEGIN)
		return begin(r, error);
	if (r->reader.type == RECORD_BASE_END)
		r->passes_base = false;
	if (r->passes_base || !r->usage)
		return 0;
	if (!has_good_time(&r->reader))
		return error_fail(error, -EINVAL, "an entry has no time");
	switch (r->reader.type) {
	case RECORD_OBJECT:
	case RECORD_REMOVED:
		return record_change_apply(r->model, r->reader.type, data->data, data->len, error);
	case RECORD_SOURCES:
		r->follows = true;
		return snapshot_set_sources(r->model, data->data, data->len, error);
	case RECORD_STATE:
		return take_state(r, error);
	case RECORD_INTERVAL:
		return apply_interval(r, error);
	case RECORD_BUILT:
		usage_build_stats(r->usage, (size_t)number(&r->reader, 4));
		return 0;
	case RECORD_GATHERED:
		gather(r);
		return 0;
	case RECORD_PLAN:
		take_plan(r);
		return 0;
	case RECORD_VIEW:
		if (r->made)
			publish(r);
		return 0;
	case RECORD_STANDS:
		if (r->shown)
			stand(r);
		return 0;
	default:
		return 0;
	}
}

/* --- moments ---------------------------------------------------------------------------------- */

int replay_open(struct replay **out, const char *dir, struct error *error)
{
	struct replay *r = mem_zalloc(1, sizeof(*r));

	if (reader_open(&r->reader, dir, error)) {
		free(r);
		return -EINVAL;
	}
	r->name = mem_strdup(dir);
	r->interval = interval_new(0);
	*out = r;
	return 0;
}

void replay_close(struct replay *r)
{
	if (!r)
		return;
	reader_close(&r->reader);
	drop_state(r);
	interval_free(r->interval);
	buf_fini(&r->state);
	offline_moment_fini(&r->now);
	offline_moment_fini(&r->next);
	view_drop(r->plan.view);
	for (int i = 0; i < PAST; i++)
		view_drop(r->past[i]);
	free(r->name);
	free(r);
}

static int out_of_range(const struct replay *r, const char *what, int64_t ns, struct error *error)
{
	char time[TIMEFMT_LEN];

	timefmt_rfc3339(ns, time);
	return error_fail(error, -ERANGE, "%s: the record %s %s%s%s", r->name, what, time,
			  r->reader.damaged ? "; " : "", r->reader.damage.text);
}

int replay_go(struct replay *r, int64_t at_ns, struct error *error)
{
	int rc = 1;

	while (rc == 1) {
		if (r->next.at_ns && r->next.at_ns <= at_ns) {
			offline_moment_fini(&r->now);
			r->now = r->next;
			r->next = (struct offline_moment){0};
		}
		if (r->next.at_ns)
			break;
		rc = next_entry(&r->reader, error);
		if (rc != 1)
			break;
		rc = take_entry(r, error);
		if (rc == -EPROTO)
			break;
		if (rc)
			note_damage(&r->reader, error->text);
		rc = 1;
	}
	if (rc < 0)
		return rc;
	if (!r->now.at_ns)
		return r->first_ns ? out_of_range(r, "begins at", r->first_ns, error)
				   : out_of_range(r, "has no view before", at_ns, error);
	if (at_ns - r->now.at_ns > VIEW_GAP_NS)
		return r->next.at_ns ? out_of_range(r, "has a gap until", r->next.at_ns, error)
				     : out_of_range(r, "ends at", r->now.at_ns, error);
	return 0;
}

void replay_take(const struct replay *r, int64_t at_ns, struct offline_moment *m)
{
	*m = make_moment(at_ns, r->now.view, &r->now.state, &r->now.plan);
}
