/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The flow of a packet: the digest of its five-tuple, as FlowKey::digest of queuescope-wire computes it. */
#pragma once
#include "kernel.h"

/* Bytes of a packet that are parsed and reported. */
#define HEADERS 128

/* Codepoints of ECN (RFC 3168): not ECN-capable, and congestion experienced. */
enum { NOT_ECT, CE = 3 };

/* The words of a FlowKey, and the offset of the outermost IP header, if there is one. */
struct words {
	u64 of[6];
	u32 ip;
};

/* The folded product of two words: the high half of the 128 bits, XORed with the low half. */
INLINE u64 fold(u64 a, u64 b)
{
	u64 low = (u32)a, high = a >> 32, other = (u32)b, above = b >> 32;
	u64 first = low * other, second = high * other, third = low * above, fourth = high * above;
	u64 middle = (first >> 32) + (u32)second + (u32)third;
	return (middle << 32 | (u32)first) ^ (fourth + (second >> 32) + (third >> 32) + (middle >> 32));
}

INLINE u64 digest(const struct words *words)
{
	const u64 *of = words->of;
	u64 a = fold(of[0] ^ 0x243f6a8885a308d3, of[1] ^ 0x13198a2e03707344);
	u64 b = fold(of[2] ^ 0xa4093822299f31d0, of[3] ^ 0x082efa98ec4e6c89);
	u64 c = fold(of[4] ^ 0x452821e638d01377, of[5] ^ 0xbe5466cf34e90c6c);
	return fold(a ^ (b << 21 | b >> 43) ^ 0xc0ac29b7c97c50dd, c ^ b ^ 0x3f84d5b5b5470917);
}

/* Numbers in packets are big-endian. */
INLINE u16 be16(const u8 *at)
{
	return at[0] << 8 | at[1];
}

INLINE u64 be64(const u8 *at)
{
	u64 value;
	__builtin_memcpy(&value, at, 8);
	return __builtin_bswap64(value);
}

enum { ETHERNET = 1, LOOPBACK = 772 };
enum { IPV4 = 0x0800, IPV6 = 0x86dd, VLAN = 0x8100, SERVICE_VLAN = 0x88a8 };
enum { FAMILY_LINK, FAMILY_V4, FAMILY_V6 };

/* The largest numbers of nested VLAN tags and of IPv6 extension headers that are followed. */
#define MOST_TAGS 2
#define MOST_EXTENSIONS 6

/* The byte at an offset, which is masked to the copied range; bytes after the end of the packet are zero. */
#define AT(place) (headers + ((place) & (HEADERS - 1)))

INLINE bool has_ports(u8 protocol)
{
	/* TCP, UDP, DCCP, SCTP, UDP-Lite. */
	return protocol == 6 || protocol == 17 || protocol == 33 || protocol == 132 || protocol == 136;
}

/* Writes the words of the flow of a packet whose IP header begins at `at`, if it is like most: IPv4 without options and not a fragment, or IPv6
 * without extension headers, with ports. Returns whether it is. The packet is read in place, up to `end`. */
INLINE bool plain_flow_of(const u8 *at, const u8 *end, struct words *words)
{
	__builtin_memset(words, 0, sizeof(*words));
	if (at + 24 > end)
		return 0;
	if (at[0] == 0x45) {
		if (be16(at + 6) & 0x1fff || !has_ports(at[9]))
			return 0;
		words->of[0] = __builtin_bswap32(*(const u32 *)(at + 12));
		words->of[2] = __builtin_bswap32(*(const u32 *)(at + 16));
		words->of[4] = be16(at + 20) | (u64)be16(at + 22) << 16;
		words->of[5] = at[9] | FAMILY_V4 << 16;
		return 1;
	}
	if (at[0] >> 4 != 6 || at + 44 > end || !has_ports(at[6]))
		return 0;
	words->of[1] = be64(at + 8);
	words->of[0] = be64(at + 16);
	words->of[3] = be64(at + 24);
	words->of[2] = be64(at + 32);
	words->of[4] = be16(at + 40) | (u64)be16(at + 42) << 16;
	words->of[5] = at[6] | FAMILY_V6 << 16;
	return 1;
}

/* Writes the words of a packet's flow, and returns whether it is IP. `headers` holds the first bytes of the packet, with zeros after them;
 * it has HEADERS + 16 bytes. */
INLINE bool flow_of(const u8 *headers, bool framed, struct words *words)
{
	u32 at = 0, end;
	u16 kind = 0;
	u8 protocol;

	__builtin_memset(words, 0, sizeof(*words));
	if (framed) {
		kind = be16(headers + 12);
		at = 14;
		for (int tag = 0; tag < MOST_TAGS && (kind == VLAN || kind == SERVICE_VLAN); tag++) {
			kind = be16(AT(at + 2));
			at += 4;
		}
	} else {
		kind = headers[0] >> 4 == 4 ? IPV4 : headers[0] >> 4 == 6 ? IPV6 : 0;
	}
	words->ip = at;
	if (kind == IPV4 && *AT(at) >> 4 == 4) {
		u32 source = *(const u32 *)AT(at + 12), destination = *(const u32 *)AT(at + 16);
		words->of[0] = __builtin_bswap32(source);
		words->of[2] = __builtin_bswap32(destination);
		protocol = *AT(at + 9);
		words->of[5] = protocol | FAMILY_V4 << 16;
		if (be16(AT(at + 6)) & 0x1fff)
			return 1;
		end = at + (*AT(at) & 15) * 4;
	} else if (kind == IPV6 && *AT(at) >> 4 == 6) {
		words->of[1] = be64(AT(at + 8));
		words->of[0] = be64(AT(at + 16));
		words->of[3] = be64(AT(at + 24));
		words->of[2] = be64(AT(at + 32));
		protocol = *AT(at + 6);
		end = at + 40;
		for (int extension = 0; extension < MOST_EXTENSIONS; extension++) {
			if (protocol == 44) {
				bool later = be16(AT(end + 2)) & 0xfff8;
				protocol = *AT(end);
				end += 8;
				if (later) {
					words->of[5] = protocol | FAMILY_V6 << 16;
					return 1;
				}
			} else if (protocol == 0 || protocol == 43 || protocol == 60) {
				protocol = *AT(end);
				end += (*AT(end + 1) + 1) * 8;
			} else if (protocol == 51) {
				protocol = *AT(end);
				end += (*AT(end + 1) + 2) * 4;
			} else {
				break;
			}
		}
		words->of[5] = protocol | FAMILY_V6 << 16;
	} else {
		if (framed) {
			words->of[2] = be64(headers) >> 16;
			words->of[0] = be64(headers + 6) >> 16;
		}
		words->of[4] = (u64)kind << 48;
		return 0;
	}
	if (has_ports(protocol) && end + 4 <= HEADERS)
		words->of[4] = be16(AT(end)) | (u64)be16(AT(end + 2)) << 16;
	return 1;
}
