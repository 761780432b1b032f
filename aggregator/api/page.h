/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the web page (aggregator/page), which the build compresses into the program. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct page_file {
	const char *path; /* below aggregator/page: "main.js"; NULL ends the list */
	const char *content_type;
	uint64_t etag; /* of its content */
	size_t len; /* before compression */
	const unsigned char *gzip;
	size_t gzip_len;
};

extern const struct page_file page_files[]; /* made by packaging/embed */
