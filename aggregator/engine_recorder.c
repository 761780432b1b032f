/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	loop thread --- one step for each view ---> queue --> recorder thread --> segments
 *
 * The loop copies intervals as they come; objects are compared with those of the view before, and
 * written, on the thread. A disk that is too slow for QUEUE_MOST bytes loses steps, and a failed write
 * those that follow it: the next segment then stands for itself.
 */
#include "aggregator/engine_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>
#include <zlib.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/state/bytes.h"
#include "shared/arith.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/thread.h"

#define QUEUE_MOST	 ((size_t)64 << 20)
#define SEGMENT_LEAST_NS (60 * NS_PER_SEC)
#define SEGMENT_MOST_NS	 (3600 * NS_PER_SEC)
#define SEGMENTS_LEAST	 8 /* fit into bytes_most, so that deleting the oldest leaves most of it */
#define RETRY_NS	 (10 * NS_PER_SEC)

/* What came since the view before, and the view; or a plan. */
struct step {
	struct step *prev, *next;
	struct buf told; /* owned */
	size_t gathered_at; /* in told */
	int64_t now_ns; /* of the publication */
	struct view *view; /* held, as are the next two; NULL: there is a plan */
	struct plan_result *plan; /* NULL: there is none */
	struct reservations_copy *reservations;
	bool after_loss; /* steps before it are missing */
};

struct recorder {
	/* fixed after start */
	struct recorder_config config;
	int dir; /* a descriptor that is locked */
	int64_t segment_ns;
	uint64_t segment_bytes; /* of the file; a step may exceed it */
	struct helper helper;

	/* loop thread */
	struct buf told; /* of the step to come */
	size_t gathered_at;

	/* recorder thread */
	gzFile file; /* NULL: none is open */
	char *path; /* owned; of file */
	int64_t start_ns; /* of file */
	int64_t retry_ns; /* no new file before; Unix time */
	struct view *view; /* held; that was recorded last; NULL: none since the record began */
	struct buf sources, state; /* as written last */
	struct plan_result *plan; /* held; the newest that was recorded */
	bool failing;

	pthread_mutex_t lock;
	/* under lock */
	struct step *steps; /* owned, oldest first */
	size_t queued; /* bytes of them */
	bool lost; /* steps, since the last one that is queued */
};

static void step_free(struct step *s)
{
	buf_fini(&s->told);
	view_drop(s->view);
	plan_result_drop(s->plan);
	reservations_copy_drop(s->reservations);
	free(s);
}

/* --- loop thread ------------------------------------------------------------------------------ */

void recorder_interval(struct recorder *r, const struct ingest_interval *i,
		       enum usage_verdict verdict)
{
	struct record_interval told = {verdict, i->now_ns, .node = i->header->node,
				       .interval = i->decoded};

	if (!r || (verdict != USAGE_APPLIED && verdict != USAGE_NEED_FULL))
		return;
	memcpy(told.run, i->header->run, sizeof(told.run));
	memcpy(told.nonce, i->header->nonce, sizeof(told.nonce));
	record_interval(&r->told, &told, i->parts, i->part_count);
}

void recorder_built(struct recorder *r, size_t count)
{
	if (r && count)
		record_number(&r->told, RECORD_BUILT, count, 4);
}

void recorder_gathered(struct recorder *r)
{
	if (r)
		r->gathered_at = r->told.len;
}

/* v NULL: only the plan is new. */
static void queue(struct recorder *r, struct view *v, int64_t now_ns)
{
	struct step *s = mem_zalloc(1, sizeof(*s));

	if (v) {
		s->told = r->told;
		r->told = (struct buf)BUF_INIT;
		s->gathered_at = r->gathered_at;
		s->view = view_hold(v);
	}
	s->now_ns = now_ns;
	s->plan = plan_slot_take(r->config.plans);
	s->reservations = reservations_take(r->config.reservations, now_ns);
	pthread_mutex_lock(&r->lock);
	if (r->queued + s->told.len <= QUEUE_MOST) {
		s->after_loss = r->lost;
		r->lost = false;
		r->queued += s->told.len;
		DL_APPEND(r->steps, s);
		s = NULL;
	} else {
		r->lost = true;
	}
	pthread_mutex_unlock(&r->lock);
	if (s)
		step_free(s);
	else
		helper_wake(&r->helper);
}

