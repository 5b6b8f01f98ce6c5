/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The probe: stamps packets before a qdisc, and measures them as they leave it. */
#include "act.h"
#include "sketch.h"
#include "stamp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Packets of one bulk dequeue that are examined. */
#define BULK 16
/* The sketch of each queue; a packet leaves a queue under the lock of the qdisc. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, QUEUES);
	TYPE(key, u32);
	TYPE(value, struct sketch);
} sketches SEC(".maps");

/* The report of a packet that left. */
struct event {
	/* Nanoseconds of CLOCK_MONOTONIC. */
	u64 enqueued, dequeued;
	u64 digest;
	/* Bytes of its flow, and of all flows, that left while it waited. */
	u64 flow, all;
	/* Bytes on the wire, and the number of packets on the wire. */
	u32 bytes, packets;
	/* The backlog that it left behind, in bytes and in packets. */
	u32 backlog, length;
	u16 queue;
	/* Whether it has a stamp of this probe: without one it is unknown when it came, and `enqueued` is `dequeued`. */
	u8 stamped, unused;
	/* Bytes of headers, and whether they begin with those of Ethernet. */
	u16 captured;
	u8 framed, contributing;
	u8 headers[HEADERS];
};

struct {
	NUMBER(type, MAP_RINGBUF);
	NUMBER(max_entries, 8 << 20);
} events SEC(".maps");

/* The packet that is being handled. */
struct scratch {
	/* With some bytes more, so that numbers can be read at any offset. */
	u8 headers[HEADERS + 16];
	u64 digest;
	/* The offset of the IP header, if there is one. */
	u64 ip;
	/* Its addresses and ports, for the list of flows that are never acted on. */
	struct known known;
	struct estimates found;
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct scratch);
} scratch SEC(".maps");

/* Before the qdisc: stamps and counts every packet. */
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

/* Finds the flow of the packet whose headers are in `scratch`; returns whether it is IP. */
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
	know(&words, &place->known);
	return is_ip;
}

/* Whether the flow of the packet that was identified last is never acted on. */
GLOBAL int is_exempt(void)
{
	u32 zero = 0;
	struct scratch *place = map_lookup(&scratch, &zero);

	return place && is_never(&place->known);
}

/* Like `stamp`, where flows are acted on. A packet that is dropped here did not reach the queue, and is not stamped. */
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

	if (!asked || !count || !here || !place || !asked->action || now >= asked->until || here->framed == UNKNOWN)
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
		/* With a stamp from elsewhere it would count as dropped by the queue. */
		skb->cb[4] = ~skb->cb[4];
		return SHOT;
	}
	stamp_with(skb, now);
	/* The digest saves parsing the headers again. Qdiscs that use these words keep at least the time. */
	if (is_ip) {
		skb->cb[0] = digest;
		skb->cb[1] = digest >> 32;
		skb->cb[4] |= check_of_digest(digest);
	}
	return NEXT;
}

/* Estimates what left a queue while a packet waited that leaves it now. */
GLOBAL int measure(u32 number, u32 bytes, u64 enqueued, u64 now, u32 shift)
{
	u32 zero = 0;
	struct scratch *place = map_lookup(&scratch, &zero);
	struct sketch *sketch = map_lookup(&sketches, &number);

	if (place && sketch)
		place->found = observe(sketch, place->digest, bytes, enqueued, now, shift & 31);
	return 0;
}

/* Whether a queue is empty. Some qdiscs count on each processor separately, so that this count says nothing. */
INLINE bool is_empty(struct Qdisc *qdisc)
{
	return !qdisc->q.qlen && !(qdisc->flags & (COUNTED_APART | WITHOUT_LOCK));
}

/* Packets of each queue that the device gave back (requeued). */
struct returned {
	/* The qdisc, its count of requeues when last read, and the number of requeued packets that have not left again. */
	u64 qdisc;
	u32 requeues, again;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, QUEUES);
	TYPE(key, u32);
	TYPE(value, struct returned);
} returned SEC(".maps");

/* Whether a packet had left before and was requeued; such packets leave first. Where the kernel skipped runs of this program, the packets
 * that are still requeued bound the number: the others left unseen. Qdiscs without a lock count on each processor, so that their requeues are
 * unknown. */
INLINE bool is_back(struct Qdisc *qdisc, u32 number, struct counters *count)
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
	if (known->again > most) {
		count->requeued_unseen += known->again - most;
		known->again = most;
	}
	if (!known->again)
		return 0;
	known->again--;
	return 1;
}

/* The index of the queue that a packet left. A qdisc may serve all transmit queues of a device: then its packets share one queue. */
INLINE u32 queue_of(struct Qdisc *qdisc, struct sk_buff *skb)
{
	return qdisc->flags & OF_ONE_TRANSMIT_QUEUE ? skb->queue_mapping % QUEUES : 0;
}

INLINE void left(struct Qdisc *qdisc, struct sk_buff *skb, struct config *asked, struct counters *count, bool framed, u64 now)
{
	const u32 *block = (const u32 *)skb->cb;
	u32 bytes = block[BLOCK_BYTES];
	u32 zero = 0, number = queue_of(qdisc, skb), head = skb->len - skb->data_len;
	u64 waited, enqueued;
	u64 digest = block[BLOCK_DIGEST] | (u64)block[BLOCK_DIGEST + 1] << 32;
	bool is_ours = has_waited(block, asked, now, &waited);
	struct scratch *place = map_lookup(&scratch, &zero);
	bool congested, contributing, is_known, is_told;
	u32 segments = segments_of(skb);
	u8 header[2];

	if (!place || is_back(qdisc, number, count)) {
		count->requeued++;
		return;
	}
	count->seen++;
	is_known = is_ours && (block[BLOCK_LAST] & 0xffff) == check_of_digest(digest);
	enqueued = now - waited;
	if (!is_ours) {
		count->unstamped += segments;
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
	/* A burst lasts until a packet waits less than half of tau. */
	is_told = now - enqueued >= asked->tau / 2 || asked->all;
	/* A packet with no other behind it is no part of any other's sojourn time, so its flow is not needed. */
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
	event->stamped = is_ours;
	event->unused = 0;
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
	/* The reader polls often enough: a wakeup for each packet would cost more than all else. */
	ringbuf_submit(event, NO_WAKEUP);
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

	/* The qdisc is empty: half of all calls are like this. */
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

SEC("tp_btf/kfree_skb")
int dropped(u64 *arguments)
{
	struct sk_buff *skb = (void *)arguments[0];
	u32 zero = 0, place = place_of(arguments[2]);
	struct config *asked;
	struct counters *count;
	u64 waited;

	if (place == REASONS || !skb->dev)
		return 0;
	asked = map_lookup(&config, &zero);
	count = map_lookup(&counters, &zero);
	if (!asked || !count || !is_watched(skb->dev, asked))
		return 0;
	/* Classifiers also drop packets that have not reached the queue. */
	if (place == CLASSIFIER && !has_waited((const u32 *)skb->cb, asked, ktime(), &waited))
		return 0;
	/* tbf cuts a super-packet that is longer than its burst, and drops the packets one by one; other super-packets it drops whole. */
	count->drops[place % REASONS] += segments_of(skb);
	count->tc_drops++;
	return 0;
}
