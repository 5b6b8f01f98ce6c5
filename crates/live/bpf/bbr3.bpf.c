/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* BBR version 3 (draft-ietf-ccwg-bbr), as `Bbr3Params::linux` of queuescope-tcp, in the 104 bytes that the kernel has for it. Bandwidths are in
 * units of 2^-24 segments per microsecond, times in microseconds that wrap after 71 minutes, and gains in units of 1/1024.
 *
 * Left out, because the kernel's rate sample and its private state have no room for it:
 * - The kernel does not note what was in flight and lost when a segment was sent. What was in flight is what has been delivered or lost since;
 *   what was lost since is what was lost in this round trip. So the loss rate of a probe is that of its round trips, and is known at their end.
 * - The draft's precautionary probes, which Google's version for Linux lacks, too.
 * - A larger send buffer (`sndbuf_expand`), and a size of bursts of its own (`tso_segs`): the kernel's are used.
 * - Marks are answered once in a window of data, as the draft requires; the response to their share is that of Google's version only. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { SCALE = 24, GAIN = 10 };

/* Pacing gains of startup (2.77), drain (1/2.885), down (0.91) and up (1.25); of the window (2), while going up (2.25), and while the round-trip
 * time is probed (0.5). */
enum { FAST = 2837, SLOW = 355, LOWER = 932, EVEN = 1024, HIGHER = 1280, WINDOW = 2048, WINDOW_UP = 2304, HALF = 512 };
/* Times in microseconds: between probes for bandwidth, and the most that is added at random (in nanoseconds); how long the smallest round-trip time
 * counts, when it is probed, and for how long; what aggregation may add. */
enum { WAIT = 2000000, MORE = 1000000000, OLD = 10000000, EXPIRED = 5000000, PROBE = 200000, AGGREGATED = 100000 };
/* Round trips without growth that fill the pipe; losses of a round trip that end startup; round trips after which Reno would have grown by any
 * window; round trips of a period of aggregation; the smallest and the first window. */
enum { FULL_ROUNDS = 3, FULL_LOSSES = 6, MOST_ROUNDS = 63, PERIOD = 5, LEAST = 4, FIRST = 10 };

/* No round-trip time, no bound. */
#define NONE 0xffffffff

enum { STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT };
enum { ACKS_INIT, ACKS_REFILLING, ACKS_STARTING, ACKS_FEEDBACK, ACKS_STOPPING };

struct bbr {
	/* The smallest round-trip time of ten seconds and of the time since the last probe of it, when they were measured, and the end of such a
	 * probe (0 if it is not known). */
	u32 path, path_at, recent, recent_at, probe_end;
	/* A round trip ends, and one of the short-term bounds, with a segment sent after this many were delivered. */
	u32 round_end, loss_round_end;
	/* The largest bandwidth of the cycle before and of this one; the short-term bound; that of this round trip; that of the search for growth. */
	u32 largest[2], short_bandwidth, latest_bandwidth, full_bandwidth;
	/* Segments in flight: that of this round trip, the short-term and the long-term bound. */
	u32 latest_in_flight, short_in_flight, long_in_flight;
	/* When the last probe for bandwidth ended, and the time to wait for the next one. */
	u32 began, wait;
	/* Acknowledged segments that raise the long-term bound by one, and those so far. */
	u32 per_segment, acked;
	u32 saved_window;
	/* Aggregation: since when segments are counted, how many came, and by how much more than the bandwidth explains. */
	u32 epoch, epoch_acked;
	u16 extra[2];
	/* All losses when this round trip began. */
	u32 lost;
	u32 state : 3, acks : 3, full_rounds : 2, up_rounds : 5, losses : 3, rounds : 7, extra_rounds : 3, cycles : 2;
	u32 loses : 1, probes : 1, too_high : 1, full : 1, full_now : 1, idle : 1, repairs : 1, paced : 1, passed : 1;
};

FITS(bbr);

/* What an ACK says. `lost` and `sent` are what was lost and in flight since the segment was sent, and `used` is the bandwidth before this ACK. */
struct sample {
	u32 now, rate, delivered, acked, newly_lost, lost, sent, in_flight, used;
	bool limited, window_limited, round, loss_round;
};

