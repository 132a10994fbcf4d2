#!/usr/bin/env python3
"""stacktune's own cost, beside Debian's fio: what `make bench` prints.

Each row is measured by itself. Where fio is the measure, the two run in turn (A B A B A B) on the
same file or device, and the median of the ratios is shown with its range. The figures depend on the
machine; nothing here passes or fails: the bound stands beside the figure. Rows that this machine
can't measure are left out with the reason. Exit status: 0, or 1 if a row broke off.
"""

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

from bench_tools import (
    GIB,
    KIB,
    MIB,
    PAGE_BYTES,
    Bench,
    Broken,
    Figure,
    LeftOut,
    Target,
    data_file,
    ext4_folder,
    files,
    find_stacktune,
    loop_device,
    need,
    only,
    run,
    spread,
)


def row_a(bench):
    """User CPU per I/O of the whole generator on `null`."""
    need("fio")
    target = files(bench, 64 * MIB)
    settings = {"io.interface": "null"}
    bench.fill(target, settings)

    def ours():
        usage, summary = bench.record(target, settings)
        return usage.user_s * 1e9 / sum(c["ios"] for c in summary["classes"].values())

    def fios():
        usage, read = bench.fio("null", "--ioengine=null", f"--size={GIB}", f"--bs={PAGE_BYTES}", "--iodepth=128",
                                "--iodepth_batch_submit=32", "--iodepth_batch_complete_min=32")
        return usage.user_s * 1e9 / read["total_ios"]

    pairs = bench.ratios(ours, fios)
    value = statistics.median(mine for mine, _ in pairs)
    other = statistics.median(theirs for _, theirs in pairs)
    yield Figure("a", "user CPU per I/O on null, four classes", value, "ns", "80 or less", value <= 80,
                 f"fio's null engine {other:.0f} ns")


def row_b(bench):
    """CPU time per read of a page-cached ext4 file."""
    need("fio")
    target = files(bench, 256 * MIB, ext4_folder(bench))
    settings = only("scan") | {
        "io.interface": "io_uring", "io.buffering": "cached", "io.page_size": "4KiB",
        "io.registered_buffers": True, "io.registered_files": True, "scan.depth": 128, "scan.batch": 32}
    bench.fill(target, settings)
    path = data_file(target, 256 * MIB)
    # By default fio reaps completions one by one; reaping them in batches takes an extra option, which saves it a
    # third of its time.
    yield cached_reads(bench, target, settings, path, "fio's", ORDINARY_OPTIONS, 0.6)
    yield cached_reads(bench, target, settings, path, "fio's, tuned", SCAN_OPTIONS, None)


def cached_reads(bench, target, settings, path, whose, options, bound):
    """Our CPU time per cached read as a share of that of fio with these options."""

    def into_cache():
        with open(path, "rb", buffering=0) as file:
            while file.read(MIB):
                pass

    def ours():
        into_cache()
        usage, summary = bench.record(target, settings)
        return usage.cpu_s * 1e9 / summary["classes"]["scan"]["ios"]

    def fios():
        into_cache()
        usage, read = bench.fio(path, "--ioengine=io_uring", "--invalidate=0", "--bs=4k", *options)
        return usage.cpu_s * 1e9 / read["total_ios"]

    pairs = bench.ratios(ours, fios)
    ratios = [mine / theirs for mine, theirs in pairs]
    value = statistics.median(ratios)
    costs = "stacktune {:.0f} ns, fio {:.0f} ns".format(*(statistics.median(side) for side in zip(*pairs)))
    return Figure("b", f"CPU time per cached 4 KiB read, of {whose}", value, "",
                  f"{bound} or less" if bound else "no bound", value <= bound if bound else None,
                  f"{costs}; {spread(ratios)}")


ORDINARY_OPTIONS = ("--iodepth=128", "--iodepth_batch_submit=32", "--fixedbufs", "--registerfiles")
SCAN_OPTIONS = (*ORDINARY_OPTIONS, "--iodepth_batch_complete_min=32")
POINT_OPTIONS = ("--iodepth=1", "--fixedbufs", "--registerfiles")


