#!/bin/bash
# Drives reformatted to another logical block size while a stack stands, and back afterwards, even after kills.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a md_mod raid0 raid456 xfs ext4 2>/dev/null

formatted=$(profile formatted "$(drives)")
mapfile -t consent < <(consent)

# All drives have logical blocks of that size, according to the kernel and to the drives themselves.
blocks_are() {
    local number name size
    for number in 0 1 2 3; do
        name=$(basename "$(node "$number")")
        size=$(<"/sys/block/$name/queue/logical_block_size")
        [[ $size == "$1" ]] || { echo "drive $number has blocks of $size, expected $1"; return 1; }
    done
    "$STACKTUNE" host | grep -c "LBA formats.* $1 B (in use)" | grep -qx 4
}

# Starts recording with 4 KiB blocks in the background, and waits until the load runs; $pid is the program.
begins() {
    local name=$1
    shift
    "$STACKTUNE" record "$formatted" --out "/share/$name" --set stack.lba_size=4KiB "${consent[@]}" "$@" \
        >"$LAB_WORK/said" 2>&1 &
    pid=$!
    wait_for 120 has_windows "/share/$name/windows.jsonl" 2 || { cat "$LAB_WORK/said"; return 1; }
}

has_journal() { compgen -G '/var/lib/stacktune/journal/*.jsonl' >/dev/null; }

drives_are_formatted_for_a_stack_and_back() {
    blocks_are 512
    "$STACKTUNE" record "$formatted" --dry-run --set stack.lba_size=4KiB | grep -q 'format /dev/nvme.*to blocks of 4.00 KiB'
    blocks_are 512
    begins formatted --for 4s --verify --set stack.raid=md5 --set stack.filesystem=xfs
    blocks_are 4096
    wait "$pid" || { cat "$LAB_WORK/said"; return 1; }
    grep -q 'lba_size = "4KiB"' /share/formatted/profile.toml
    grep -q '"direct_align_bytes": *4096' /share/formatted/*.json
    blocks_are 512
    nothing_left
}

what_has_no_such_format_is_refused() {
    local before
    before=$(edges)
    expect 2 'multiples of 4KiB' "$STACKTUNE" record "$formatted" --for 1s --out /share/none \
        --set stack.lba_size=4KiB --set io.page_size=512B "${consent[@]}"
    expect 3 'destroys everything' "$STACKTUNE" record "$formatted" --for 1s --out /share/none --set stack.lba_size=4KiB
    expect 2 'the target is files' "$STACKTUNE" check demo --set stack.lba_size=4KiB
    blocks_are 512
    [[ $before == "$(edges)" ]]
    nothing_left
}

a_killed_runs_drives_are_formatted_back_unless_others_use_them() {
    begins killed-lba --for 5m
    kill -9 "$pid"
    wait "$pid" || true
    "$STACKTUNE" status >"$LAB_WORK/status"
    grep -q 'LBA format of .*RIG0.*blocks of 4096 instead of 512' "$LAB_WORK/status"
    grep -q 'nvme format /dev/nvme.* --lbaf=0' "$LAB_WORK/status"
    # One drive gets a file system, one is written to without any, and one keeps no trace of the run.
    mkfs.ext4 -q "$(node 2)"
    dd if=/dev/urandom of="$(node 1)" bs=1M seek=8 count=4 oflag=direct status=none
    blkdiscard "$(node 0)"
    expect 3 'is not empty: ext4 signature' "$STACKTUNE" cleanup
    expect 3 'is not empty: data at' "$STACKTUNE" cleanup
    [[ $(blkid -p -o value -s TYPE "$(node 2)") == ext4 ]]
    expect 3 'is not empty: data at' "$STACKTUNE" cleanup --destroy "$(node 2)"
    "$STACKTUNE" cleanup --destroy "$(node 1)"
    blocks_are 512
    nothing_left
}

killed_while_drives_are_formatted_cleanup_formats_them_back() {
    local i ms kills=3
    [[ -z ${SOAK:-} ]] || kills=20
    for ((i = 0; i < kills; i++)); do
        ms=$((RANDOM % 400))
        "$STACKTUNE" record "$formatted" --for 1m --out "/share/killed-lba-$i" --set stack.raid=md0 \
            --set stack.lba_size=4KiB "${consent[@]}" >"$LAB_WORK/said" 2>&1 &
        pid=$!
        wait_for 60 has_journal
        sleep "0.$(printf %03d $ms)"
        kill -9 "$pid"
        wait "$pid" || true
        "$STACKTUNE" cleanup || { echo "kill $i, after $ms ms"; return 1; }
        blocks_are 512 || { echo "kill $i, after $ms ms"; return 1; }
        nothing_left
    done
}

[[ -n ${SOAK:-} ]] || exit 0
run_tests drives_are_formatted_for_a_stack_and_back what_has_no_such_format_is_refused \
    a_killed_runs_drives_are_formatted_back_unless_others_use_them \
    killed_while_drives_are_formatted_cleanup_formats_them_back