INLINE u32 largest(struct bbr *b)
{
	return most(b->largest[0], b->largest[1]);
}

INLINE u32 bandwidth(struct bbr *b)
{
	return least(largest(b), b->short_bandwidth);
}

/* A multiple of the bandwidth-delay product, in segments. */
INLINE u32 product(struct bbr *b, u32 rate, u32 gain)
{
	u64 segments;

	if (b->path == NONE)
		return FIRST;
	segments = ((u64)rate * b->path >> GAIN) * gain >> SCALE;
	return segments < LARGEST ? segments : LARGEST;
}

INLINE u32 pacing_gain(struct bbr *b)
{
	u32 state = b->state;

	if (state == STARTUP)
		return FAST;
	if (state == DRAIN)
		return SLOW;
	if (state == DOWN)
		return LOWER;
	return state == UP ? HIGHER : EVEN;
}

INLINE u32 window_gain(struct bbr *b)
{
	u32 state = b->state;

	return state == UP ? WINDOW_UP : state == PROBE_RTT ? HALF : WINDOW;
}

/* At least three quanta of pacing and the smallest window; two segments more while probing. */
INLINE u32 quantized(struct tcp_sock *tp, struct bbr *b, u32 segments)
{
	u64 rate = tp->inet_conn.icsk_inet.sk.sk_pacing_rate / 1000;
	u32 mss = most(tp->mss_cache, 1), quantum = rate < 65536 ? rate : 65536;

	segments = most(most(segments, 3 * most(quantum, 2 * mss) / mss), LEAST);
	return least(segments + (b->state == UP ? 2 : 0), LARGEST);
}

INLINE u32 in_flight_at(struct tcp_sock *tp, struct bbr *b, u32 rate)
{
	return quantized(tp, b, product(b, rate, EVEN));
}

INLINE u32 target(struct tcp_sock *tp, struct bbr *b, u32 rate)
{
	return least(product(b, rate, EVEN), tp->snd_cwnd);
}

INLINE u32 with_headroom(struct bbr *b)
{
	u32 bound = b->long_in_flight, room = most((u64)bound * 3 / 20, 1);

	return bound == NONE ? NONE : most(bound - least(room, bound), LEAST);
}

/* Begins a round trip without counting it. */
INLINE void begin_round(struct tcp_sock *tp, struct bbr *b)
{
	b->round_end = tp->delivered;
	b->lost = tp->lost;
}

INLINE void reset_short_term(struct bbr *b)
{
	b->short_bandwidth = NONE;
	b->short_in_flight = NONE;
}

INLINE void start_down(struct tcp_sock *tp, struct bbr *b)
{
	b->loses = 0;
	b->latest_bandwidth = 0;
	b->latest_in_flight = 0;
	b->per_segment = NONE;
	b->rounds = random() & 1;
	b->wait = WAIT + random() % (MORE + 1) / 1000;
	b->began = tp->tcp_mstamp;
	b->acks = ACKS_STOPPING;
	begin_round(tp, b);
	b->state = DOWN;
}

INLINE void start_refill(struct tcp_sock *tp, struct bbr *b)
{
	reset_short_term(b);
	b->up_rounds = 0;
	b->acked = 0;
	b->acks = ACKS_REFILLING;
	begin_round(tp, b);
	b->state = REFILL;
}

/* The long-term bound grows by 1, 2, 4, ... segments in successive round trips. */
INLINE void raise_slope(struct tcp_sock *tp, struct bbr *b)
{
	b->per_segment = most(tp->snd_cwnd >> b->up_rounds, 1);
	if (b->up_rounds < 30)
		b->up_rounds++;
}

INLINE void note_loss(struct tcp_sock *tp, struct bbr *b)
{
	if (!b->loses)
		b->loss_round_end = tp->delivered;
	b->loses = 1;
}

/* A fiftieth, 2 %, is tolerable. */
INLINE bool is_too_high(const struct sample *s)
{
	return (u64)s->lost * 50 > s->sent;
}

