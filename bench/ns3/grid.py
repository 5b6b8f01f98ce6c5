#!/usr/bin/env python3
"""Runs ns-3 and queuescope's simulator on the cells of cells.csv, and compares them. Standard library only.

    grid.py run [--only ns3|ours] [--cells 1-5,9] [--seeds 1-10] [--seconds 5-12] [--jobs 2]
    grid.py report [--cells ...] [--seeds ...] [--seconds ...] [--out FILE]
    ... --own-draws: PIE, RED and BBR draw our own random numbers, not those of ns-3's run of the same seed
    grid.py speed [--core 0] [--runs 5]

A result is a JSON file named after a hash of all that it depends on: the parameters, the seed and the program. `run`
does what has no file yet, so it can be stopped at any time and called again; what a changed program makes stale is run
again, and only that. Results are in target/bench/ns3/results (or BENCH_DIR).
"""

import argparse
import concurrent.futures
import csv
import functools
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import cells
import scenario
import stats

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = pathlib.Path(os.environ.get("BENCH_DIR", ROOT / "target" / "bench" / "ns3")).resolve()
DUMBBELL = WORK / "dumbbell"
QUEUESCOPE = pathlib.Path(os.environ.get(
    "QUEUESCOPE", pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "queuescope"))
DUMBBELL_SOURCES = ["dumbbell.cc", "measure.h", "options.h"]
WHOLE = ["cell", "flows", "rate_mbps", "rtt_ms", "udp_flows", "duration_s", "warmup_s"]
PARTS = ["buffer_bdp", "udp_load"]

# Keys that the results of both programs must have.
KEYS = ["goodput_mbps", "offered", "dropped", "marked", "delay_mean_ms", "delay_p95_ms", "packet_hops", "wall_s"]

# The two scenarios that speed is measured on.
SPEED_CELLS = [
    {"cell": 0, "aqm": "pie", "cc": "cubic", "flows": 10, "rate_mbps": 100, "rtt_ms": 40, "buffer_bdp": 1.0,
     "udp_load": 0.0, "udp_flows": 0, "duration_s": 30, "warmup_s": 0},
    {"cell": 0, "aqm": "pie", "cc": "cubic", "flows": 50, "rate_mbps": 1000, "rtt_ms": 10, "buffer_bdp": 1.0,
     "udp_load": 0.0, "udp_flows": 0, "duration_s": 5, "warmup_s": 0},
]


class Failed(Exception):
    """A program did not give a result."""


# --- The two sides. Each is a function from a cell and a seed to a result with at least KEYS. ---


def ns3(cell, seed, prefix=()):
    command = [*prefix, str(DUMBBELL), f"--flows={cell['flows']}", f"--rate={cell['rate_mbps']}",
               f"--rtt={cell['rtt_ms']}", f"--buffer={cell['buffer_bdp']}", f"--aqm={cell['aqm']}",
               f"--duration={cell['duration_s']}", f"--warmup={cell['warmup_s']}", f"--seed={seed}"]
    if cell["cc"] != "none":
        command.append(f"--cc={cell['cc']}")
    if cell["udp_load"]:
        command += [f"--udp={cell['udp_load']}", f"--udp-flows={cell['udp_flows']}"]
    return execute(command)


@functools.cache
def ns3_version():
    digest = hashlib.sha256(b"ns-3 3.37")
    for name in DUMBBELL_SOURCES:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def ours(cell, seed, prefix=()):
    """Runs `queuescope sim` on the cell. scenario.py knows its scenario format; its JSON is read here only."""
    folder = WORK / "scenarios"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"c{cell['cell']:02}-s{seed:02}.toml"
    file.write_text(scenario.scenario(cell, seed))
    before = time.monotonic()
    out = output_of([*prefix, str(QUEUESCOPE), "sim", str(file), "--json", "--meter", "none"])
    wall = time.monotonic() - before
    simulation = next((line for line in map(json.loads, out.splitlines()) if line["kind"] == "sim"), None)
    if simulation is None:
        raise Failed(f"{file}: queuescope printed no line of kind sim")
    link = simulation["links"][0]
    return {
        "goodput_mbps": sum(group["goodput_bps"] for group in simulation["groups"]) / 1e6,
        "offered": link["offered_packets"],
        "dropped": sum(link["drops"].values()),
        "marked": sum(link["marks"].values()),
        "delay_mean_ms": link["sojourn"]["mean_ns"] / 1e6,
        "delay_p95_ms": link["sojourn"]["p95_ns"] / 1e6,
        "drops": link["drops"],
        "marks": link["marks"],
        "retransmissions": sum(group["retransmissions"] for group in simulation["groups"]),
        "timeouts": sum(group["timeouts"] for group in simulation["groups"]),
        "packet_hops": simulation["hops"],
        "wall_s": wall,
    }


@functools.cache
def ours_version():
    return hashlib.sha256(QUEUESCOPE.read_bytes()).hexdigest()


SIDES = {"ns3": (ns3, ns3_version), "ours": (ours, ours_version)}


