"""What the rows of bench.py share: figures, tools, and targets to measure on."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PAGE_BYTES = 16 * KIB
CLASSES = ("scan", "point", "wal", "background")


class LeftOut(Exception):
    """This machine can't measure the row; the text says why."""


class Broken(Exception):
    """A program that should have run did not."""


@dataclasses.dataclass
class Figure:
    """A line of the output. `bound` is what the figure should be; `holds` whether it is, None where nothing is asked."""

    row: str
    what: str
    value: float
    unit: str
    bound: str
    holds: bool | None
    detail: str = ""


@dataclasses.dataclass
class Usage:
    """What a finished child used, its waited-for children included."""

    user_s: float
    cpu_s: float
    stdout: str


# ---------------------------------------------------------------- running programs


def run(argv):
    """Runs a program to its end and returns what it used; raises `Broken` with its last words."""
    argv = [str(arg) for arg in argv]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        try:
            _, status, used = os.wait4(child.pid, 0)
        except BaseException:
            child.kill()
            child.wait()
            raise
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            words = (err.read().strip() or out.read().strip())[-600:]
            raise Broken(f"{' '.join(argv)}: exit status {child.returncode}: {words}")
        return Usage(used.ru_utime, used.ru_utime + used.ru_stime, out.read())


def tool(argv):
    """Runs a small tool and returns what it printed."""
    return run(argv).stdout.strip()


def need(command):
    if shutil.which(command) is None:
        raise LeftOut(f"{command} is not installed")


def need_root():
    if os.geteuid() != 0:
        raise LeftOut("needs root")


# ---------------------------------------------------------------- stacktune and fio


class Bench:
    """The programs, the folder of the targets, and what to remove at the end."""

    def __init__(self, options, work, cleanup):
        self.stacktune = find_stacktune(options.stacktune)
        self.seconds = options.seconds
        self.rounds = options.rounds
        self.work = pathlib.Path(work)
        self.cleanup = cleanup
        self.made = 0

    def path(self, name):
        """A new path in the work folder."""
        self.made += 1
        return self.work / f"{self.made:03}-{name}"

    def profile(self, target, settings):
        """Writes a profile. What JSON writes for these values is TOML as well."""
        path = self.path("bench.toml")
        keys = {"name": "bench", "about": "Written by scripts/bench.py"} | target.keys | settings
        path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()))
        return path

    def record_argv(self, target, settings, seconds):
        out = self.path("recording")
        argv = [self.stacktune, "record", self.profile(target, settings), "--out", out, "--for", f"{seconds}s"]
        return argv + target.flags, out

    def record(self, target, settings, seconds=None):
        """Records; returns what the process used and its summary."""
        argv, out = self.record_argv(target, settings, seconds or self.seconds)
        usage = run(argv)
        return usage, json.loads((out / "summary.json").read_text())

    def fill(self, target, settings):
        """A short run that fills the target, so that no measured run does."""
        self.record(target, settings, seconds=1)

    def fio(self, filename, *options):
        """Runs one fio job of random reads; returns what the process used and the job's read figures."""
        job = ["--name=bench", f"--filename={filename}", "--readonly", "--rw=randread", "--time_based",
               f"--runtime={self.seconds}", "--output-format=json", *options]
        usage = run(["fio", *job])
        # fio prints notes before the JSON.
        report = json.loads(usage.stdout[usage.stdout.index("{"):])
        return usage, report["jobs"][0]["read"]

    def ratios(self, ours, others):
        """Measures both in turn; returns the pairs."""
        return [(ours(), others()) for _ in range(self.rounds)]


@dataclasses.dataclass
class Target:
    """What a profile runs on: its keys, the flags that permit it, and the path that fio reads."""

    keys: dict
    flags: list
    path: object = None


def find_stacktune(given):
    if given:
        path = pathlib.Path(given)
    else:
        metadata = json.loads(tool(["cargo", "metadata", "--format-version", "1", "--no-deps"]))
        path = pathlib.Path(metadata["target_directory"]) / "release" / "stacktune"
    if not path.is_file():
        sys.exit(f"bench: there is no {path}; build it with `make build`, or name it with --stacktune")
    return path.resolve()


def only(*enabled):
    """Settings in which these classes run."""
    return {f"{name}.enabled": name in enabled for name in CLASSES}


def files(bench, size_bytes, folder=None):
    """A target of one data file."""
    folder = folder or bench.path("files")
    keys = {"target.files.dir": str(folder), "target.files.count": 1,
            "target.files.size": f"{size_bytes // MIB}MiB"}
    return Target(keys, [], folder)


def data_file(target, size_bytes):
    """The data file that stacktune made for the target: the one of the wanted size."""
    found = [path for path in pathlib.Path(target.path).iterdir()
             if path.stat().st_size >= size_bytes and "wal" not in path.name]
    if len(found) != 1:
        raise Broken(f"expected one data file in {target.path}, found {[path.name for path in found]}")
    return found[0]


def loop_device(bench, size_bytes, direct):
    """A loop device over a written file, detached at the end."""
    need_root()
    need("losetup")
    backing = bench.path("loop.img")
    zeros = bytes(MIB)
    with open(backing, "wb") as file:
        for _ in range(size_bytes // MIB):
            file.write(zeros)
        os.fsync(file.fileno())
    try:
        device = tool(["losetup", "--find", "--show", *(["--direct-io=on"] if direct else []), backing])
    except Broken as error:
        raise LeftOut(f"no loop device: {error}") from error
    bench.cleanup.callback(lambda: subprocess.run(["losetup", "--detach", device], check=False))
    if direct and tool(["losetup", "--noheadings", "--output", "DIO", device]) != "1":
        raise LeftOut(f"{bench.work} does not allow direct I/O under a loop device")
    return device


def ext4_folder(bench):
    """A folder on ext4: in the work folder where that is ext4, else on a loop device."""
    if tool(["findmnt", "--noheadings", "--output", "FSTYPE", "--target", bench.work]) == "ext4":
        return bench.path("ext4")
    if os.geteuid() != 0:
        raise LeftOut(f"{bench.work} is not on ext4 (try --dir), and a loop device needs root")
    need("mkfs.ext4")
    device = loop_device(bench, 768 * MIB, direct=False)
    mount = bench.path("mount")
    mount.mkdir()
    tool(["mkfs.ext4", "-q", device])
    tool(["mount", device, mount])
    bench.cleanup.callback(lambda: subprocess.run(["umount", str(mount)], check=False))
    return mount / "files"


def spread(ratios):
    return f"{min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} pairs"


# ---------------------------------------------------------------- the rows
