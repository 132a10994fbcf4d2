#!/bin/bash
# A drive is pulled out under load. It stays out, so this script comes last.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

a_run_whose_drive_is_pulled_ends_in_order() {
    local array status=0
    array=$(profile pulled "$(drives)")
    # Long enough for the machine to let go of a drive.
    "$STACKTUNE" record "$array" --for 15s --out /share/pulled >"$LAB_WORK/said" 2>&1 &
    wait_for 60 test -s /share/pulled/windows.jsonl
    pull 3
    wait $! || status=$?
    cat "$LAB_WORK/said"
    ((status == 1)) # it failed, with I/O errors
    test -s /share/pulled/summary.json
    "$STACKTUNE" show /share/pulled
}

run_tests a_run_whose_drive_is_pulled_ends_in_order
