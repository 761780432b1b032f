/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET / and /page/FILE: the web page, which reads the API as any other client. Its files hold no
 * data, so they need no credentials. They run no code and load nothing but their own, and no other
 * site may show them in a frame.
 */
#include "aggregator/api/page.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "aggregator/api/api.h"

enum { GZIP_WINDOW = 16 + MAX_WBITS };

static const char policy[] = "default-src 'self'; base-uri 'none'; form-action 'none'; "
			     "frame-ancestors 'none'; object-src 'none'";

static const struct page_file *find_file(const char *path)
{
	const struct page_file *f = page_files;

	while (f->path && strcmp(f->path, path) != 0)
		f++;
	return f->path ? f : NULL;
}

/* For the few clients that do not take gzip. The input is the build's own. */
static void unpack(const struct page_file *f, struct buf *out)
{
	unsigned char block[4096];
	z_stream z = {.next_in = (unsigned char *)f->gzip, .avail_in = (uInt)f->gzip_len};
	int rc = inflateInit2(&z, GZIP_WINDOW);

	assert(rc == Z_OK);
	do {
		z.next_out = block;
		z.avail_out = sizeof(block);
		rc = inflate(&z, Z_NO_FLUSH);
		assert(rc == Z_OK || rc == Z_STREAM_END);
		buf_add(out, block, sizeof(block) - z.avail_out);
	} while (rc != Z_STREAM_END);
	inflateEnd(&z);
}

void api_page(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	const char *path = strcmp(rq->path, "/") == 0 ? "index.html" : rq->path + strlen("/page/");
	const struct page_file *f = find_file(path);

	(void)ctx;
	if (!f) {
		api_fail(rs, FAIL_NOT_FOUND, NULL, "the page has no file \"%.200s\"", path);
		return;
	}
	rs->content_type = f->content_type;
	rs->policy = policy;
	rs->negotiated = true;
	rs->gzip = shared_body_accepts_gzip(rq->header ? rq->header(rq, "Accept-Encoding") : NULL);
	rs->etag = f->etag ^ rs->gzip;
	if (rs->gzip)
		buf_add(&rs->body, f->gzip, f->gzip_len);
	else
		unpack(f, &rs->body);
}
