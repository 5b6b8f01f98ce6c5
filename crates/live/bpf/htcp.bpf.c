/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* H-TCP (draft-leith-tcp-htcp-06), as `HtcpParams::linux` of queuescope-tcp: Reno whose increase alpha grows with the time since the last
 * congestion event, and whose decrease beta is the ratio of the smallest and the largest round-trip time while the throughput is steady.
 * Times are in milliseconds, whatever the kernel's tick. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Alpha, in segments for each round trip, and beta, what a loss leaves of the window, are in units of 1/128. */
enum { SHIFT = 7, ONE = 1 << SHIFT, LEAST_BETA = ONE / 2, LARGEST_BETA = 102 };
/* Alpha rises from a second after the congestion event on. */
enum { SECOND = 1000 };
/* Alpha is divided by 100 ms over the smallest round-trip time, in eighths from 4 to 80. */
enum { REFERENCE = 100, EIGHTHS = 8, LEAST_SCALE = 4, LARGEST_SCALE = 80 };
/* Beta follows the round-trip times only above this. The largest one rises by at most RISE at once, and FADE percent of what it has above
 * the smallest remain after a congestion event. */
enum { LEAST_RTT = 10, RISE = 20, FADE = 95 };
/* Up to this number of round trips after a congestion event, a measured throughput replaces the earlier ones. */
enum { NEW = 3 };

struct htcp {
	u32 alpha, beta;
	/* The number of segments that the next step counts. */
	u32 acked;
	/* The smallest and the largest round-trip time; zero before the first. */
	u32 smallest, largest;
	/* The start of the time since the congestion event. */
	u32 since;
	/* The segments delivered since `from`; the throughput in segments per second, its maximum, and the maximum before the last event. */
	u32 sum, from;
	u32 throughput, fastest, fastest_before;
	/* Whether the throughput was steady at the last event, and whether that event can still be undone. */
	u16 steady, reduced;
	/* What these fields were before the last event. */
	u32 undo_since, undo_largest, undo_fastest;
};

FITS(htcp);

INLINE void follow_time(struct htcp *h)
{
	u32 later = milliseconds() - h->since;
	u64 factor = 1;

	if (later > SECOND) {
		u64 half;

		later -= SECOND;
		half = later / 2;
		factor += (10 * (u64)later + half * half / SECOND) / SECOND;
	}
	if (h->smallest) {
		u32 scale = EIGHTHS * REFERENCE / h->smallest;

		factor = factor * EIGHTHS / least(most(scale, LEAST_SCALE), LARGEST_SCALE);
		if (!factor)
			factor = 1;
	}
	h->alpha = 2 * factor * (ONE - h->beta);
}

/* The throughput before this event decides whether beta follows the round-trip times: it must be 0.8 to 1.2 of that before the last one,
 * twice in a row. */
INLINE void follow_path(struct htcp *h)
{
	u64 now = 5 * (u64)h->fastest, before = h->fastest_before;
	u32 was_steady = h->steady;

	h->fastest_before = h->fastest;
	h->steady = now >= 4 * before && now <= 6 * before;
	h->beta = LEAST_BETA;
	if (h->steady && was_steady && h->smallest > LEAST_RTT && h->largest)
		h->beta = least(most(((u64)h->smallest << SHIFT) / h->largest, LEAST_BETA), LARGEST_BETA);
}

INLINE u32 left(struct htcp *h, u32 window)
{
	return most((u64)window * h->beta >> SHIFT, 2);
}

INLINE void measure_rtt(struct htcp *h, s32 microseconds, bool open)
{
	u32 rtt;

	if (microseconds <= 0)
		return;
	rtt = ((u32)microseconds + 999) / 1000;
	if (!h->smallest || rtt < h->smallest)
		h->smallest = rtt;
	if (!open)
		return;
	h->largest = most(h->largest, h->smallest);
	if (rtt <= h->largest + RISE)
		h->largest = most(h->largest, rtt);
}

INLINE void measure_throughput(struct tcp_sock *tp, struct htcp *h, u32 acked)
{
	u32 now = milliseconds(), elapsed = now - h->from, measured, step = most(h->alpha >> SHIFT, 1);

	h->sum += acked;
	if (step > tp->snd_cwnd || h->sum < tp->snd_cwnd - step || !h->smallest || elapsed < h->smallest)
		return;
	measured = (u64)h->sum * SECOND / elapsed;
	if ((now - h->since) / h->smallest <= NEW) {
		h->throughput = measured;
		h->fastest = measured;
	} else {
		h->throughput = (3 * (u64)h->throughput + measured) / 4;
		h->fastest = most(h->fastest, h->throughput);
	}
	h->sum = 0;
	h->from = now;
}

void init(u64 *args)
{
	struct htcp *h = OWN((struct tcp_sock *)args[0]);

	*h = (struct htcp){
		.alpha = ONE,
		.beta = LEAST_BETA,
		.acked = 1,
		.since = milliseconds(),
		.from = milliseconds(),
	};
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	const struct ack_sample *sample = (void *)args[1];
	u32 acked = sample->pkts_acked, state = BITS(&tp->inet_conn, icsk_ca_state);
	s32 measured = sample->rtt_us;
	struct htcp *h = OWN(tp);

	if (is_unanswered(tp))
		tp->snd_ssthresh = left(h, window_before(tp));
	if (state == OPEN)
		h->acked = acked;
	measure_rtt(h, measured, state == OPEN);
	if (state < REDUCED) {
		measure_throughput(tp, h, acked);
	} else {
		h->sum = 0;
		h->from = milliseconds();
	}
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 acked = args[2], count;
	struct htcp *h = OWN(tp);

	if (!is_limited(tp))
		return;
	if (in_slow_start(tp)) {
		slow_start(tp, acked);
		return;
	}
	count = tp->snd_cwnd_cnt;
	if (((u64)count * h->alpha) >> SHIFT >= tp->snd_cwnd) {
		set_window(tp, tp->snd_cwnd + 1);
		tp->snd_cwnd_cnt = 0;
		follow_time(h);
	} else {
		tp->snd_cwnd_cnt = count + h->acked;
	}
	/* The kernel may call this for more than one ACK. */
	h->acked = 1;
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct htcp *h = OWN(tp);
	u32 more;

	h->undo_largest = h->largest;
	h->undo_fastest = h->fastest_before;
	follow_path(h);
	follow_time(h);
	more = h->largest - h->smallest;
	if (h->largest > h->smallest)
		h->largest = h->smallest + (u64)more * FADE / 100;
	return left(h, tp->snd_cwnd);
}

void set_state(u64 *args)
{
	struct htcp *h = OWN((struct tcp_sock *)args[0]);
	u8 state = args[1];

	if (state >= REDUCED) {
		h->undo_since = h->since;
		h->reduced = 1;
		h->since = milliseconds();
	} else if (state == OPEN && h->reduced) {
		h->reduced = 0;
		h->since = milliseconds();
	}
}

u32 undo_cwnd(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct htcp *h = OWN(tp);

	if (h->reduced) {
		h->reduced = 0;
		h->since = h->undo_since;
		h->largest = h->undo_largest;
		h->fastest_before = h->undo_fastest;
	}
	return undone(tp);
}
