/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A day of windows would be 180 KiB per pod, so what happened before the last 15 minutes is kept as
 * two numbers per hour. The percentile is exact (nearest rank): of n <= 120 bucket means the one of
 * rank ceil(0.95 n) is among the 7 largest.
 *
 * Stats share the day's numbers with the usage state instead of copying them: 200 bytes per pod
 * that change once in 30 s. They lie in one block per node, since a count of users for each pod
 * would be a cache miss for each pod whenever stats are built. The state writes into what nobody
 * else holds and else into a copy of its own.
 */
#include "aggregator/state/pod_peaks.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/refs.h"

enum { ROOM_STEP = 8 };

static_assert(PEAK_BUCKETS - (PEAK_BUCKETS * 95 + 99) / 100 + 1 <= PEAK_LARGEST, "see above");

struct node_peaks *node_peaks_hold(struct node_peaks *p)
{
	refs_hold(&p->users);
	return p;
}

void node_peaks_drop(struct node_peaks *p)
{
	if (p && refs_drop(&p->users))
		free(p);
}

/*
 * Makes *peaks one that may be written to and has room. Nobody can begin to hold it meanwhile:
 * holds come from here.
 */
static struct node_peaks *writable(struct node_peaks **peaks, uint32_t room)
{
	struct node_peaks *old = *peaks, *own;

	if (old && room <= old->room &&
	    atomic_load_explicit(&old->users, memory_order_acquire) == 1)
		return old;
	if (old && room < old->room)
		room = old->room;
	own = mem_alloc(sizeof(*own) + room * sizeof(own->pods[0]));
	atomic_init(&own->users, 1);
	own->room = room;
	own->count = old ? old->count : 0;
	own->unused = old ? old->unused : 0;
	if (old)
		memcpy(own->pods, old->pods, old->count * sizeof(own->pods[0]));
	node_peaks_drop(old);
	return *peaks = own;
}

static struct pod_peaks *take_place(struct pod_hours *h, struct node_peaks **peaks, int64_t hour)
{
	uint32_t count = *peaks ? (*peaks)->count : 0, room = *peaks ? (*peaks)->room : 0;
	bool full = (!*peaks || !(*peaks)->unused) && count == room;
	struct node_peaks *own = writable(peaks, full ? room + room / 4 + ROOM_STEP : room);
	struct pod_peaks *p;

	if (own->unused) {
		h->place = own->unused;
		own->unused = (uint32_t)own->pods[h->place - 1].newest;
	} else {
		h->place = ++own->count;
	}
	p = &own->pods[h->place - 1];
	p->newest = hour;
	for (int i = 0; i < PEAK_HOURS; i++)
		p->cpu_milli[i] = p->working_set_bytes[i] = NAN;
	return p;
}

void pod_hours_leave(struct pod_hours *h, struct node_peaks **peaks)
{
	if (h->place) {
		struct node_peaks *own = writable(peaks, (*peaks)->room);

		own->pods[h->place - 1].newest = own->unused;
		own->unused = h->place;
	}
	*h = (struct pod_hours){0};
}

const struct pod_peaks *pod_hours_peaks(const struct pod_hours *h, const struct node_peaks *peaks)
{
	return h->place ? &peaks->pods[h->place - 1] : NULL;
}

/* Hours that went by without a bucket are unknown. */
static void turn_to(struct pod_hours *h, struct pod_peaks *p, int64_t hour)
{
	if (hour - p->newest > PEAK_HOURS)
		p->newest = hour - PEAK_HOURS;
	if (p->newest < hour)
		h->count = 0;
	while (p->newest < hour) {
		p->newest++;
		p->cpu_milli[p->newest % PEAK_HOURS] = NAN;
		p->working_set_bytes[p->newest % PEAK_HOURS] = NAN;
	}
}

static float add_mean(struct pod_hours *h, float mean)
{
	int at = h->count < PEAK_LARGEST ? h->count : PEAK_LARGEST, rank;

	for (; at > 0 && h->largest[at - 1] < mean; at--)
		h->largest[at] = h->largest[at - 1];
	h->largest[at] = mean;
	h->count++;
	rank = (h->count * 95 + 99) / 100;
	return h->largest[h->count - rank];
}

void pod_hours_add(struct pod_hours *h, struct node_peaks **peaks,
		   const struct pod_bucket_use *bucket)
{
	int64_t hour = bucket->start_ns / (PEAK_HOUR_SECONDS * 1000000000LL);
	struct pod_peaks *p;
	float *most;

	if ((!bucket->cpu_known && !bucket->working_set_known) ||
	    (h->place && hour < (*peaks)->pods[h->place - 1].newest))
		return;
	p = h->place ? &writable(peaks, (*peaks)->room)->pods[h->place - 1]
		     : take_place(h, peaks, hour);
	turn_to(h, p, hour);
	if (bucket->cpu_known && h->count < PEAK_BUCKETS)
		p->cpu_milli[hour % PEAK_HOURS] = add_mean(h, bucket->cpu_milli);
	most = &p->working_set_bytes[hour % PEAK_HOURS];
	if (bucket->working_set_known && !(*most >= bucket->working_set_bytes))
		*most = bucket->working_set_bytes;
}
