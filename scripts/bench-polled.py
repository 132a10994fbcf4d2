#!/usr/bin/env python3
"""In a virtual machine: reads of 4 KiB from one drive through every interface, one after the other, and
by fio through those that it has. A line each: name, IOPS, and the whole system's CPU time per I/O in µs.

    bench-polled.py STACKTUNE SECONDS

Asynchronous ones have 1,024 reads in flight and hand over 256 together; calls that wait have 128
threads. CPU time is the kernel's count of all that was not idle while the load ran, of the whole
machine: what polls in the kernel's threads, and stacktune's or fio's own, is all in it. It is counted in
ticks of a timer, some of which an emulated machine loses while a program polls registers: where the
program's own clock says more, that is taken. Exit status: 0, or 1 if a program failed.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

DRIVE = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG0_1"
PROFILE = f"""
name = "bench"
[target]
devices = ["{DRIVE}"]
[io]
buffering = "direct"
page_size = "4KiB"
[scan]
depth = 1024
batch = 256
[point]
enabled = false
[wal]
enabled = false
[background]
enabled = false
"""
OURS = {
    "sync": ["io.interface=sync", "scan.depth=128"],
    "libaio": ["io.interface=libaio"],
    "io_uring": ["io.interface=io_uring"],
    "iopoll": ["io.interface=io_uring", "io.completion=iopoll"],
    "nvme_passthrough": ["io.interface=nvme_passthrough"],
    "nvme_passthrough+iopoll": ["io.interface=nvme_passthrough", "io.completion=iopoll"],
    "vfio": ["io.interface=vfio"],
    "vfio+sleep": ["io.interface=vfio", "io.poll_sleep=50us"],
}
DEEP = ["--iodepth=1024", "--iodepth_batch_submit=256", "--iodepth_batch_complete_min=1",
        "--iodepth_batch_complete_max=256"]
NAME = os.path.basename(os.path.realpath(DRIVE))
BLOCK = [f"--filename={DRIVE}", "--direct=1"]
FIO = {
    "fio-sync": [*BLOCK, "--ioengine=psync", "--numjobs=128"],
    "fio-libaio": [*BLOCK, "--ioengine=libaio", *DEEP],
    "fio-io_uring": [*BLOCK, "--ioengine=io_uring", *DEEP],
    "fio-iopoll": [*BLOCK, "--ioengine=io_uring", "--hipri=1", *DEEP],
    # A character device has neither O_DIRECT nor a page cache.
    "fio-nvme_passthrough": [f"--filename=/dev/ng{NAME.removeprefix('nvme')}", "--ioengine=io_uring_cmd",
                             "--cmd_type=nvme", *DEEP],
}


class Failed(Exception):
    """A program that should have run did not, and what it said."""


def busy_s():
    """Seconds of the processors so far that were not idle, by /proc/stat."""
    user, nice, system, _idle, _iowait, irq, softirq = (
        int(field) for field in pathlib.Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def clock_s(pid):
    """CPU seconds of a process and its threads so far, by the scheduler's clock."""
    return time.clock_gettime((~pid << 3) | 2)  # CPUCLOCK_SCHED of <linux/posix-timers.h>


def watch(command, has_begun, seconds):
    """Runs a command and gives its output and the cores busy over `seconds` of its load.

    The load is watched without starting any program, which a busy machine would delay, and the samples
    are chosen afterwards by their own times.
    """
    samples, began_s = [], None
    # Nobody reads a pipe here, and a full one would block a chatty child.
    said = tempfile.TemporaryFile("w+")
    child = subprocess.Popen(list(map(str, command)), stdout=said, stderr=subprocess.STDOUT)
    while child.poll() is None:
        now_s = time.monotonic()
        if began_s is None and has_begun():
            began_s = now_s
        # The process may have ended in the meantime.
        with contextlib.suppress(OSError):
            samples.append((now_s, busy_s(), clock_s(child.pid)))
        time.sleep(0.1)
    said.seek(0)
    output = said.read()
    if child.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: {output[:2000]}")
    inside = [sample for sample in samples if began_s and 0.5 <= sample[0] - began_s <= 0.5 + seconds]
    if len(inside) < 2:
        raise Failed(f"{command[0]}: its load was too short to be watched")
    passed_s, busy, own = (last - first for first, last in zip(inside[0], inside[-1]))
    return output, max(busy, own) / passed_s


def show(name, iops, cores):
    if iops == 0:
        raise Failed(f"{name}: no I/O was done")
    print(f"{name} {iops:.0f} {cores / iops * 1e6:.2f}", flush=True)


def ours(stacktune, work, name, knobs, seconds):
    out = work / "run"
    shutil.rmtree(out, ignore_errors=True)
    lines = out / "windows.jsonl"
    sets = [argument for knob in knobs for argument in ("--set", knob)]
    command = [stacktune, "record", work / "profile.toml", "--out", out, "--for", f"{seconds + 2}s",
               "--warmup", "1s", "--set", "run.window=500ms", *sets]
    _, cores = watch(command, lambda: lines.exists() and lines.stat().st_size > 0, seconds)
    summary = json.loads((out / "summary.json").read_text())
    show(name, summary["classes"]["scan"]["iops"], cores)


def fios(name, options, seconds):
    stat = pathlib.Path(f"/sys/block/{NAME}/stat")
    reads = lambda: int(stat.read_text().split()[0])
    before, started_s = reads(), time.monotonic()
    # The block layer doesn't count commands that bypass it, so fio gets three seconds to begin instead.
    counted = "--ioengine=io_uring_cmd" not in options
    has_begun = lambda: reads() > before + 1000 if counted else time.monotonic() - started_s > 3
    # With threads, the process's clock covers all jobs.
    command = ["fio", "--name=b", "--thread", "--rw=randread", "--bs=4k", "--ramp_time=2", "--time_based",
               f"--runtime={seconds + 2}", "--group_reporting", "--output-format=terse", *options]
    output, cores = watch(command, has_begun, seconds)
    line = next((line for line in output.splitlines() if line.startswith("3;")), None)
    if line is None:
        raise Failed(f"{name}: fio printed no figures: {output[:2000]}")
    show(name, float(line.split(";")[7]), cores)


def main():
    stacktune, seconds = sys.argv[1], int(sys.argv[2])
    work = pathlib.Path("/run/bench")
    work.mkdir(exist_ok=True)
    (work / "profile.toml").write_text(PROFILE)
    # The first run fills the drive, so it isn't measured.
    watch([stacktune, "record", work / "profile.toml", "--for", "2s", "--out", work / "fill"], lambda: True, 1)
    for name, knobs in OURS.items():
        ours(stacktune, work, name, knobs, seconds)
    if shutil.which("fio"):
        for name, options in FIO.items():
            fios(name, options, seconds)


try:
    main()
except Failed as failure:
    sys.exit(f"{failure}")
