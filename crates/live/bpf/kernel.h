/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The parts of the kernel that the programs use: the few fields that they read, which are found in the running kernel by name (CO-RE),
 * and helpers by their numbers. So building needs no kernel headers. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed long long s64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define CORE __attribute__((preserve_access_index))
#define INLINE static inline __attribute__((always_inline))
/* The verifier checks such a function once, not at each call. */
#define GLOBAL __attribute__((noinline))
/* How the type of a map declares its map type, entries and values. */
#define NUMBER(name, value) int (*name)[value]
#define TYPE(name, type) typeof(type) *name

/* BPF_F_MMAPABLE: user space can map the values. They begin with a page, so that those of 64 bytes are each in one line of the cache. */
enum { MAPPABLE = 1 << 10 };

enum { MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_LRU_HASH = 9 };

struct ns_common {
	u32 inum;
} CORE;

struct net {
	struct ns_common ns;
} CORE;

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	u32 ifindex;
	u16 type;
	struct netdev_queue *_tx;
	possible_net_t nd_net;
} CORE;

struct netdev_queue {
	struct net_device *dev;
} CORE;

struct qdisc_skb_head {
	u32 qlen;
} CORE;

struct gnet_stats_queue {
	u32 backlog, requeues;
} CORE;

/* TCQ_F_ONETXQUEUE, TCQ_F_CPUSTATS, TCQ_F_NOLOCK. */
enum { OF_ONE_TRANSMIT_QUEUE = 0x10, COUNTED_APART = 0x20, WITHOUT_LOCK = 0x100 };

struct sk_buff_head {
	u32 qlen;
} CORE;

struct Qdisc {
	u32 flags;
	u32 handle;
	struct sk_buff_head gso_skb;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
	struct netdev_queue *dev_queue;
} CORE;

struct sk_buff {
	struct sk_buff *next;
	struct net_device *dev;
	char cb[48];
	u32 len, data_len;
	u16 queue_mapping;
	u16 vlan_tci;
	u16 protocol, network_header;
	u32 end;
	u8 *head, *data;
} CORE;

struct skb_shared_info {
	u16 gso_size, gso_segs;
} CORE;

/* Reasons of drops by a qdisc. Kernels differ in their numbers, and in which reasons exist. */
enum skb_drop_reason {
	SKB_DROP_REASON_QDISC_DROP = 1,
	SKB_DROP_REASON_QDISC_OVERLIMIT,
	SKB_DROP_REASON_QDISC_CONGESTED,
	SKB_DROP_REASON_CAKE_FLOOD,
	SKB_DROP_REASON_FQ_BAND_LIMIT,
	SKB_DROP_REASON_FQ_HORIZON_LIMIT,
	SKB_DROP_REASON_FQ_FLOW_LIMIT,
	SKB_DROP_REASON_DUALPI2_STEP_DROP,
	SKB_DROP_REASON_TC_EGRESS,
};

#define HAS_REASON(name) __builtin_preserve_enum_value(*(typeof(enum skb_drop_reason) *)SKB_DROP_REASON_##name, 0)
#define REASON(name) __builtin_preserve_enum_value(*(typeof(enum skb_drop_reason) *)SKB_DROP_REASON_##name, 1)

/* The verdict of a classifier: go on with the packet, or drop it. */
enum { NEXT = -1, SHOT = 2 };

/* A packet, as a classifier sees it. */
struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority;
	u32 ingress_ifindex, ifindex, tc_index, cb[5];
	u32 hash, tc_classid, data, data_end, napi_id, family, addresses[10], ports[2], data_meta;
	u64 flow_keys, tstamp;
	/* Bytes on the wire, and the number of packets on the wire; 0 if it is one. */
	u32 wire_len, gso_segs;
};

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*ktime)(void) = (void *)5;
static u32 (*random)(void) = (void *)7;
static long (*skb_store_bytes)(struct __sk_buff *skb, u32 at, const void *from, u32 bytes, u64 flags) = (void *)9;
static long (*l3_csum_replace)(struct __sk_buff *skb, u32 at, u64 from, u64 to, u64 bytes) = (void *)10;
static long (*skb_load_bytes)(const struct __sk_buff *skb, u32 at, void *to, u32 bytes) = (void *)26;
/* BPF_HDR_START_NET. */
enum { FROM_IP = 1 };
static long (*skb_load_bytes_relative)(const struct __sk_buff *skb, u32 at, void *to, u32 bytes, u32 from) = (void *)68;
static long (*probe_read_kernel)(void *to, u32 bytes, const void *from) = (void *)113;
