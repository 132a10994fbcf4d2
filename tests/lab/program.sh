#!/bin/bash
# A program as the load, on an array of real drives and under cgroups v2.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a md_mod raid0 xfs 2>/dev/null

# A striped XFS over two drives.
two=$(drive 0),$(drive 1)
mapfile -t destroy < <(consent 0 1)

# Runs an sh script as nobody.
#   runs NAME SCRIPT [MORE...]
runs() {
    local name=$1 script=$2
    shift 2
    "$STACKTUNE" run "$(profile "$name" "$two")" --for 5m --out "$LAB_WORK/$name" --json --user 65534 \
        --set stack.raid=md0 --set stack.filesystem=xfs "${destroy[@]}" "$@" -- sh -c "$script"
}

# Prints one of the program's numbers in summary.json, by its key.
#   of NAME KEY
of() { awk -F': ' -v key="\"$2\"" '$1 ~ key { print $2 + 0; exit }' "$LAB_WORK/$1/summary.json"; }

# Asserts LEAST <= NUMBER <= MOST.
#   between NUMBER LEAST MOST
between() { (($1 >= $2 && $1 <= $3)) || { echo "$1 is not within $2 and $3"; return 1; }; }

a_program_on_md_has_its_bytes_by_level_and_by_name() {
    local mib=$((1 << 20))
    # Each dd has ended by the end of the run; its I/O is still attributed to it.
    runs counted 'dd if=/dev/zero of={dir}/f bs=1M count=128 oflag=direct
        for i in 1 2; do dd if={dir}/f of=/dev/null bs=1M iflag=direct; done; sleep 1' >/dev/null
    nothing_left
    for level in top drives; do
        between "$(of counted "${level}_read_bytes")" $((256 * mib)) $((262 * mib))
        between "$(of counted "${level}_written_bytes")" $((128 * mib)) $((135 * mib))
    done
    awk -v mib=$mib '/"dd": / { dd = 1 } dd && /"read_bytes"/ { read = $2 + 0 }
        dd && /"written_bytes"/ { written = $2 + 0; dd = 0 }
        END { exit !(read >= 256 * mib && read < 262 * mib && written >= 128 * mib && written < 132 * mib) }' \
        "$LAB_WORK/counted/summary.json"
    # The machine's drives are not real, and the run says so.
    grep -q '"emulated"' "$LAB_WORK/counted/summary.json"
    # The kernel keeps no times for an array, but does for its drives.
    grep -q '"drives_ms": [1-9]' "$LAB_WORK/counted/summary.json"
    between "$(of counted cpu_ns)" 1000000 60000000000
}

a_cap_holds_under_version_2_and_ends_what_needs_more() {
    local mib=$((1 << 20))
    runs capped 'dd if=/dev/zero of=f bs=1M count=96 oflag=direct; cat f f >/dev/null; sleep 1' --mem 24MiB >/dev/null
    between "$(of capped memory_bytes)" $((4 * mib)) $((24 * mib))
    between "$(of capped cache_bytes)" $mib $((24 * mib))
    # Nothing stays cached between the first and the second read.
    between "$(of capped top_read_bytes)" $((180 * mib)) $((210 * mib))
    expect 1 "killed [0-9]+ of the program's processes for memory" \
        runs hungry 'head -c 200M /dev/zero | tail >/dev/null; sleep 20' --mem 24MiB
    nothing_left
    ! compgen -G '/sys/fs/cgroup/stacktune-*' || return 1
}

a_killed_run_of_a_program_is_ended_by_cleanup() {
    local pid
    runs killed 'setsid sh -c "sleep 777 & sleep 777" & sleep 777' >"$LAB_WORK/said" 2>&1 &
    pid=$!
    wait_for 120 pgrep -fx 'sleep 777' >/dev/null || { cat "$LAB_WORK/said"; return 1; }
    # The shell that waits for it, then the program itself.
    pkill -KILL -P "$pid" || true
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" || true
    "$STACKTUNE" status | grep -q 'program in cgroup /sys/fs/cgroup/'
    "$STACKTUNE" cleanup
    ! pgrep -fx 'sleep 777' || return 1
    nothing_left
}

a_trace_times_a_read_as_fio_does() {
    local trace=$LAB_WORK/t.blktrace.0 by_fio by_trace
    mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
    # Reads take ten milliseconds, so the time that the kernel and fio add above the drive is negligible.
    monitor block_set_io_throttle drive0 0 0 0 100 0 0
    "$STACKTUNE" trace --device "$(drive 0)" --out "$trace" --user root -- fio --name=r --rw=randread --bs=4k --direct=1 \
        --ioengine=psync --readonly --filename="$(drive 0)" --time_based --runtime=10s --norandommap \
        --output-format=json --output="$LAB_WORK/fio.json"
    monitor block_set_io_throttle drive0 0 0 0 0 0 0
    by_fio=$(awk -F'[:,]' '/"clat_ns"/ { clat = 1 } clat && /"50.000000"/ { print $2 + 0; exit }' "$LAB_WORK/fio.json")
    by_trace=$("$STACKTUNE" contract "$trace" --json |
        awk -F'[:,]' '/"latency"/ { of = 1 } of && /"read"/ { read = 1 } read && /"p50_ns"/ { print $2 + 0; exit }')
    echo "# a read's p50 is $by_fio ns by fio, and $by_trace ns by the trace"
    between "$by_fio" 5000000 20000000
    between "$by_trace" $((by_fio * 9 / 10)) "$by_fio"
}

run_tests a_program_on_md_has_its_bytes_by_level_and_by_name a_cap_holds_under_version_2_and_ends_what_needs_more \
    a_killed_run_of_a_program_is_ended_by_cleanup a_trace_times_a_read_as_fio_does
