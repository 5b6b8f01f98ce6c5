/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reports of packets that left or were dropped, for the reader in user space, which maps them. An own ring, because that of the kernel takes a lock and waits
 * for earlier stores at each report. */
#pragma once
#include "queue.h"

/* Reports that are kept for the reader at most; and the processors that may write one at the same time, at most. */
#define REPORTS (1 << 15)
#define WRITERS 512

/* A packet without a place in the table of flows. */
#define NO_PLACE (~0u)

enum { IS_STAMPED = 1, IS_FRAMED = 2, IS_CONTRIBUTING = 4, HAS_HEADERS = 8, IS_DROPPED = 16, HAS_ECN = 32 };

/* The report of a packet that left, or was dropped. */
struct report {
	/* Nanoseconds of CLOCK_MONOTONIC at which it left or was dropped, and the sojourn time; 0 if it is unknown when the packet came. */
	u64 dequeued, waited;
	u64 digest;
	/* Bytes of its flow, and of all flows, that left while it waited. */
	u32 flow, all;
	/* Bytes on the wire, and the number of packets on the wire. */
	u32 bytes, packets;
	/* The backlog that it left behind, in bytes and in packets. */
	u32 backlog, length;
	/* The place of its flow. Without headers of its own, those of the last packet with this place and digest that has them are its flow's. */
	u32 place;
	u8 queue, flags;
	/* Bytes of headers; and the bits of ECN with which the packet left, if the flag says so. */
	u8 captured, ecn;
	/* The lower bits of the number of this report, counted from 1; written last. */
	u32 number;
	u32 unused_too;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, REPORTS);
	NUMBER(map_flags, MAPPABLE);
	TYPE(key, u32);
	TYPE(value, struct report);
} reports SEC(".maps");

/* The first bytes of packets, at the place of their report. */
struct headers {
	u8 of[HEADERS];
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, REPORTS);
	NUMBER(map_flags, MAPPABLE);
	TYPE(key, u32);
	TYPE(value, struct headers);
} heads SEC(".maps");

/* The next report, and its number; nothing if the reader is too far behind, which is counted. */
INLINE struct report *begin_report(const struct config *asked, struct counters *count, struct shared *here, u64 *number)
{
	u32 slot;

	if (here->begun - asked->read >= REPORTS - WRITERS) {
		count->untold++;
		return 0;
	}
	*number = __sync_fetch_and_add(&here->begun, 1);
	slot = *number % REPORTS;
	return map_lookup(&reports, &slot);
}

/* Hands a report over: nothing may be written to it after this. */
INLINE void end_report(struct report *report, u64 number)
{
	*(volatile u32 *)&report->number = number + 1;
}

/* Copies the headers of the packet of a report. Returns their bytes. */
INLINE u32 copy_headers(u32 slot, const u8 *from, u32 head)
{
	struct headers *headers = map_lookup(&heads, &slot);

	if (head > HEADERS)
		head = HEADERS;
	return headers && !probe_read_kernel(headers->of, head, from) ? head : 0;
}
