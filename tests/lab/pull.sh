#!/bin/bash
# A drive is pulled out while the classes run on it. It stays out: this script comes last.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

a_run_whose_drive_is_pulled_ends_in_order() {
    local array status=0 pulled
    array=$(profile pulled "$(drives)")
    pulled=$(basename "$(node 3)")
    "$STACKTUNE" record "$array" --for 4s --out /share/pulled >"$LAB_WORK/said" 2>&1 &
    wait_for 60 test -s /share/pulled/windows.jsonl
    monitor device_del drive3
    wait_for 20 test ! -e "/sys/block/$pulled"
    wait $! || status=$?
    cat "$LAB_WORK/said"
    ((status == 1)) # it failed, with I/O errors
    test -s /share/pulled/summary.json
    "$STACKTUNE" show /share/pulled
}

run_tests a_run_whose_drive_is_pulled_ends_in_order
