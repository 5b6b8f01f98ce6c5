/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The stamp of a packet, which it carries through the qdisc: when it came, and its flow. */
#pragma once
#include "count.h"
#include "flow.h"

/* The stamp is in the last eight of the twenty bytes of the control block that a qdisc may use for itself; all but CHOKe use twelve at
 * most. One word has the lower bits of the time, in ticks of 16 ns. The last word has, from the top: two more bits of the time, whether
 * the packet came with a CE mark, thirteen check bits of the stamp, and sixteen check bits of the digest. */
#define TICK 4
#define TICKS (1ull << 34)
#define MARKED (1u << 29)
#define CHECK 0x1fff

/* The check bits of a stamp. They are not zero for an empty block, and depend on the device. */
INLINE u32 check_of(u64 ticks, u32 device)
{
	return (((u32)(ticks ^ ticks >> 32) ^ 0x51750e5c) * 0x9e3779b1 + device * 0x85ebca6b) >> 19;
}

/* The check bits of a digest, in the lower half of the word; never zero, which means that there is no digest. */
INLINE u32 check_of_digest(u64 digest)
{
	return ((digest ^ digest >> 16 ^ digest >> 32 ^ digest >> 48) & 0xfffe) | 1;
}

/* Whether an IP packet has a CE mark, from the first two bytes of its header and the protocol of its frame. */
INLINE bool is_marked(u32 protocol, const u8 *header)
{
	return (protocol == __builtin_bswap16(IPV4) && (header[1] & 3) == CE) ||
	       (protocol == __builtin_bswap16(IPV6) && (header[1] >> 4 & 3) == CE);
}

/* The words of the control block as a qdisc has it: the packet's bytes on the wire; the digest of its flow, if known; the time of the
 * stamp; and the check bits of both. */
enum { BLOCK_BYTES = 0, BLOCK_DIGEST = 2, BLOCK_TIME = 5, BLOCK_LAST = 6 };

INLINE u64 ticks_of(const u32 *block)
{
	return block[BLOCK_TIME] | (u64)(block[BLOCK_LAST] >> 30) << 32;
}

/* Computes the nanoseconds that a packet has waited, and returns whether it was stamped since the probe started. A block may have a
 * stamp of another probe, or hold other data that looks like one. */
INLINE bool has_waited(const u32 *block, const struct config *asked, u64 now, u64 *waited)
{
	u64 ticks = ticks_of(block);

	*waited = (((now >> TICK) - ticks) % TICKS) << TICK;
	return (block[BLOCK_LAST] >> 16 & CHECK) == check_of(ticks, asked->ifindex) && *waited <= now - asked->since;
}
