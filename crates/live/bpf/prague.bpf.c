/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Prague (draft-briscoe-iccrg-prague-congestion-control-04), as `PragueParams::linux` of queuescope-tcp. The receiver echoes each mark, as for
 * DCTCP. Fractions of a segment, and of 1, are integers in units of 2^-20.
 *
 * Left out, because a kernel without AccECN and its program interface do not have them:
 * - The feedback is DCTCP's: an ACK says that all of its segments were marked, or none.
 * - The kernel sends ECT(0). A program at tcx must set ECT(1).
 * - The kernel paces by its own ratios, 1.2 windows per round-trip time (`tcp_pacing_ca_ratio`) and 2 in slow start below half of the threshold.
 * - No window is below two segments. */
#include "ecn.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { UNITS = 20 };
#define SEGMENT (1ull << UNITS)
#define ALL (1u << UNITS)

/* The weight of a round trip in the average is a sixteenth: its power of two. Round trips after slow start until the rate no longer depends on
 * the round-trip time; the reference round-trip time in microseconds; segments that a reduction leaves. */
enum { GAIN = 4, TRANSITION = 500, REFERENCE = 25000, FLOOR = 2 };

struct prague {
	/* When the average last changed, and when a mark last reduced the window (0 if never). */
	u64 averaged, reduced;
	/* The counters at the last ACK, and at the start of this round trip, and the sequence number at which it ends. */
	u32 seen, seen_marked, delivered, marked, end;
	u32 alpha;
	/* The window with its fraction is `window` and `fraction`, if the kernel's window (or threshold, while a mark is answered) is `window`. */
	u32 window, fraction;
	/* Segments of the last ACK that were marked. */
	u32 fresh;
	u32 rounds;
	struct receiver receiver;
	/* The window before the last reduction, and its fraction. */
	u32 prior, prior_fraction;
	/* Whether there was a mark. */
	u32 saw_mark;
};

FITS(prague);

INLINE u64 size(struct prague *p, u32 window)
{
	return ((u64)least(window, LARGEST) << UNITS) + (window == p->window ? p->fraction : 0);
}

/* Keeps the fraction of a window, and returns its whole segments. */
INLINE u32 keep(struct prague *p, u64 units)
{
	p->window = units >> UNITS;
	p->fraction = units & (SEGMENT - 1);
	return p->window;
}

/* The window that a reduction leaves. */
INLINE u32 leave(struct prague *p, u64 units)
{
	return keep(p, units < FLOOR * SEGMENT ? FLOOR * SEGMENT : units);
}

/* While a mark is answered, the threshold may be above the window for a moment. */
INLINE bool doubles(struct tcp_sock *tp)
{
	return in_slow_start(tp) && BITS(&tp->inet_conn, icsk_ca_state) != REDUCED;
}

INLINE bool is_independent(struct tcp_sock *tp, struct prague *p)
{
	return !doubles(tp) && p->rounds >= TRANSITION;
}

INLINE bool reference_passed(struct tcp_sock *tp, struct prague *p, u64 time)
{
	return !is_independent(tp, p) || tp->tcp_mstamp - time >= REFERENCE;
}

/* The window after `acked` more segments without marks: one segment for each window, or the scaled part of one. */
INLINE u64 grown(struct tcp_sock *tp, struct prague *p, u64 units, u32 acked)
{
	u64 rtt = tp->srtt_us >> 3, part = SEGMENT;

	if (is_independent(tp, p) && rtt > 0 && rtt < REFERENCE)
		part = (rtt * rtt << UNITS) / ((u64)REFERENCE * REFERENCE);
	acked = least(acked, units >> UNITS);
	return units + ((acked * part << UNITS) / (units ? units : 1));
}

INLINE void begin_round(struct tcp_sock *tp, struct prague *p)
{
	p->end = tp->snd_nxt;
	p->delivered = tp->delivered;
	p->marked = tp->delivered_ce;
}

