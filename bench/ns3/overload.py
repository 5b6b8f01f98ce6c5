#!/usr/bin/env python3
"""PIE's probability under ten times the load that the link carries, then half of it, in ns-3 and in queuescope's simulator:
figure 5 of Kunze et al. (IM 2021), with the scaling of RFC 8033. Standard library only.

    overload.py [--seed 1] [--load 10] [--until 5] [--duration 14]

The load is in shares of the link's 10 Gb/s. ns-3 takes ten minutes for the figure's.
"""

import argparse
import json
import subprocess
import sys

import grid

LINK_GBPS = 10
REST = 0.5
STEP_NS = 1_000_000
OVERLOAD = grid.WORK / "overload"


def ns3(load, until, duration, seed):
    """The output of overload.cc."""
    return grid.execute([str(OVERLOAD), f"--rate={LINK_GBPS}", f"--load={load}", f"--rest={REST}", f"--until={until}",
                         f"--duration={duration}", f"--seed={seed}"])


def scenario(load, until, duration, seed):
    """The same for queuescope: figure 5 of `queuescope experiment pie-tofino`, but for its access links, of which ns-3's program has none."""
    def udp(name, rate, time):
        return ["[[flows]]", f'name = "{name}"', f'udp = {{ rate = "{rate}mbps", spacing = "jittered" }}', "ecn = true",
                time, ""]

    link = LINK_GBPS * 1000
    lines = [f"seed = {seed}", f'duration = "{round(duration * 1e9)}ns"', "",
             "[access]", 'rate = "1tbps"', 'delay = "0s"', "",
             "[link]", f'rate = "{link}mbps"', 'delay = "1us"', 'limit = "500us"',
             "[link.discipline.pie]", 'target = "125us"', 'update = "117187ns"', 'first-update = "0s"',
             "alpha = 0.1171875", "beta = 157.44140625", "derandomise = false", 'burst = "ns3"',
             "short-queue = { packets = { count = 2 } }", "mark-below = 2.0", "",
             "[record]", f'interval = "{STEP_NS}ns"', ""]
    lines += udp("overload", round(load * link), f'stop = "{round(until * 1e9)}ns"')
    lines += udp("rest", round(REST * link), f'start = "{round(until * 1e9)}ns"')
    return "\n".join(lines)


def ours(load, until, duration, seed):
    """The same of queuescope, from its samples."""
    grid.WORK.mkdir(parents=True, exist_ok=True)
    file = grid.WORK / "overload.toml"
    file.write_text(scenario(load, until, duration, seed))
    out = grid.output_of([str(grid.QUEUESCOPE), "sim", str(file), "--json", "--meter", "none"])
    simulation = next(line for line in map(json.loads, out.splitlines()) if line["kind"] == "sim")
    return {"drops": simulation["links"][0]["drops"], **times(simulation["samples"], round(until * 1e9))}


def times(samples, until_ns):
    """When the probability is 1, and how long after the overload it is 0 again; None if it is not."""
    found = {"rise_s": None, "fall_s": None}
    for sample in samples:
        at, probability = sample["at_ns"], sample["links"][0]["drop_probability"]
        if found["rise_s"] is None and probability >= 1:
            found["rise_s"] = at / 1e9
        if found["rise_s"] is not None and at >= until_ns and probability <= 0:
            found["fall_s"] = (at - until_ns) / 1e9
            break
    return found


def table(of_ns3, of_ours):
    lines = ["| | ns-3 3.37 | ours | difference |", "| --- | --: | --: | --: |"]
    for key, name in (("rise_s", "rise to 1 (s)"), ("fall_s", "fall to 0 (s)")):
        theirs, own = of_ns3[key], of_ours[key]
        if theirs is None or theirs < 0 or own is None:
            lines.append(f"| {name} | {theirs} | {own} | |")
        else:
            lines.append(f"| {name} | {theirs:.3f} | {own:.3f} | {100 * (own / theirs - 1):+.1f} % |")
    drops = [", ".join(f"{name} {count}" for name, count in side["drops"].items()) for side in (of_ns3, of_ours)]
    return "\n".join([*lines, f"| packets dropped | {drops[0]} | {drops[1]} | |"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", type=float, default=10)
    parser.add_argument("--until", type=float, default=5)
    parser.add_argument("--duration", type=float, default=14)
    args = parser.parse_args()
    if subprocess.run(["make", "--silent", "-C", str(grid.HERE), f"OUT={grid.WORK}"]).returncode != 0:
        sys.exit("cannot build the ns-3 program")
    asked = (args.load, args.until, args.duration, args.seed)
    print(table(ns3(*asked), ours(*asked)))


if __name__ == "__main__":
    main()
