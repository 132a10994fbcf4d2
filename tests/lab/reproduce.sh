#!/bin/bash
# The paper's tables and sweeps on NVMe drives: stacks one after the other, ended by a signal and by
# kill -9, gone on with, and nothing of them left.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a loop md_mod raid0 raid1 raid10 raid456 xfs ext4 2>/dev/null

a_run_goes_on() { compgen -G "$1/*/windows.jsonl" >/dev/null; }
an_array_stands() { grep -q '^md' /proc/mdstat; }

a_table_goes_on_after_a_signal_and_kill_9_and_leaves_nothing() {
    local out=/share/table5 devices consent table5 pid status
    devices=$(drive 0),$(drive 1),$(drive 2)
    mapfile -t consent < <(consent)
    table5=("$STACKTUNE" reproduce table5 --devices "$devices" --for 1s --warmup 0s --repeat 1 --idle 0s
        --set stack.use=20% --set scan.rate=20MB/s --set wal.rate=1MB/s --set background.rate=1MB/s)
    expect 3 'destroys all that is on' "${table5[@]}" --out /share/none
    expect 2 'one of the drives that it is compared with' "${table5[@]}" "${consent[@]}" --out /share/none \
        --hardware-raid "5=$(node 1)"
    table5+=("${consent[@]}" --hardware-raid "5=$(drive 3)" --out "$out")

    "${table5[@]}" &
    pid=$!
    wait_for 120 a_run_goes_on "$out"
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    ((status == 130))
    nothing_left

    "${table5[@]}" &
    pid=$!
    wait_for 120 an_array_stands
    kill -KILL "$pid"
    wait "$pid" || true
    [[ $("$STACKTUNE" status --json) != '[]' ]]

    "${table5[@]}" --json >/share/table5.json
    nothing_left
}

a_sweep_over_arrays_and_file_systems_leaves_nothing() {
    local consent steps='[sweep.product]
"stack.raid" = ["md0", "md1"]
"stack.filesystem" = ["ext4", "xfs"]
[sweep]
for = "1s"'
    mapfile -t consent < <(consent 0 1)
    "$STACKTUNE" record "$(profile swept "$(drive 0),$(drive 1)" "$steps")" --out /share/swept --verify --json \
        "${small[@]}" "${consent[@]}" >/share/swept.json
    nothing_left
}

run_tests a_table_goes_on_after_a_signal_and_kill_9_and_leaves_nothing \
    a_sweep_over_arrays_and_file_systems_leaves_nothing
