#!/bin/bash
# Stacks on NVMe drives: built, run with all four classes, read back page by page, and taken down; nothing of them is
# left. With SOAK each RAID with each file system; otherwise stripes and parity on F2FS and XFS, since loop devices
# cover the other file systems.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a loop md_mod raid0 raid1 raid10 raid456 f2fs xfs ext4 btrfs 2>/dev/null

array=$(profile stacked "$(drives)")

# Records a run on that stack, and reads it back.
#   stacked RAID FILESYSTEM [MORE...]
stacked() {
    local raid=$1 filesystem=$2 consent
    shift 2
    mapfile -t consent < <(consent)
    "$STACKTUNE" record "$array" --for 1s --verify --out "/share/stack-$raid-$filesystem-$RANDOM" --json \
        --set "stack.raid=$raid" --set "stack.filesystem=$filesystem" "${consent[@]}" "$@" >/dev/null
}

# Runs one file system after another on that array.
on() {
    local raid=$1 filesystem
    shift
    for filesystem in "$@"; do
        stacked "$raid" "$filesystem" "${small[@]}"
        nothing_left
    done
}

# The file systems to try on an array: those named, or with SOAK all.
filesystems() {
    if [[ -n ${SOAK:-} ]]; then on "$1" ext4 xfs f2fs btrfs; else on "$@"; fi
}

stripes_are_verified_and_leave_nothing() { filesystems md0 f2fs; }
mirrors_are_verified_and_leave_nothing() { filesystems md1 xfs; }
one_parity_is_verified_and_leaves_nothing() { filesystems md5 ext4; }
two_parities_are_verified_and_leave_nothing() { filesystems md6 btrfs; }
striped_mirrors_are_verified_and_leave_nothing() { filesystems md10 ext4; }

btrfs_on_its_own_raid_is_verified_and_leaves_nothing() {
    local raid raids=(btrfs10)
    [[ -z ${SOAK:-} ]] || raids=(btrfs0 btrfs1 btrfs10 btrfs5)
    for raid in "${raids[@]}"; do
        stacked "$raid" btrfs "${small[@]}"
        nothing_left
    done
}

# A retained bare array is removed as long as nobody has put anything on it.
a_bare_array_is_verified_and_leaves_nothing() {
    local md raid raids=(md0 md10)
    for raid in "${raids[@]}"; do
        stacked "$raid" none --set stack.chunk=64KiB
        nothing_left
    done
    # The previous data set's header is where this array begins, and its pages are elsewhere.
    stacked md10 none --set stack.chunk=128KiB
    nothing_left
    stacked md5 none --set stack.chunk=64KiB --keep
    md=/dev/$(awk '/^md/ { print $1 }' /proc/mdstat)
    mkfs.ext4 -qF "$md"
    expect 3 "$md holds ext4, which the stack did not put there" "$STACKTUNE" cleanup --all
    grep -q '^md' /proc/mdstat
    wipefs --quiet --all "$md"
    "$STACKTUNE" cleanup --all
    nothing_left
}

a_part_of_each_drive_is_used_and_resynced() {
    stacked md5 ext4 "${small[@]}" --set stack.use=25% --set stack.assume_clean=off \
        --set stack.state=trimmed
    nothing_left
}

# Sums a count of what was written over the windows after number FROM, up to TO.
#   sum_of FILE FROM TO COUNT
sum_of() {
    sed -n "$(($2 + 1)),$3p" "$1" | grep -o '"written":{[^}]*}' | grep -o "\"$4\":[0-9]*" |
        awk -F: '{ sum += $2 } END { print sum + 0 }'
}

# Only builtins from here on: while a program starts, the load keeps writing.
#
# Sets `sectors` to what the drives of these kernel names have written.
count_sectors() {
    local name fields
    sectors=0
    for name in "$@"; do
        read -ra fields <"/sys/block/$name/stat"
        sectors=$((sectors + fields[6]))
    done
}

# Records on that array of these drives. The drives' writes in the windows must match the growth of the
# kernel's counters, and each byte written at the top must cost LEAST to MOST bytes on the drives.
#   amplified RAID LEAST MOST NUMBER...
amplified() {
    local raid=$1 least=$2 most=$3 out=/share/amplified-$1 devices=() names=() consent pid file
    local windows sectors from to first last
    shift 3
    for number in "$@"; do
        devices+=("$(drive "$number")")
        names+=("$(basename "$(node "$number")")")
    done
    mapfile -t consent < <(consent "$@")
    rm -rf "$out"
    "$STACKTUNE" record "$(profile amplified "$(IFS=,; printf '%s' "${devices[*]}")")" --for 5m --out "$out" --json \
        --set "stack.raid=$raid" --set stack.filesystem=ext4 "${small[@]}" "${consent[@]}" --set scan.enabled=false \
        --set point.enabled=false --set io.buffering=direct --set background.rate=4MB/s >/dev/null &
    pid=$!
    file=$out/windows.jsonl
    wait_for 120 has_windows "$file" 1
    count_windows "$file" && count_sectors "${names[@]}"
    from=$windows first=$sectors
    wait_for 60 has_windows "$file" $((from + 10))
    count_windows "$file" && count_sectors "${names[@]}"
    to=$windows last=$sectors
    kill -INT "$pid"
    wait "$pid" || (($? == 130))
    awk -v recorded="$(sum_of "$file" "$from" "$to" drives_bytes)" -v counted=$(((last - first) * 512)) \
        'BEGIN { print recorded, counted; exit !(counted > 0 && recorded > counted * 0.85 && recorded < counted * 1.15) }'
    awk -v least="$least" -v most="$most" \
        '/"raid":/ { print; raid = $2 + 0 } END { exit !(raid >= least && raid <= most) }' "$out/summary.json"
    grep -q '"wa_d": null' "$out/summary.json"
    nothing_left
}

