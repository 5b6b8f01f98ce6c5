/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The ConQuest snapshots of one queue, as ConQuest::observe of queuescope-sketch has them: Count-Min rows whose cells know
 * in which window they were last written (Expiry::Tag), asked with Estimator::Overlap. Windows are powers of two of
 * nanoseconds, so that nothing is divided. */
#pragma once
#include "flow.h"

#define ROWS 2
#define COLUMNS 2048
#define SNAPSHOTS 8
#define POINT 16
#define FULL (1 << POINT)

/* Bits of a tag that number a window; those above have the windows' length, so that counts of other windows are not taken
 * for these. */
#define NUMBERED 27

struct cell {
	u32 tag;
	u32 counts[SNAPSHOTS];
};

struct sketch {
	/* The current window, and how long windows are: if that changes, what was counted is forgotten. */
	u64 window;
	u32 shift;
	/* All packets, whosoever. */
	struct cell all;
	struct cell rows[ROWS][COLUMNS];
};

/* How far back a question reaches: in windows of fixed point, and what the answer is stretched by. */
struct reach {
	u32 windows;
	u64 range, covered;
};

INLINE struct reach reach_of(u64 window, u32 shift, u64 from, u64 to)
{
	u64 start = window << shift, oldest = start - ((u64)(SNAPSHOTS - 1) << shift);
	struct reach reach = { 0, 0, 0 };

	if (from >= to)
		return reach;
	if (from < oldest) {
		reach.windows = SNAPSHOTS * FULL;
		reach.range = to - from;
		reach.covered = to - oldest;
	} else if (from < start) {
		reach.windows = FULL + ((start - from) << POINT >> shift);
	} else {
		reach.windows = ((to - from) << POINT) / (to - start);
	}
	return reach;
}

/* What a window of some age counts by. */
INLINE u32 part_of(u32 windows, u32 age)
{
	s64 left = (s64)windows - (s64)age * FULL;
	return left < 0 ? 0 : left > FULL ? FULL : left;
}

/* A count of one window in a cell, if the cell was written since that began. */
INLINE u32 valid(const struct cell *cell, u32 window, u32 counter)
{
	u32 age = (window - counter) % SNAPSHOTS;
	return age >= window - cell->tag ? cell->counts[counter] : 0;
}

/* What two cells have of so many windows, of each window the lesser. */
GLOBAL u64 sum_of(const struct cell *one, const struct cell *other, u32 window, u32 windows)
{
	u64 sum = 0;

	if (!one || !other)
		return 0;
	for (u32 counter = 0; counter < SNAPSHOTS; counter++) {
		u32 a = valid(one, window, counter), b = valid(other, window, counter);
		sum += (u64)(a < b ? a : b) * part_of(windows, (window - counter) % SNAPSHOTS);
	}
	return sum;
}

/* The same. Most packets of a queue that is not there wait for less than a window, so that one counter is asked. */
INLINE u64 least_of(const struct cell *one, const struct cell *other, u32 window, u32 windows)
{
	u32 counter = window % SNAPSHOTS, a, b;

	if (windows > FULL)
		return sum_of(one, other, window, windows);
	a = one->tag == window ? one->counts[counter] : 0;
	b = other->tag == window ? other->counts[counter] : 0;
	return (u64)(a < b ? a : b) * windows;
}

/* Forgets what is too old in a cell. */
GLOBAL int renew(struct cell *cell, u32 window)
{
	if (!cell)
		return 0;
	for (u32 counter = 0; counter < SNAPSHOTS; counter++)
		cell->counts[counter] = valid(cell, window, counter);
	cell->tag = window;
	return 0;
}

INLINE void add(struct cell *cell, u32 window, u32 weight)
{
	if (cell->tag != window)
		renew(cell, window);
	cell->counts[window % SNAPSHOTS] += weight;
}

INLINE u64 whole(u64 sum, struct reach reach)
{
	u64 rounded = (sum + FULL / 2) >> POINT;
	return reach.covered ? rounded * reach.range / reach.covered : rounded;
}

struct estimates {
	/* Bytes of the packet's flow, and of all, that left while it waited. */
	u64 flow, all;
};

/* What left while a packet waited; then it leaves. */
INLINE struct estimates observe(struct sketch *sketch, u64 key, u32 weight, u64 from, u64 now, u32 shift)
{
	struct estimates found = { 0, 0 };
	u64 hash = fold(key ^ 0x243f6a8885a308d3, 0x9e3779b97f4a7c15);
	u32 first = ((hash & 0xffffffff) * COLUMNS) >> 32, second = ((hash >> 32) * COLUMNS) >> 32;
	u32 window;
	struct reach reach;

	if (now >> shift > sketch->window || shift != sketch->shift)
		sketch->window = now >> shift;
	sketch->shift = shift;
	reach = reach_of(sketch->window, shift, from, now);
	window = (sketch->window & ((1 << NUMBERED) - 1)) | shift << NUMBERED;
	struct cell *one = &sketch->rows[0][first % COLUMNS], *other = &sketch->rows[1][second % COLUMNS];
	struct cell *all = &sketch->all;
	found.flow = whole(least_of(one, other, window, reach.windows), reach);
	found.all = whole(least_of(all, all, window, reach.windows), reach);
	add(one, window, weight);
	add(other, window, weight);
	add(all, window, weight);
	return found;
}