void recorder_published(struct recorder *r, struct view *v, int64_t now_ns)
{
	if (r)
		queue(r, v, now_ns);
}

void recorder_planned(struct recorder *r, int64_t now_ns)
{
	if (r)
		queue(r, NULL, now_ns);
}

/* --- segments --------------------------------------------------------------------------------- */

static void close_segment(struct recorder *r)
{
	if (r->file && gzclose(r->file) != Z_OK)
		log_warn("%s: the end of this segment of the record is missing", r->path);
	r->file = NULL;
	free(r->path);
	r->path = NULL;
}

static void note_failure(struct recorder *r, const char *path, const char *why, int64_t now_ns)
{
	if (!r->failing)
		log_error("%s: nothing is recorded: %s", path, why);
	r->failing = true;
	r->retry_ns = now_ns + RETRY_NS;
	counter_set(&r->config.counters->alarm, 1);
	counter_add(&r->config.counters->failures, 1);
	close_segment(r);
}

/* Segments that are too old, or leave no room for the open one, which is never among them. */
static void delete_old(const struct recorder *r, int64_t now_ns)
{
	struct record_segments found;
	uint64_t bytes = 0;
	struct error why;

	if (record_segments_find(&found, r->config.dir, &why)) {
		log_warn("old segments of the record stay: %s", why.text);
		return;
	}
	for (size_t i = found.count; i-- > 0;) {
		bool old =
			i + 1 < found.count && found.start_ns[i + 1] < now_ns - r->config.keep_ns;
		struct stat s = {0};

		if (stat(found.paths[i], &s) == 0)
			bytes += (uint64_t)s.st_size;
		if ((old || bytes > r->config.bytes_most - r->segment_bytes) && i + 1 < found.count)
			(void)unlink(found.paths[i]);
	}
	record_segments_fini(&found);
}

static int write_bytes(struct recorder *r, const struct buf *b, size_t from, size_t to)
{
	counter_add(&r->config.counters->bytes, to - from);
	return to > from && gzwrite(r->file, b->data + from, (unsigned int)(to - from)) <= 0 ? -EIO
											     : 0;
}

/* An entry of JSON, unless it equals the last one. Takes json. */
static void add_json(struct buf *out, enum record_type type, struct buf *last, struct buf *json)
{
	size_t begun;

	if (json->len != last->len || memcmp(json->data, last->data, json->len) != 0) {
		begun = record_begin(out, type);
		buf_add(out, json->data, json->len);
		record_end(out, begun);
		buf_fini(last);
		*last = *json;
		*json = (struct buf)BUF_INIT;
	}
	buf_fini(json);
}

static void add_sources(struct recorder *r, const struct cluster *c, struct buf *out)
{
	struct buf json = BUF_INIT;
	struct jsonw w;

	jsonw_init(&w, &json);
	snapshot_write_sources(&w, c);
	add_json(out, RECORD_SOURCES, &r->sources, &json);
}

/* Takes the step's plan, if it is newer. */
static void take_plan(struct recorder *r, struct step *s)
{
	if (!s->plan || (r->plan && s->plan->version == r->plan->version))
		return;
	plan_result_drop(r->plan);
	r->plan = s->plan;
	s->plan = NULL;
}