/* Once a round trip, or once per reference round-trip time. */
INLINE void average(struct tcp_sock *tp, struct prague *p)
{
	u32 delivered = tp->delivered - p->delivered, marked = tp->delivered_ce - p->marked;

	p->saw_mark |= marked > 0;
	if (after(p->end, tp->snd_una) || !reference_passed(tp, p, p->averaged))
		return;
	if (p->saw_mark) {
		u64 part = ((u64)marked << UNITS) / most(delivered, 1);

		p->alpha = least(p->alpha - (p->alpha >> GAIN) + (part >> GAIN), ALL);
		p->averaged = tp->tcp_mstamp;
	}
	begin_round(tp, p);
	if (!doubles(tp))
		p->rounds = least(p->rounds + 1, TRANSITION);
}

/* What a loss leaves of the window before the reduction. */
INLINE u32 halved(struct prague *p)
{
	return leave(p, (((u64)least(p->prior, LARGEST) << UNITS) + p->prior_fraction) / 2);
}

INLINE u32 reduced(struct tcp_sock *tp, struct prague *p, u32 window)
{
	u64 units = size(p, window);

	p->prior = window;
	p->prior_fraction = units & (SEGMENT - 1);
	if (p->reduced && !reference_passed(tp, p, p->reduced))
		return leave(p, units);
	return leave(p, units - (units * (p->alpha >> 1) >> UNITS));
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct prague *p = OWN(tp);

	if (!counts_marks(tp))
		return;
	begin_receiving(tp, &p->receiver);
	p->averaged = 0;
	p->reduced = 0;
	p->seen = tp->delivered;
	p->seen_marked = tp->delivered_ce;
	p->alpha = ALL;
	p->window = 0;
	p->fraction = 0;
	p->fresh = 0;
	p->rounds = 0;
	p->prior = 0;
	p->prior_fraction = 0;
	p->saw_mark = 0;
	begin_round(tp, p);
	if (tp->inet_conn.icsk_inet.sk.sk_pacing_status == UNPACED)
		tp->inet_conn.icsk_inet.sk.sk_pacing_status = PACED;
}

void in_ack_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct prague *p = OWN(tp);
	u32 acked = tp->delivered - p->seen, fresh = least(tp->delivered_ce - p->seen_marked, acked);

	/* While a mark is answered, the threshold grows, possibly above the window before. */
	if (is_no_answer(tp, 2 * most(window_before(tp), 2)))
		tp->snd_ssthresh = reduced(tp, p, window_before(tp));
	p->seen = tp->delivered;
	p->seen_marked = tp->delivered_ce;
	p->fresh = fresh;
	/* While a mark is answered, the kernel calls nothing else, and leads the window to the threshold. */
	if (BITS(&tp->inet_conn, icsk_ca_state) == REDUCED && acked > fresh && BITS(tp, is_cwnd_limited))
		tp->snd_ssthresh = keep(p, grown(tp, p, size(p, tp->snd_ssthresh), acked - fresh));
	average(tp, p);
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 acked = args[2];
	struct prague *p = OWN(tp);

	acked -= least(p->fresh, acked);
	if (!acked || !is_limited(tp))
		return;
	if (in_slow_start(tp))
		acked = slow_start(tp, acked);
	if (acked && BITS(&tp->inet_conn, icsk_ca_state) != LOSS)
		set_window(tp, keep(p, grown(tp, p, size(p, tp->snd_cwnd), acked)));
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	return reduced(tp, OWN(tp), tp->snd_cwnd);
}

void set_state(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u8 state = args[1], before = BITS(&tp->inet_conn, icsk_ca_state);
	struct prague *p = OWN(tp);

	if (state == RECOVERY && before == REDUCED)
		tp->snd_ssthresh = leave(p, size(p, tp->snd_ssthresh) / 2);
	else if (state == RECOVERY && before != RECOVERY)
		tp->snd_ssthresh = halved(p);
	else if (state == REDUCED && (!p->reduced || reference_passed(tp, p, p->reduced)))
		p->reduced = tp->tcp_mstamp ? tp->tcp_mstamp : 1;
}

void cwnd_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 event = args[1];
	struct prague *p = OWN(tp);

	if (event == EVENT_LOSS)
		tp->snd_ssthresh = halved(p);
	else
		echo_marks(tp, &p->receiver, event);
}

u32 undo_cwnd(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct prague *p = OWN(tp);

	return most(tp->snd_cwnd, p->prior);
}
