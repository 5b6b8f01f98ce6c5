/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The probe: stamps packets before a qdisc, and measures them as they leave it. */
#include "act.h"
#include "sketch.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Queues of a device that are told apart; those behind them share. */
#define QUEUES 16
/* Packets that leave at once and are looked at. */
#define BULK 16
/* A slice of time of the summary, in nanoseconds, as a power of two (67 ms); and how many are kept. */
#define SLICE 26
#define SLICES 64

/* Delays are counted by how many bits a microsecond's worth (1024 ns) of them has. */
#define DELAYS 32
#define DELAY 10

/* Why a qdisc drops, in the order in which it is counted; the last is that a classifier behind the stamp has. */
enum { ANY, OVERLIMIT, CONGESTED, CAKE_FLOOD, BAND_LIMIT, HORIZON_LIMIT, FLOW_LIMIT, STEP_DROP, CLASSIFIER, REASONS };

/* What is asked for; may change while it runs. */
struct config {
	u32 netns, ifindex;
	/* Nanoseconds that a packet waits before it counts as congested. */
	u64 tau;
	/* A flow contributes if it has more than so many 65536ths of what left meanwhile. */
	u32 alpha;
	/* Whether all packets are told, and not only those that waited for at least half of tau. */
	u32 all;
	/* The length of a window of the sketch, as a power of two of nanoseconds. */
	u32 shift;
	u32 unused;
	/* Nanoseconds: no packet was stamped before. */
	u64 since;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct config);
} config SEC(".maps");

/* What is counted. */
struct counters {
	/* Of packets that came, exactly: super-packets as such, their bytes, and on the wire. */
	u64 stamped, stamped_bytes, came;
	/* Of packets that left: super-packets, wire packets, bytes on the wire. */
	u64 seen, packets, bytes;
	/* On the wire, too. */
	u64 congested, contributing;
	/* Without a stamp of ours; not IP, of those that were asked whose they are; more at once than are looked at; that did not fit
	 * in the ring buffer. */
	u64 unstamped, other, bulk, untold;
	/* That were not asked whose they are; that the device gave back, and that left once more. */
	u64 alone, requeued;
	/* On the wire, that came without a mark and left with one. */
	u64 marked;
	/* On the wire, that were dropped by the qdisc, by reason. */
	u64 drops[REASONS];
	/* Nanoseconds that wire packets waited, and those by how long. */
	u64 delay;
	u64 delays[DELAYS];
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct counters);
} counters SEC(".maps");

/* A slice of time of one queue. */
struct slice {
	/* Which, since the machine was started. */
	u64 number;
	u64 packets, bytes, congested;
	/* Nanoseconds; the sum over wire packets. */
	u64 delay_sum, delay_max;
	/* Bytes and packets in the queue, at most. */
	u32 backlog_max, length_max;
	u64 drops;
};

/* The slices of one queue, then those of the next. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, QUEUES * SLICES);
	TYPE(key, u32);
	TYPE(value, struct slice);
} slices SEC(".maps");

/* The sketch of each queue: packets leave one under its lock. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, QUEUES);
	TYPE(key, u32);
	TYPE(value, struct sketch);
} sketches SEC(".maps");

/* A packet that left, as it is told. */
struct event {
	/* Nanoseconds of CLOCK_MONOTONIC. */
	u64 enqueued, dequeued;
	u64 digest;
	/* Bytes of its flow, and of all, that left while it waited. */
	u64 flow, all;
	/* Bytes on the wire, and how many packets they are there. */
	u32 bytes, packets;
	/* Bytes and packets that it left behind in the queue. */
	u32 backlog, length;
	u32 queue;
	/* Bytes of headers that there are; and whether they begin with those of Ethernet. */
	u16 captured;
	u8 framed, contributing;
	u8 headers[HEADERS];
};

struct {
	NUMBER(type, MAP_RINGBUF);
	NUMBER(max_entries, 8 << 20);
} events SEC(".maps");