/* The probe that is under way put too much in flight. */
INLINE void handle_too_high(struct tcp_sock *tp, struct bbr *b, u32 in_flight, u32 rate, bool limited)
{
	b->too_high = 1;
	b->probes = 0;
	if (!limited)
		b->long_in_flight = most(in_flight, (u64)target(tp, b, rate) * 7 / 10);
	if (b->state == UP)
		start_down(tp, b);
}

INLINE void handle_losses(struct tcp_sock *tp, struct bbr *b, const struct sample *s)
{
	u32 before, lost_before, prefix = 0;

	if (!s->newly_lost)
		return;
	note_loss(tp, b);
	if (b->losses < 7)
		b->losses++;
	if (!b->probes || !is_too_high(s))
		return;
	/* What was in flight when losses exceeded the tolerable rate. */
	before = s->sent - least(s->newly_lost, s->sent);
	lost_before = s->lost - least(s->newly_lost, s->lost);
	if (before > (u64)lost_before * 50)
		prefix = (before - lost_before * 50) / 49;
	handle_too_high(tp, b, before + least(prefix, s->newly_lost), s->used, s->limited);
}

INLINE void take_rate(struct tcp_sock *tp, struct bbr *b, struct sample *s)
{
	u32 prior = tp->delivered - s->delivered;

	if (!s->rate)
		return;
	b->latest_bandwidth = most(b->latest_bandwidth, s->rate);
	b->latest_in_flight = most(b->latest_in_flight, s->delivered);
	if (!after(b->loss_round_end, prior)) {
		b->loss_round_end = tp->delivered;
		s->loss_round = 1;
	}
	if (!after(b->round_end, prior)) {
		begin_round(tp, b);
		s->round = 1;
		if (b->rounds < 127)
			b->rounds++;
	}
	if (s->limited && s->rate < largest(b))
		return;
	/* Cycles without samples are forgotten. */
	if (b->cycles) {
		b->largest[0] = b->cycles == 1 ? b->largest[1] : 0;
		b->largest[1] = 0;
		b->cycles = 0;
	}
	b->largest[1] = most(b->largest[1], s->rate);
}

/* Once in a round trip, reduces the short-term bounds if there was congestion. */
INLINE void adapt_short_term(struct tcp_sock *tp, struct bbr *b, const struct sample *s)
{
	u32 state = b->state, rate, in_flight;

	if (!s->loss_round)
		return;
	if (b->loses && state != STARTUP && state != REFILL && state != UP) {
		rate = b->short_bandwidth == NONE ? largest(b) : b->short_bandwidth;
		in_flight = b->short_in_flight == NONE ? tp->snd_cwnd : b->short_in_flight;
		b->short_bandwidth = most(b->latest_bandwidth, (u64)rate * 7 / 10);
		b->short_in_flight = most(b->latest_in_flight, (u64)in_flight * 7 / 10);
	}
	b->loses = 0;
}

INLINE void restart_aggregation(struct bbr *b, u32 now)
{
	b->epoch = now;
	b->epoch_acked = 0;
}

INLINE void aggregate(struct tcp_sock *tp, struct bbr *b, const struct sample *s)
{
	u64 explained = (u64)s->used * (s->now - b->epoch) >> SCALE;
	u32 extra;

	if (!s->acked || !s->rate)
		return;
	if (s->round) {
		b->extra_rounds++;
		if (b->extra_rounds >= (b->full ? PERIOD : 1)) {
			b->extra_rounds = 0;
			b->extra[1] = b->extra[0];
			b->extra[0] = 0;
		}
	}
	if (b->epoch_acked <= explained || b->epoch_acked + s->acked >= LARGEST) {
		restart_aggregation(b, s->now);
		explained = 0;
	}
	b->epoch_acked += s->acked;
	extra = b->epoch_acked > explained ? least(b->epoch_acked - explained, tp->snd_cwnd) : 0;
	b->extra[0] = most(b->extra[0], least(extra, 65535));
}

