#!/usr/bin/env python3
"""Questions about a recorded folder: queuescope beside DuckDB and polars, on the same Parquet files.

    cargo run --release -p multilog -- folder /tmp/folder 100000000
    target/python/bin/python bench/folder.py /tmp/folder [RUNS] [QUEUESCOPE]

The programs take turns. DuckDB and polars are measured within this process, without their start; queuescope is started for each question.
The numbers of their answers are compared. The table has medians in seconds, and the ratio of queuescope to the faster of the two others, and the highest
memory of queuescope.
"""

import csv
import io
import os
import statistics
import subprocess
import sys
import time

import duckdb
import polars

FOLDER, RUNS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
QUEUESCOPE = sys.argv[3] if len(sys.argv) > 3 else "target/release/queuescope"
FILES = f"{FOLDER}/archive/**/*.parquet"
COUNT = polars.len()
SOME = "10.0.17.5"

# Name; arguments of queuescope; SQL; polars.
QUESTIONS = [
    ("count", ["--select", "count"], "select count(*) from t", lambda t: t.select(COUNT)),
    (
        "sum and maximum",
        ["--select", "sum(length),max(length)"],
        "select sum(length)::ubigint, max(length) from t",
        lambda t: t.select(polars.col("length").cast(polars.UInt64).sum(), polars.col("length").max().alias("m")),
    ),
    (
        "filter, one column",
        ["length > 1000B", "--select", "count"],
        "select count(*) from t where length > 1000",
        lambda t: t.filter(polars.col("length") > 1000).select(COUNT),
    ),
    (
        "filter, three columns",
        ["dst_port == 443 and length > 1000B and tcp_flags & SYN", "--select", "count,sum(length)"],
        "select count(*), sum(length)::ubigint from t where dst_port = 443 and length > 1000 and tcp_flags & 2 = 2",
        lambda t: t.filter(
            (polars.col("dst_port") == 443) & (polars.col("length") > 1000) & (polars.col("tcp_flags") & 2 == 2)
        ).select(COUNT, polars.col("length").cast(polars.UInt64).sum()),
    ),
    (
        "filter by an address",
        [f"src_ip == {SOME}", "--select", "count"],
        f"select count(*) from t where src_ip = '{SOME}'",
        lambda t: t.filter(polars.col("src_ip") == SOME).select(COUNT),
    ),
    (
        "group by one",
        ["--group", "dst_ip", "--select", "count"],
        "select dst_ip, count(*) from t group by dst_ip",
        lambda t: t.group_by("dst_ip").agg(COUNT),
    ),
    (
        "group by two",
        ["--group", "src_ip,dst_ip", "--select", "count,sum(length)"],
        "select src_ip, dst_ip, count(*), sum(length)::ubigint from t group by all",
        lambda t: t.group_by("src_ip", "dst_ip").agg(COUNT, polars.col("length").cast(polars.UInt64).sum()),
    ),
    (
        "top ten",
        ["--group", "src_ip", "--select", "sum(length)", "--top", "10"],
        "select src_ip, sum(length)::ubigint as s from t group by src_ip order by s desc, src_ip limit 10",
        lambda t: t.group_by("src_ip")
        .agg(polars.col("length").cast(polars.UInt64).sum().alias("s"))
        .top_k(10, by="s"),
    ),
    (
        "time buckets",
        ["--group", "ts/100ms", "--select", "count,sum(length)"],
        "select (epoch_ns(ts) - {first}) // 100000000 as b, count(*), sum(length)::ubigint from t group by b",
        lambda t: t.group_by(((polars.col("ts").cast(polars.Int64) - FIRST) // 100_000_000).alias("b")).agg(
            COUNT, polars.col("length").cast(polars.UInt64).sum()
        ),
    ),
    (
        "flows",
        ["--group", "src_ip,dst_ip,protocol,src_port,dst_port", "--select", "count", "--top", "10"],
        "select src_ip, dst_ip, protocol, src_port, dst_port, count(*) as c from t group by all order by c desc limit 10",
        lambda t: t.group_by("src_ip", "dst_ip", "protocol", "src_port", "dst_port").agg(COUNT.alias("c")).top_k(10, by="c"),
    ),
]

connection = duckdb.connect()
connection.execute(f"create view t as select * from read_parquet('{FILES}', hive_partitioning = false)")
FIRST = connection.execute("select min(epoch_ns(ts)) from t").fetchone()[0]


def of_queuescope(arguments):
    command = [QUEUESCOPE, "query", FOLDER, *arguments, "--csv"]
    before = time.perf_counter()
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    seconds = time.perf_counter() - before
    rows = [row for row in csv.reader(io.StringIO(out))][1:]
    return seconds, rows


def memory(arguments):
    """The highest memory of a run in KiB. A process of this one would count the memory that it begins with, which is this one's."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-c", code, QUEUESCOPE, "query", FOLDER, *arguments, "--csv"]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def of_duckdb(sql):
    before = time.perf_counter()
    rows = connection.execute(sql.replace("{first}", str(FIRST))).fetchall()
    return time.perf_counter() - before, rows


def of_polars(build):
    before = time.perf_counter()
    frame = build(polars.scan_parquet(FILES, hive_partitioning=False)).collect(engine="streaming")
    return time.perf_counter() - before, frame.rows()


def figures(rows, count):
    """The numbers behind the keys of each row, sorted: keys have other texts in each program."""
    return sorted([int(value or 0) for value in row[len(row) - count :]] for row in rows)


def functions(arguments):
    """The number of functions that a question selects."""
    return arguments[arguments.index("--select") + 1].count(",") + 1


def main():
    records = connection.execute("select count(*) from t").fetchone()[0]
    print(f"{records:,} records, medians of {RUNS} runs in turn, seconds; {os.cpu_count()} processors")
    print(f"{'':24} {'queuescope':>10} {'DuckDB':>10} {'polars':>10} {'ratio':>7}")
    only = os.environ.get("ONLY")
    highest = 0
    for name, arguments, sql, build in QUESTIONS:
        if only and only not in name:
            continue
        seconds, answers = {}, {}
        for _ in range(RUNS + 1):
            for program, run, question in (
                ("queuescope", of_queuescope, arguments),
                ("duckdb", of_duckdb, sql),
                ("polars", of_polars, build),
            ):
                taken, rows = run(question)
                seconds.setdefault(program, []).append(taken)
                answers[program] = figures(rows, functions(arguments))
        for program in ("duckdb", "polars"):
            if answers[program] != answers["queuescope"]:
                print(f"{name}: {program} has another answer", file=sys.stderr)
        highest = max(highest, memory(arguments))
        # The first run of each is not counted.
        medians = {program: statistics.median(taken[1:]) for program, taken in seconds.items()}
        ratio = medians["queuescope"] / min(medians["duckdb"], medians["polars"])
        columns = [medians["queuescope"], medians["duckdb"], medians["polars"]]
        print(f"{name:24} " + " ".join(f"{median:>10.3f}" for median in columns) + f" {ratio:>7.2f}", flush=True)
    print(f"highest memory of queuescope: {highest // 1024} MiB")


main()