/* What is being looked at. */
struct scratch {
	/* Some bytes more, so that numbers can be read at any place. */
	u8 headers[HEADERS + 16];
	u64 digest;
	/* Where the IP header begins, if there is one. */
	u64 ip;
	struct estimates found;
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct scratch);
} scratch SEC(".maps");

/* When a packet came, in the last eight of the twenty bytes of the control block that a qdisc may use for itself: all but CHOKe use
 * twelve at most. The word of the time has its lower bits, of 16 ns each; the last word has, from above, two bits more, whether the
 * packet came with a mark, thirteen bits that say that all this is ours, and sixteen that say it of the digest. */
#define TICK 4
#define TICKS (1ull << 34)
#define MARKED (1u << 29)
#define CHECK 0x1fff

/* Of nothing at all, that is not nothing; nor is it that of another device. */
INLINE u32 check_of(u64 ticks, u32 device)
{
	return (((u32)(ticks ^ ticks >> 32) ^ 0x51750e5c) * 0x9e3779b1 + device * 0x85ebca6b) >> 19;
}

/* Says in its lower half that a digest is, too; never nothing, which is that there is none. */
INLINE u32 check_of_digest(u64 digest)
{
	return ((digest ^ digest >> 16 ^ digest >> 32 ^ digest >> 48) & 0xfffe) | 1;
}

/* The mark of a packet, if it is IP, by the first two bytes of its header and the protocol that its frame tells. */
INLINE bool is_marked(u32 protocol, const u8 *header)
{
	return (protocol == __builtin_bswap16(IPV4) && (header[1] & 3) == CE) ||
	       (protocol == __builtin_bswap16(IPV6) && (header[1] >> 4 & 3) == CE);
}

/* Before the qdisc: each packet, exactly. */
INLINE int stamp_with(struct __sk_buff *skb, u64 now)
{
	u32 zero = 0;
	struct counters *count = map_lookup(&counters, &zero);
	u64 ticks = (now >> TICK) % TICKS;
	u32 last = (u32)(ticks >> 32) << 30 | check_of(ticks, skb->ifindex) << 16;
	u8 header[2];

	if (!skb_load_bytes_relative(skb, 0, header, 2, FROM_IP) && is_marked(skb->protocol, header))
		last |= MARKED;
	skb->cb[3] = ticks;
	skb->cb[4] = last;
	if (count) {
		count->stamped++;
		count->stamped_bytes += skb->len;
		count->came += skb->gso_segs ? skb->gso_segs : 1;
	}
	return NEXT;
}

SEC("classifier")
int stamp(struct __sk_buff *skb)
{
	return stamp_with(skb, ktime());
}

/* The control block as a qdisc has it, by words: what it takes on the wire; whose packet it is, if that is known; when it came; and
 * what says that both are ours. */
enum { BLOCK_BYTES = 0, BLOCK_DIGEST = 2, BLOCK_TIME = 5, BLOCK_LAST = 6 };

INLINE u64 ticks_of(const u32 *block)
{
	return block[BLOCK_TIME] | (u64)(block[BLOCK_LAST] >> 30) << 32;
}

/* Nanoseconds that a packet has waited, if it was stamped since this is looked at: a block may have the stamp of another's, or be
 * like one. */
INLINE bool has_waited(const u32 *block, const struct config *asked, u64 now, u64 *waited)
{
	u64 ticks = ticks_of(block);

	*waited = (((now >> TICK) - ticks) % TICKS) << TICK;
	return (block[BLOCK_LAST] >> 16 & CHECK) == check_of(ticks, asked->ifindex) && *waited <= now - asked->since;
}

/* The packets that one is on the wire. */
INLINE u32 segments_of(struct sk_buff *skb)
{
	u16 segments = ((struct skb_shared_info *)(skb->head + skb->end))->gso_segs;

	return segments ? segments : 1;
}

/* The bits that a number has; as many as there are places for at most. */
GLOBAL u32 bits_of(u64 number)
{
	u32 bits = 0;

	for (u32 half = 16; half; half /= 2) {
		if (number >> half) {
			number >>= half;
			bits += half;
		}
	}
	bits += number > 0;
	return bits < DELAYS ? bits : DELAYS - 1;
}

