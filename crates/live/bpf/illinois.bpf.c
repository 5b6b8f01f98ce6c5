/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Illinois (Liu, Başar and Srikant 2006), as `IllinoisParams::linux` of queuescope-tcp: Reno whose increase alpha and decrease beta follow
 * the average queueing delay of a round trip, relative to the largest delay ever. Here alpha and beta are integers in fixed units. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Alpha is 0.3 to 10 segments for each round trip, in units of 1/128; for small windows it is 1. */
enum { ALPHA_UNITS = 128, LEAST_ALPHA = 3 * ALPHA_UNITS / 10, LARGEST_ALPHA = 10 * ALPHA_UNITS, BASE_ALPHA = ALPHA_UNITS };
/* Beta is 1/8 to 1/2 of the window, in units of 1/64; for small windows it is 1/2. */
enum { BETA_UNITS = 64, LEAST_BETA = BETA_UNITS / 8, LARGEST_BETA = BETA_UNITS / 2, BASE_BETA = BETA_UNITS / 2 };
/* Windows below this are small. */
enum { WINDOW_THRESHOLD = 15 };
/* The number of round trips with a low delay, after a high one, before alpha is the largest again: theta. */
enum { THETA = 5 };

/* Longer round trips count as this one (3.3 s), so that the product with the largest alpha fits in 32 bits. */
#define LONGEST (0xffffffff / LARGEST_ALPHA)

struct illinois {
	u64 sum;
	u32 samples;
	u32 smallest, largest;
	/* The round trip ends with the first acknowledgement after this sequence number. */
	u32 end;
	u32 alpha, beta;
	/* The number of segments that the last ACK acknowledged. */
	u32 acked;
	/* Whether there was a high delay, and the number of round trips with a low one since then. */
	u16 was_high, low_rounds;
};

FITS(illinois);

INLINE void begin_round(struct tcp_sock *tp, struct illinois *il)
{
	il->end = tp->snd_nxt;
	il->samples = 0;
	il->sum = 0;
}

/* Equation 1 of the paper, for delays that are not low. */
INLINE u32 alpha(struct illinois *il, u32 delay, u32 largest)
{
	u32 low = largest / 100;

	if (delay <= low) {
		if (!il->was_high)
			return LARGEST_ALPHA;
		il->low_rounds++;
		if (il->low_rounds < THETA)
			return il->alpha;
		il->low_rounds = 0;
		il->was_high = 0;
		return LARGEST_ALPHA;
	}
	il->was_high = 1;
	largest -= low;
	delay -= low;
	return (u64)largest * LARGEST_ALPHA / (largest + (u64)delay * (LARGEST_ALPHA - LEAST_ALPHA) / LEAST_ALPHA);
}

/* Equation 2 of the paper. */
INLINE u32 beta(u32 delay, u32 largest)
{
	u32 low = largest / 10, high = 8 * largest / 10;

	if (delay <= low)
		return LEAST_BETA;
	if (delay >= high || high <= low)
		return LARGEST_BETA;
	return (LEAST_BETA * high - LARGEST_BETA * low + (LARGEST_BETA - LEAST_BETA) * delay) / (high - low);
}

INLINE void follow_delay(struct tcp_sock *tp, struct illinois *il)
{
	if (tp->snd_cwnd < WINDOW_THRESHOLD) {
		il->alpha = BASE_ALPHA;
		il->beta = BASE_BETA;
	} else if (il->samples > 0) {
		u32 largest = il->largest - il->smallest;
		u32 delay = (u32)(il->sum / il->samples) - il->smallest;

		il->alpha = alpha(il, delay, largest);
		il->beta = beta(delay, largest);
	}
	begin_round(tp, il);
}

INLINE u32 reduced(struct illinois *il, u32 window)
{
	return most(window - (u32)((u64)window * il->beta / BETA_UNITS), 2);
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct illinois *il = OWN(tp);

	il->alpha = LARGEST_ALPHA;
	il->beta = BASE_BETA;
	il->smallest = 0x7fffffff;
	il->largest = 0;
	il->acked = 0;
	il->was_high = 0;
	il->low_rounds = 0;
	begin_round(tp, il);
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	const struct ack_sample *sample = (void *)args[1];
	struct illinois *il = OWN(tp);
	s32 measured = sample->rtt_us;
	u32 rtt;

	if (is_unanswered(tp))
		tp->snd_ssthresh = reduced(il, window_before(tp));
	il->acked = sample->pkts_acked;
	if (measured < 0)
		return;
	rtt = least(measured, LONGEST);
	il->smallest = least(il->smallest, rtt);
	il->largest = most(il->largest, rtt);
	il->samples++;
	il->sum += rtt;
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 ack = args[1], acked = args[2];
	struct illinois *il = OWN(tp);
	u32 count, size, more;

	if (after(ack, il->end))
		follow_delay(tp, il);
	if (!is_limited(tp))
		return;
	if (in_slow_start(tp)) {
		slow_start(tp, acked);
		return;
	}
	count = tp->snd_cwnd_cnt + il->acked;
	/* The kernel may call this for more than one ACK. */
	il->acked = 1;
	size = most(tp->snd_cwnd, 1);
	more = (u64)count * il->alpha / ALPHA_UNITS;
	if (more >= size) {
		set_window(tp, tp->snd_cwnd + more / size);
		count = 0;
	}
	tp->snd_cwnd_cnt = count;
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	return reduced(OWN(tp), tp->snd_cwnd);
}

void set_state(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u8 state = args[1];
	struct illinois *il = OWN(tp);

	if (state != LOSS)
		return;
	il->alpha = BASE_ALPHA;
	il->beta = BASE_BETA;
	il->was_high = 0;
	il->low_rounds = 0;
	begin_round(tp, il);
}

u32 undo_cwnd(u64 *args)
{
	return undone((void *)args[0]);
}
