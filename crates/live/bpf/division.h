/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The queues of long-lived flows, divided among their groups so that each queue has about as many flows (section III-B of the P4air paper).
 *
 * Each group has adjacent queues. A flow gets the queue of its group with the fewest flows: a host can look at all of them, unlike a switch. A
 * group without room takes a queue from the one with the most room. A flow moves to a queue that its group has gained, or that others have
 * left, only if its own has at least two flows more. */
#pragma once
#include "fingerprint.h"

#define QUEUES 64
#define NO_QUEUE 255
#define KINDS (GROUPS - LONG_LIVED)

struct division {
	/* Held while anything below changes. */
	u32 held;
	/* The number of queues, and how many flows each may have before a group is full. */
	u32 queues, each;
	/* The first queue of each group, and the end of the last one's. */
	u32 bounds[8];
	/* The flows of each group. */
	u32 flows[8];
	/* A queue of each group that flows may move to, and how many still may. */
	u32 open[KINDS], wanted[KINDS];
	/* How many flows were assigned, and queues given. */
	u32 assigned, given;
	u32 in_queue[QUEUES];
	/* The last flow that was assigned to each queue. */
	u32 newest[QUEUES];
};

/* Tries to take what only one processor may have; no program waits for long in the kernel. */
INLINE bool try_hold(struct division *all)
{
	return !__sync_val_compare_and_swap(&all->held, 0, 1);
}

INLINE void let_go(struct division *all)
{
	__sync_lock_test_and_set(&all->held, 0);
}

INLINE u32 long_lived(const struct division *all)
{
	return all->flows[DELAY_BASED] + all->flows[LOSS_DELAY] + all->flows[LOSS_BASED] + all->flows[MODEL_BASED];
}

INLINE bool is_of(const struct division *all, u32 kind, u32 queue)
{
	return queue >= all->bounds[kind & 3] && queue < all->bounds[(kind & 3) + 1];
}

INLINE u32 size_of(const struct division *all, u32 kind)
{
	return all->bounds[(kind & 3) + 1] - all->bounds[kind & 3];
}

INLINE int room_of(const struct division *all, u32 kind)
{
	return (int)(size_of(all, kind) * all->each) - (int)all->flows[LONG_LIVED + (kind & 3)];
}

/* Gives a full group a queue of the group with the most room; of several, the farthest. */
INLINE void give_to(struct division *all, u32 to)
{
	int most = all->each;
	u32 from = KINDS, apart = 0, gained;

	if (room_of(all, to) > 0)
		return;
	for (u32 kind = 0; kind < KINDS; kind++) {
		u32 distance = kind > to ? kind - to : to - kind;
		int room = room_of(all, kind);

		if (kind == to || size_of(all, kind) < 2 || room <= (int)all->each)
			continue;
		if (room > most || (room == most && distance > apart)) {
			most = room;
			from = kind;
			apart = distance;
		}
	}
	if (from == KINDS)
		return;
	/* The groups in between keep the number of their queues, and shift by one. */
	for (u32 bound = 1; bound < KINDS; bound++) {
		if (from < to && bound > from && bound <= to)
			all->bounds[bound]--;
		if (from > to && bound > to && bound <= from)
			all->bounds[bound]++;
	}
	gained = from < to ? all->bounds[to & 3] : all->bounds[(to & 3) + 1] - 1;
	all->open[to & 3] = gained;
	all->wanted[to & 3] = all->each;
	all->given++;
}

/* A flow has left a queue, or is about to. */
INLINE void leave_queue(struct division *all, u32 group, u32 queue)
{
	if (queue >= QUEUES)
		return;
	if (all->in_queue[queue])
		all->in_queue[queue]--;
	if (group >= LONG_LIVED && group < GROUPS && is_of(all, group - LONG_LIVED, queue)) {
		all->open[(group - LONG_LIVED) & 3] = queue;
		all->wanted[(group - LONG_LIVED) & 3] = 1;
	}
}

/* A flow leaves one group and enters another; GROUPS is none. */
INLINE void move_flow(struct division *all, u32 from, u32 to)
{
	u32 count;

	if (from < GROUPS && all->flows[from])
		all->flows[from]--;
	if (to < GROUPS)
		all->flows[to]++;
	count = long_lived(all);
	if (count > all->each * all->queues)
		all->each++;
	else if (all->each > 1 && count + all->queues / 2 < (all->each - 1) * all->queues)
		all->each--;
	if (to >= LONG_LIVED && to < GROUPS)
		give_to(all, to - LONG_LIVED);
}

/* Whether a flow of a long-lived group may stay in its queue. Needs no hold. */
INLINE bool stays(const struct division *all, u32 group, u32 queue)
{
	u32 kind = (group - LONG_LIVED) & 3, open = all->open[kind] & (QUEUES - 1);

	if (queue >= QUEUES || !is_of(all, kind, queue))
		return 0;
	return !all->wanted[kind] || !is_of(all, kind, open) || all->in_queue[queue] < all->in_queue[open] + 2;
}

/* The queue of a group with the fewest flows. Without branches, of which the verifier would follow each combination. */
GLOBAL u32 emptiest(struct division *all, u32 kind)
{
	u64 best = ~0ull >> 1, low, size, here, ahead;

	if (!all)
		return 0;
	low = all->bounds[kind & 3];
	size = all->bounds[(kind & 3) + 1] - low;
	for (u64 queue = 0; queue < QUEUES; queue++) {
		here = (u64)all->in_queue[queue] << 8 | queue;
		/* All ones but the first, unless it is a queue of the group. */
		here |= (u64)((s64)(size - 1 - (queue - low)) >> 63) >> 1;
		here |= (u64)((s64)(queue - low) >> 63) >> 1;
		ahead = here - best;
		best += ahead & (u64)((s64)ahead >> 63);
	}
	return best & (QUEUES - 1);
}

/* The queue that a flow of a long-lived group should go to from `queue`, which it leaves. */
INLINE u32 next_queue(struct division *all, u32 group, u32 queue)
{
	u32 kind = (group - LONG_LIVED) & 3, best;

	if (queue < QUEUES && is_of(all, kind, queue)) {
		best = all->open[kind] & (QUEUES - 1);
		if (all->wanted[kind])
			all->wanted[kind]--;
	} else {
		best = emptiest(all, kind);
	}
	if (queue < QUEUES && all->in_queue[queue])
		all->in_queue[queue]--;
	all->in_queue[best & (QUEUES - 1)]++;
	return best;
}
