#!/usr/bin/env python3
"""A link in user space beside the kernel's TBF, with tail drop: goodput, delay and loss of the same TCP flows, as root.

    bench/tbf.py [RUNS] [SECONDS] [RATE...]

For each rate, eight CUBIC flows through a queue of 50 ms, in turn through a TBF on a router and through `queuescope link`.
Goodput and delay are those that the flows' own TCP sees (the mean of its round-trip times, all of which is the queue's), so that
nothing is measured on the way that takes time; loss is what either counts. Needs iperf3, ethtool.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from road import QUEUESCOPE, Road, run

FLOWS, QUEUE, OMITTED = 8, 0.050, 2
# What a packet has before its IP header where a TBF counts it.
ETHERNET = 14
# The queue of a TBF counts frames, that of a link IP packets.
IP = 1500 / (1500 + ETHERNET)
# Student's t for two-sided 95 %, by the number of runs.
T = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


def iperf(to, seconds):
    return ["-c", to, "-C", "cubic", "-P", FLOWS, "-t", seconds, "-O", OMITTED, "-J"]


def seen(output, lost):
    end = json.loads(output)["end"]
    rtts = [stream["sender"]["mean_rtt"] / 1e3 for stream in end["streams"]]
    return {"goodput": end["sum_received"]["bits_per_second"], "rtt": statistics.mean(rtts), "loss": lost}


def by_tbf(rate, seconds):
    # A bucket that lasts longer than this machine stalls: what a TBF does not send meanwhile it can send later only from there.
    burst = max(1600, rate / 8 * 0.005)
    words = ("rate", f"{rate:.0f}bit", "burst", f"{burst:.0f}", "limit", f"{rate / 8 * QUEUE:.0f}")
    with Road(*words, whole=False) as road:
        server = road.start("sink", "-s", "-1", program="iperf3")
        time.sleep(0.3)
        sender = road.start("source", *iperf("10.9.0.2", seconds), program="iperf3")
        out, error = sender.communicate(timeout=seconds + 60)
        server.wait(timeout=10)
        count = json.loads(run("tc", "-n", "road-router", "-s", "-j", "qdisc", "show", "dev", "near0", "root"))[0]
    lost = count["drops"] / (count["drops"] + count["packets"])
    return seen(out, lost)


def by_link(rate, seconds):
    name = "road-link"
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "set", "lo", "up")
        inside = ["ip", "netns", "exec", name]
        server = subprocess.Popen([*inside, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
        time.sleep(0.3)
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "iperf"
            words = ["link", "--rate", f"{rate:.0f}bit", "--limit", f"{rate / 8 * QUEUE * IP:.0f}B", "--one-way", "--json", "--meter", "none",
                     "--set", f"link.overhead={ETHERNET}B", "--", "iperf3", *iperf("100.64.0.1", seconds), "--logfile", log]
            output = run(*inside, QUEUESCOPE, *words)
            out = log.read_text()
        server.wait(timeout=10)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)
    lines = [json.loads(line) for line in output.splitlines()]
    link = next(line for line in lines if line["kind"] == "sim")
    timing = link["real_time"]
    if timing["is_limited_by_machine"]:
        print(f"    the machine was the bottleneck: {timing}", file=sys.stderr)
    bottleneck = next(it for it in link["links"] if it["name"] == "bottleneck")
    return {"late": timing["error_p99_ns"] / 1e3, **seen(out, bottleneck["drop_rate"])}


def shown(values):
    mean = statistics.mean(values)
    half = T[len(values)] * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return mean, half


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    rates = [float(rate) for rate in sys.argv[3:]] or [10e6, 100e6, 500e6]
    print(f"{FLOWS} CUBIC flows, a queue of {QUEUE * 1e3:g} ms, {seconds} s, means of {runs} runs with 95 % intervals\n")
    print("  Mb/s                        TBF                  link   difference")
    for rate in rates:
        results = [(by_tbf(rate, seconds), by_link(rate, seconds)) for _ in range(runs)]
        for key, name, scale, unit in [("goodput", "goodput", 1e6, "Mb/s"), ("rtt", "mean rtt", 1, "ms"), ("loss", "loss", 0.01, "%")]:
            (one, one_half), (two, two_half) = (shown([pair[n][key] / scale for pair in results]) for n in (0, 1))
            apart = "" if abs(one - two) <= one_half + two_half else "  intervals do not overlap"
            print(f"{rate / 1e6:6.0f}  {name:14} {one:9.3f} ± {one_half:6.3f} {two:9.3f} ± {two_half:6.3f} {unit:5} "
                  f"{100 * (two / one - 1):+6.1f} %{apart}", flush=True)
        print(f"        late, 99 %: {statistics.median(pair[1]['late'] for pair in results):.0f} us\n", flush=True)


main()
