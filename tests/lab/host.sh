#!/bin/bash
# The program's report of a host with NVMe drives; tests/lab/machines.rs checks more of its output.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

the_host_is_described() {
    "$STACKTUNE" host --json >/share/host.json
    "$STACKTUNE" host >/share/host.txt
    grep -q RIG0 /share/host.txt
}

the_practice_profile_fits_the_practice_array() {
    "$STACKTUNE" check lab
}

run_tests the_host_is_described the_practice_profile_fits_the_practice_array
