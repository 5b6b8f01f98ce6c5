/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The ConQuest snapshots of one queue, as in ConQuest::observe of queuescope-sketch: Count-Min rows whose cells record the window of
 * their last write (Expiry::Tag), with Estimator::Overlap for queries. Window lengths are powers of two nanoseconds, so that shifts
 * replace divisions. */
#pragma once
#include "flow.h"

#define ROWS 2
#define COLUMNS 2048
#define SNAPSHOTS 8
#define POINT 16
#define FULL (1 << POINT)

/* Bits of a tag for the window's number. The bits above hold the window's length, so that counts of windows of another length are not
 * mistaken for these. */
#define NUMBERED 27

struct cell {
	u32 tag;
	u32 counts[SNAPSHOTS];
};

struct sketch {
	/* The current window, and the length of windows: a change of the length makes all earlier counts invalid. */
	u64 window;
	u32 shift;
	/* All packets of all flows. */
	struct cell all;
	struct cell rows[ROWS][COLUMNS];
};

/* How far back a query reaches: in windows, as a fixed-point number, and the ratio by which the answer is scaled. */
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

/* The weight of a window of some age in a query. */
INLINE u32 part_of(u32 windows, u32 age)
{
	s64 left = (s64)windows - (s64)age * FULL;
	return left < 0 ? 0 : left > FULL ? FULL : left;
}

/* The count of one window in a cell; zero if the cell was last written before that window began. */
INLINE u32 valid(const struct cell *cell, u32 window, u32 counter)
{
	u32 age = (window - counter) % SNAPSHOTS;
	return age >= window - cell->tag ? cell->counts[counter] : 0;
}

/* The sum over `windows` of the smaller count of two cells in each window. */
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

/* The same. In a short queue, most packets wait for less than a window, so that one counter is enough. */
INLINE u64 least_of(const struct cell *one, const struct cell *other, u32 window, u32 windows)
{
	u32 counter = window % SNAPSHOTS, a, b;

	if (windows > FULL)
		return sum_of(one, other, window, windows);
	a = one->tag == window ? one->counts[counter] : 0;
	b = other->tag == window ? other->counts[counter] : 0;
	return (u64)(a < b ? a : b) * windows;
}

/* Clears the counts of a cell that are too old. */
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
	/* Bytes of the packet's flow, and of all flows, that left while it waited. */
	u64 flow, all;
};

/* Estimates the bytes that left while a packet waited, and then counts the packet as leaving. */
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
