/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Scalable TCP (Kelly 2003), as `ScalableParams::linux` of queuescope-tcp: a segment for each 100 acknowledged ones, or for each window
 * of them if that is less; a loss takes an eighth. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { INTERVAL = 100, DECREASE = 8 };

INLINE u32 reduced(u32 window)
{
	return most(window - window / DECREASE, 2);
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	if (is_unanswered(tp))
		tp->snd_ssthresh = reduced(window_before(tp));
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 acked = args[2];

	if (!is_limited(tp))
		return;
	if (in_slow_start(tp))
		acked = slow_start(tp, acked);
	if (acked)
		avoid_congestion_by(tp, acked, least(tp->snd_cwnd, INTERVAL));
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	return reduced(tp->snd_cwnd);
}

u32 undo_cwnd(u64 *args)
{
	return undone((void *)args[0]);
}
