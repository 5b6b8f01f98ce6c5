"""Reads a folder that `queuescope record` wrote with other programs.

Run it beside the folder `traffic`:

    readers.py needs            prints the missing packages, in one line
    readers.py rows FILE        compares with the same records in CSV from `queuescope query`
    readers.py page FILE        runs the examples of a page, and compares their output with the page
    readers.py examples FILE    the same beside the folder `store`, for a page of which DuckDB alone is needed
    readers.py uploads FOLDER   compares the uploads in `store` with groups in CSV from `queuescope query`, of each host

With `QUEUESCOPE_SPARK=1`, Spark is one of these programs. It needs Java.
"""

import csv
import datetime
import glob
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter

FILES = "traffic/archive/*/*.parquet"
NEEDED = ["duckdb", "pyarrow", "polars"]
DAY = 86_400_000_000_000


def main(arguments):
    match arguments:
        case ["needs"]:
            print(*(name for name in NEEDED if not there(name)))
        case ["rows", path]:
            rows(path)
        case ["page", path]:
            page(path)
        case ["examples", path]:
            page(path, ["duckdb"])
        case ["uploads", folder]:
            uploads(folder)
        case _:
            sys.exit(__doc__)


def rows(path):
    """Compares the answers of each program with those from the CSV, and its rows with the CSV."""
    from pyarrow import csv as pyarrow_csv

    names = open(path).readline().strip().split(",")
    options = pyarrow_csv.ConvertOptions(column_types={name: "string" for name in names})
    model = pyarrow_csv.read_csv(path, convert_options=options)
    expected = from_csv(model)
    tools = {"duckdb": of_duckdb, "pyarrow": of_pyarrow, "polars": of_polars}
    if wanted("pyspark"):
        tools["spark"] = of_spark
    else:
        print(f"skipped: rows by Spark: {without('pyspark')}")
    for tool, of in tools.items():
        answers, table = of()
        for name, answer in answers.items():
            same(f"{tool}: {name}", answer, expected[name])
        if table is None:
            print(f"{tool}: the answers are the same")
            continue
        same(f"{tool}: columns", set(table.column_names), {*names, "position", "date"})
        for name in names:
            values = texts(table[name])
            wrong = next((at for at, pair in enumerate(zip(values, model[name].to_pylist())) if pair[0] != pair[1]), None)
            if wrong is not None:
                same(f"{tool}: {name} at position {wrong}", values[wrong], model[name][wrong].as_py())
        print(f"{tool}: {len(table):,} rows of {len(names)} columns are the same")


