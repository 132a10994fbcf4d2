#!/bin/bash
# Rings polled from both sides, and NVMe commands that bypass the block layer, on bare drives with poll
# queues: written through one interface, read back and checked through another.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

array=$(profile polled "$(drive 0),$(drive 1)")

# A short run with these settings, then every page is read back through the kernel's ordinary path.
# tests/lab/machines.rs checks the run's results. Where busy-polling workers keep another from its first I/O, as they
# do on few slow processors, the run is repeated for longer.
#   runs NAME SET...
runs() {
    local name=$1 set time arguments=()
    shift
    for set in "$@"; do arguments+=(--set "$set"); done
    for time in 1s 4s 16s; do
        rm -rf "/share/polled-$name"
        "$STACKTUNE" record "$array" --for "$time" --out "/share/polled-$name" "${arguments[@]}" \
            --set io.buffering=direct --json >/dev/null
        # The indentation selects a class's own figure, not that of I/Os in flight at the end.
        grep -qE '^ {6}"ios": [0-2],' "/share/polled-$name/summary.json" || break
    done
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
    # The workers trace what bypasses the block layer.
    "$STACKTUNE" record "$array" --for 1s --trace --out /share/polled-traced --set io.interface=nvme_passthrough \
        --set io.buffering=direct --json >/dev/null
    grep -q '"source": "workers"' /share/polled-traced/trace.json
    grep -q '"lost": 0,' /share/polled-traced/trace.json
}

polled_nvme_commands_with_a_sleep_are_verified() {
    runs polled-commands io.interface=nvme_passthrough io.completion=iopoll io.poll_sleep=50us
}

# Pages of that size through interfaces that poll or bypass the block layer, each read back through the
# kernel's ordinary path.
#   pages_of SIZE WAY...
pages_of() {
    local way size=$1 pages slow commands=io.interface=nvme_passthrough
    shift
    # Emulated processors can't keep up the profile's rate with small pages; with large pages that rate is less than
    # one page per run.
    case $size in
        512KiB | 1MiB) slow='wal.rate=4MB/s background.rate=4MB/s point.rate=8MB/s' ;;
        512B | 1KiB | 2KiB | 4KiB) slow='scan.rate=512KB/s point.rate=100KB/s wal.rate=50KB/s background.rate=50KB/s' ;;
        *) slow= ;;
    esac
    pages="io.page_size=$size scan.depth=4 wal.sync=dsync io.sqpoll_idle=1ms io.poll_sleep=50us $slow"
    for way in "$@"; do
        # shellcheck disable=SC2086 # lists of words
        case $way in
            commands) runs "$way-$size" $pages $commands ;;
            polled-commands) runs "$way-$size" $pages $commands io.completion=iopoll ;;
            iopoll) runs "$way-$size" $pages io.completion=iopoll ;;
            sqpoll) runs "$way-$size" $pages io.submission=sqpoll ;;
            both) runs "$way-$size" $pages io.completion=iopoll io.submission=sqpoll ;;
            vfio) runs "$way-$size" $pages io.interface=vfio ;;
        esac
    done
}

# One command moves at most 512 KiB on these drives: 1 MiB pages take several.
every_page_size_goes_through_every_polled_interface() {
    local size
    for size in 512B 1KiB 2KiB 4KiB 8KiB 16KiB 32KiB 64KiB 128KiB 256KiB 512KiB 1MiB; do
        pages_of "$size" commands polled-commands iopoll sqpoll both vfio
    done
}

# Starts a run in the background ($pid) and waits for its first window.
#   goes_on NAME SET...
goes_on() {
    local name=$1 set arguments=()
    shift
    for set in "$@"; do arguments+=(--set "$set"); done
    rm -rf "/share/$name"
    "$STACKTUNE" record "$array" --for 60s --out "/share/$name" "${arguments[@]}" --set io.buffering=direct \
        >"$LAB_WORK/$name" 2>&1 &
    pid=$!
    wait_for 30 test -s "/share/$name/windows.jsonl" || { cat "$LAB_WORK/$name"; return 1; }
}

nvme_commands_hold_the_block_device_beside() {
    local i
    goes_on polled-held io.interface=nvme_passthrough
    for i in 0 1; do
        expect 1 'in use by the system' mkfs.ext4 -q "$(node $i)"
    done
    kill -INT "$pid"
    wait "$pid" || true
    mkfs.ext4 -q "$(node 1)"
    wipefs --quiet --all "$(node 1)"
}

# Mean cores used by stacktune and its kernel threads, over the windows of a run.
cores() { grep -o '"own_cores":[0-9.e-]*' "$1/windows.jsonl" | cut -d: -f2 | awk '{ sum += $1 } END { print sum / NR }'; }

# Only rare point reads: the worker sleeps, so any busy thread is the kernel's.
rare=(scan.enabled=false wal.enabled=false background.enabled=false point.rate=64KB/s io.submission=sqpoll)

the_kernels_thread_polls_on_its_cpu_and_counts_as_ours() {
    local pid thread busy idle
    goes_on polled-busy "${rare[@]}" io.sqpoll_idle=10s io.sqpoll_cpu=1
    thread=$(dirname "$(grep -l '^iou-sqp' "/proc/$pid/task/"*/comm | head -n1)")
    [[ $(awk '$1 == "Cpus_allowed_list:" { print $2 }' "$thread/status") == 1 ]]
    sleep 2
    kill -INT "$pid"
    wait "$pid" || true
    goes_on polled-idle "${rare[@]}" io.sqpoll_idle=1ms
    sleep 2
    kill -INT "$pid"
    wait "$pid" || true
    busy=$(cores /share/polled-busy) idle=$(cores /share/polled-idle)
    printf '# cores: %s while its thread polls, %s while that sleeps\n' "$busy" "$idle"
    awk "BEGIN { exit !($busy > 0.7 && $busy > $idle + 0.4) }"
}

polling_is_refused_on_what_can_not_be_polled() {
    local file
    file=$(mktemp -d /tmp/files.XXXXXX)
    expect 2 'can.t be polled|is unknown' "$STACKTUNE" record demo --for 1s --out /share/polled-refused \
        --set "target.files.dir=$file" --set target.files.size=16MiB --set io.completion=iopoll --set io.buffering=direct
}

# In the gate, polled completions and commands of one page size stand in for these.
[[ -z ${SOAK:-} ]] || run_tests rings_polled_from_both_sides_are_verified \
    a_polled_submission_queue_is_verified_and_wakes_after_its_sleep \
    polled_nvme_commands_with_a_sleep_are_verified the_kernels_thread_polls_on_its_cpu_and_counts_as_ours \
    every_page_size_goes_through_every_polled_interface
run_tests polled_completions_are_verified nvme_commands_are_verified nvme_commands_hold_the_block_device_beside \
    polling_is_refused_on_what_can_not_be_polled