/* The slice of a queue that a time is in. */
INLINE struct slice *slice_of(u32 queue, u64 now)
{
	u64 number = now >> SLICE;
	u32 place = queue * SLICES + number % SLICES;
	struct slice *slice = map_lookup(&slices, &place);

	if (slice && slice->number != number) {
		__builtin_memset(slice, 0, sizeof(*slice));
		slice->number = number;
	}
	return slice;
}

INLINE void sum_up(u32 queue, u64 now, u64 delay, u32 bytes, u32 packets, bool congested, struct Qdisc *qdisc)
{
	struct slice *slice = slice_of(queue, now);
	u32 backlog = qdisc->qstats.backlog, length = qdisc->q.qlen;

	if (!slice)
		return;
	slice->packets += packets;
	slice->bytes += bytes;
	slice->congested += congested ? packets : 0;
	slice->delay_sum += delay * packets;
	if (delay > slice->delay_max)
		slice->delay_max = delay;
	if (backlog > slice->backlog_max)
		slice->backlog_max = backlog;
	if (length > slice->length_max)
		slice->length_max = length;
}

/* Whose packet it is that the headers are of; whether it is IP. */
GLOBAL int identify(u32 framed)
{
	u32 zero = 0;
	struct scratch *place = map_lookup(&scratch, &zero);
	struct words words;
	bool is_ip;

	if (!place)
		return 0;
	is_ip = flow_of(place->headers, framed, &words);
	place->digest = digest(&words);
	place->ip = words.ip;
	return is_ip;
}

/* The same where flows are acted on; what is dropped here did not come to the queue, and is not stamped. */
SEC("classifier")
int act(struct __sk_buff *skb)
{
	u32 zero = 0, head = skb->len;
	struct acting *asked = map_lookup(&acting, &zero);
	struct acted *count = map_lookup(&acted, &zero);
	struct standing *here = map_lookup(&standing, &zero);
	struct scratch *place = map_lookup(&scratch, &zero);
	struct victim *victim;
	u64 now = ktime(), digest;
	bool is_ip;

	if (!asked || !count || !here || !place || !asked->action || here->framed == UNKNOWN)
		return stamp_with(skb, now);
	if (head >= HEADERS) {
		if (skb_load_bytes(skb, 0, place->headers, HEADERS))
			return stamp_with(skb, now);
	} else {
		__builtin_memset(place->headers, 0, sizeof(place->headers));
		if (head == 0 || skb_load_bytes(skb, 0, place->headers, head))
			return stamp_with(skb, now);
	}
	is_ip = identify(here->framed == FRAMED);
	digest = place->digest;
	victim = asked->weigh == QUEUE ? &here->all : map_lookup(&victims, &digest);
	if (victim && decide(skb, asked, count, victim, place->headers, place->ip, is_ip, now) == SHOT) {
		/* A stamp from elsewhere would say that it had come. */
		skb->cb[4] = ~skb->cb[4];
		return SHOT;
	}
	stamp_with(skb, now);
	/* So that its headers need not be looked at again. A qdisc that uses these words leaves at least the time. */
	if (is_ip) {
		skb->cb[0] = digest;
		skb->cb[1] = digest >> 32;
		skb->cb[4] |= check_of_digest(digest);
	}
	return NEXT;
}

/* A packet leaves a queue: what left it while it waited. */
GLOBAL int measure(u32 number, u32 bytes, u64 enqueued, u64 now, u32 shift)
{
	u32 zero = 0;
	struct scratch *place = map_lookup(&scratch, &zero);
	struct sketch *sketch = map_lookup(&sketches, &number);

	if (place && sketch)
		place->found = observe(sketch, place->digest, bytes, enqueued, now, shift & 31);
	return 0;
}

/* Whether nothing is left in a queue. Of some qdiscs each processor counts for itself, so that this count says nothing. */
INLINE bool is_empty(struct Qdisc *qdisc)
{
	return !qdisc->q.qlen && !(qdisc->flags & (COUNTED_APART | WITHOUT_LOCK));
}