a_mirror_of_two_takes_each_byte_twice() {
    amplified md1 1.98 2.08 0 1
}

# md writes parity with each page: twice the bytes, and less where whole stripes are filled.
parity_takes_more_bytes_than_are_written() {
    amplified md5 1.3 2.2 0 1 2
}

without_consent_nothing_is_built() {
    local before
    before=$(edges)
    expect 3 'destroys everything on' "$STACKTUNE" record "$array" --for 1s --out /share/none \
        --set stack.raid=md0
    [[ $(edges) == "$before" ]]
    nothing_left
}

a_retained_stack_is_reported_and_cleaned_up() {
    stacked md5 ext4 "${small[@]}" --keep
    grep -q '^md' /proc/mdstat
    "$STACKTUNE" status | grep -q "is retained"
    "$STACKTUNE" cleanup --all
    nothing_left
}

# Kills a run on a stack and unmounts what it leaves; `on` is the device that was mounted.
#   killed NAME PROFILE [MORE...]
killed() {
    local name=$1 profile=$2 pid
    shift 2
    "$STACKTUNE" record "$profile" --for 5m --out "/share/$name" "${small[@]}" "$@" >/dev/null &
    pid=$!
    wait_for 120 has_windows "/share/$name/windows.jsonl" 1
    on=$(awk '$2 ~ "^/var/lib/stacktune/mnt/" { print $1 }' /proc/mounts)
    kill -9 "$pid"
    wait "$pid" || true
    wait_for 10 umount "$on"
}

# Somebody else's file system on it, running or stopped: it stays until it is wiped.
a_file_system_on_the_array_of_a_dead_stack_stays() {
    local consent on
    mapfile -t consent < <(consent 0 1)
    killed remade "$(profile remade "$(drive 0),$(drive 1)")" --set stack.raid=md1 --set stack.filesystem=xfs \
        "${consent[@]}"
    mkfs.ext4 -qF "$on"
    put_theirs "$on"
    expect 3 'holds ext4, which the stack did not put there' "$STACKTUNE" cleanup
    mdadm --quiet --stop "$on"
    expect 3 'holds ext4, which the stack did not put there' "$STACKTUNE" cleanup
    on=/dev/$(awk '/^md/ { print $1 }' /proc/mdstat)
    take_theirs "$on"
    wipefs --quiet --all "$on"
    "$STACKTUNE" cleanup
    nothing_left
}

# The same on a partition.
a_file_system_on_the_partition_of_a_dead_stack_stays() {
    local consent on
    mapfile -t consent < <(consent 0)
    killed parted "$(profile parted "$(drive 0)")" --set stack.use=90% --set stack.filesystem=xfs "${consent[@]}"
    [[ $on == /dev/nvme*p1 ]]
    mkfs.ext4 -qF "$on"
    expect 3 'holds ext4, which the stack did not put there' "$STACKTUNE" cleanup
    e2fsck -fn "$on"
    wipefs --quiet --all "$on"
    "$STACKTUNE" cleanup
    nothing_left
}

# Used by somebody else, and stopped: their files are found before anything is removed.
others_files_on_a_stopped_array_of_a_dead_stack_stay() {
    local consent on
    mapfile -t consent < <(consent 0 1 2)
    killed dead "$(profile dead "$(drive 0),$(drive 1),$(drive 2)")" --set stack.raid=md5 --set stack.filesystem=xfs \
        "${consent[@]}"
    others_files_are_found "$on"
}

# Runs `between` before the first look; afterwards only what `left` names may remain.
between=(true)
left=()
others_files_are_found() {
    put_theirs "$1"
    mdadm --quiet --stop "$1"
    "${between[@]}"
    expect 3 'holds theirs, which stacktune did not put there' "$STACKTUNE" cleanup
    on=/dev/$(awk '/^md/ { print $1 }' /proc/mdstat)
    take_theirs "$on"
    mdadm --quiet --stop "$on"
    "$STACKTUNE" cleanup
    nothing_left "${left[@]}"
}

