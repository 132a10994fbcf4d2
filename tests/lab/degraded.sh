#!/bin/bash
# A member of an md or Btrfs array fails or is pulled out under load: the run goes on, or without redundancy stops in
# order, and reports which drive it was; nothing is left afterwards.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a md_mod raid0 raid1 raid10 raid456 ext4 xfs btrfs 2>/dev/null

array=$(profile degraded "$(drives)")

# Starts recording on that stack in the background, and waits until the load runs; $pid is the program.
#   begins NAME RAID FILESYSTEM
begins() {
    local consent
    mapfile -t consent < <(consent)
    "$STACKTUNE" record "$array" --for 5m --verify --out "/share/$1" --set "stack.raid=$2" \
        --set "stack.filesystem=$3" "${small[@]}" "${consent[@]}" >"$LAB_WORK/said" 2>&1 &
    pid=$!
    wait_for 120 has_windows "/share/$1/windows.jsonl" 3
}

# A file contains that word.
has_word() {
    local text
    text=$(<"$1")
    [[ $text == *"$2"* ]]
}

# Waits until the background run shows that flag in its windows, then interrupts it.
#   goes_on_until NAME FLAG
goes_on_until() {
    wait_for 60 has_word "/share/$1/windows.jsonl" "\"$2\""
    kill -INT "$pid"
}

# The background run ended with that status and that message.
#   ended STATUS SAID
ended() {
    local status=0
    wait "$pid" || status=$?
    cat "$LAB_WORK/said"
    [[ $status =~ ^$1$ ]]
    grep -qE -- "$2" "$LAB_WORK/said"
}

# The summary of a run has that flag with those words, and no I/O failed.
#   flagged NAME FLAG WORDS
flagged() {
    local summary=/share/$1/summary.json
    grep -q "\"$2\"" "$summary"
    grep -q "$3" "$summary"
}

# The background run read back all that it had written, and found nothing else.
verified() {
    grep -q 'verified as written' "$LAB_WORK/said"
    ! grep -E 'not checked|[0-9] pages? [a-z ]+\(|stopped before' "$LAB_WORK/said"
}

no_errors() { ! grep -E '"errors": *[1-9]' "/share/$1/summary.json"; }

# The array checks itself under load, then a member fails: both are triggered through md.
goes_on_without_a_failed_member() {
    local name=failed-$1 md
    begins "$name" "$1" "$2"
    md=/dev/$(awk '/^md/ { print $1 }' /proc/mdstat)
    echo check >"/sys/block/${md#/dev/}/md/sync_action"
    wait_for 30 has_word "/share/$name/windows.jsonl" '"resync"'
    mdadm --quiet --fail "$md" "$(node 1)"
    goes_on_until "$name" degraded
    ended 130 'degraded.*serial RIG1'
    flagged "$name" degraded 'serial RIG1'
    # After the failure md looks for a spare.
    flagged "$name" resync '(check)\|(recover)'
    no_errors "$name"
    verified
    "$STACKTUNE" show "/share/$name" | grep -q degraded
    nothing_left
}

# A drive is pulled: what is on it can't be undone until it is back.
goes_on_without_a_pulled_drive() {
    local name=pulled-$1
    begins "$name" "$1" "$2"
    pull 3
    goes_on_until "$name" degraded
    ended 1 'serial RIG3.*is missing'
    flagged "$name" degraded 'serial RIG3'
    no_errors "$name"
    verified
    "$STACKTUNE" status | grep -q 'serial RIG3'
    plug 3
    "$STACKTUNE" cleanup
    nothing_left
}

failed_members_are_reported_and_the_run_continues() {
    goes_on_without_a_failed_member md10 ext4
    [[ -n ${SOAK:-} ]] || return 0
    goes_on_without_a_failed_member md1 ext4
    goes_on_without_a_failed_member md5 xfs
}

pulled_drives_are_reported_and_the_run_continues() {
    goes_on_without_a_pulled_drive md5 ext4
    [[ -n ${SOAK:-} ]] || return 0
    goes_on_without_a_pulled_drive btrfs1 btrfs
    goes_on_without_a_pulled_drive md1 xfs
    goes_on_without_a_pulled_drive md10 xfs
    goes_on_without_a_pulled_drive btrfs5 btrfs
}

a_stripe_stops_in_order_without_a_pulled_drive() {
    stops_without_a_pulled_drive md0 ext4
    [[ -z ${SOAK:-} ]] || stops_without_a_pulled_drive btrfs0 btrfs
}

stops_without_a_pulled_drive() {
    local name=pulled-$1 began=$SECONDS
    begins "$name" "$1" "$2"
    pull 3
    ended 1 'serial RIG3.*and has failed'
    ((SECONDS - began < 200))
    flagged "$name" 'array failed' 'serial RIG3'
    "$STACKTUNE" show "/share/$name" | grep -q 'array failed'
    # The drive is gone for good: its leftovers are given up, and whoever uses it next wipes them.
    "$STACKTUNE" cleanup --forget-missing
    [[ $("$STACKTUNE" status --json) == '[]' ]]
    plug 3
    blank_drives
    nothing_left
}

# After a kill, somebody's files on the stripe can't be looked for until a pulled drive is back.
others_files_on_a_stripe_wait_for_a_pulled_drive() {
    local md
    begins torn md0 ext4
    md=$(awk '$1 ~ "^/dev/md" { print $1 }' /proc/mounts)
    kill -9 "$pid"
    wait "$pid" || true
    wait_for 10 umount "$md"
    put_theirs "$md"
    mdadm --quiet --stop "$md"
    pull 3
    expect 3 'does not run without.*RIG3.*so its content is unknown' "$STACKTUNE" cleanup
    plug 3
    expect 3 'holds theirs, which stacktune did not put there' "$STACKTUNE" cleanup
    md=/dev/$(awk '/^md/ { print $1 }' /proc/mdstat)
    take_theirs "$md"
    "$STACKTUNE" cleanup
    nothing_left
}

# mdadm reports that the member is busy, and md still stops all writes (Linux 6.5; an older one goes on
# unharmed). The kernel does not say which member it was.
a_stripe_whose_member_is_failed_stops_in_order_or_goes_on() {
    local name=failed-md0 md windows
    begins "$name" md0 ext4
    md=$(awk '/^md/ { print $1 }' /proc/mdstat)
    mdadm --fail "/dev/$md" "$(node 1)" || true
    if grep -q broken "/sys/block/$md/md/array_state"; then
        ended 1 "md array $md has lost a member.*and has failed"
        flagged "$name" 'array failed' "$md"
    else
        count_windows "/share/$name/windows.jsonl"
        wait_for 60 has_windows "/share/$name/windows.jsonl" $((windows + 4))
        kill -INT "$pid"
        ended 130 ''
        no_errors "$name"
        verified
    fi
    nothing_left
}

run_tests failed_members_are_reported_and_the_run_continues
[[ -z ${SOAK:-} ]] || run_tests pulled_drives_are_reported_and_the_run_continues \
    others_files_on_a_stripe_wait_for_a_pulled_drive \
    a_stripe_whose_member_is_failed_stops_in_order_or_goes_on a_stripe_stops_in_order_without_a_pulled_drive
