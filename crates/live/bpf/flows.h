/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The flows in the queues, and the bytes of each that have left. A packet takes this count along when it comes, so that the difference when it
 * leaves is exactly what left of its flow while it waited. */
#pragma once
#include "flow.h"

/* The table of flows has lines of four, each as long as a line of a cache. */
#define WAYS 4
#define LINE_BITS 13
#define LINES (1 << LINE_BITS)
#define PLACE_BITS (LINE_BITS + 2)
#define QUEUE_BITS 4

struct flow {
	u64 digest;
	/* Bytes that left; only differences count. */
	u32 left;
	/* When a packet of it last came, in units of 65 us; whether it is not of IP; whether its headers were reported; and in the lower bits, the
	 * queue that one left last. */
	u32 used;
};

#define TOLD (1 << QUEUE_BITS)
#define NOT_IP (TOLD << 1)
#define USED_AT (QUEUE_BITS + 2)

struct line {
	struct flow of[WAYS];
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, LINES);
	NUMBER(map_flags, MAPPABLE);
	TYPE(key, u32);
	TYPE(value, struct line);
} flows SEC(".maps");

INLINE struct line *line_of(u64 digest)
{
	u32 place = digest & (LINES - 1);

	return map_lookup(&flows, &place);
}

/* The time of use in the upper bits of `used`. */
INLINE u32 time_of_use(u64 now)
{
	return (u32)(now >> 16) << USED_AT;
}

/* Gives a flow the place of the one in its line that is unused for longest. Returns the place in the line. */
GLOBAL u32 claim(struct line *line, u64 digest, u32 used)
{
	u32 oldest = 0, way = 0;

	if (!line)
		return 0;
	for (u32 n = 0; n < WAYS; n++) {
		u32 age = used - line->of[n].used;

		if (age >= oldest) {
			oldest = age;
			way = n;
		}
	}
	/* Another processor may claim the place at the same time: then the notes of one of the two flows show it. */
	line->of[way % WAYS].digest = digest;
	line->of[way % WAYS].used = used;
	return way % WAYS;
}

/* The place of a flow in its line; WAYS if it is not there. */
INLINE u32 way_of(const struct line *line, u64 digest)
{
	u32 way = WAYS;

#pragma unroll
	for (u32 n = 0; n < WAYS; n++)
		way = line->of[n].digest == digest ? n : way;
	return way;
}
