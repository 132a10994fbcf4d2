#!/bin/bash
# Rings polled from both sides, and NVMe commands past the block layer, on bare drives with poll queues:
# written through one way, read back and checked through another.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

array=$(profile polled "$(drives)")

# A short run with these settings, then every page is read back by the kernel's ordinary way. What the run
# came to is looked at in tests/lab.rs.
#   runs NAME SET...
runs() {
    local name=$1 set arguments=()
    shift
    for set in "$@"; do arguments+=(--set "$set"); done
    "$STACKTUNE" record "$array" --for 2s --out "/share/polled-$name" "${arguments[@]}" \
        --set io.buffering=direct --json >/dev/null
    "$STACKTUNE" verify "$array" --json >"/share/polled-$name.json"
}

polled_completions_are_verified() { runs iopoll io.completion=iopoll; }

a_polled_submission_queue_is_verified_and_wakes_after_its_sleep() {
    # Point reads so rare that the kernel's thread sleeps before each.
    runs sqpoll io.submission=sqpoll io.sqpoll_idle=1ms point.rate=64KB/s
}

rings_polled_from_both_sides_are_verified() {
    runs both io.completion=iopoll io.submission=sqpoll
}

nvme_commands_are_verified() {
    runs commands io.interface=nvme_passthrough
}

every_page_size_goes_as_nvme_commands() {
    local size
    # A command of these drives moves 512 KiB at most: pages of 1 MiB take several.
    for size in 512B 4KiB 128KiB 1MiB; do
        runs "commands-$size" io.interface=nvme_passthrough "io.page_size=$size" scan.depth=4 wal.sync=dsync
    done
}

polling_is_refused_on_what_can_not_be_polled() {
    local file
    file=$(mktemp -d /tmp/files.XXXXXX)
    expect 2 'can.t be polled|is not told' "$STACKTUNE" record demo --for 1s --out /share/polled-refused \
        --set "target.files.dir=$file" --set target.files.size=16MiB --set io.completion=iopoll --set io.buffering=direct
}

run_tests polled_completions_are_verified a_polled_submission_queue_is_verified_and_wakes_after_its_sleep \
    rings_polled_from_both_sides_are_verified nvme_commands_are_verified \
    every_page_size_goes_as_nvme_commands \
    polling_is_refused_on_what_can_not_be_polled
