#!/usr/bin/env python3
"""Figures 10 and 11 of ConQuest on real kernels: small flows beside a large one through a TBF, as root.

    bench/acts.py [SECONDS] [CONTROL...]

For each congestion control: nothing done, every packet marked while the queue is above a threshold whosever it is, and only
packets of flows that fill it (`live --mark`). Three network namespaces in a row; what is sent is the same each time.
"""

import json
import signal
import sys
import tempfile
import time

from road import QUEUESCOPE, Road, run

RATE = 500e6
# The queue's limit is 20 ms, and marking begins at 2 ms of it, as in section 5.2; a flow fills it from a quarter of that on.
LIMIT, TAU = 0.020, 0.002
THRESHOLD = int(RATE / 8 * TAU)
WEIGHT = THRESHOLD // 4
LOAD = 0.2
BURST = "50MB@2s"

WAYS = {
    "nothing": [],
    "blind": ["--mark=queue", "--threshold", f"{THRESHOLD}B", "--for-real"],
    "flows": ["--mark", "--threshold", f"{WEIGHT}B", "--for-real"],
}


def finish(process):
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    if process.returncode not in (0, 1):
        sys.exit(error)
    return [json.loads(line) for line in out.splitlines()]


def measure(seconds, control, way):
    queue = ("rate", f"{RATE:.0f}bit", "burst", "100kb", "limit", f"{RATE / 8 * LIMIT:.0f}")
    with Road(*queue) as road, tempfile.TemporaryDirectory() as folder:
        server = road.start("sink", "traffic", "serve", "--listen", "10.9.0.2:7000", "--json")
        live = road.start("router", "live", "near0", "--json", "--every-packet", "--tau", f"{TAU * 1e3:g}ms",
                          "--alpha", "25%", "--log", f"{folder}/log", *WAYS[way])
        if not live.stdout.readline():
            sys.exit(live.stderr.read())
        time.sleep(0.3)
        sender = road.start("source", "traffic", "send", "10.9.0.2:7000", "--sizes", "web-rack", "--rate",
                            f"{RATE * LOAD:.0f}bps", "--burst", BURST, "--congestion", control, "--ecn",
                            "--for", f"{seconds}s", "--json")
        out, error = sender.communicate(timeout=seconds * 10 + 60)
        if sender.returncode not in (0, 1):
            sys.exit(error)
        flows = [json.loads(line) for line in out.splitlines()]
        summary = finish(live)[-1]
        finish(server)
        delay = run(QUEUESCOPE, "query", f"{folder}/log", "--select", "avg(delay)", "--json", "true")
        mean = next(value for value in json.loads(delay.splitlines()[0])["values"].values())
    small = sorted(flow["completion_ns"] for flow in flows
                   if flow.get("class") == "web-rack" and flow["completion_ns"] is not None)
    large = sorted(flow["completion_ns"] for flow in flows
                   if flow.get("class") == BURST and flow["completion_ns"] is not None)
    late = [flow["late_ns"] for flow in flows if "late_ns" in flow]
    at = lambda values, part: values[min(int(len(values) * part), len(values) - 1)] / 1e6 if values else float("nan")
    return {
        "flows": len(small), "median": at(small, 0.5), "p90": at(small, 0.9), "p99": at(small, 0.99),
        "large": at(large, 0.5), "delay": mean / 1e6, "late": at(sorted(late), 0.99),
        "marked": summary["skipped"].get("marked", 0),
    }


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    controls = sys.argv[2:] or ["cubic", "reno", "bbr"]
    print(f"TBF {RATE / 1e6:g} Mbit/s, limit {LIMIT * 1e3:g} ms; web-rack at {LOAD:.0%}, {BURST}; {seconds} s; times in ms\n")
    print("control  way       flows   median      p90      p99  50 MB flow  mean delay  late p99   marked")
    for control in controls:
        for way in WAYS:
            result = measure(seconds, control, way)
            print(f"{control:8} {way:8} {result['flows']:6} {result['median']:8.2f} {result['p90']:8.2f} {result['p99']:8.2f} "
                  f"{result['large']:11.0f} {result['delay']:11.2f} {result['late']:9.2f} {result['marked']:8}", flush=True)


main()
