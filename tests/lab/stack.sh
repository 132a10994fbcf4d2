#!/bin/bash
# Stacks on NVMe drives: each RAID with each file system is built, run with all four classes, read back
# page by page, and taken down; nothing of it is left.
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

# One file system after another on that array.
on() {
    local raid=$1 filesystem
    shift
    for filesystem in "$@"; do
        stacked "$raid" "$filesystem" "${small[@]}"
        nothing_left
    done
}

# Emulated processors take half a minute a stack, so not every pair is here unless LAB_ALL is set.
others=()
[[ -z ${LAB_ALL:-} ]] || others=(ext4 xfs f2fs btrfs)

each_file_system_on_md0_is_verified_and_leaves_nothing() { on md0 ext4 xfs f2fs btrfs; }
mirrors_are_verified_and_leave_nothing() { on md1 xfs "${others[@]}"; }
one_parity_is_verified_and_leaves_nothing() { on md5 f2fs "${others[@]}"; }
two_parities_are_verified_and_leave_nothing() { on md6 xfs "${others[@]}"; }
striped_mirrors_are_verified_and_leave_nothing() { on md10 ext4 "${others[@]}"; }

btrfs_on_its_own_raid_is_verified_and_leaves_nothing() {
    local raid raids=(btrfs0 btrfs1 btrfs5)
    [[ -z ${LAB_ALL:-} ]] || raids+=(btrfs10)
    for raid in "${raids[@]}"; do
        stacked "$raid" btrfs "${small[@]}"
        nothing_left
    done
}

a_bare_array_is_verified_and_leaves_nothing() {
    stacked md5 none --set stack.chunk=64KiB
    nothing_left
}

a_part_of_each_drive_is_used_and_resynced() {
    stacked md5 ext4 "${small[@]}" --set stack.use=50% --set stack.assume_clean=off \
        --set stack.state=trimmed
    nothing_left
}

without_consent_nothing_is_built() {
    local before
    before=$(edges)
    expect 3 'destroys all that is on' "$STACKTUNE" record "$array" --for 1s --out /share/none \
        --set stack.raid=md0
    [[ $(edges) == "$before" ]]
    nothing_left
}

a_kept_stack_is_told_and_cleaned_up() {
    stacked md5 ext4 "${small[@]}" --keep
    grep -q '^md' /proc/mdstat
    "$STACKTUNE" status | grep -q kept
    "$STACKTUNE" cleanup --all
    nothing_left
}

a_tool_that_fails_leaves_nothing() {
    local tool consent
    mkdir -p "$LAB_WORK/failing"
    mapfile -t consent < <(consent)
    for tool in mdadm mkfs.ext4 mount; do
        rm -f "$LAB_WORK"/failing/*
        # Only where it makes something: undoing needs the rest of mdadm.
        cat >"$LAB_WORK/failing/$tool" <<SH
#!/bin/sh
case "$tool \$1" in "mdadm --create" | mkfs* | mount*) echo "$tool: no such luck" >&2; exit 1 ;; esac
exec /sbin/$tool "\$@"
SH
        chmod +x "$LAB_WORK/failing/$tool"
        PATH=$LAB_WORK/failing:$PATH expect '[1-3]' 'no such luck' "$STACKTUNE" record "$array" --for 1s \
            --out "/share/failing-$tool" --set stack.raid=md0 --set stack.filesystem=ext4 "${consent[@]}"
        nothing_left
    done
}

tests=(
    each_file_system_on_md0_is_verified_and_leaves_nothing
    mirrors_are_verified_and_leave_nothing
    one_parity_is_verified_and_leaves_nothing
    two_parities_are_verified_and_leave_nothing
    striped_mirrors_are_verified_and_leave_nothing
    btrfs_on_its_own_raid_is_verified_and_leaves_nothing
    a_bare_array_is_verified_and_leaves_nothing
    a_part_of_each_drive_is_used_and_resynced
    without_consent_nothing_is_built
    a_kept_stack_is_told_and_cleaned_up
    a_tool_that_fails_leaves_nothing
)
run_tests "${tests[@]}"