INLINE void check_full_pipe(struct bbr *b, const struct sample *s)
{
	if (b->full_now || !s->round || s->limited)
		return;
	if ((u64)s->rate * 4 >= (u64)b->full_bandwidth * 5) {
		b->full_bandwidth = s->rate;
		b->full_rounds = 0;
		return;
	}
	b->full_rounds++;
	b->full_now = b->full_rounds >= FULL_ROUNDS;
	b->full |= b->full_now;
}

INLINE void check_startup(struct tcp_sock *tp, struct bbr *b, const struct sample *s, bool repairs)
{
	if (s->loss_round) {
		if (b->state == STARTUP && repairs && b->losses >= FULL_LOSSES && is_too_high(s)) {
			b->full = 1;
			b->long_in_flight = most(b->latest_in_flight, in_flight_at(tp, b, largest(b)));
		}
		b->losses = 0;
	}
	if (b->state == STARTUP && b->full) {
		b->state = DRAIN;
		tp->snd_ssthresh = in_flight_at(tp, b, largest(b));
	}
	if (b->state == DRAIN && s->in_flight <= in_flight_at(tp, b, s->used))
		start_down(tp, b);
}

/* Notes what ACKs say about the last probe, and raises the long-term bound where losses are few. */
INLINE void adapt_long_term(struct tcp_sock *tp, struct bbr *b, const struct sample *s)
{
	if (s->round && b->acks == ACKS_STARTING) {
		b->acks = ACKS_FEEDBACK;
	} else if (s->round && b->acks == ACKS_STOPPING) {
		b->probes = 0;
		b->acks = ACKS_INIT;
		if (b->state >= DOWN && b->state <= UP && !s->limited && b->cycles < 2)
			b->cycles++;
	}
	if (b->long_in_flight == NONE || is_too_high(s))
		return;
	b->long_in_flight = most(b->long_in_flight, s->sent);
	if (b->state != UP || !s->window_limited || tp->snd_cwnd < b->long_in_flight)
		return;
	b->acked += s->acked;
	b->long_in_flight = least(b->long_in_flight + b->acked / most(b->per_segment, 1), LARGEST);
	b->acked %= most(b->per_segment, 1);
	if (s->round)
		raise_slope(tp, b);
}

INLINE bool is_time_to_go_down(struct tcp_sock *tp, struct bbr *b, const struct sample *s)
{
	if (s->window_limited && b->long_in_flight != NONE && tp->snd_cwnd >= b->long_in_flight) {
		/* The bound limits the bandwidth, so a bandwidth that does not grow says nothing. */
		b->full_now = 0;
		b->full_bandwidth = s->rate;
		b->full_rounds = 0;
		return 0;
	}
	return b->full_now;
}

INLINE void follow_cycle(struct tcp_sock *tp, struct bbr *b, const struct sample *s)
{
	u32 state;

	if (!b->full)
		return;
	adapt_long_term(tp, b, s);
	state = b->state;
	if ((state == DOWN || state == CRUISE) &&
	    ((s32)(s->now - b->began - b->wait) > 0 || b->rounds >= least(target(tp, b, s->used), MOST_ROUNDS))) {
		start_refill(tp, b);
	} else if (state == DOWN) {
		if (s->in_flight <= with_headroom(b) && s->in_flight <= in_flight_at(tp, b, largest(b)))
			b->state = CRUISE;
	} else if (state == REFILL && s->round) {
		b->probes = 1;
		b->acks = ACKS_STARTING;
		begin_round(tp, b);
		b->full_now = 0;
		b->full_bandwidth = s->rate;
		b->full_rounds = 0;
		b->state = UP;
		raise_slope(tp, b);
	} else if (state == UP && is_time_to_go_down(tp, b, s)) {
		b->too_high = 0;
		start_down(tp, b);
	}
}

INLINE u32 probe_rtt_window(struct bbr *b, u32 rate)
{
	return most(product(b, rate, HALF), LEAST);
}

INLINE void save_window(struct tcp_sock *tp, struct bbr *b)
{
	if (b->repairs || b->state == PROBE_RTT)
		b->saved_window = most(b->saved_window, tp->snd_cwnd);
	else
		b->saved_window = tp->snd_cwnd;
}

