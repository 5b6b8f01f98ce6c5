/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Westwood+ (Grieco and Mascolo 2004), as `WestwoodParams::linux` of queuescope-tcp: Reno that after a loss continues with the window
 * that the path holds without a queue: the filtered rate of acknowledged bytes times the smallest round-trip time. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Times are in milliseconds, whatever the kernel's tick is. This is the least that a sample takes. */
enum { LEAST_INTERVAL = 50 };
/* A sample has this weight, in each of two filters: a power of two. */
enum { GAIN = 3 };

static u64 (*nanoseconds)(void) = (void *)5;

struct westwood {
	/* The bandwidth in bytes per millisecond, and the result of the first filter. */
	u32 bandwidth, once;
	/* When this sample began, and the bytes that count in it. */
	u32 began, bytes;
	/* The sequence number and the delivered segments up to which ACKs are counted, and the bytes that duplicate ACKs counted for. */
	u32 counted, delivered, accounted;
	/* The last and the smallest round-trip time; zero before the first. */
	u32 rtt, least_rtt;
	/* Whether the next ACK replaces the smallest one. */
	u32 forgets;
};

FITS(westwood);

INLINE u32 now(void)
{
	return nanoseconds() / 1000000;
}

INLINE u32 filter(u32 old, u32 value)
{
	return (((u64)old << GAIN) - old + value) >> GAIN;
}

INLINE void take_sample(struct westwood *w, u32 elapsed)
{
	u32 sample = w->bytes / most(elapsed, 1);

	if (!w->bandwidth && !w->once) {
		w->bandwidth = w->once = sample;
	} else {
		w->once = filter(w->once, sample);
		w->bandwidth = filter(w->bandwidth, w->once);
	}
	w->bytes = 0;
}

/* The bytes for which an ACK counts. A duplicate ACK counts for a segment, which a later ACK does not count again. */
INLINE u32 acknowledged(struct tcp_sock *tp, struct westwood *w)
{
	u32 mss = tp->mss_cache, bytes = tp->snd_una - w->counted, accounted = w->accounted;
	bool delivers = tp->delivered != w->delivered;

	w->counted = tp->snd_una;
	w->delivered = tp->delivered;
	if (!bytes) {
		if (!delivers)
			return 0;
		w->accounted = accounted + mss;
		return mss;
	}
	if (bytes <= mss)
		return bytes;
	if (accounted >= bytes) {
		w->accounted = accounted - bytes;
		return mss;
	}
	w->accounted = 0;
	return bytes - accounted;
}

/* The segments that the path holds without a queue. */
INLINE u32 content(struct tcp_sock *tp, struct westwood *w)
{
	u64 segments = (u64)w->bandwidth * w->least_rtt / most(tp->mss_cache, 1);

	return segments > LARGEST ? LARGEST : most(segments, 2);
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct westwood *w = OWN(tp);

	w->bandwidth = 0;
	w->once = 0;
	w->began = now();
	w->bytes = 0;
	w->counted = tp->snd_una;
	w->delivered = tp->delivered;
	w->accounted = 0;
	w->rtt = 0;
	w->least_rtt = 0;
	w->forgets = 1;
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	const struct ack_sample *sample = (void *)args[1];
	struct westwood *w = OWN(tp);
	s32 measured = sample->rtt_us;

	/* The answer to a timeout may well be above the window before. */
	if (is_no_answer(tp, LARGEST))
		tp->snd_ssthresh = half(window_before(tp));
	if (measured > 0)
		w->rtt = ((u32)measured + 999) / 1000;
}

void in_ack_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct westwood *w = OWN(tp);
	u32 time = now(), elapsed = time - w->began;

	if (w->rtt && elapsed > most(w->rtt, LEAST_INTERVAL)) {
		take_sample(w, elapsed);
		w->began = time;
	}
	w->bytes += acknowledged(tp, w);
	if (!w->rtt)
		return;
	w->least_rtt = w->forgets ? w->rtt : least(w->least_rtt, w->rtt);
	w->forgets = 0;
}

void cong_avoid(u64 *args)
{
	reno((void *)args[0], args[2]);
}

void cwnd_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 event = args[1];
	struct westwood *w = OWN(tp);

	if (event == COMPLETE_CWR) {
		tp->snd_ssthresh = content(tp, w);
		set_window(tp, tp->snd_ssthresh);
	} else if (event == EVENT_LOSS) {
		tp->snd_ssthresh = content(tp, w);
		w->forgets = 1;
	}
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	return half(tp->snd_cwnd);
}

u32 undo_cwnd(u64 *args)
{
	return undone((void *)args[0]);
}