def from_csv(model):
    """The answers from records as text, in the order of their positions."""
    times = [int(text) for text in model["ts"].to_pylist()]
    lengths = [int(text) for text in model["length"].to_pylist()]
    groups = Counter()
    for address, length in zip(model["dst_ip"].to_pylist(), lengths):
        groups[address] += length
    return {
        "rows": len(times),
        "bytes": sum(lengths),
        "groups": dict(groups),
        "times": (min(times), max(times)),
        "dates": dict(Counter(datetime.date(1970, 1, 1) + datetime.timedelta(days=time // DAY) for time in times)),
        "positions": list(range(len(times))),
    }


def of_duckdb():
    import duckdb

    duckdb.sql(f"create view packets as from '{FILES}'")
    ask = lambda text: duckdb.sql(text).fetchall()
    same("duckdb: type of ts", ask("select distinct typeof(ts) from packets")[0][0].startswith("TIMESTAMP"), True)
    count, total, first, last = ask(
        "select count(*), sum(length), epoch_ns(min(ts)), epoch_ns(max(ts)) from packets"
    )[0]
    table = duckdb.sql("from packets order by position").to_arrow_table()
    return {
        "rows": count,
        "bytes": total,
        "groups": dict(ask("select dst_ip, sum(length) from packets group by dst_ip")),
        "times": (first, last),
        "dates": dict(ask("select date, count(*) from packets group by date")),
        "positions": table["position"].to_pylist(),
    }, table


def of_pyarrow():
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    days = ds.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
    table = ds.dataset(sorted(glob.glob(FILES)), partitioning=days).to_table().sort_by("position")
    same("pyarrow: type of ts", table.schema.field("ts").type, pa.timestamp("ns", "UTC"))
    sums = lambda key, what: table.group_by(key).aggregate([what]).to_pydict()
    times, groups, dates = pc.min_max(table["ts"]), sums("dst_ip", ("length", "sum")), sums("date", ("ts", "count"))
    return {
        "rows": table.num_rows,
        "bytes": pc.sum(table["length"]).as_py(),
        "groups": dict(zip(groups["dst_ip"], groups["length_sum"])),
        "times": (times["min"].value, times["max"].value),
        "dates": dict(zip(dates["date"], dates["ts_count"])),
        "positions": table["position"].to_pylist(),
    }, table


def of_polars():
    import polars as pl

    packets = pl.scan_parquet(FILES, hive_partitioning=True)
    same("polars: type of ts", packets.collect_schema()["ts"], pl.Datetime("ns", "UTC"))
    time = pl.col("ts")
    totals = packets.select(
        pl.len().alias("rows"),
        pl.col("length").cast(pl.UInt64).sum(),
        time.min().dt.timestamp("ns").alias("first"),
        time.max().dt.timestamp("ns").alias("last"),
    ).collect()
    count, total, first, last = totals.row(0)
    groups = packets.group_by(pl.col("dst_ip").cast(pl.String)).agg(pl.col("length").cast(pl.UInt64).sum())
    table = packets.sort("position").collect().to_arrow()
    return {
        "rows": count,
        "bytes": total,
        "groups": dict(groups.collect().rows()),
        "times": (first, last),
        "dates": dict(packets.group_by("date").len().collect().rows()),
        "positions": table["position"].to_pylist(),
    }, table


def of_spark():
    from pyspark.sql import SparkSession, functions as f

    builder = SparkSession.builder.master("local").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.legacy.parquet.nanosAsLong", "true").getOrCreate()
    packets = spark.read.option("pathGlobFilter", "*.parquet").parquet("traffic/archive")
    count, total, first, last = packets.agg(f.count("*"), f.sum("length"), f.min("ts"), f.max("ts")).first()
    answers = {
        "rows": count,
        "bytes": total,
        "groups": {row[0]: row[1] for row in packets.groupBy("dst_ip").sum("length").collect()},
        "times": (first, last),
        "dates": {row[0]: row[1] for row in packets.groupBy("date").count().collect()},
        "positions": [int(row[0]) for row in packets.select("position").orderBy("position").collect()],
    }
    spark.stop()
    return answers, None


def texts(column):
    """A column in the format of the CSV: times in nanoseconds, booleans as numbers."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns")).cast(pa.int64())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return column.cast(pa.string()).to_pylist()


def uploads(folder):
    """Compares the packets and bytes to each address that each program finds in the uploads with those of the hosts' folders."""
    expected = {}
    for path in glob.glob(f"{folder}/*.csv"):
        host = os.path.basename(path).removesuffix(".csv")
        for address, count, length in list(csv.reader(open(path)))[1:]:
            expected[host, address] = (int(count), int(length))
    same("hosts", {host for host, _ in expected}, {"web-1", "web-2"})
    ask = "select host, dst_ip, count(*), sum(length) from {} group by host, dst_ip"
    tools = {"duckdb": lambda: uploads_by_duckdb(ask)}
    if there("chdb"):
        tools["chdb"] = lambda: uploads_by_chdb(ask)
    else:
        print(f"skipped: uploads by ClickHouse: {without('chdb')}")
    for tool, of in tools.items():
        found = {(host, address): (int(count), int(length)) for host, address, count, length in of()}
        same(f"{tool}: groups", found, expected)
        print(f"{tool}: {len(found):,} groups of uploads are the same")


def uploads_by_duckdb(ask):
    import duckdb

    return duckdb.sql(ask.format("read_parquet('store/packet/*/*/*/*.parquet', hive_partitioning = true)")).fetchall()


def uploads_by_chdb(ask):
    import chdb

    rows = chdb.query(ask.format("file('store/packet/**/*.parquet', 'Parquet')") + " settings use_hive_partitioning = 1", "CSV")
    return list(csv.reader(str(rows).splitlines()))


def page(path, needed=NEEDED):
    """Runs each block of Python as a separate example. The block of text after it is its output."""
    blocks = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", open(path).read(), re.DOTALL)
    ran = Counter()
    for code, expected in blocks:
        tools = re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)
        lacks = [tool for tool in tools if not wanted(tool)]
        if lacks:
            print(f"skipped: example of {path.rpartition('/')[2]}: {without(lacks[0])}")
            continue
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(f"an example fails:\n{code}\n{result.stderr}")
        same(f"an example prints something else\n{code}", result.stdout, expected)
        ran.update(tools)
    for tool in needed:
        same(f"examples of {tool}", ran[tool] > 0, True)
    print(f"{sum(ran.values())} imports of examples ran")


def there(package):
    return importlib.util.find_spec(package) is not None


def wanted(package):
    return there(package) and (package != "pyspark" or os.environ.get("QUEUESCOPE_SPARK") == "1")


def without(package):
    return "QUEUESCOPE_SPARK is not 1" if there(package) else f"Python has no {package}"


def same(what, found, expected):
    if found != expected:
        sys.exit(f"{what}:\nfound    {str(found)[:2000]}\nexpected {str(expected)[:2000]}")


main(sys.argv[1:])