INLINE void restore_window(struct tcp_sock *tp, struct bbr *b)
{
	set_window(tp, most(tp->snd_cwnd, least(b->saved_window, LARGEST)));
}

INLINE void check_probe_rtt_over(struct tcp_sock *tp, struct bbr *b, u32 now)
{
	if (!b->probe_end || !after(now, b->probe_end))
		return;
	b->probe_end = 0;
	b->recent_at = now;
	restore_window(tp, b);
	reset_short_term(b);
	if (b->full) {
		start_down(tp, b);
		b->state = CRUISE;
	} else {
		b->state = STARTUP;
	}
}

INLINE void follow_path(struct tcp_sock *tp, struct bbr *b, const struct sample *s, u32 rtt)
{
	bool expired = s->now - b->recent_at > EXPIRED, old = s->now - b->path_at > OLD;
	u32 limit;

	if (rtt != NONE && (expired || rtt < b->recent)) {
		b->recent = rtt;
		b->recent_at = s->now;
	}
	if (b->recent != NONE && (old || b->recent < b->path)) {
		b->path = b->recent;
		b->path_at = b->recent_at;
	}
	if (expired && !b->idle && b->state != PROBE_RTT) {
		b->state = PROBE_RTT;
		save_window(tp, b);
		b->probe_end = 0;
		b->acks = ACKS_STOPPING;
		begin_round(tp, b);
	}
	if (b->state == PROBE_RTT) {
		/* Samples of these segments are limited. */
		limit = tp->delivered + s->in_flight;
		tp->app_limited = limit ? limit : 1;
		if (b->probe_end) {
			b->passed |= s->round;
			if (b->passed)
				check_probe_rtt_over(tp, b, s->now);
		} else if (s->in_flight <= probe_rtt_window(b, s->used)) {
			b->probe_end = s->now + PROBE ? s->now + PROBE : 1;
			b->passed = 0;
			begin_round(tp, b);
		}
	}
	if (s->acked)
		b->idle = 0;
}

INLINE void set_rate(struct tcp_sock *tp, u64 rate)
{
	u64 limit = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;

	tp->inet_conn.icsk_inet.sk.sk_pacing_rate = rate < limit ? rate : limit;
}

/* The first rate, from the window and a round-trip time. */
INLINE void set_first_pacing(struct tcp_sock *tp, u32 rtt)
{
	set_rate(tp, (u64)FAST * tp->snd_cwnd * most(tp->mss_cache, 1) * 1000 / most(rtt, 1) * 1000 >> GAIN);
}

/* One percent below the gain. */
INLINE void set_pacing(struct tcp_sock *tp, struct bbr *b, u32 gain, u32 rate)
{
	u64 bytes = (u64)rate * most(tp->mss_cache, 1);

	if (bytes >> 42)
		bytes = 1ull << 42;
	bytes = (bytes * gain >> GAIN) * 990000 >> SCALE;
	if (b->full || bytes > tp->inet_conn.icsk_inet.sk.sk_pacing_rate)
		set_rate(tp, bytes);
}

INLINE u32 bound(struct bbr *b)
{
	u32 state = b->state, bound = b->long_in_flight;

	if (state == STARTUP || state == DRAIN)
		bound = NONE;
	else if (state == CRUISE || state == PROBE_RTT)
		bound = with_headroom(b);
	return most(least(bound, b->short_in_flight), LEAST);
}