# --- Running ---

running = set()
stopping = threading.Event()


def execute(command):
    out = output_of(command)
    try:
        return json.loads(out)
    except json.JSONDecodeError as error:
        raise Failed(f"{' '.join(command)}: no JSON: {error}") from error


def output_of(command):
    if stopping.is_set():
        raise Failed("stopped")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running.add(process)
    try:
        out, err = process.communicate()
    finally:
        running.discard(process)
    if process.returncode != 0:
        raise Failed(f"{' '.join(command)}: status {process.returncode}: {err.strip()[-2000:]}")
    return out


def path_of(side, cell, seed):
    """Where the result of this cell, seed and program is."""
    # The number of a cell is a name, not an input: cells may be renumbered.
    # ns-3 has but one generator.
    unused = {"cell", "draws"} if side == "ns3" else {"cell"}
    inputs = {**{key: value for key, value in cell.items() if key not in unused}, "seed": seed,
              "version": SIDES[side][1]()}
    key = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]
    return WORK / "results" / side / f"{key}.json"


def result_of(side, cell, seed):
    """The stored result, or None. A file that was cut short counts as none."""
    try:
        return json.loads(path_of(side, cell, seed).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def store(side, cell, seed):
    result = SIDES[side][0](cell, seed)
    missing = [key for key in KEYS if key not in result]
    if missing:
        raise Failed(f"{side}, cell {cell['cell']}, seed {seed}: the result lacks {', '.join(missing)}")
    path = path_of(side, cell, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".part{os.getpid()}-{threading.get_ident()}")
    part.write_text(json.dumps({"cell": cell, "seed": seed, **result}) + "\n")
    os.replace(part, path)
    return result


def run(options):
    sides = [options.only] if options.only else list(SIDES)
    for side in sides:
        prepare(side)
    wanted = [(side, cell, seed) for seed in options.seeds for side in sides for cell in options.cells]
    todo = [task for task in wanted if result_of(*task) is None]
    print(f"{len(wanted) - len(todo)} of {len(wanted)} runs are there, {len(todo)} to do", file=sys.stderr)
    failed, begun = 0, time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    futures = {pool.submit(store, *task): task for task in todo}
    try:
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            side, cell, seed = futures[future]
            try:
                outcome = f"{future.result()['wall_s']:.1f} s"
            except Failed as error:
                failed += 1
                outcome = f"FAILED: {error}"
            elapsed = time.monotonic() - begun
            print(f"[{done}/{len(todo)}, {elapsed:.0f} s] {side} cell {cell['cell']} seed {seed}: {outcome}",
                  file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        stopping.set()
        for process in list(running):
            process.terminate()
        print("stopped; what is done stays, call again to go on", file=sys.stderr)
        failed += 1
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return 1 if failed else 0


def prepare(side):
    """Builds what the side needs, or says what is missing."""
    if side == "ns3":
        if subprocess.run(["make", "--silent", "-C", str(HERE), f"OUT={WORK}"]).returncode != 0:
            sys.exit("grid.py: cannot build dumbbell; on Debian: apt install g++ libns3-dev")
    elif not QUEUESCOPE.exists():
        sys.exit(f"grid.py: {QUEUESCOPE} is missing: cargo build --release -p queuescope, or set QUEUESCOPE")


# --- Comparing ---


def report(options):
    rows, missing = [], 0
    for cell in options.cells:
        pairs = [(result_of("ns3", cell, seed), result_of("ours", cell, seed)) for seed in options.seeds]
        whole = [pair for pair in pairs if None not in pair]
        missing += len(pairs) - len(whole)
        if whole:
            rows.append((cell, len(whole), stats.Verdict(*zip(*whole))))
    if not rows:
        sys.exit("grid.py: no cell has a result on both sides yet; see `grid.py run`")
    text = "\n".join(table(rows) + [""] + totals(rows, "aqm", "Discipline") + [""]
                     + totals(rows, "cc", "Congestion control") + [""] + summary(rows, missing)) + "\n"
    if options.out:
        pathlib.Path(options.out).write_text(text)
    else:
        sys.stdout.write(text)
    return 0


def table(rows):
    lines = ["| cell | discipline | control | flows | Mb/s | RTT ms | BDP | seeds | goodput ns-3, ours (Mb/s) "
             "| mean delay (ms) | p95 delay (ms) | drops (%) | marks (%) | beyond the bounds |",
             "| --: | --- | --- | --: | --: | --: | --: | --: | --- | --- | --- | --- | --- | --- |"]
    for cell, seeds, verdict in rows:
        flows = f"{cell['flows']} + UDP {cell['udp_load']}" if cell["udp_load"] else str(cell["flows"])
        lines.append("| " + " | ".join([
            str(cell["cell"]), cell["aqm"], cell["cc"], flows, str(cell["rate_mbps"]), str(cell["rtt_ms"]),
            f"{cell['buffer_bdp']:g}", str(seeds), both(verdict.goodput, 2), both(verdict.delay, 2),
            both(verdict.p95, 2), intervals(verdict.drop), intervals(verdict.mark),
            ", ".join(verdict.failures) or "-"]) + " |")
    return lines


def both(values, digits):
    theirs, our = values
    change = f" ({(our / theirs - 1) * 100:+.1f} %)" if theirs else ""
    return f"{theirs:.{digits}f}, {our:.{digits}f}{change}"


def intervals(sides):
    return ", ".join(f"{max(low, 0) * 100:.3g}..{high * 100:.3g}" for low, high in sides)


def totals(rows, key, title):
    lines = [f"| {title} | cells | within | goodput | mean delay | p95 delay | drops | marks |",
             "| --- | --: | --: | --: | --: | --: | --: | --: |"]
    for value in sorted({cell[key] for cell, _, _ in rows}):
        verdicts = [verdict for cell, _, verdict in rows if cell[key] == value]
        beyond = [sum(name in verdict.failures for verdict in verdicts)
                  for name in ("goodput", "mean delay", "p95 delay", "drops", "marks")]
        good = sum(not verdict.failures for verdict in verdicts)
        lines.append(f"| {value} | {len(verdicts)} | {good} | " + " | ".join(map(str, beyond)) + " |")
    return lines


def summary(rows, missing):
    good = sum(not verdict.failures for _, _, verdict in rows)
    lines = [f"{good} of {len(rows)} cells ({100 * good / len(rows):.1f} %) are within the bounds: goodput "
             f"{stats.GOODPUT:.0%}, delays {stats.DELAY:.0%} or {stats.DELAY_MS} ms, drop and mark rates with "
             "overlapping 95 % intervals. The columns after \"within\" count cells beyond a bound."]
    if missing:
        lines.append(f"{missing} runs are missing on one side or both; their seeds are left out.")
    return lines


# --- Speed ---


def speed(options):
    for side in SIDES:
        prepare(side)
    pinned = ["taskset", "-c", str(options.core)]
    for cell in SPEED_CELLS:
        what = f"{cell['flows']} {cell['cc']} flows, {cell['aqm']}, {cell['rate_mbps']} Mb/s"
        rates = {side: [] for side in SIDES}
        for seed in range(1, options.runs + 1):
            for side, (program, _) in SIDES.items():
                result = program(cell, seed, pinned)
                rates[side].append(result["packet_hops"] / result["wall_s"])
                print(f"{what}, {side}, seed {seed}: {result['packet_hops']} hops in {result['wall_s']:.3f} s, "
                      f"{rates[side][-1]:.0f}/s", flush=True)
        theirs, our = (statistics.median(rates[side]) for side in SIDES)
        print(f"{what}, median of {options.runs}: ns-3 {theirs:.0f}/s, ours {our:.0f}/s: {our / theirs:.1f} times\n",
              flush=True)
    return 0


# --- The command line ---


def numbers(text):
    """`1-5,9` as a list of numbers."""
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            found += range(int(first), int(last or first) + 1)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"`{part}` is not a number or a range such as 1-5") from error
    return found


def stretch(text):
    """`5-12`, a warm-up of 5 s in a run of 12 s, as two numbers."""
    first, _, last = text.partition("-")
    try:
        warmup, duration = int(first), int(last)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"`{text}` is not two numbers of seconds such as 5-12") from error
    if not 0 <= warmup < duration:
        raise argparse.ArgumentTypeError(f"`{text}`: a run is longer than its warm-up")
    return {"warmup_s": warmup, "duration_s": duration}