def row_c(bench):
    """Scan and point throughput on a direct-I/O loop device."""
    need("fio")
    device = loop_device(bench, GIB, direct=True)
    target = Target({"target.devices": [device]}, ["--destroy", device], device)
    io = {"io.interface": "io_uring", "io.buffering": "direct", "io.page_size": f"{PAGE_BYTES // KIB}KiB"}
    for name, options in (("scan", SCAN_OPTIONS), ("point", POINT_OPTIONS)):
        settings = only(name) | io
        bench.fill(target, settings)

        def ours(name=name, settings=settings):
            figures = bench.record(target, settings)[1]["classes"][name]
            return figures["iops"], figures["service_ns"]["p50"]

        # fio's "lat" runs from the start of the submission, as the service latency does.
        def fios(options=options):
            read = bench.fio(device, "--ioengine=io_uring", "--direct=1", f"--bs={PAGE_BYTES}", "--clat_percentiles=0",
                             "--lat_percentiles=1", *options)[1]
            return read["iops"], read["lat_ns"]["percentile"]["50.000000"]

        pairs = bench.ratios(ours, fios)
        ratios = [mine[0] / theirs[0] for mine, theirs in pairs]
        value = statistics.median(ratios)
        iops = statistics.median(theirs[0] for _, theirs in pairs)
        yield Figure("c", f"{name} throughput on a direct loop device, of fio's", value, "", "0.97 or more",
                     value >= 0.97, f"fio {iops:.0f} IOPS; {spread(ratios)}")
        if name == "point":
            ratios = [mine[1] / theirs[1] for mine, theirs in pairs]
            value = statistics.median(ratios)
            p50_us = statistics.median(theirs[1] for _, theirs in pairs) / 1e3
            yield Figure("c", "point p50 on a direct loop device, of fio's", value, "", "0.95 to 1.05",
                         0.95 <= value <= 1.05, f"fio {p50_us:.1f} µs; {spread(ratios)}")


def row_d(bench):
    """Rates held over 10 s."""
    target = files(bench, 512 * MIB)
    for name in ("background", "scan"):
        for rate in (10, 50, 250):
            settings = only(name) | {f"{name}.rate": f"{rate}MB/s"}
            bench.fill(target, settings)
            figures = bench.record(target, settings, seconds=max(10, bench.seconds))[1]["classes"][name]
            value = figures["mb_per_s"] / rate
            yield Figure("d", f"{name} at {rate} MB/s, of its rate", value, "", "0.99 to 1.01",
                         0.99 <= value <= 1.01, f"{figures['missed']} intended starts missed")


def row_e(bench):
    """The terminal UI's CPU time at 160×50, and throughput beside headless."""
    target = files(bench, 512 * MIB)
    # A light, rate-limited load, so that the difference is little more than the screen's cost.
    light = only("point") | {"point.rate": "1MB/s"}
    bench.fill(target, light)
    pairs = bench.ratios(lambda: observe(bench, tui(bench, target, light)).cores,
                         lambda: observe(bench, headless(bench, target, light)).cores)
    costs = [100 * (on_screen - without) for on_screen, without in pairs]
    value = statistics.median(costs)
    totals = "with it {:.1f}%, without {:.1f}%".format(*(100 * statistics.median(side) for side in zip(*pairs)))
    yield Figure("e", "the screen's CPU time at 160×50", value, "% of a core", "2 or less", value <= 2, totals)

    full = only("scan", "point") | {"io.buffering": "direct"}
    bench.fill(target, full)
    pairs = bench.ratios(lambda: observe(bench, tui(bench, target, full)).read_bytes_per_s,
                         lambda: observe(bench, headless(bench, target, full)).read_bytes_per_s)
    if any(theirs == 0 for _, theirs in pairs):
        raise Broken("the kernel counted no reads of the headless run")
    ratios = [mine / theirs for mine, theirs in pairs]
    value = statistics.median(ratios)
    yield Figure("e", "throughput with the screen, of headless", value, "", "0.98 or more", value >= 0.98,
                 spread(ratios))


def row_f(bench):
    """Memory beyond the I/O buffers."""
    target = files(bench, 512 * MIB)
    settings = {"wal.rate": "10MB/s", "background.rate": "10MB/s"}
    bench.fill(target, settings)
    depth = {"scan": 128, "point": 1, "wal": 1, "background": 1}
    buffers = sum(depth.values()) * PAGE_BYTES
    bound = 64 * MIB + 512 * KIB * len(depth)
    with headless(bench, target, settings, seconds=bench.seconds * 3 + 60) as pid:
        # Until then, histograms grow to fit the run's slowest I/O.
        time.sleep(30)
        early = memory(pid)["VmRSS"]
        time.sleep(bench.seconds * 3)
        late = memory(pid)
    beyond = (late["VmHWM"] - buffers) / MIB
    yield Figure("f", "peak memory beyond the I/O buffers", beyond, "MiB", f"{bound / MIB:.0f} or less",
                 beyond <= bound / MIB, f"4 workers, {buffers / MIB:.1f} MiB of buffers")
    growth = (late["VmRSS"] - early) / MIB
    yield Figure("f", f"growth over {bench.seconds * 3:.0f} s", growth, "MiB", "1 or less", growth <= 1,
                 f"from {early / MIB:.1f} MiB")