/* What the device gave back of each queue. */
struct returned {
	/* Which qdisc it is of, how often that was by then, and how many of those have not left once more. */
	u64 qdisc;
	u32 requeues, again;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, QUEUES);
	TYPE(key, u32);
	TYPE(value, struct returned);
} returned SEC(".maps");

/* Whether a packet left before, and the device gave it back: those leave first. Where a run was left out, what still stands there says
 * how many there can be. Of qdiscs that have no lock, each processor counts for itself, so that nothing is known of it. */
INLINE bool is_back(struct Qdisc *qdisc, u32 number)
{
	struct returned *known = map_lookup(&returned, &number);
	u32 requeues = qdisc->qstats.requeues, most = qdisc->gso_skb.qlen + 1;

	if (!known)
		return 0;
	if (known->qdisc != (u64)qdisc) {
		known->qdisc = (u64)qdisc;
		known->requeues = requeues;
		known->again = 0;
	}
	known->again += requeues - known->requeues;
	known->requeues = requeues;
	if (known->again > most)
		known->again = most;
	if (!known->again)
		return 0;
	known->again--;
	return 1;
}

INLINE void left(struct Qdisc *qdisc, struct sk_buff *skb, struct config *asked, struct counters *count, bool framed, u64 now)
{
	const u32 *block = (const u32 *)skb->cb;
	u32 bytes = block[BLOCK_BYTES];
	u32 zero = 0, number = skb->queue_mapping % QUEUES, head = skb->len - skb->data_len;
	u64 waited, enqueued;
	u64 digest = block[BLOCK_DIGEST] | (u64)block[BLOCK_DIGEST + 1] << 32;
	bool is_ours = has_waited(block, asked, now, &waited);
	struct scratch *place = map_lookup(&scratch, &zero);
	bool congested, contributing, is_known, is_told;
	u32 segments = segments_of(skb);
	u8 header[2];

	if (!place || is_back(qdisc, number)) {
		count->requeued++;
		return;
	}
	count->seen++;
	is_known = is_ours && (block[BLOCK_LAST] & 0xffff) == check_of_digest(digest);
	enqueued = now - waited;
	if (!is_ours) {
		count->unstamped++;
		enqueued = now;
	}
	if (is_ours && !(block[BLOCK_LAST] & MARKED) && !probe_read_kernel(header, 2, skb->head + skb->network_header) &&
	    is_marked(skb->protocol, header))
		count->marked += segments;
	congested = now - enqueued > asked->tau;
	count->packets += segments;
	count->bytes += bytes;
	count->congested += congested ? segments : 0;
	count->delay += (now - enqueued) * segments;
	count->delays[bits_of((now - enqueued) >> DELAY) % DELAYS] += segments;
	sum_up(number, now, now - enqueued, bytes, segments, congested, qdisc);
	/* A burst goes on until a packet waits less than half of tau. */
	is_told = now - enqueued >= asked->tau / 2 || asked->all;
	/* A packet that nobody waits behind is no part of what any other waited for: nobody will ask whose it was. */
	if (!is_told && is_empty(qdisc)) {
		count->alone++;
		remember(0, 0, 0, 0, 0, framed, now);
		return;
	}
	if (head > HEADERS)
		head = HEADERS;
	if (is_known) {
		place->digest = digest;
	} else {
		__builtin_memset(place->headers, 0, sizeof(place->headers));
		if (probe_read_kernel(place->headers, head, skb->data))
			head = 0;
		if (!identify(framed))
			count->other++;
	}
	measure(number, bytes, enqueued, now, asked->shift);
	contributing = congested && place->found.flow << 16 > place->found.all * asked->alpha;
	count->contributing += contributing ? segments : 0;
	remember(place->digest, place->found.flow, place->found.all, contributing, qdisc->qstats.backlog, framed, now);
	if (!is_told)
		return;
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count->untold++;
		return;
	}
	event->enqueued = enqueued;
	event->dequeued = now;
	event->digest = place->digest;
	event->flow = place->found.flow;
	event->all = place->found.all;
	event->bytes = bytes;
	event->packets = segments;
	event->backlog = qdisc->qstats.backlog;
	event->length = qdisc->q.qlen;
	event->queue = number;
	event->captured = head;
	event->framed = framed;
	event->contributing = contributing;
	if (is_known) {
		__builtin_memset(event->headers, 0, HEADERS);
		if (probe_read_kernel(event->headers, head, skb->data))
			event->captured = 0;
	} else {
		__builtin_memcpy(event->headers, place->headers, HEADERS);
	}
	/* Who reads looks often enough: to wake it for each packet would cost more than all else. */
	ringbuf_submit(event, NO_WAKEUP);
}