static void add_plan(const struct recorder *r, struct buf *out)
{
	size_t begun;
	struct bytes b = {.out = out};
	int64_t time_ns, view_ns, every_ns;

	if (!r->plan)
		return;
	time_ns = r->plan->time_ns;
	view_ns = r->plan->slack.view->time_ns;
	every_ns = r->plan->every_ns;
	begun = record_begin(out, RECORD_PLAN);
	bytes_i64(&b, &time_ns);
	bytes_i64(&b, &view_ns);
	bytes_i64(&b, &every_ns);
	bytes_u64(&b, &r->plan->version);
	bytes_u64(&b, &r->plan->run);
	bytes_u64(&b, &r->plan->looks);
	record_end(out, begun);
}

/* Of the last view. */
static void add_state(struct recorder *r, const struct step *s, bool base, struct buf *out)
{
	const struct snapshot_state state = {r->view, s->reservations,
					     r->plan ? r->plan->begun : NULL, NULL, base};
	struct buf json = BUF_INIT;
	struct jsonw w;

	jsonw_init(&w, &json);
	snapshot_write_state(&w, &state);
	add_json(out, RECORD_STATE, &r->state, &json);
}

/*
 * The base of a new segment: the state at the end of the one that began at before_ns; 0: what is
 * remembered alone.
 */
static void add_base(struct recorder *r, const struct step *s, int64_t before_ns, struct buf *out)
{
	size_t begun = record_begin(out, RECORD_BEGIN);
	struct bytes b = {.out = out};
	struct cluster *c = r->view->cluster;

	bytes_number(&b, RECORD_VERSION, 1);
	bytes_i64(&b, &before_ns);
	record_end(out, begun);
	buf_clear(&r->sources);
	buf_clear(&r->state);
	if (before_ns && c) {
		record_changes(out, NULL, c);
		add_sources(r, c, out);
	}
	add_state(r, s, true, out);
	record_end(out, record_begin(out, RECORD_BASE_END));
}

/* before_ns as above. 0, or -errno and the failure is noted. */
static int open_segment(struct recorder *r, const struct step *s, int64_t before_ns)
{
	struct buf base = BUF_INIT;
	int rc;

	close_segment(r);
	r->path = mem_printf("%s/" RECORD_PREFIX "%019" PRId64 RECORD_SUFFIX, r->config.dir,
			     s->now_ns);
	/* Level 6 makes it 5 % smaller for two and a half times the time. */
	r->file = gzopen(r->path, "wbxe1");
	rc = r->file ? 0 : -errno;
	if (!rc) {
		r->start_ns = s->now_ns;
		delete_old(r, s->now_ns);
		add_base(r, s, before_ns, &base);
		rc = write_bytes(r, &base, 0, base.len);
	}
	buf_fini(&base);
	if (rc)
		note_failure(r, r->path, strerror(-rc), s->now_ns);
	return rc;
}

/* --- recorder thread -------------------------------------------------------------------------- */

/* before: of the view before; NULL: it had none, or is not in the record. */
static int write_step(struct recorder *r, const struct step *s, const struct cluster *before)
{
	const struct cluster *c = s->view ? s->view->cluster : NULL;
	struct buf out = BUF_INIT;
	int rc = write_bytes(r, &s->told, 0, s->gathered_at);

	if (c && c != before) {
		record_changes(&out, before, c);
		add_sources(r, c, &out);
	}
	if (s->view)
		record_number(&out, RECORD_GATHERED, (uint64_t)s->view->time_ns, 8);
	if (!rc)
		rc = write_bytes(r, &out, 0, out.len);
	if (!rc)
		rc = write_bytes(r, &s->told, s->gathered_at, s->told.len);
	buf_clear(&out);
	add_state(r, s, false, &out);
	add_plan(r, &out);
	record_number(&out, s->view ? RECORD_VIEW : RECORD_STANDS, (uint64_t)s->now_ns, 8);
	if (!rc)
		rc = write_bytes(r, &out, 0, out.len);
	buf_fini(&out);
	return rc ? rc : gzflush(r->file, Z_SYNC_FLUSH) == Z_OK ? 0 : -EIO;
}