INLINE void adapt_window(struct tcp_sock *tp, struct bbr *b, const struct sample *s)
{
	u32 rate = bandwidth(b), window = tp->snd_cwnd, full;
	u64 room = (u64)rate * AGGREGATED >> SCALE;
	u32 extra = most(b->extra[0], b->extra[1]);

	if (room < extra)
		extra = room;
	full = quantized(tp, b, product(b, rate, window_gain(b)) + extra);
	if (b->full)
		window = least(window + s->acked, full);
	else if (window < full || tp->delivered < FIRST)
		window += s->acked;
	window = most(window, LEAST);
	if (b->state == PROBE_RTT)
		window = least(window, probe_rtt_window(b, rate));
	set_window(tp, most(least(window, bound(b)), 1));
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct bbr *b = OWN(tp);
	u32 now = tp->tcp_mstamp, rtt = tp->srtt_us >> 3;

	__builtin_memset(b, 0, sizeof(*b));
	b->path = NONE;
	b->recent = NONE;
	b->path_at = now;
	b->recent_at = now;
	b->long_in_flight = NONE;
	b->per_segment = NONE;
	b->epoch = now;
	reset_short_term(b);
	begin_round(tp, b);
	b->loss_round_end = tp->delivered;
	if (rtt) {
		b->path = rtt;
		b->paced = 1;
	}
	set_first_pacing(tp, rtt ? rtt : 1000);
	if (tp->inet_conn.icsk_inet.sk.sk_pacing_status == UNPACED)
		tp->inet_conn.icsk_inet.sk.sk_pacing_status = PACED;
}

void cong_control(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	const struct rate_sample *rs = (void *)args[3];
	struct bbr *b = OWN(tp);
	s64 interval = rs->interval_us, rtt = rs->rtt_us;
	s32 delivered = rs->delivered, losses = rs->losses;
	u64 rate;
	struct sample s = {
		.now = tp->tcp_mstamp,
		.delivered = delivered > 0 ? delivered : 0,
		.acked = rs->acked_sacked,
		.newly_lost = losses > 0 ? losses : 0,
		.lost = tp->lost - b->lost,
		.in_flight = in_flight_now(tp),
		.used = bandwidth(b),
		.limited = rs->is_app_limited,
		.window_limited = BITS(tp, is_cwnd_limited),
	};

	if (delivered > 0 && interval > 0) {
		rate = (((u64)s.delivered << SCALE) + interval - 1) / interval;
		s.rate = rate < NONE ? rate : NONE - 1;
	}
	s.sent = s.delivered + s.lost;
	handle_losses(tp, b, &s);
	take_rate(tp, b, &s);
	adapt_short_term(tp, b, &s);
	aggregate(tp, b, &s);
	check_full_pipe(b, &s);
	check_startup(tp, b, &s, BITS(&tp->inet_conn, icsk_ca_state) == RECOVERY);
	follow_cycle(tp, b, &s);
	follow_path(tp, b, &s, rtt > 0 && rtt < NONE ? rtt : NONE);
	if (s.loss_round) {
		b->latest_bandwidth = s.rate;
		b->latest_in_flight = s.delivered;
	}
	if (!b->paced && tp->srtt_us >> 3) {
		b->paced = 1;
		set_first_pacing(tp, tp->srtt_us >> 3);
	}
	set_pacing(tp, b, pacing_gain(b), bandwidth(b));
	adapt_window(tp, b, &s);
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	save_window(tp, OWN(tp));
	return tp->snd_ssthresh;
}

void set_state(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u8 state = args[1], before = BITS(&tp->inet_conn, icsk_ca_state);
	struct bbr *b = OWN(tp);

	if (state == REDUCED) {
		note_loss(tp, b);
		if (b->probes)
			handle_too_high(tp, b, in_flight_now(tp), bandwidth(b), 0);
	} else if (state >= RECOVERY) {
		if (state == LOSS && before != LOSS)
			note_loss(tp, b);
		b->repairs = 1;
	} else if (b->repairs) {
		b->repairs = 0;
		restore_window(tp, b);
	}
}

void cwnd_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 event = args[1], now = tp->tcp_mstamp;
	struct bbr *b = OWN(tp);

	if (event != TX_START || b->repairs || !tp->delivered)
		return;
	b->idle = 1;
	restart_aggregation(b, now);
	if (b->state >= DOWN && b->state <= UP)
		set_pacing(tp, b, EVEN, bandwidth(b));
	else if (b->state == PROBE_RTT)
		check_probe_rtt_over(tp, b, now);
}

u32 undo_cwnd(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	return tp->snd_cwnd;
}
