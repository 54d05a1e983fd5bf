#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pandas and polars read the text of bench_import into the same columns: time as microseconds, watts, use, memory, GPU
by turn. usage: import_pandas.py FILE. Skips what is not installed; single-threaded where it can be chosen."""
import os, sys, time

os.environ.setdefault("POLARS_MAX_THREADS", "1")
path = sys.argv[1]
size = os.path.getsize(path)


def timed(name, read):
    best = None
    for _ in range(3):
        start = time.monotonic(), time.process_time()
        rows = read()
        took = time.process_time() - start[1], time.monotonic() - start[0]
        best = took if best is None else min(best, took)
    cpu, wall = best
    print(f"{name:42s} {size / wall / 1e6:5.0f} MB/s wall, {size / cpu / 1e6:5.0f} MB/s cpu, {rows / cpu / 1e6:6.2f} M rows/s cpu",
          flush=True)


try:
    import pandas as pd

    def with_pandas():
        df = pd.read_csv(path, skipinitialspace=True)
        df.columns = [c.split(" [")[0] for c in df.columns]
        df["timestamp"] = pd.to_datetime(df["timestamp"], format="%Y/%m/%d %H:%M:%S.%f")
        for column, unit in (("power.draw", " W"), ("utilization.gpu", " %"), ("memory.used", " MiB")):
            df[column] = df[column].str.removesuffix(unit).astype("float32")
        df["gpu"] = df.index % 8
        return len(df)

    timed(f"pandas {pd.__version__}", with_pandas)
except ImportError:
    print("pandas: not installed")
try:
    import polars as pl

    def with_polars():
        df = pl.read_csv(path)
        df.columns = [c.strip().split(" [")[0] for c in df.columns]
        df = df.with_columns(
            pl.col("timestamp").str.to_datetime("%Y/%m/%d %H:%M:%S%.3f"),
            *[pl.col(c).str.strip_chars(" ").str.strip_suffix(u).cast(pl.Float32)
              for c, u in (("power.draw", " W"), ("utilization.gpu", " %"), ("memory.used", " MiB"))])
        return df.height

    timed(f"polars {pl.__version__}", with_polars)
except ImportError:
    print("polars: not installed")
