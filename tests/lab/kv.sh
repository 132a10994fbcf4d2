#!/bin/bash
# RocksDB on stacks that only this machine has: md arrays, and F2FS.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

# The least that all classes can run on.
pairs=(--set kv.pairs=20000 --set kv.value_size=400 --set rocksdb.write_buffer=1MiB --set rocksdb.file_size=1MiB
    --set rocksdb.level_base=2MiB --set rocksdb.jobs=4 --set scan.depth=1 --set scan.rate=2MB/s --set point.rate=100kB/s
    --set wal.rate=20kB/s --set background.rate=1MB/s --set run.window=1s)

# All classes run on the stack, and every pair reads back as it was put.
#   runs_on RAID FILESYSTEM
runs_on() {
    local consent out=$LAB_WORK/$1-$2
    mapfile -t consent < <(consent)
    "$STACKTUNE" record rocksdb --for 5s --verify --out "$out" "${pairs[@]}" --set target.devices="$(drives)" \
        --set stack.raid="$1" --set stack.filesystem="$2" "${consent[@]}" 2>"$out.err" || { cat "$out.err"; return 1; }
    grep 'pairs hold a value that was put' "$out.err"
    python3 - "$out/summary.json" <<'PY'
import json, sys
summary = json.load(open(sys.argv[1]))
for name, figures in summary["classes"].items():
    assert figures["ios"] > 5 and figures["errors"] == 0, (name, figures)
engine = summary["engine"]
assert engine["log_bytes"] >= engine["user_written_bytes"] > 0, engine
print("# wrote", engine["log_bytes"] + engine["flush_bytes"] + engine["compaction_written_bytes"],
      "for", engine["user_written_bytes"])
PY
    nothing_left
}

# A build without RocksDB has nothing to test.
need_rocksdb() {
    if "$STACKTUNE" check rocksdb 2>&1 | grep -q 'has no RocksDB'; then skip 'needs a build with RocksDB'; fi
}

pairs_on_md0_and_f2fs_are_verified() {
    need_rocksdb
    need mkfs.f2fs mdadm python3
    runs_on md0 f2fs
}

pairs_on_md1_and_ext4_are_verified() {
    need_rocksdb
    need mdadm python3
    runs_on md1 ext4
}

# In the gate the pairs are on loop devices; kv_power.sh cuts their power.
[[ -n ${SOAK:-} ]] || exit 0
run_tests pairs_on_md0_and_f2fs_are_verified pairs_on_md1_and_ext4_are_verified
