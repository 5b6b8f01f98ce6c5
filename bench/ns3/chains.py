#!/usr/bin/env python3
"""The cells of writes, buffers and chains of routers: runs ns-3 on each and keeps what it does in chains.csv, which
crates/sim/tests/chains.rs holds the simulator to, packet by packet. Standard library only.

    chains.py [--cells 1-5,9]    run ns-3 on these cells (all if not given) and write their rows of chains.csv
    chains.py --check            fail if chains.csv does not hold these cells; runs nothing

A cell names a congestion control for all flows. A flow is FROM-TO or FROM-TO+MS: the routers between which it goes, and how
many milliseconds farther away its sender is than others. Flow i starts at i * 10 ms and a little more, see `start_ns`.
"""

import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys

import grid
import scenario

FILE = pathlib.Path(__file__).with_name("chains.csv")
INPUTS = ["cell", "about", "cc", "aqm", "hops", "rate_mbps", "rtt_ms", "limit", "both_ways", "writes", "send_buffer",
          "receive_buffer", "flows", "end_ms"]
# What ns-3 did, of each queue between routers with a semicolon between: there, then back, hop by hop.
RESULTS = ["departed", "dropped", "delay_mean_ms", "hash", "drop_hash"]

LARGE = 24_000_000      # bytes; never in the way
DUMBBELL = {"aqm": "taildrop", "hops": 1, "rate_mbps": 45, "rtt_ms": 40, "limit": 60, "both_ways": 0, "writes": 512,
            "send_buffer": LARGE, "receive_buffer": LARGE, "end_ms": 5000}
BOUND = {"send_buffer": 131_072, "receive_buffer": 131_072}
THREE = "0-1 0-1 0-1"
LOT = {"hops": 3, "rtt_ms": 30, "flows": "0-3 0-1 1-2 2-3"}
SEGMENT = 1448


def cells():
    """All cells, each a dictionary of the keys of `INPUTS`."""
    short = {"rtt_ms": 23, "limit": 90, "end_ms": 1000, "flows": "0-1"}
    mixed = {"flows": "0-1 0-1+5 0-1+15 0-1+35", "rtt_ms": 10, "limit": 80}
    twoway = {"flows": "0-1 1-0 0-1 1-0", "both_ways": 1, "rate_mbps": 20, "limit": 70}
    rows = [("bbr", f"writes of {writes} bytes", {**short, "writes": writes})
            for writes in (512, SEGMENT - 1, SEGMENT, 64 * SEGMENT)]
    rows += [("newreno", f"both buffers bind, writes of {writes} bytes",
              {**BOUND, "flows": THREE, "writes": writes, "end_ms": 10_000}) for writes in (512, SEGMENT, 64 * SEGMENT)]
    rows += [(cc, "the send buffer binds", {"send_buffer": 131_072, "flows": THREE})
             for cc in ("newreno", "cubic", "vegas", "bbr")]
    rows += [(cc, "the receive buffer binds", {"receive_buffer": 65_536, "flows": THREE, "limit": 200})
             for cc in ("newreno", "cubic", "bbr")]
    rows += [
        ("newreno", "odd writes and an odd buffer", {"writes": 1000, "send_buffer": 99_999, "flows": THREE}),
        ("cubic", "writes of more than a segment", {"writes": 2000, "send_buffer": 150_001, "flows": THREE}),
        ("bbr", "a small send buffer", {"send_buffer": 40_000, "flows": "0-1", "end_ms": 3000}),
    ]
    rows += [(cc, "mixed round-trip times", mixed) for cc in ("newreno", "cubic", "bbr")]
    rows += [
        ("newreno", "mixed round-trip times, buffers bind", {**mixed, **BOUND, "writes": SEGMENT}),
        ("cubic", "mixed round-trip times, CoDel", {**mixed, "aqm": "codel", "limit": 200}),
        ("newreno", "two-way traffic", twoway),
        ("bbr", "two-way traffic", {**twoway, "end_ms": 3000}),
        ("cubic", "two-way traffic, the send buffers bind", {**twoway, "send_buffer": 80_000}),
        ("newreno", "two-way traffic, FQ-CoDel", {**twoway, "aqm": "fqcodel", "limit": 200}),
        ("newreno", "parking lot", {**LOT, "rate_mbps": 20}),
        ("cubic", "parking lot, CoDel", {**LOT, "rate_mbps": 20, "aqm": "codel", "limit": 200}),
        ("bbr", "parking lot", {**LOT, "rate_mbps": 20, "end_ms": 3000}),
        ("newreno", "parking lot, two-way, the send buffers bind",
         {**LOT, "rate_mbps": 20, "both_ways": 1, "send_buffer": 65_000, "flows": "0-3 3-0 0-1 2-1 2-3"}),
    ]
    return [{"cell": str(number), "cc": cc, "about": about,
             **{key: str(value) for key, value in {**DUMBBELL, **parts}.items()}}
            for number, (cc, about, parts) in enumerate(rows, 1)]


def command(cell):
    """The arguments of the ns-3 program for a cell. The links between routers have half of the round-trip time, those of hosts the rest."""
    rtt, hops = int(cell["rtt_ms"]) * 1_000_000, int(cell["hops"])
    flows = []
    for number, flow in enumerate(cell["flows"].split()):
        ends, _, farther = flow.partition("+")
        start = scenario.start_ns(1, number)
        flows.append(f"{cell['cc']},{ends.replace('-', ',')},{int(farther or 0) * 1_000_000},{start}")
    rate = int(cell["rate_mbps"]) * 1_000_000
    return [str(grid.WORK / "chain"), f"--hops={hops}", f"--rate={rate}", f"--delay={rtt // 4 // hops}",
            f"--access-rate={10 * rate}", f"--access-delay={rtt // 8}", f"--limit={cell['limit']}", f"--aqm={cell['aqm']}",
            f"--both-ways={cell['both_ways']}", f"--writes={cell['writes']}", f"--send-buffer={cell['send_buffer']}",
            f"--receive-buffer={cell['receive_buffer']}", f"--end={int(cell['end_ms']) * 1_000_000}",
            f"--flows={';'.join(flows)}"]


def ns3(cell):
    run = subprocess.run(command(cell), capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"chains.py: cell {cell['cell']}: status {run.returncode}: {run.stderr.strip()[-500:]}")
    output = json.loads(run.stdout)
    return {key: ";".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in output[key])
            for key in RESULTS}


def read():
    with FILE.open(newline="") as file:
        return {row["cell"]: row for row in csv.DictReader(file)}


def text(rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, INPUTS + RESULTS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=grid.numbers, help="such as 1-5,9; all if not given")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    known = read() if FILE.exists() else {}
    if options.check:
        stale = [cell["cell"] for cell in cells() if any(known.get(cell["cell"], {}).get(key) != cell[key] for key in INPUTS)]
        if stale or len(known) != len(cells()):
            sys.exit(f"chains.py: {FILE} does not hold what cells() says (cells {', '.join(stale) or 'too many'})")
        return
    grid.prepare("ns3")
    for cell in cells():
        if options.cells is None or int(cell["cell"]) in options.cells:
            known[cell["cell"]] = {**cell, **ns3(cell)}
            print(cell["cell"], cell["cc"], cell["about"], *(known[cell["cell"]][key] for key in RESULTS[:3]), flush=True)
    FILE.write_text(text(known[key] for key in sorted(known, key=int)))


if __name__ == "__main__":
    main()
