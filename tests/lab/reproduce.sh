#!/bin/bash
# The paper's tables and sweeps on NVMe drives: stacks one after another, killed and resumed, with nothing
# left behind.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a loop md_mod raid0 raid1 raid10 xfs 2>/dev/null

an_array_stands() { grep -q '^md' /proc/mdstat; }

# With two drives, the row with parity must report that it needs more.
a_table_goes_on_after_kill_9_and_leaves_nothing() {
    local table5 consent pid
    mapfile -t consent < <(consent 0 1 3)
    table5=("$STACKTUNE" reproduce table5 --devices "$(drive 0),$(drive 1)" --for 1s --warmup 0s --repeat 1
        --idle 0s --set stack.use=20% --set scan.rate=20MB/s --set wal.rate=1MB/s --set background.rate=1MB/s)
    expect 3 'destroys everything on' "${table5[@]}" --out /share/none
    expect 2 'one of the drives with which it is compared' "${table5[@]}" "${consent[@]}" --out /share/none \
        --hardware-raid "5=$(node 1)"
    table5+=("${consent[@]}" --hardware-raid "5=$(drive 3)" --out /share/table5)
    "${table5[@]}" &
    pid=$!
    wait_for 120 an_array_stands
    kill -KILL "$pid"
    wait "$pid" || true
    "${table5[@]}" --json >/share/table5.json
    nothing_left
}

a_sweep_over_arrays_is_verified_and_leaves_nothing() {
    local consent steps='[stack]
filesystem = "xfs"
[sweep.product]
"stack.raid" = ["md0", "md1"]
[sweep]
for = "1s"'
    mapfile -t consent < <(consent 0 1)
    "$STACKTUNE" record "$(profile swept "$(drive 0),$(drive 1)" "$steps")" --out /share/swept --verify --json \
        "${small[@]}" "${consent[@]}" >/share/swept.json
    nothing_left
}

# In the gate, sweeps and experiments are interrupted on files.
[[ -n ${SOAK:-} ]] || exit 0
run_tests a_table_goes_on_after_kill_9_and_leaves_nothing a_sweep_over_arrays_is_verified_and_leaves_nothing
