/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* HighSpeed TCP (RFC 3649), as `HighSpeedParams::linux` of queuescope-tcp: Reno whose increase a and decrease b come from a table. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The table of appendix B. Above this window, a is one more, and b is this in units of 1/256. In the first row, up to 38 segments, a is
 * 1 and b is 1/2. The program has no map, so the table is code. */
#define TABLE \
	ROW(38, 112) ROW(118, 104) ROW(221, 98) ROW(347, 93) ROW(495, 89) ROW(663, 86) ROW(851, 83) \
	ROW(1058, 81) ROW(1284, 78) ROW(1529, 76) ROW(1793, 74) ROW(2076, 72) ROW(2378, 71) ROW(2699, 69) \
	ROW(3039, 68) ROW(3399, 66) ROW(3778, 65) ROW(4177, 64) ROW(4596, 62) ROW(5036, 61) ROW(5497, 60) \
	ROW(5979, 59) ROW(6483, 58) ROW(7009, 57) ROW(7558, 56) ROW(8130, 55) ROW(8726, 54) ROW(9346, 53) \
	ROW(9991, 52) ROW(10661, 52) ROW(11358, 51) ROW(12082, 50) ROW(12834, 49) ROW(13614, 48) ROW(14424, 48) \
	ROW(15265, 47) ROW(16137, 46) ROW(17042, 45) ROW(17981, 45) ROW(18955, 44) ROW(19965, 43) ROW(21013, 43) \
	ROW(22101, 42) ROW(23230, 41) ROW(24402, 41) ROW(25618, 40) ROW(26881, 39) ROW(28193, 39) ROW(29557, 38) \
	ROW(30975, 38) ROW(32450, 37) ROW(33986, 36) ROW(35586, 36) ROW(37253, 35) ROW(38992, 35) ROW(40808, 34) \
	ROW(42707, 33) ROW(44694, 33) ROW(46776, 32) ROW(48961, 32) ROW(51258, 31) ROW(53677, 30) ROW(56230, 30) \
	ROW(58932, 29) ROW(61799, 28) ROW(64851, 28) ROW(68113, 27) ROW(71617, 26) ROW(75401, 26) ROW(79517, 25) \
	ROW(84035, 24)

enum { UNITS = 8, HALF = 1 << (UNITS - 1) };

struct high_speed {
	/* a - 1, and b, as found when the window was last about to grow in congestion avoidance. */
	u32 row, decrease;
};

FITS(high_speed);

INLINE void look_up(struct high_speed *hs, u32 window)
{
	u32 row = 0, decrease = HALF;

#define ROW(end, units)           \
	if (window > (end)) {     \
		row++;            \
		decrease = units; \
	}
	TABLE
#undef ROW
	hs->row = row;
	hs->decrease = decrease;
}

INLINE u32 reduced(struct high_speed *hs, u32 window)
{
	return most(window - (u32)((u64)window * hs->decrease >> UNITS), 2);
}

void init(u64 *args)
{
	struct high_speed *hs = OWN((struct tcp_sock *)args[0]);

	hs->row = 0;
	hs->decrease = HALF;
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	if (is_unanswered(tp))
		tp->snd_ssthresh = reduced(OWN(tp), window_before(tp));
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 acked = args[2];
	struct high_speed *hs = OWN(tp);
	u32 count, window;

	if (!is_limited(tp))
		return;
	if (in_slow_start(tp)) {
		slow_start(tp, acked);
		return;
	}
	window = tp->snd_cwnd;
	look_up(hs, window);
	/* Each ACK counts once, however many segments it acknowledges. */
	count = tp->snd_cwnd_cnt + hs->row + 1;
	if (count >= window) {
		count -= window;
		set_window(tp, window + 1);
	}
	tp->snd_cwnd_cnt = count;
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	return reduced(OWN(tp), tp->snd_cwnd);
}

u32 undo_cwnd(u64 *args)
{
	return undone((void *)args[0]);
}
