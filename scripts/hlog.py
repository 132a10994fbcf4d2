#!/usr/bin/env python3
"""Reads the latency.hlog of a recording with HdrHistogram's own tools, and compares what they say with its summary.json.

    hlog.py HDRHISTOGRAM.jar RECORDING [FILE]     FILE gets what they say, for tests/gate/earlier.rs

Python's library gives each percentile. Java's HistogramLogProcessor prints a distribution: a percentile of the summary must
lie between those printed around it.
"""

import json
import subprocess
import sys
from pathlib import Path

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}
# Half a bucket of three-digit precision to either side.
RESOLUTION = 2e-3


def around(histogram, percentile):
    """Its values one sample below the percentile and one above: tools round its rank differently."""
    step = 100 / histogram.get_total_count()
    return [histogram.get_value_at_percentile(min(max(percentile + by, 0), 100)) for by in (-step, step)]


def by_python(log):
    """Each tag's samples."""
    reader = HistogramLogReader(str(log), HdrHistogram(1, 60_000_000_000, 3))
    sums = {}
    while (interval := reader.get_next_interval_histogram()) is not None:
        tag = interval.get_tag()
        sums.setdefault(tag, HdrHistogram(1, 60_000_000_000, 3)).add(interval)
    return {
        tag: {
            "count": histogram.get_total_count(),
            "max": histogram.get_max_value(),
            "mean": histogram.get_mean_value(),
            **{name: around(histogram, at) for name, at in PERCENTILES.items()},
        }
        for tag, histogram in sums.items()
    }


def by_java(jar, log, tag):
    """The distribution as pairs of quantile and value, and the number of samples."""
    command = ["java", "-cp", str(jar), "org.HdrHistogram.HistogramLogProcessor", "-i", str(log), "-tag", tag]
    command += ["-outputValueUnitRatio", "1", "-percentilesOutputTicksPerHalf", "100"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows, count = [], None
    for line in text.splitlines():
        words = line.split()
        if line.startswith("#[Max"):
            count = int(words[-1].rstrip("]"))
        elif len(words) >= 3 and not line.startswith("#") and "Percentile" not in line:
            rows.append((float(words[1]), float(words[0])))
    return rows, count


def latencies(summary):
    """The summary's latencies by the log's tags."""
    for name, figures in summary["classes"].items():
        for key, suffix in [("service_ns", ""), ("response_ns", ".response"), ("write_ns", ".write"), ("flush_ns", ".flush")]:
            if figures.get(key):
                yield name + suffix, figures[key]


def main():
    jar, recording = Path(sys.argv[1]), Path(sys.argv[2])
    log = recording / "latency.hlog"
    wrong, python = [], by_python(log)
    compared = 0
    for tag, latency in latencies(json.loads((recording / "summary.json").read_text())):
        theirs, (rows, count) = python.get(tag), by_java(jar, log, tag)
        if theirs is None:
            wrong.append(f"{tag}: Python's library has no such tag")
            continue
        if not latency["count"] == theirs["count"] == count:
            wrong.append(f"{tag}: {latency['count']} samples, Python {theirs['count']}, Java {count}")
        for name in ["max", "mean", *PERCENTILES]:
            ours = latency[name]
            if ours is None:
                continue
            compared += 1
            low, high = theirs[name] if name in PERCENTILES else [theirs[name]] * 2
            if not low * (1 - RESOLUTION) <= ours <= high * (1 + RESOLUTION):
                wrong.append(f"{tag}: {name} {ours}, Python {theirs[name]}")
            if name in PERCENTILES:
                quantile = PERCENTILES[name] / 100
                below = max((value for at, value in rows if at <= quantile), default=0)
                above = min((value for at, value in rows if at >= quantile), default=float("inf"))
                if not below * (1 - RESOLUTION) <= ours <= above * (1 + RESOLUTION):
                    wrong.append(f"{tag}: {name} {ours}, Java between {below} and {above}")
    for line in wrong:
        print(line, file=sys.stderr)
    if len(sys.argv) > 3:
        Path(sys.argv[3]).write_text(json.dumps(python, indent=1, sort_keys=True) + "\n")
    print(f"{compared} figures of {len(python)} tags, {len(wrong)} of them otherwise in HdrHistogram's own tools")
    sys.exit(bool(wrong) or not compared)


if __name__ == "__main__":
    main()
