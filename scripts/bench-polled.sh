#!/bin/bash
# In a virtual machine: reads of 4 KiB from one drive through every interface, one after the other, and
# by fio through those that it has. A line each: name, IOPS, and the whole system's CPU time per I/O.
#
#   bench-polled.sh STACKTUNE SECONDS
#
# Asynchronous ones have 1,024 reads in flight and hand over 256 together; calls that wait have 128
# threads. CPU time is the kernel's count of all that was not idle in the same seconds, of the whole
# machine: what polls in the kernel's threads, and stacktune's or fio's own, is all in it.
set -euo pipefail
stacktune=$1 seconds=$2
work=/run/bench
mkdir -p "$work"
drive=/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG0_1
cat >"$work/profile.toml" <<TOML
name = "bench"
[target]
devices = ["$drive"]
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
TOML

# Ticks of the processors so far that were not idle.
busy_ticks() { awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }

# Runs a command whose load is measured from its second second on, and sets `busy_s`: CPU seconds in each.
measured() {
    local before after
    "$@" >"$work/out" 2>&1 &
    local pid=$!
    wait_for_load "$pid"
    sleep 1
    before=$(busy_ticks)
    sleep "$seconds"
    after=$(busy_ticks)
    wait "$pid" || { cat "$work/out" >&2; return 1; }
    busy_s=$(awk "BEGIN { print ($after - $before) / $(getconf CLK_TCK) / $seconds }")
}

# The load has begun once the drive, or the program by itself, moves.
wait_for_load() {
    for _ in {1..300}; do
        [[ ! -e $work/began ]] || return 0
        [[ ! -s $work/run/windows.jsonl ]] || return 0
        sleep 0.1
        kill -0 "$1" 2>/dev/null || return 0
    done
}

line() { awk "BEGIN { printf \"%s %.0f %.2f\\n\", \"$1\", $2, $busy_s / $2 * 1e6 }"; }

# stacktune: name, and its knobs.
ours() {
    local name=$1 set arguments=()
    shift
    for set in "$@"; do arguments+=(--set "$set"); done
    rm -rf "$work/run" "$work/began"
    measured "$stacktune" record "$work/profile.toml" --for "$((seconds + 1))s" --warmup 1s --out "$work/run" \
        --set run.window=500ms "${arguments[@]}" || return
    line "$name" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["classes"]["scan"]["iops"])' <"$work/run/summary.json")"
}

# fio: name, device, and its options.
theirs() {
    local name=$1 device=$2
    shift 2
    rm -rf "$work/run"
    touch "$work/began"
    measured fio --name=b --filename="$device" --rw=randread --bs=4k --direct=1 --ramp_time=1 --time_based \
        --runtime="$((seconds + 1))" --group_reporting --output-format=terse "$@" || return
    line "$name" "$(grep '^3;' "$work/out" | cut -d';' -f8)"
}

# Fills it once.
"$stacktune" record "$work/profile.toml" --for 1s --out "$work/fill" >/dev/null 2>&1
ours sync io.interface=sync scan.depth=128
ours libaio io.interface=libaio
ours io_uring io.interface=io_uring
ours iopoll io.interface=io_uring io.completion=iopoll
ours nvme_passthrough io.interface=nvme_passthrough
ours nvme_passthrough+iopoll io.interface=nvme_passthrough io.completion=iopoll
ours vfio io.interface=vfio
ours vfio+sleep io.interface=vfio io.poll_sleep=50us
command -v fio >/dev/null || exit 0
deep=(--iodepth=1024 --iodepth_batch_submit=256 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=256)
theirs fio-sync "$drive" --ioengine=psync --numjobs=128 --thread
theirs fio-libaio "$drive" --ioengine=libaio "${deep[@]}"
theirs fio-io_uring "$drive" --ioengine=io_uring "${deep[@]}"
theirs fio-iopoll "$drive" --ioengine=io_uring --hipri=1 "${deep[@]}"
generic=$(basename "$(realpath "$drive")")
theirs fio-nvme_passthrough "/dev/ng${generic#nvme}" --ioengine=io_uring_cmd --cmd_type=nvme "${deep[@]}"