def read_cells(chosen):
    with cells.FILE.open(newline="") as file:
        rows = [{key: int(value) if key in WHOLE else float(value) if key in PARTS else value
                 for key, value in row.items()} for row in csv.DictReader(file)]
    known = {row["cell"] for row in rows}
    unknown = sorted(set(chosen or []) - known)
    if unknown:
        sys.exit(f"grid.py: there is no cell {unknown[0]}; cells are {min(known)} to {max(known)}")
    return [row for row in rows if chosen is None or row["cell"] in chosen]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "report"):
        command = commands.add_parser(name)
        command.add_argument("--cells", type=numbers, help="such as 1-5,9; all if not given")
        command.add_argument("--seeds", type=numbers, default=numbers("1-10"), help="1-10 if not given")
        command.add_argument("--own-draws", action="store_const", const={"draws": "own"}, default={},
                             help="random numbers of our own, not those of ns-3's run of the same seed")
        command.add_argument("--seconds", type=stretch, default={},
                             help="end of the warm-up and of the run, such as 5-12, in place of the cells' own")
    commands.choices["run"].add_argument("--only", choices=list(SIDES))
    commands.choices["run"].add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    commands.choices["report"].add_argument("--out", help="a file instead of standard output")
    command = commands.add_parser("speed")
    command.add_argument("--core", type=int, default=0)
    command.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.command == "speed":
        return speed(options)
    options.cells = [{**cell, **options.seconds, **options.own_draws} for cell in read_cells(options.cells)]
    return {"run": run, "report": report}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