/* Whether a file is open that the step goes to. */
static bool is_ready(struct recorder *r, const struct step *s)
{
	bool goes_on = r->file && !s->after_loss;

	if (goes_on && s->now_ns - r->start_ns < r->segment_ns &&
	    (uint64_t)gzoffset(r->file) < r->segment_bytes)
		return true;
	if (!r->file && s->now_ns < r->retry_ns && r->retry_ns - s->now_ns <= RETRY_NS)
		return false;
	/* Only a view begins what stands for itself. */
	if (!goes_on) {
		close_segment(r);
		if (!s->view)
			return false;
		view_drop(r->view);
		r->view = view_hold(s->view);
	}
	return open_segment(r, s, goes_on ? r->start_ns : 0) == 0;
}

static void take_step(struct recorder *r, struct step *s)
{
	bool goes_on = r->file && !s->after_loss;
	struct view *before;

	take_plan(r, s);
	if (!is_ready(r, s))
		return;
	before = r->view;
	r->view = view_hold(s->view ? s->view : before);
	errno = EIO;
	if (write_step(r, s, goes_on ? before->cluster : NULL)) {
		note_failure(r, r->config.dir, strerror(errno), s->now_ns);
	} else if (r->start_ns == s->now_ns && (uint64_t)gzoffset(r->file) > r->segment_bytes / 2) {
		/* Segments would repeat little else than their bases. */
		(void)unlink(r->path);
		note_failure(r, r->config.dir,
			     "the cluster's objects and an interval of each node take over a "
			     "sixteenth of --record-size: raise it",
			     s->now_ns);
	} else {
		if (r->failing)
			log_info("%s: it is recorded again", r->config.dir);
		r->failing = false;
		counter_set(&r->config.counters->alarm, 0);
	}
	view_drop(before);
}

/* The caller's; NULL: there is none. */
static struct step *next_step(struct recorder *r)
{
	struct step *s;

	pthread_mutex_lock(&r->lock);
	s = r->steps;
	if (s) {
		DL_DELETE(r->steps, s);
		r->queued -= s->told.len;
	}
	pthread_mutex_unlock(&r->lock);
	return s;
}

static void *work(void *arg)
{
	struct recorder *r = arg;
	struct step *s;

	do {
		while ((s = next_step(r)) != NULL) {
			take_step(r, s);
			step_free(s);
		}
	} while (helper_wait(&r->helper, INT64_MAX));
	close_segment(r);
	return NULL;
}

/* The directory, locked for this process. */
static int lock_directory(const char *path, int *fd, struct error *error)
{
	int rc;

	*fd = -1;
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd >= 0 && access(path, W_OK | X_OK) == 0 && flock(*fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	rc = error_fail(error, -errno, "--record %s: %s", path,
			errno == EWOULDBLOCK ? "another aggregator records there"
					     : strerror(errno));
	if (*fd >= 0)
		close(*fd);
	return rc;
}

int recorder_open(struct recorder **out, const struct recorder_config *config, struct error *error)
{
	struct recorder *r;
	int dir, rc = lock_directory(config->dir, &dir, error);

	if (rc)
		return rc;
	r = mem_zalloc(1, sizeof(*r));
	r->dir = dir;
	r->config = *config;
	r->segment_ns = int_max(SEGMENT_LEAST_NS, int_min(config->keep_ns / 24, SEGMENT_MOST_NS));
	r->segment_bytes = config->bytes_most / SEGMENTS_LEAST;
	pthread_mutex_init(&r->lock, NULL);
	rc = helper_start(&r->helper, "records", work, r, error);
	if (rc) {
		recorder_close(r);
		return error_at(error, rc, "--record %s", config->dir);
	}
	counter_set(&config->counters->enabled, 1);
	*out = r;
	return 0;
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	helper_stop(&r->helper);
	view_drop(r->view);
	plan_result_drop(r->plan);
	buf_fini(&r->told);
	buf_fini(&r->sources);
	buf_fini(&r->state);
	pthread_mutex_destroy(&r->lock);
	close(r->dir);
	free(r);
}