# The same on files, the only thing that survives a reboot.
others_files_on_an_array_of_files_stay_after_a_reboot() {
    local on file between=(as_after_a_reboot) left=(none "$LAB_WORK/files" 3)
    # Loop devices with direct I/O need a file system on a drive.
    mkfs.ext4 -qF "$(node 3)"
    mkdir -p "$LAB_WORK/files"
    mount "$(node 3)" "$LAB_WORK/files"
    file=$(profile files "$(drive 0)")
    sed -i "s,^devices = .*,files = { dir = \"$LAB_WORK/files\"\\, count = 2\\, size = \"96MiB\" }," "$file"
    killed files "$file" --set stack.raid=md1 --set stack.filesystem=ext4
    others_files_are_found "$on"
    [[ $(echo "$LAB_WORK"/files/*) == */lost+found ]]
    umount "$LAB_WORK/files"
    wipefs --quiet --all "$(node 3)"
}

as_after_a_reboot() {
    losetup --detach-all
    sed -i 's/"boot":"[0-9a-f]*/"boot":"00000000/' /var/lib/stacktune/journal/*.jsonl
}

# Strips what differs each time: everything derived from the stack's id, and the array's number.
alike() { sed -E 's/^printf .* \| //; s|/dev/md[0-9]+|/dev/mdN|g; s/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g; s/([/-])[0-9a-f]{8,16}( |$)/\1ID\2/g'; }

# Wraps each tool to log its command line, and then run it.
what_runs_is_what_the_dry_run_has_shown() {
    local tool stack shims=$LAB_WORK/shims builders='^(sfdisk|blkdiscard|mdadm --create|mkfs\.[a-z0-9]+|mount) '
    need python3
    stack=(--set stack.raid=md5 --set stack.filesystem=xfs --set stack.use=60% --set stack.state=trimmed)
    mkdir -p "$shims"
    for tool in sfdisk blkdiscard mdadm mkfs.xfs mount; do
        cat >"$shims/$tool" <<SH
#!/bin/sh
echo "$tool \$*" >>"$LAB_WORK/called"
exec $tool "\$@"
SH
        chmod +x "$shims/$tool"
    done
    STACKTUNE_TEST_TOOLS=$shims "$STACKTUNE" record "$array" --for 1s --out /share/none --dry-run --json "${small[@]}" "${stack[@]}" |
        python3 -c 'import json, sys; [print(command) for step in json.load(sys.stdin)["steps"] for command in step["command"].split("; ")]' |
        alike | grep -E "$builders" >"$LAB_WORK/shown"
    touch "$LAB_WORK/called"
    if grep -E "$builders" "$LAB_WORK/called" | grep -v -- --json; then return 1; fi
    STACKTUNE_TEST_TOOLS=$shims stacked md5 xfs "${small[@]}" "${stack[@]:4}"
    # Commands that inspect or undo are not part of the plan.
    alike <"$LAB_WORK/called" | grep -E "$builders" | grep -v -- '--json\|--delete' >"$LAB_WORK/made"
    diff "$LAB_WORK/shown" "$LAB_WORK/made"
    (($(wc -l <"$LAB_WORK/made") >= 10))
    nothing_left
}

a_tool_that_fails_leaves_nothing() {
    local tool consent
    mkdir -p "$LAB_WORK/failing"
    mapfile -t consent < <(consent)
    for tool in mdadm mkfs.ext4 mount; do
        rm -f "$LAB_WORK"/failing/*
        # Fails only where it creates something: undoing needs the rest of mdadm.
        cat >"$LAB_WORK/failing/$tool" <<SH
#!/bin/sh
case "$tool \$1" in "mdadm --create" | mkfs* | mount*) echo "$tool: no such luck" >&2; exit 1 ;; esac
exec /sbin/$tool "\$@"
SH
        chmod +x "$LAB_WORK/failing/$tool"
        STACKTUNE_TEST_TOOLS=$LAB_WORK/failing expect '[1-3]' 'no such luck' "$STACKTUNE" record "$array" --for 1s \
            --out "/share/failing-$tool" --set stack.raid=md0 --set stack.filesystem=ext4 "${consent[@]}"
        nothing_left
    done
}

tests=(
    stripes_are_verified_and_leave_nothing
    without_consent_nothing_is_built
)
[[ -z ${SOAK:-} ]] || tests+=(
    a_part_of_each_drive_is_used_and_resynced
    a_mirror_of_two_takes_each_byte_twice
    mirrors_are_verified_and_leave_nothing
    one_parity_is_verified_and_leaves_nothing
    two_parities_are_verified_and_leave_nothing
    striped_mirrors_are_verified_and_leave_nothing
    btrfs_on_its_own_raid_is_verified_and_leaves_nothing
    a_bare_array_is_verified_and_leaves_nothing
    parity_takes_more_bytes_than_are_written
    a_retained_stack_is_reported_and_cleaned_up
    others_files_on_a_stopped_array_of_a_dead_stack_stay
    others_files_on_an_array_of_files_stay_after_a_reboot
    a_file_system_on_the_array_of_a_dead_stack_stays
    a_file_system_on_the_partition_of_a_dead_stack_stays
    a_tool_that_fails_leaves_nothing
    what_runs_is_what_the_dry_run_has_shown
)
run_tests "${tests[@]}"
