#!/usr/bin/env python3
"""P4air on a Linux router beside a FIFO and a class for each hash, with the kernel's TCP, as root.

    bench/p4air.py [SECONDS] [RATE_MBPS...]

A source, a router and a sink in network namespaces, and a delay of 20 ms on the way of ACKs from the router to the source (`queuescope link --between`, which is in user
space and could not carry the data at 500 Mb/s). One to eight flows of each of
four congestion controls, one for each group of P4air, share the router's link. Its queues have the same rate and the same limit in total each time:
one FIFO; a class of HTB for each hash of a flow; and `queuescope live --p4air`. The first half of the time is not counted.
"""

import json
import re
import signal
import subprocess
import sys
import time
import zlib

from road import QUEUESCOPE, Road, run

CONTROLS = ["cubic", "illinois", "bbr", "vegas"]
COUNTS = [1, 2, 4, 8]
QUEUES = 32
DELAY = "20ms"
# The limit of a queue, below which a super-packet would not fit.
LEAST = 66_000
PROGRAMS = ["p4air", "acks", "left_queue"]


class Far(Road):
    """The row with a delay from the router back to the source. Super-packets are off, as on a router that forwards between two wires."""

    def __init__(self):
        super().__init__("rate", "10gbit", "burst", "1mb", "limit", "1mb", whole=False)

    def __enter__(self):
        super().__enter__()
        self.names.append("road-delay")
        run("ip", "netns", "add", self.names[-1])
        source, router, _, delay = self.names
        run("tc", "-n", router, "qdisc", "del", "dev", "near0", "root")
        run("ip", "-n", source, "link", "add", "s1", "type", "veth", "peer", "name", "d0", "netns", delay)
        run("ip", "-n", router, "link", "add", "r1", "type", "veth", "peer", "name", "d1", "netns", delay)
        run("ip", "-n", source, "addr", "add", "10.8.1.1/24", "dev", "s1")
        run("ip", "-n", router, "addr", "add", "10.8.1.2/24", "dev", "r1")
        for name, device in [(source, "s0"), (source, "s1"), (delay, "d0"), (delay, "d1"), (router, "r0"), (router, "r1")]:
            run("ip", "-n", name, "link", "set", device, "up")
            for what in ["tso", "gso", "gro", "rx", "tx"]:
                run("ip", "netns", "exec", name, "ethtool", "-K", device, what, "off")
        for name, device in [(self.names[1], "near0"), (self.names[2], "far0")]:
            for what in ["rx", "tx"]:
                run("ip", "netns", "exec", name, "ethtool", "-K", device, what, "off")
        run("ip", "-n", router, "route", "add", "10.8.0.1/32", "via", "10.8.1.1")
        # ACKs come by another interface than data leaves.
        for name in ("all", "s1"):
            run("ip", "netns", "exec", source, "sysctl", "-q", f"net.ipv4.conf.{name}.rp_filter=0")
        self.link = self.start("delay", "link", "--between", "d0", "d1", "--delay", DELAY, "--rate", "10gbit", "--limit",
                               "20000packets")
        return self

    def __exit__(self, *rest):
        self.link.kill()
        super().__exit__(*rest)


def shape(rate, classes, limit):
    """HTB with this many equal classes on the router's link; all packets go to the first one."""
    def tc(*words):
        run("tc", "-n", "road-router", *words[:2], "dev", "near0", *words[2:])
    tc("qdisc", "add", "root", "handle", "1:", "htb", "default", "10")
    tc("class", "add", "parent", "1:", "classid", "1:1", "htb", "rate", f"{rate}bit", "ceil", f"{rate}bit")
    for number in range(classes):
        minor = f"1:{0x10 + number:x}"
        tc("class", "add", "parent", "1:1", "classid", minor, "htb", "rate", f"{rate // classes}bit", "ceil", f"{rate}bit",
           "quantum", "1514")
        tc("qdisc", "add", "parent", minor, "bfifo", "limit", limit)


def sockets():
    """Of each flow, by its port: its control, the bytes that were acknowledged, its smoothed round-trip time, and its retransmissions."""
    shown = run("ip", "netns", "exec", "road-source", "ss", "-Htin", "dst", "10.9.0.2")
    found = {}
    for head, rest in re.findall(r"(ESTAB.*?)\n(.*?)(?:\n|$)", shown):
        port = int(re.search(r"10\.8\.0\.1:(\d+)", head).group(1))
        number = lambda pattern: float((re.search(pattern, rest) or [0, 0])[1])
        found[port] = (rest.split()[0].split("_")[0], number(r"bytes_acked:(\d+)"), number(r"\brtt:([\d.]+)"))
    return found


