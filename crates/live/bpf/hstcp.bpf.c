/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* HighSpeed TCP (RFC 3649), as `HighSpeedParams::linux` of queuescope-tcp: Reno whose increase a and decrease b come from a table. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The table of appendix B: a, the largest window for which it holds, and b in units of 1/256. Larger windows have LAST. The program has no
 * map, so the table is code. */
#define TABLE \
	ROW(1, 38, 128) ROW(2, 118, 112) ROW(3, 221, 104) ROW(4, 347, 98) ROW(5, 495, 93) ROW(6, 663, 89) \
	ROW(7, 851, 86) ROW(8, 1058, 83) ROW(9, 1284, 81) ROW(10, 1529, 78) ROW(11, 1793, 76) ROW(12, 2076, 74) \
	ROW(13, 2378, 72) ROW(14, 2699, 71) ROW(15, 3039, 69) ROW(16, 3399, 68) ROW(17, 3778, 66) ROW(18, 4177, 65) \
	ROW(19, 4596, 64) ROW(20, 5036, 62) ROW(21, 5497, 61) ROW(22, 5979, 60) ROW(23, 6483, 59) ROW(24, 7009, 58) \
	ROW(25, 7558, 57) ROW(26, 8130, 56) ROW(27, 8726, 55) ROW(28, 9346, 54) ROW(29, 9991, 53) ROW(30, 10661, 52) \
	ROW(31, 11358, 52) ROW(32, 12082, 51) ROW(33, 12834, 50) ROW(34, 13614, 49) ROW(35, 14424, 48) ROW(36, 15265, 48) \
	ROW(37, 16137, 47) ROW(38, 17042, 46) ROW(39, 17981, 45) ROW(40, 18955, 45) ROW(41, 19965, 44) ROW(42, 21013, 43) \
	ROW(43, 22101, 43) ROW(44, 23230, 42) ROW(45, 24402, 41) ROW(46, 25618, 41) ROW(47, 26881, 40) ROW(48, 28193, 39) \
	ROW(49, 29557, 39) ROW(50, 30975, 38) ROW(51, 32450, 38) ROW(52, 33986, 37) ROW(53, 35586, 36) ROW(54, 37253, 36) \
	ROW(55, 38992, 35) ROW(56, 40808, 35) ROW(57, 42707, 34) ROW(58, 44694, 33) ROW(59, 46776, 33) ROW(60, 48961, 32) \
	ROW(61, 51258, 32) ROW(62, 53677, 31) ROW(63, 56230, 30) ROW(64, 58932, 30) ROW(65, 61799, 29) ROW(66, 64851, 28) \
	ROW(67, 68113, 28) ROW(68, 71617, 27) ROW(69, 75401, 26) ROW(70, 79517, 26) ROW(71, 84035, 25)
enum { UNITS = 8, HALF = 1 << (UNITS - 1), LAST = 72, LAST_DECREASE = 24 };

struct high_speed {
	/* b, as found when the window was last about to grow in congestion avoidance. */
	u32 decrease;
};

FITS(high_speed);

/* The row of the table: a and b, in one word. */
INLINE u32 look_up(u32 window)
{
#define ROW(a, end, b)         \
	if (window <= (end))   \
		return (a) << UNITS | (b);
	TABLE
#undef ROW
	return LAST << UNITS | LAST_DECREASE;
}

INLINE u32 reduced(struct high_speed *hs, u32 window)
{
	return most(window - (u32)((u64)window * hs->decrease >> UNITS), 2);
}

void init(u64 *args)
{
	struct high_speed *hs = OWN((struct tcp_sock *)args[0]);

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
	u32 count, window, row;

	if (!is_limited(tp))
		return;
	if (in_slow_start(tp)) {
		slow_start(tp, acked);
		return;
	}
	window = tp->snd_cwnd;
	row = look_up(window);
	hs->decrease = row & ((1 << UNITS) - 1);
	/* Each ACK counts once, however many segments it acknowledges. */
	count = tp->snd_cwnd_cnt + (row >> UNITS);
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
