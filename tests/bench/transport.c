/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interval of 30 pods with 3 containers each costs on its way: medians over many
 * repetitions.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/body.h"
#include "shared/clock.h"
#include "shared/frame.h"
#include "tests/bench_report.h"
#include "tests/interval.h"

enum { PODS = 30, CONTAINERS = 3, ROUNDS = 1000 };

static double microseconds_since(int64_t start_ns)
{
	return (double)(clock_mono_ns() - start_ns) / 1e3;
}

static void measure(const struct interval *interval, int full, const char *what)
{
	static double out[ROUNDS], in[ROUNDS];
	struct keyring ring = {.count = 1};
	char row[80];
	size_t len = 0;

	memset(&ring.keys[0], 1, sizeof(ring.keys[0]));
	for (int i = 0; i < ROUNDS; i++) {
		struct frame_header header = {
			.type = FRAME_INTERVAL, .sequence = 1, .parts = 1, .node = "node-1"};
		struct buf parts[BODY_PARTS_MAX] = {BUF_INIT}, frame = BUF_INIT, body = BUF_INIT;
		struct interval *back = NULL;
		int64_t start = clock_mono_ns();

		body_encode_interval(interval, full, parts, NULL);
		frame_seal(&frame, &header, &ring.keys[0], NULL, parts[0].data, parts[0].len);
		out[i] = microseconds_since(start);
		len = frame.len;
		start = clock_mono_ns();
		frame_open(frame.data, frame.len, &ring, NULL, &header, &body, NULL);
		interval_decode(&body, 1, &back, NULL);
		in[i] = microseconds_since(start);
		interval_free(back);
		buf_fini(&parts[0]);
		buf_fini(&frame);
		buf_fini(&body);
	}
	snprintf(row, sizeof(row), "%s: size of the frame", what);
	bench_row(row, "bytes", full ? (double)NAN : 20 * 1024, 0, (double)len);
	snprintf(row, sizeof(row), "%s: encode and seal", what);
	bench_row(row, "us", (double)NAN, 0, bench_median(out, ROUNDS));
	snprintf(row, sizeof(row), "%s: open and decode", what);
	bench_row(row, "us", (double)NAN, 0, bench_median(in, ROUNDS));
}

int main(void)
{
	struct interval *interval = interval_make(2, PODS, CONTAINERS);

	bench_begin("transport");
	measure(interval, 0, "identities known");
	measure(interval, 1, "with all identities");
	bench_end();
	interval_free(interval);
	return 0;
}
