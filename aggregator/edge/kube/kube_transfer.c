/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl gives the body of every answer to one callback; this file separates answers (200) from
 * refusals. A handle may not leave the multi handle inside its callbacks: a receiver that has
 * enough says so, libcurl then reports a failed transfer, and that is no fault.
 */
#include "aggregator/edge/kube/kube_feed.h"

#include "shared/mem.h"

enum { REFUSAL_MAX = 64 << 10, LIST_BUFFER = 64 << 10 };

/* --- callbacks of libcurl --------------------------------------------------------------------- */

static long status_code(const struct transfer *t)
{
	long code = 0;

	curl_easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &code);
	return code;
}

/* An empty line ends the headers, unless they are trailers. */
static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;

	if (!t->opened && count > 0 && (line[0] == '\r' || line[0] == '\n') &&
	    status_code(t) == 200) {
		t->opened = true;
		t->hooks->on_open(t->ctx);
	}
	return size * count;
}

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	size_t len = size * count;

	if (t->opened) {
		t->enough = !t->hooks->on_data(t->ctx, data, len);
		return t->enough ? 0 : len;
	}
	if (t->refusal.len + len <= REFUSAL_MAX)
		buf_add(&t->refusal, data, len);
	return len;
}

/* --- life ------------------------------------------------------------------------------------- */

void transfer_init(struct transfer *t, struct kube_session *session, CURLM *multi,
		   const struct transfer_hooks *hooks, void *ctx)
{
	*t = (struct transfer){.session = session, .multi = multi, .hooks = hooks, .ctx = ctx};
	t->handle = curl_easy_init();
	if (!t->handle)
		mem_exhausted();
	curl_easy_setopt(t->handle, CURLOPT_PRIVATE, t);
	curl_easy_setopt(t->handle, CURLOPT_ERRORBUFFER, t->detail);
	curl_easy_setopt(t->handle, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(t->handle, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->handle, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(t->handle, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	/* A pending name lookup does not delay the end of the thread. */
	curl_easy_setopt(t->handle, CURLOPT_QUICK_EXIT, 1L);
}

void transfer_fini(struct transfer *t)
{
	if (!t->handle)
		return;
	if (t->active)
		curl_multi_remove_handle(t->multi, t->handle);
	curl_easy_cleanup(t->handle);
	buf_fini(&t->refusal);
	t->handle = NULL;
}

struct transfer *transfer_of(CURL *handle)
{
	struct transfer *t = NULL;

	curl_easy_getinfo(handle, CURLINFO_PRIVATE, (char **)&t);
	return t;
}

/* --- requests --------------------------------------------------------------------------------- */

static void end_without_answer(struct transfer *t, const char *why)
{
	struct kube_status fault;

	kube_status_set(&fault, 0, why);
	t->hooks->on_end(t->ctx, &fault);
}

void transfer_start(struct transfer *t, const struct transfer_request *request, int64_t now_ns)
{
	struct error why;

	t->opened = t->enough = false;
	t->detail[0] = '\0';
	buf_clear(&t->refusal);
	if (kube_session_prepare(t->session, t->handle, request->path, now_ns, &why)) {
		end_without_answer(t, why.text);
		return;
	}
	curl_easy_setopt(t->handle, CURLOPT_ACCEPT_ENCODING, request->gzip ? "gzip" : NULL);
	curl_easy_setopt(t->handle, CURLOPT_BUFFERSIZE, (long)LIST_BUFFER);
	curl_easy_setopt(t->handle, CURLOPT_TIMEOUT_MS, request->total_ms);
	curl_easy_setopt(t->handle, CURLOPT_LOW_SPEED_LIMIT, request->silence_s ? 1L : 0L);
	curl_easy_setopt(t->handle, CURLOPT_LOW_SPEED_TIME, request->silence_s);
	if (curl_multi_add_handle(t->multi, t->handle) != CURLM_OK)
		mem_exhausted();
	t->active = true;
}

void transfer_finish(struct transfer *t, CURLcode code)
{
	struct error why;

	curl_multi_remove_handle(t->multi, t->handle);
	t->active = false;
	if (t->enough || (t->opened && code == CURLE_OK)) {
		t->hooks->on_end(t->ctx, NULL);
	} else if (code != CURLE_OK) {
		kube_session_explain(t->session, t->handle, code, t->detail, &why);
		end_without_answer(t, why.text);
	} else {
		struct kube_status fault;
		curl_off_t seconds = 0;

		kube_status_parse(&fault, (int)status_code(t), t->refusal.data, t->refusal.len);
		curl_easy_getinfo(t->handle, CURLINFO_RETRY_AFTER, &seconds);
		kube_status_retry_after(&fault, (double)seconds);
		t->hooks->on_end(t->ctx, &fault);
	}
}
