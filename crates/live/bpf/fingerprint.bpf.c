/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* For tests only: the fingerprint and the division of queues, step by step, with times and depths that the test chooses. A step is sixteen bytes of a
 * frame behind its Ethernet header. */
#include "division.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct state {
	struct rate rate;
	struct growth growth;
	u32 group;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct state);
} state SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct division);
} division SEC(".maps");

enum { NEW_WITH_SYN, NEW_WITHOUT, PACKET };

/* Returns the group of the flow. The words are the step, the time, the depth or the round-trip time, and the share. */
SEC("classifier")
int fingerprint(struct __sk_buff *skb)
{
	u32 step[4], zero = 0, to;
	struct state *flow = map_lookup(&state, &zero);
	struct trip trip = { 0, 0, 0, 0 };
	bool ended;

	if (!flow || skb_load_bytes(skb, 14, step, sizeof(step)))
		return GROUPS;
	if (step[0] != PACKET) {
		__builtin_memset(flow, 0, sizeof(*flow));
		flow->group = MOUSE;
		if (step[0] == NEW_WITH_SYN)
			on_syn(&flow->rate, step[1]);
		flow->rate.began = step[1];
		flow->rate.rtt = step[0] == NEW_WITH_SYN ? 0 : step[2];
		return flow->group;
	}
	ended = on_packet(&flow->rate, 1, step[1], &trip);
	if (flow->group < LONG_LIVED) {
		if (end_of_slow_start(&flow->rate, ended, &trip, step[3]) != GOES_ON) {
			flow->group = DELAY_BASED;
			forget_pulses(&flow->rate);
		}
		return flow->group;
	}
	if (ended) {
		to = on_end(&flow->growth, step[2], flow->group, trip.is_reduced, trip.pulses);
		flow->group = to;
	} else {
		on_left(&flow->growth, step[2]);
	}
	return flow->group;
}

enum { MOVE, LEAVE, STAYS, NEXT_QUEUE };

/* The words are the step, and its two arguments. */
SEC("classifier")
int divide(struct __sk_buff *skb)
{
	u32 step[4], zero = 0;
	struct division *all = map_lookup(&division, &zero);

	if (!all || skb_load_bytes(skb, 14, step, sizeof(step)))
		return -1;
	switch (step[0]) {
	case MOVE:
		move_flow(all, step[1] & 7, step[2] & 7);
		return 0;
	case LEAVE:
		leave_queue(all, step[1] & 7, step[2]);
		return 0;
	case STAYS:
		return stays(all, step[1] & 7, step[2]);
	case NEXT_QUEUE:
		return next_queue(all, step[1] & 7, step[2]);
	}
	return -1;
}
