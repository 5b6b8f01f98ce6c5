/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The stamp of a packet, which it carries through the qdisc: when it came, its flow, and what had left by then. */
#pragma once
#include "queue.h"
#include "flows.h"

/* The stamp is in the twenty bytes of the control block that a qdisc may use for itself. Its own part are the last eight of them: all qdiscs but
 * CHOKe use twelve at most. One word has the lower bits of the time, in ticks of 16 ns. The last word has, from the top: two more bits of the
 * time, whether a qdisc may mark the packet (ECN), whether it is a super-packet, thirteen check bits of the stamp, and fifteen check bits of
 * the note. */
#define TICK 4
#define TICKS (1ull << 34)
#define MARKABLE (1u << 29)
#define SUPER (1u << 28)
#define CHECK 0x1fff
#define CHECKED 15
#define NOTED 0x7fff

/* The words of the control block as a qdisc has it: the packet's bytes on the wire; the note; the time of the stamp; and the last word. */
enum { BLOCK_BYTES = 0, BLOCK_NOTE = 2, BLOCK_TIME = 5, BLOCK_LAST = 6 };

/* The note of a packet that finds a queue: its flow's place in the table, with the queue by whose count it goes and check bits of the flow;
 * and the bytes of its flow, and of all flows in that queue, that had left when it came. */
struct note {
	u32 flow, of_flow, of_all;
};

/* The place of a flow in the lower bits of the first word, the queue above it, then check bits of the flow. */
#define QUEUE_AT PLACE_BITS
#define DIGEST_AT (PLACE_BITS + QUEUE_BITS)

/* The check bits of a stamp. They are not zero for an empty block, and depend on the device. */
INLINE u32 check_of(u64 ticks, u32 device)
{
	return (((u32)(ticks ^ ticks >> 32) ^ 0x51750e5c) * 0x9e3779b1 + device * 0x85ebca6b) >> 19;
}

/* The check bits of a note; never zero, which means that there is no note. They depend on when the probe was started, because another
 * probe counts otherwise. */
INLINE u32 check_of_note(const struct note *note, const struct config *asked)
{
	u32 mixed = (note->flow * 0x9e3779b1 ^ note->of_flow) * 0x85ebca6b ^ (note->of_all + (u32)asked->since) * 0xc2b2ae35;

	return (mixed >> 17 & (NOTED - 1)) | 1;
}

/* Notes of packets that go through a qdisc that overwrites them, or that have the stamp of another probe, by the time of their stamp. */
#define APART 8192

struct apart {
	u32 time;
	struct note note;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, APART);
	TYPE(key, u32);
	TYPE(value, struct apart);
} apart SEC(".maps");

INLINE struct apart *apart_of(u32 time)
{
	u32 place = (time * 0x9e3779b1) >> 19;

	return map_lookup(&apart, &place);
}

/* The time of a stamp, from its two words. */
INLINE u64 ticks_of(u32 time, u32 last)
{
	return time | (u64)(last >> 30) << 32;
}

/* Another probe before the same queue has stamped a packet at most this time before; nanoseconds. */
#define JUST_NOW 50000

/* Whether a packet before the queue was stamped by another probe just now. */
INLINE bool is_stamped_just_now(u32 time, u32 last, u32 device, u64 now)
{
	u64 ticks = ticks_of(time, last);

	return (last >> CHECKED & CHECK) == check_of(ticks, device) && ((now >> TICK) - ticks) % TICKS < JUST_NOW >> TICK;
}

/* Computes the nanoseconds that a packet has waited, and returns whether it was stamped since the probe started. A block may have a
 * stamp of another probe, or hold other data that looks like one. */
INLINE bool has_waited(const u32 *block, const struct config *asked, u64 now, u64 *waited)
{
	u64 ticks = ticks_of(block[BLOCK_TIME], block[BLOCK_LAST]);

	*waited = (((now >> TICK) - ticks) % TICKS) << TICK;
	return (block[BLOCK_LAST] >> CHECKED & CHECK) == check_of(ticks, asked->ifindex) && *waited <= now - asked->since;
}

/* Whether ECN allows to mark an IP packet, and whether it is marked, from the second byte of its header, or of the first two for IPv6. */
INLINE u32 ecn_bits(u32 protocol, const u8 *header)
{
	if (protocol == __builtin_bswap16(IPV4))
		return header[1] & 3;
	if (protocol == __builtin_bswap16(IPV6))
		return header[1] >> 4 & 3;
	return NOT_ECT;
}