/* Whether a device is the one that is watched. */
INLINE bool is_watched(struct net_device *device, struct config *asked)
{
	return device->ifindex == asked->ifindex && device->nd_net.net->ns.inum == asked->netns;
}

SEC("tp_btf/qdisc_dequeue")
int dequeue(u64 *arguments)
{
	struct Qdisc *qdisc = (void *)arguments[0];
	struct netdev_queue *transmit = (void *)arguments[1];
	struct sk_buff *skb = (void *)arguments[3];
	struct net_device *device;
	struct counters *count;
	struct config *asked;
	u32 zero = 0;
	u64 now;
	bool framed;

	/* Every other time, nothing is left in the queue. */
	if (!skb)
		return 0;
	device = transmit->dev;
	asked = map_lookup(&config, &zero);
	count = map_lookup(&counters, &zero);
	if (!asked || !count || !is_watched(device, asked))
		return 0;
	now = ktime();
	framed = device->type == ETHERNET || device->type == LOOPBACK;
	for (int packet = 0; packet < BULK && skb; packet++) {
		left(qdisc, skb, asked, count, framed, now);
		skb = skb->next;
	}
	if (skb)
		count->bulk++;
	return 0;
}

/* The place of a reason, or none. */
INLINE u32 place_of(u32 reason)
{
	if (reason == REASON(QDISC_DROP))
		return ANY;
	if (HAS_REASON(QDISC_OVERLIMIT) && reason == REASON(QDISC_OVERLIMIT))
		return OVERLIMIT;
	if (HAS_REASON(QDISC_CONGESTED) && reason == REASON(QDISC_CONGESTED))
		return CONGESTED;
	if (HAS_REASON(CAKE_FLOOD) && reason == REASON(CAKE_FLOOD))
		return CAKE_FLOOD;
	if (HAS_REASON(FQ_BAND_LIMIT) && reason == REASON(FQ_BAND_LIMIT))
		return BAND_LIMIT;
	if (HAS_REASON(FQ_HORIZON_LIMIT) && reason == REASON(FQ_HORIZON_LIMIT))
		return HORIZON_LIMIT;
	if (HAS_REASON(FQ_FLOW_LIMIT) && reason == REASON(FQ_FLOW_LIMIT))
		return FLOW_LIMIT;
	if (HAS_REASON(DUALPI2_STEP_DROP) && reason == REASON(DUALPI2_STEP_DROP))
		return STEP_DROP;
	if (HAS_REASON(TC_EGRESS) && reason == REASON(TC_EGRESS))
		return CLASSIFIER;
	return REASONS;
}

SEC("tp_btf/kfree_skb")
int dropped(u64 *arguments)
{
	struct sk_buff *skb = (void *)arguments[0];
	u32 zero = 0, place = place_of(arguments[2]);
	struct config *asked;
	struct counters *count;
	struct slice *slice;
	u64 waited, now;
	u32 segments;

	if (place == REASONS || !skb->dev)
		return 0;
	asked = map_lookup(&config, &zero);
	count = map_lookup(&counters, &zero);
	if (!asked || !count || !is_watched(skb->dev, asked))
		return 0;
	now = ktime();
	/* What classifiers drop may not have come to the queue. */
	if (place == CLASSIFIER && !has_waited((const u32 *)skb->cb, asked, now, &waited))
		return 0;
	segments = segments_of(skb);
	count->drops[place % REASONS] += segments;
	slice = slice_of(skb->queue_mapping % QUEUES, now);
	if (slice)
		slice->drops += segments;
	return 0;
}
