/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the programs of P4air share: the configuration, the table of flows, and counts. */
#pragma once
#include "listed.h"
#include "division.h"

/* The table has lines of eight flows. A flow whose line is full of others stays an ant, and is counted. */
#define WAYS 8
#define LINES 1024
/* A flow without a packet for this long has ended; nanoseconds. */
#define IDLE 10000000000ull
/* How often a program tries to hold the division of queues before it leaves a change to the next packet. */
#define TRIES 16

/* What is done to a flow above its share, by its group. */
enum { NOTHING, DROP, DELAY, WINDOW };

/* The classes: those of ants, of mice, of flows that are delayed, and then the queues of long-lived flows. */
enum { ANTS, MICE, LATE, FIRST };
#define CLASSES 128

struct config {
	u32 netns, ifindex;
	/* Until when packets get a class and flows are acted on; nanoseconds. */
	u64 until;
	/* The time of a packet of 1500 bytes on the link, in 1024ths of a nanosecond. */
	u64 packet_time;
	/* The number of the qdisc, and the minor number of its first class. */
	u32 handle, minor;
	/* Whether packets begin with an Ethernet header, and whether each packet above the share is dropped or only the first of a round trip. */
	u32 framed, each;
	/* The round-trip time of a flow whose handshake was not seen, in ticks; eighths by which the share of a flow is larger than exact. */
	u32 rtt, slack;
	/* What is done to the flows of each long-lived group. */
	u32 actions[4];
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct config);
} config SEC(".maps");

/* A flow. Its packets are handled by one processor at a time, if the device spreads flows and not packets; otherwise single counts may be lost. */
struct flow {
	/* When a packet last came. */
	u64 last;
	/* Packets of data on the wire, and those that were dropped, delayed, or whose ACK had its window lowered, or would have been. */
	u64 packets, acted;
	struct rate rate;
	struct growth growth;
	/* Round trips that ended before the queue and behind it, and whether each of the last 32 was a reduction. */
	u32 round, judged, reduced;
	/* The order in which it was assigned to its group. */
	u32 assigned;
	/* Its group, the one that it moves to with its next packet, its queue, and the scale of its receiver's window. */
	u8 group, wanted, queue, scale;
	u8 is_tcp, has_ended, is_above, was_above;
	u32 unused;
	u64 key[6];
};

struct line {
	u64 digests[WAYS];
	struct flow of[WAYS];
};

/* No scale is known yet. */
#define NO_SCALE 255

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, LINES);
	TYPE(key, u32);
	TYPE(value, struct line);
} flows SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct division);
} division SEC(".maps");

/* Flows that are never acted on. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct never);
} never SEC(".maps");

/* What has left of each class, in packets on the wire; and the place in the table that is looked at next for a flow that is idle. */
struct passed {
	u32 left[CLASSES];
	u32 next, unused;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct passed);
} passed SEC(".maps");

/* Counts; a super-packet is one, except where it says packets on the wire. */
struct counters {
	/* Packets of flows in the table; of others without an entry; and those that are not plain TCP or UDP over IP. */
	u64 tracked, ants, other;
	/* Flows without room. */
	u64 full;
	/* Slow starts that ended with less, and at the share. */
	u64 less, share;
	/* Round trips of flows above their share. */
	u64 above;
	u64 dropped, would_drop, delayed, would_delay, lowered, would_lower;
	/* Packets of flows that are never acted on; ACKs whose window's scale is unknown. */
	u64 exempt, unscaled;
	/* Flows that moved to each long-lived group, from the delay-based one on. */
	u64 moves[4];
	/* Flows that changed their queue within their group, flows that ended, and changes that were left to a later packet. */
	u64 requeued, ended, deferred;
	/* Packets that left a queue and were seen; packets of bulks that were not looked at. */
	u64 left, bulk;
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct counters);
} counters SEC(".maps");

INLINE struct line *line_of(u64 digest)
{
	u32 place = digest & (LINES - 1);

	return map_lookup(&flows, &place);
}

/* The place of a flow in its line; WAYS if it is not there. */
INLINE u32 way_of(const struct line *line, u64 digest)
{
	u32 way = WAYS;

#pragma unroll
	for (u32 n = 0; n < WAYS; n++)
		way = line->digests[n] == digest ? n : way;
	return way;
}

INLINE bool hold(struct division *all)
{
	for (u32 n = 0; n < TRIES; n++)
		if (try_hold(all))
			return 1;
	return 0;
}

/* A flow leaves its group and its queue. The caller holds the division. */
INLINE void leave(struct division *all, struct flow *flow)
{
	leave_queue(all, flow->group, flow->queue);
	move_flow(all, flow->group, GROUPS);
	flow->queue = NO_QUEUE;
}

/* Packets that fill a flow's share of the link in a round trip; at least 1. `joins` is whether the flow is not yet one of the long-lived flows. */
INLINE u32 fair_share(const struct config *asked, const struct division *all, u32 rtt, bool joins)
{
	u64 count = long_lived(all) + joins, between, packets;

	if (!rtt)
		return ~0u;
	between = asked->packet_time * (count ? count : 1);
	packets = between ? ((u64)rtt << 20) / between : ~0u;
	packets += packets * asked->slack >> 3;
	if (packets > ~0u)
		return ~0u;
	return packets ? packets : 1;
}
