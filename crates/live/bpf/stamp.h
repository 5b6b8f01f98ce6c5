/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* When a packet came, and whose it is: what it has with it through the qdisc. */
#pragma once
#include "count.h"
#include "flow.h"

/* When a packet came, in the last eight of the twenty bytes of the control block that a qdisc may use for itself: all but CHOKe use
 * twelve at most. The word of the time has its lower bits, of 16 ns each; the last word has, from above, two bits more, whether the
 * packet came with a mark, thirteen bits that say that all this is ours, and sixteen that say it of the digest. */
#define TICK 4
#define TICKS (1ull << 34)
#define MARKED (1u << 29)
#define CHECK 0x1fff

/* Of nothing at all, that is not nothing; nor is it that of another device. */
INLINE u32 check_of(u64 ticks, u32 device)
{
	return (((u32)(ticks ^ ticks >> 32) ^ 0x51750e5c) * 0x9e3779b1 + device * 0x85ebca6b) >> 19;
}

/* Says in its lower half that a digest is, too; never nothing, which is that there is none. */
INLINE u32 check_of_digest(u64 digest)
{
	return ((digest ^ digest >> 16 ^ digest >> 32 ^ digest >> 48) & 0xfffe) | 1;
}

/* The mark of a packet, if it is IP, by the first two bytes of its header and the protocol that its frame tells. */
INLINE bool is_marked(u32 protocol, const u8 *header)
{
	return (protocol == __builtin_bswap16(IPV4) && (header[1] & 3) == CE) ||
	       (protocol == __builtin_bswap16(IPV6) && (header[1] >> 4 & 3) == CE);
}

/* The control block as a qdisc has it, by words: what it takes on the wire; whose packet it is, if that is known; when it came; and
 * what says that both are ours. */
enum { BLOCK_BYTES = 0, BLOCK_DIGEST = 2, BLOCK_TIME = 5, BLOCK_LAST = 6 };

INLINE u64 ticks_of(const u32 *block)
{
	return block[BLOCK_TIME] | (u64)(block[BLOCK_LAST] >> 30) << 32;
}

/* Nanoseconds that a packet has waited, if it was stamped since this is looked at: a block may have the stamp of another's, or be
 * like one. */
INLINE bool has_waited(const u32 *block, const struct config *asked, u64 now, u64 *waited)
{
	u64 ticks = ticks_of(block);

	*waited = (((now >> TICK) - ticks) % TICKS) << TICK;
	return (block[BLOCK_LAST] >> 16 & CHECK) == check_of(ticks, asked->ifindex) && *waited <= now - asked->since;
}
