#!/bin/bash
# Drives in use are refused (3), whatever the operator permits, and stay unchanged.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

all=$(profile all "$(drives)")

record() { "$STACKTUNE" record "$all" --for 1s --out "$LAB_WORK/out" "$@"; }

on_stack=(--set stack.raid=md1 --set stack.filesystem=ext4)

# The whole array is refused for that reason, with and without consent, bare and as members of a stack, and
# nothing is written.
#   refused DRIVE WHY
refused() {
    local before
    before=$(edges)
    expect 3 "$2" record
    expect 3 "$2" record --destroy "$(node "$1")"
    expect 3 "$2" record --destroy "$(node "$1")" "${on_stack[@]}"
    [[ $(edges) == "$before" ]]
    [[ ! -e $LAB_WORK/out/summary.json ]]
}

a_mounted_drive_is_refused() {
    need mkfs.ext4
    mkfs.ext4 -q "$(node 1)"
    mount -o ro "$(node 1)" /mnt
    refused 1 'mounted at /mnt'
    umount /mnt
}

a_drive_with_a_mounted_partition_is_refused() {
    need sfdisk mkfs.ext4
    wipefs -qa "$(node 1)"
    echo 'size=32MiB' | sfdisk -q --label gpt "$(node 1)"
    wait_for 10 test -b "$(node 1)p1"
    mkfs.ext4 -q "$(node 1)p1"
    mount -o ro "$(node 1)p1" /mnt
    refused 1 'mounted at /mnt'
    umount /mnt
    wipefs -qaf "$(node 1)p1" "$(node 1)"
    blockdev --rereadpt "$(node 1)"
}

a_drive_that_is_swapped_on_is_refused() {
    mkswap -q "$(node 2)"
    swapon "$(node 2)"
    refused 2 'swapped on'
    swapoff "$(node 2)"
    wipefs -qa "$(node 2)"
}

members_of_a_running_array_are_refused() {
    need mdadm
    modprobe raid1
    mdadm --quiet --create /dev/md7 --run --assume-clean --level=1 --metadata=1.2 --raid-devices=2 \
        "$(node 0)" "$(node 3)"
    refused 0 'md7'
}

members_of_a_stopped_array_are_refused() {
    need mdadm
    [[ ! -b /dev/md7 ]] || mdadm --quiet --stop /dev/md7
    refused 0 'part of md'
    mdadm --quiet --zero-superblock "$(node 0)" "$(node 3)"
}

a_drive_exported_over_nvme_is_refused() {
    modprobe nvmet || skip 'needs the nvmet module'
    local tree=/sys/kernel/config/nvmet/subsystems/exported
    mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
    mkdir -p "$tree/namespaces/1"
    node 3 >"$tree/namespaces/1/device_path"
    echo 1 >"$tree/namespaces/1/enable"
    refused 3 'exported'
    echo 0 >"$tree/namespaces/1/enable"
    rmdir "$tree/namespaces/1" "$tree"
}

# Commands through the character device bypass the block layer, which does not see that use.
a_drive_to_which_commands_can_be_given_is_refused() {
    local pid name
    name=$(basename "$(node 2)")
    sleep 1000 9</dev/ng"${name#nvme}" &
    pid=$!
    refused 2 'past the block layer' || { kill "$pid"; return 1; }
    kill "$pid"
    wait "$pid" || true
}

# Tools work by name: a node named like a partition here, but with another drive's number, is not touched.
a_node_that_is_another_devices_is_refused() {
    need sfdisk mkfs.ext4
    local number stale one
    for number in 0 1; do
        echo 'size=32MiB' | sfdisk -q --label gpt "$(node $number)"
        wait_for 10 test -b "$(node $number)p1"
    done
    mkfs.ext4 -q "$(node 1)p1"
    stale=$(node 0)p1 one=$(profile stale "$(drive 0)")
    rm "$stale"
    # shellcheck disable=SC2046 # two words
    mknod "$stale" b $(stat -c '0x%t 0x%T' "$(node 1)p1")
    expect 3 'to the kernel' "$STACKTUNE" record "$one" --for 1s --out "$LAB_WORK/out" --destroy "$(drive 0)"
    expect 3 'to the kernel' "$STACKTUNE" record "$one" --for 1s --out "$LAB_WORK/out" --destroy "$(drive 0)" \
        --set stack.filesystem=ext4
    e2fsck -fn "$(node 1)p1"
    rm "$stale"
    for number in 0 1; do
        wipefs -qaf "$(node $number)"
        blockdev --rereadpt "$(node $number)"
    done
}