def costs():
    """The time of each program so far, and its runs."""
    found = json.loads(run("bpftool", "-j", "prog", "show"))
    return {one["name"]: (one.get("run_time_ns", 0), one.get("run_cnt", 0)) for one in found if one.get("name") in PROGRAMS}


def measure(seconds, rate, count, way):
    limit = max(LEAST, int(rate / 8 * 0.1 / QUEUES))
    flows = count * len(CONTROLS)
    live = None
    with Far() as road:
        if way == "fifo":
            shape(rate, 1, limit * QUEUES)
        elif way == "hash":
            shape(rate, QUEUES, limit)
        else:
            live = road.start("router", "live", "near0", "--json", "--p4air", "--rate", f"{rate}bps", "--queues", QUEUES,
                              "--buffer", f"{limit * QUEUES}B", "--for-real")
            if not live.stdout.readline():
                sys.exit(live.stderr.read())
        server = road.start("sink", "traffic", "serve", "--listen", "10.9.0.2:7000", "--json")
        time.sleep(0.5)
        sender = road.start("source", "traffic", "send", "10.9.0.2:7000", "--sizes", "100GB", "--periodic", "--every", "20ms",
                            "--count", flows, "--congestion", ",".join(CONTROLS), "--wait",
                            f"{seconds * 2 + 60}s")
        time.sleep(1)
        if way == "hash":
            for port in sockets():
                number = zlib.crc32(f"10.8.0.1 10.9.0.2 {port} 7000 6".encode()) % QUEUES
                run("tc", "-n", "road-router", "filter", "add", "dev", "near0", "parent", "1:", "protocol", "ip", "u32", "match",
                    "u16", f"{port:#x}", "0xffff", "at", "20", "flowid", f"1:{0x10 + number:x}")
        time.sleep(seconds / 2)
        before, cost_before, begun = sockets(), costs(), time.monotonic()
        time.sleep(seconds / 2)
        after, cost_after, ended = sockets(), costs(), time.monotonic()
        result = {}
        if live:
            live.send_signal(signal.SIGINT)
            lines = [json.loads(line) for line in live.communicate(timeout=60)[0].splitlines()]
            result["p4air"] = [line for line in lines if line["kind"] == "p4air"][-1]
        for process in (sender, server):
            process.kill()
            process.communicate()
    rates = [(after[port][1] - before.get(port, (0, 0))[1]) * 8 / (ended - begun) / 1e6 for port in after]
    result["jain"] = sum(rates) ** 2 / len(rates) / sum(rate * rate for rate in rates)
    result["sum"] = sum(rates)
    result["rtt"] = sum(one[2] for one in after.values()) / len(after)
    result["missing"] = flows - len(after)
    by = {}
    for port, (control, _, _) in after.items():
        by.setdefault(control, []).append((after[port][1] - before.get(port, (0, 0))[1]) * 8 / (ended - begun) / 1e6)
    result["by"] = {control: sum(some) / len(some) for control, some in sorted(by.items())}
    result["cost"] = {}
    for name in cost_after:
        time_of, runs = (cost_after[name][part] - cost_before.get(name, (0, 0))[part] for part in (0, 1))
        if runs > 0:
            result["cost"][name] = time_of / runs
    return result


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rates = [int(float(rate) * 1e6) for rate in sys.argv[2:]] or [100_000_000, 500_000_000]
    subprocess.run(["sysctl", "-q", "kernel.bpf_stats_enabled=1"], check=True)
    print(f"{', '.join(CONTROLS)}; {DELAY[:-2]} ms; {QUEUES} queues; {seconds} s; rates in Mb/s, round-trip times in ms\n")
    print("  rate  flows each  way    Jain   sum   RTT  mean rate by control; groups; ns a run")
    try:
        for rate in rates:
            for count in COUNTS:
                for way in ("fifo", "hash", "p4air"):
                    result = measure(seconds, rate, count, way)
                    by = " ".join(f"{control} {mean:.1f}" for control, mean in result["by"].items())
                    groups = result.get("p4air", {}).get("groups", {})
                    groups = " ".join(f"{name} {group['flows']}" for name, group in groups.items() if "moves" in group)
                    cost = " ".join(f"{name} {time_of:.0f}" for name, time_of in result["cost"].items())
                    missing = f"; {result['missing']} flows missing" if result["missing"] else ""
                    print(f"{rate / 1e6:6g} {count:11} {way:6} {result['jain']:5.3f} {result['sum']:5.0f} {result['rtt']:5.1f}  {by}; "
                          f"{groups}; {cost}{missing}", flush=True)
    finally:
        subprocess.run(["sysctl", "-q", "kernel.bpf_stats_enabled=0"], check=False)


main()
