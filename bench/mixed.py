#!/usr/bin/env python3
"""Writes a capture of mixed traffic with many short flows, for measurements of `queuescope analyze`.

    bench/mixed.py FILE PACKETS SEED

Flows begin at random, about 65 in a thousand packets; their sizes have a heavy tail, so half of them have one to three packets and a few have
thousands. Nine in ten are TCP or UDP over IPv4, the others over IPv6, and a few packets are ARP, ICMP, or have a VLAN tag. Packets are
cut to 96 bytes. On average they come at some 65 Mb/s, in bursts. The same seed gives the same file.
"""

import heapq
import random
import struct
import sys

FLOWS_PER_PACKET = 0.066
RATE = 100e6
SNAPLEN = 96
SIZES = [64, 64, 64, 90, 130, 300, 576, 1200, 1400, 1514, 1514, 1514]
MEAN = sum(SIZES) / len(SIZES)
GAP = MEAN * 8 / RATE


class Flow:
    """The headers of a flow, and how many packets it still sends."""

    def __init__(self, draw):
        self.left = min(int(draw.paretovariate(0.93) * 1.2), 12_000)
        self.spacing = draw.choice([1e-4, 1e-3, 1e-3, 1e-2, 3e-2])
        self.large = draw.random() < 0.6
        kind = draw.random()
        macs = b"\2\0\0\0\0\1\2\0\0\0\0\2"
        ports = struct.pack(">HH", draw.choice([443, 443, 80, 53, 22, draw.randrange(1024, 65536)]), draw.randrange(1024, 65536))
        self.protocol = 6 if draw.random() < 0.8 else 17
        if kind < 0.004:
            self.start, self.version = macs + b"\x08\x06" + bytes(46), 0
            return
        if kind < 0.01:
            self.protocol, ports = 1, bytes(4)
        tag = b"\x81\0\0" + bytes([draw.randrange(1, 5)]) if draw.random() < 0.02 else b""
        rest = ports + (bytes(8) + b"\x50\x10\xff\xff" + bytes(4) if self.protocol == 6 else bytes(4))
        if draw.random() < 0.9:
            self.version = 4
            addresses = struct.pack(">II", 0x0A000000 | draw.getrandbits(18), 0xC0A80000 | int(draw.paretovariate(0.6)) % 60000)
            self.start = macs + tag + b"\x08\0"
            self.end = struct.pack(">BB", 64, self.protocol) + bytes(2) + addresses + rest
        else:
            self.version = 6
            addresses = b"\x20\1\r\xb8" + bytes(4) + draw.randbytes(8) + b"\x20\1\r\xb8\1" + bytes(9) + draw.randbytes(2)
            self.start = macs + tag + b"\x86\xdd"
            self.end = bytes([self.protocol, 64]) + addresses + rest

    def frame(self, size):
        """A frame of this length, and its first bytes."""
        if self.version == 0:
            return self.start
        inside = size - len(self.start)
        if self.version == 4:
            return self.start + struct.pack(">BBHHH", 0x45, 0, inside, inside * 7 & 0xFFFF, 0x4000) + self.end
        return self.start + struct.pack(">BBHH", 0x60, 0, 0, inside - 40) + self.end

    def size(self, wanted):
        """The length of a frame that is at least this long, and has room for its headers."""
        return max(wanted, len(self.start) + {0: 0, 4: 46, 6: 62}[self.version])


def main():
    path, packets, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(seed)
    padding = bytes(SNAPLEN)
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAPLEN, 1))
        now, turn, written, active = 0.0, 0, 0, []
        begin = draw.expovariate(FLOWS_PER_PACKET / GAP)
        while written < packets:
            if not active or begin < active[0][0]:
                turn += 1
                heapq.heappush(active, (begin, turn, Flow(draw)))
                begin += draw.expovariate(FLOWS_PER_PACKET / GAP)
                continue
            now, order, flow = heapq.heappop(active)
            for _ in range(min(flow.left, draw.choice([1, 1, 2, 4, 10]), packets - written)):
                size = flow.size(draw.choice(SIZES if flow.large else SIZES[:5]))
                data = (flow.frame(size) + padding)[: min(SNAPLEN, size)]
                micros = int(now * 1e6) + 1_700_000_000_000_000
                out.write(struct.pack("<IIII", micros // 1_000_000, micros % 1_000_000, len(data), size) + data)
                now += size * 8 / 1e9
                flow.left -= 1
                written += 1
            if flow.left > 0:
                heapq.heappush(active, (now + draw.expovariate(1 / flow.spacing), order, flow))
    print(f"{written} packets, {turn} flows, {now:.1f} s")


main()