def row_g(bench):
    """Every interface side by side on one emulated drive, in a virtual machine."""
    rig = pathlib.Path(__file__).resolve().parent.parent / "tests/rig.sh"
    check = subprocess.run([rig, "--check"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if check.returncode != 0:
        raise LeftOut(check.stderr.strip().splitlines()[-1])
    output = run([rig, "--drives", "1", "--size", "256M", "--dir", bench.work, "--append", "nvme.poll_queues=2",
                "--", "python3", pathlib.Path(__file__).with_name("bench-polled.py"), bench.stacktune,
                max(bench.seconds // 2, 2)]).stdout
    rows = {name: (float(iops), float(cpu_us)) for name, iops, cpu_us in map(str.split, output.splitlines())}
    ours = {name: row for name, row in rows.items() if not name.startswith("fio-")}
    iops, cpu_us = ours["vfio+sleep"]
    kernel = {name: row for name, row in ours.items() if not name.startswith("vfio")}
    for name, (of, cpu) in rows.items():
        yield Figure("g", f"{name}: 4 KiB reads a second", of, "IOPS", "", None, f"{cpu:.1f} µs of CPU each")
    most = max(row[0] for row in kernel.values())
    least = min(row[1] for name, row in ours.items() if name != "vfio+sleep")
    yield Figure("g", "vfio with sleep, of the kernel's fastest", iops / most, "", "1 or more", iops >= most)
    yield Figure("g", "its CPU per I/O, of the next cheapest", cpu_us / least, "", "1 or less", cpu_us <= least)


# ---------------------------------------------------------------- watching a running stacktune


@dataclasses.dataclass
class Observed:
    """What a running process did in a span of time, as the kernel counts it."""

    cores: float
    read_bytes_per_s: float


def memory(pid):
    """VmHWM and VmRSS in bytes."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return {key: int(fields[key].split()[0]) * KIB for key in ("VmHWM", "VmRSS")}


def counters(pid):
    """Nanoseconds on a CPU, summed over the threads, and bytes read from storage."""
    on_cpu_ns = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            on_cpu_ns += int((task / "schedstat").read_text().split()[0])
    io = dict(line.split(": ") for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines())
    return time.monotonic(), on_cpu_ns, int(io["read_bytes"])


def observe(bench, running):
    """Lets the run settle, then reads its counters at both ends of the measured span."""
    with running as pid:
        time.sleep(3)
        start, cpu_before, read_before = counters(pid)
        time.sleep(bench.seconds)
        end, cpu_after, read_after = counters(pid)
    return Observed((cpu_after - cpu_before) / 1e9 / (end - start), (read_after - read_before) / (end - start))


@contextlib.contextmanager
def headless(bench, target, settings, seconds=None):
    """A recording that goes on while the block runs; gives its process id."""
    argv, _ = bench.record_argv(target, settings, seconds or bench.seconds + 30)
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=said)
        try:
            yield child.pid
            said.seek(0)
            if child.poll() is not None:
                raise Broken(f"stacktune record ended early: {said.read()[-600:]}")
        finally:
            end(child, lambda: child.send_signal(signal.SIGINT))


@contextlib.contextmanager
def tui(bench, target, settings, columns=160, lines=50):
    """The terminal UI in a pseudo-terminal of that size while the block runs; gives its process id."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    # Over ssh the screen is redrawn less often.
    for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"):
        environment.pop(name, None)
    child = subprocess.Popen([str(bench.stacktune), str(bench.profile(target, settings))], env=environment,
                             stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    shown = bytearray()

    def drain():
        # Reads fail once the other side is closed.
        with contextlib.suppress(OSError):
            while chunk := os.read(master, 1 << 16):
                shown.extend(chunk)
                del shown[:-4096]

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield child.pid
        if child.poll() is not None:
            raise Broken(f"the screen ended early: {bytes(shown[-600:])!r}")
    finally:
        end(child, lambda: os.write(master, b"q"))
        reader.join(timeout=5)
        os.close(master)


def end(child, ask):
    """Ends a child: asks it, then insists."""
    for step in (ask, child.terminate, child.kill):
        if child.poll() is None:
            with contextlib.suppress(OSError):
                step()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=10)


def row_h(bench):
    """CPU time of the workers on RocksDB, of a bare loop of the same calls on the same data."""
    try:
        costs = json.loads(run([bench.stacktune, "calibrate", "--pairs", "--json"]).stdout)
    except Broken as broken:
        if "has no RocksDB" in str(broken):
            raise LeftOut("this build has no RocksDB") from broken
        raise
    for cost in costs:
        low, high = cost["range"]
        yield Figure("h", f"{cost['class']} on RocksDB, CPU time of a bare loop's", cost["ratio"], "", "1.05 or less",
                     cost["ratio"] <= 1.05, f"bare {cost['bare_ns']:.0f} ns an operation; {low:.3f} to {high:.3f}")
    if shutil.which("db_bench"):
        yield from db_bench(bench, costs)


def db_bench(bench, costs):
    """Another program's figures on another version of RocksDB: for orientation."""
    bare_ns = {cost["class"]: cost["bare_ns"] for cost in costs}
    path = bench.path("db")
    for name, of in (("fillseq", None), ("readrandom", "point"), ("seekrandom", "scan"), ("overwrite", "background")):
        words = run(["db_bench", f"--benchmarks={name}", f"--db={path}", "--num=100000", "--value_size=400",
                     "--key_size=16", "--compression_type=none", "--seek_nexts=128", "--disable_wal=0",
                     f"--use_existing_db={int(of is not None)}", f"--duration={bench.seconds if of else 0}"]).stdout
        found = re.search(rf"^{name}\s*:\s*([0-9.]+) micros/op", words, re.MULTILINE)
        if of and found:
            yield Figure("h", f"db_bench's {name}, wall time an operation", float(found[1]) * 1e3, "ns", "", None,
                         f"the bare loop's {of} took {bare_ns[of]:.0f} ns of CPU time")


# ---------------------------------------------------------------- the command

ROWS = {"a": row_a, "b": row_b, "c": row_c, "d": row_d, "e": row_e, "f": row_f, "g": row_g, "h": row_h}


def arguments():
    parser = argparse.ArgumentParser(description="stacktune's own cost, compared with fio")
    listed = ", ".join(f"{name}: {row.__doc__.rstrip('.')}" for name, row in ROWS.items())
    parser.add_argument("--only", default=",".join(ROWS), metavar="a,c", help=f"the rows to measure ({listed})")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--seconds", type=int, default=10, help="length of a measured run (10)")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs (3)")
    parser.add_argument("--dir", default="/var/tmp", help="where the files go: 4 GiB for the time of the run")
    parser.add_argument("--stacktune", metavar="PATH", help="the program, else cargo's release build")
    options = parser.parse_args()
    options.only = [name.strip() for name in options.only.split(",") if name.strip()]
    if unknown := [name for name in options.only if name not in ROWS]:
        parser.error(f"there is no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if options.seconds < 1 or options.rounds < 1:
        parser.error("--seconds and --rounds begin at 1")
    if shutil.disk_usage(options.dir).free < 4 * GIB:
        parser.error(f"{options.dir} has less than 4 GiB free; name another folder with --dir")
    return options


def show(figure):
    value = f"{figure.value:.3f}" if abs(figure.value) < 10 else f"{figure.value:.1f}"
    mark = {True: "holds", False: "MISSED", None: ""}[figure.holds]
    print(f"{figure.row}  {figure.what:<50} {value:>8} {figure.unit:<11} {figure.bound:<13} {mark:<7} {figure.detail}",
          flush=True)


def measure(name, options):
    """One row, with a folder of its own that is gone afterwards; returns its figures and why not."""
    figures, reason, broken = [], None, False
    try:
        with contextlib.ExitStack() as cleanup:
            work = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="stacktune-bench-", dir=options.dir))
            for figure in ROWS[name](Bench(options, work, cleanup)):
                figures.append(figure)
                if not options.json:
                    show(figure)
    except LeftOut as error:
        reason = f"left out: {error}"
    except (Broken, OSError, KeyError, ValueError, TypeError, ZeroDivisionError) as error:
        reason, broken = f"broke off: {type(error).__name__}: {error}", True
    if reason and not options.json:
        print(f"{name}  {reason}", flush=True)
    return figures, reason, broken


def main():
    # So that a terminated run removes its loop devices as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = arguments()
    find_stacktune(options.stacktune)
    results = {name: measure(name, options) for name in options.only}
    if options.json:
        figures = [dataclasses.asdict(figure) for rows, _, _ in results.values() for figure in rows]
        reasons = {name: reason for name, (_, reason, _) in results.items() if reason}
        print(json.dumps({"figures": figures, "not_measured": reasons}, indent=2, ensure_ascii=False))
    return 1 if any(broken for _, _, broken in results.values()) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
