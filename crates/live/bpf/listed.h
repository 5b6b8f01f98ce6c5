/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Lists of flows in the kernel, and marking: what programs share that act on flows before a queue. */
#pragma once
#include "flow.h"

/* Tests of a list of flows, at most. */
#define TESTS 64

/* A packet's addresses, ports and protocol, as tests compare them: low and high halves. An IPv4 address has the prefix ::ffff:0:0,
 * as in records; without IP all is zero. The third pair has the source port, the destination port, the protocol and the IP version,
 * from bit 0, 16, 32 and 40 on; the fourth makes the index a power of two, so that masking keeps it in range. */
struct known {
	u64 of[8];
};

/* A test of a list of flows, such as those that are never acted on. Tests up to one with ENDS_CONDITION are alternatives; conditions up to one
 * with ENDS_TERM must all hold; the flow is in the list if any term holds. */
struct test {
	/* Holds if the bits under the mask are from `low` to `high`; the low half is first in each. */
	u64 mask[2], low[2], high[2];
	/* The index of the pair in `struct known`. */
	u32 pair;
	/* Bits of `enum ends`; NEGATED inverts the result of the test. */
	u32 ends;
};

enum ends { ENDS_CONDITION = 1, ENDS_TERM = 2, NEGATED = 4 };

struct never {
	u64 count;
	struct test tests[TESTS];
};

INLINE void know(const struct words *words, struct known *known)
{
	u64 family = words->of[5] >> 16, version = family == FAMILY_V4 ? 4 : 6;

	__builtin_memset(known, 0, sizeof(*known));
	if (family != FAMILY_V4 && family != FAMILY_V6)
		return;
	known->of[0] = words->of[0];
	known->of[1] = words->of[1];
	known->of[2] = words->of[2];
	known->of[3] = words->of[3];
	if (family == FAMILY_V4) {
		known->of[0] |= 0xffffull << 32;
		known->of[2] |= 0xffffull << 32;
	}
	known->of[4] = (words->of[4] & 0xffffffff) | (words->of[5] & 0xff) << 32 | version << 40;
}

INLINE bool is_at_least(u64 low, u64 high, const u64 *other)
{
	return high > other[1] || (high == other[1] && low >= other[0]);
}

INLINE bool is_at_most(u64 low, u64 high, const u64 *other)
{
	return high < other[1] || (high == other[1] && low <= other[0]);
}

/* Whether a flow is in a list. */
INLINE bool is_listed(const struct never *list, const struct known *known)
{
	u32 condition = 0, term = 1;

	for (u32 place = 0; place < TESTS; place++) {
		const struct test *test = &list->tests[place];
		u64 low, high;
		u32 holds;

		if (place >= list->count)
			break;
		low = known->of[(test->pair & 3) * 2] & test->mask[0];
		high = known->of[(test->pair & 3) * 2 + 1] & test->mask[1];
		holds = is_at_least(low, high, test->low) && is_at_most(low, high, test->high);
		condition |= holds ^ !!(test->ends & NEGATED);
		if (test->ends & ENDS_CONDITION) {
			term &= condition;
			condition = 0;
		}
		if (test->ends & ENDS_TERM) {
			if (term)
				return 1;
			term = 1;
		}
	}
	return 0;
}

/* The ECN bits of a packet whose IP header begins `at`. */
INLINE u32 ecn_of(const u8 *headers, u32 at)
{
	return (*AT(at) >> 4 == 4 ? *AT(at + 1) : *AT(at + 1) >> 4) & 3;
}

/* Sets CE in the outermost IP header; returns whether that succeeded. */
INLINE bool mark(struct __sk_buff *skb, const u8 *headers, u32 at)
{
	u8 marked;
	u16 before = *(const u16 *)AT(at);

	if (*AT(at) >> 4 == 4) {
		marked = *AT(at + 1) | CE;
		if (l3_csum_replace(skb, at + 10, before, before | CE << 8, 2))
			return 0;
	} else {
		marked = *AT(at + 1) | CE << 4;
	}
	return !skb_store_bytes(skb, at + 1, &marked, 1, 0);
}