a_drive_named_twice_by_two_names_is_refused() {
    local twice
    twice=$(profile twice "$(drive 0),$(node 0)")
    expect 2 'are the same device' "$STACKTUNE" record "$twice" --for 1s --out "$LAB_WORK/out"
    expect 2 'are the same device' "$STACKTUNE" record "$twice" --for 1s --out "$LAB_WORK/out" \
        "${on_stack[@]}" --destroy "$(drive 0)"
}

a_drive_whose_serial_is_another_is_refused() {
    local moved
    moved=$(profile moved "$(node 0)" 'serials = ["RIG1"]')
    expect 3 'RIG1' "$STACKTUNE" record "$moved" --for 1s --out "$LAB_WORK/out"
    expect 3 'RIG1' "$STACKTUNE" record "$moved" --for 1s --out "$LAB_WORK/out" \
        --set stack.filesystem=ext4 --destroy "$(drive 0)"
}

a_read_only_drive_is_refused() {
    blockdev --setro "$(node 1)"
    refused 1 'read-only'
    blockdev --setrw "$(node 1)"
}

# A device of a few MiB beside a whole drive.
a_member_that_is_too_small_is_refused() {
    local before small
    modprobe loop 2>/dev/null || true
    truncate --size 4M "$LAB_WORK/small"
    small=$(losetup --find --show "$LAB_WORK/small")
    before=$(edges)
    expect 3 'too small' "$STACKTUNE" record "$(profile two "$(node 0),$small")" --for 1s --out "$LAB_WORK/out" \
        "${on_stack[@]}" --destroy "$(node 0)" --destroy "$small"
    [[ $(edges) == "$before" ]]
    losetup --detach "$small"
}

# A checksum of the first two drives' content.
content() {
    for number in 0 1; do
        blockdev --flushbufs "$(node $number)"
        cat "$(node $number)"
    done | cksum
}

# The journal is on a full drive: nothing may be done without it. And a drive that holds the program's own
# state cannot be a member.
on_a_full_disk_nothing_is_built_and_its_drive_is_no_member() {
    local before two own
    need mkfs.ext4
    mkfs.ext4 -qF "$(node 3)"
    mount "$(node 3)" /mnt
    own=$(profile own "$(drive 0),$(drive 3)")
    XDG_STATE_HOME=/mnt expect 3 "in use: mounted at /mnt|system's own drive" "$STACKTUNE" record "$own" --for 1s \
        --out "$LAB_WORK/out" "${on_stack[@]}" --destroy "$(drive 0)" --destroy "$(drive 3)"
    dd if=/dev/zero of=/mnt/fills-it bs=64K status=none || true
    before=$(content)
    two=$(profile two "$(drive 0),$(drive 1)")
    XDG_STATE_HOME=/mnt expect 1 'no space left on device' "$STACKTUNE" record "$two" --for 1s --out "$LAB_WORK/out" \
        "${on_stack[@]}" --destroy "$(drive 0)" --destroy "$(drive 1)"
    [[ $(content) == "$before" ]]
    umount /mnt
    wipefs -qa "$(node 3)"
}

a_file_system_needs_consent_and_is_wiped_with_it() {
    need mkfs.ext4
    blank_drives
    mkfs.ext4 -q "$(node 1)"
    expect 3 'ext4' record
    "$STACKTUNE" record "$all" --for 1s --out "$LAB_WORK/with-consent" --destroy "$(drive 1)"
    "$STACKTUNE" verify "$all"
}

tests=(
    members_of_a_running_array_are_refused
    members_of_a_stopped_array_are_refused
    a_drive_exported_over_nvme_is_refused
    a_drive_to_which_commands_can_be_given_is_refused
    a_node_that_is_another_devices_is_refused
    a_drive_whose_serial_is_another_is_refused
)
# Covered on loop devices too, in tests/devices/guard.rs, stack_run.rs and safety.rs.
also_native=(
    a_file_system_needs_consent_and_is_wiped_with_it
    a_mounted_drive_is_refused
    a_drive_with_a_mounted_partition_is_refused
    a_drive_that_is_swapped_on_is_refused
    a_drive_named_twice_by_two_names_is_refused
    a_read_only_drive_is_refused
    a_member_that_is_too_small_is_refused
    on_a_full_disk_nothing_is_built_and_its_drive_is_no_member
)
[[ -z ${SOAK:-} ]] || tests=("${also_native[@]}" "${tests[@]}")
run_tests "${tests[@]}"
