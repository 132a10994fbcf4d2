#!/bin/bash
# The four classes on bare drives, with direct I/O; then every page is read back and checked. With SOAK through each
# interface; in the gate, loop devices cover those.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

array=$(profile raw "$(drive 0),$(drive 1)")

runs_and_verifies() {
    "$STACKTUNE" record "$array" --for 2s --out "/share/raw-$1" --set "io.interface=$1" \
        --set io.buffering=direct --json >/dev/null
    "$STACKTUNE" verify "$array" --json >"/share/verify-$1.json"
}

io_uring_on_bare_drives_is_verified() { runs_and_verifies io_uring; }
libaio_on_bare_drives_is_verified() { runs_and_verifies libaio; }
system_calls_on_bare_drives_are_verified() { runs_and_verifies sync; }

run_tests io_uring_on_bare_drives_is_verified
[[ -z ${SOAK:-} ]] || run_tests libaio_on_bare_drives_is_verified system_calls_on_bare_drives_are_verified
