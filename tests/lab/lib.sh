# Shared by the guest's scripts. A script sources it, defines a function for each test, and ends with
# "run_tests NAME...". A test fails at its first failing command.
#
# On an emulated processor a program takes a third of a second to start, so frequent operations use builtins.
# shellcheck shell=bash

# Drives by their stable names; the guest's kernel numbers them in the order it finds them.
drive() { printf '/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG%d_1' "$1"; }

# The node of a drive.
node() {
    local node drive=/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG$1_1
    for node in /dev/nvme*n[0-9]; do
        [[ ! $node -ef $drive ]] || { printf %s "$node"; return; }
    done
    return 1
}

# All drives present, separated by commas.
drives() {
    local list=(/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG?_1)
    (IFS=,; printf '%s' "${list[*]}")
}

# Stops everything that uses the drives, and blanks them.
blank_drives() {
    local at device
    swapoff -a
    while read -r at; do umount "$at"; done < <(awk '$1 ~ "^/dev/(nvme|md|loop|mapper|dm-)" { print $2 }' /proc/mounts | tac)
    [[ ! -e /sys/module/dm_mod ]] || ! command -v dmsetup >/dev/null || dmsetup remove_all
    for device in /dev/md[0-9]*; do
        [[ ! -b $device ]] || mdadm --quiet --stop "$device"
    done
    for device in /dev/nvme*n[0-9]; do
        blkdiscard --force --zeroout "$device" 2>/dev/null || return
        blockdev --rereadpt "$device" 2>/dev/null || true
    done
}

# Writes a profile of these drives and prints its path. Each class has a rate limit: on busy emulated
# processors unlimited classes would starve each other.
#   profile NAME DEVICES [MORE]      DEVICES with commas; MORE: further lines of TOML
profile() {
    local file=$LAB_WORK/$1.toml
    cat >"$file" <<TOML
name = "$1"
[target]
devices = ["${2//,/\", \"}"]
${3:-}
[scan]
depth = 16
batch = 4
rate = "20MB/s"
[point]
rate = "2MB/s"
[wal]
rate = "1MB/s"
[background]
rate = "1MB/s"
[run]
window = "500ms"
TOML
    printf '%s' "$file"
}

# A checksum of the first and last MiB of each drive.
edges() {
    local drive node sectors drives=(/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG?_1)
    blockdev --flushbufs "${drives[@]}"
    {
        head --quiet --bytes=1M "${drives[@]}"
        for drive in "${drives[@]}"; do
            for node in /sys/block/nvme*n[0-9]; do [[ ! /dev/${node##*/} -ef $drive ]] || read -r sectors <"$node/size"; done
            dd if="$drive" bs=1M count=1 skip=$((sectors / 2048 - 1)) status=none
        done
    } | cksum
}

# Asserts a command's exit status and that its output matches an extended regular expression.
#   expect STATUS SAID COMMAND...
expect() {
    local wanted=$1 said=$2 output status=0
    shift 2
    output=$("$@" 2>&1) || status=$?
    if [[ ! $status =~ ^$wanted$ ]] || ! grep -qE -- "$said" <<<"$output"; then
        printf '%s\nended with %d; expected %s and "%s"\n' "$output" "$status" "$wanted" "$said" >&2
        return 1
    fi
}

# Gives QEMU a command: device_del drive0, say.
monitor() { printf '%s\n' "$*" >/dev/virtio-ports/monitor; }

# Pulls a drive out while it is in use.
pull() {
    local name
    name=$(basename "$(node "$1")")
    monitor "device_del drive$1"
    wait_for 60 test ! -e "/sys/block/$name"
}

# Plugs it in again, perhaps under another name. QEMU refuses until the guest has switched the slot off, which happens
# after the drive is gone from sysfs.
plug() {
    local _
    for _ in {1..20}; do
        monitor "device_add nvme,id=drive$1,drive=file$1,serial=RIG$1,bus=slot$1"
        if wait_for 3 find_drive "$1"; then return; fi
    done
    return 1
}

find_drive() {
    local drive serial
    for drive in /sys/block/nvme*n1; do
        read -r serial <"$drive/device/serial" || continue
        [[ $serial != "RIG$1" ]] || { ln -sfT "/dev/${drive##*/}" "$(drive "$1")" && test -b "$(node "$1")"; return; }
    done
    return 1
}

# The consent arguments for these drives, or for all, one word per line.
consent() {
    local number numbers=("$@")
    ((${#numbers[@]})) || numbers=(0 1 2 3)
    for number in "${numbers[@]}"; do printf -- '--destroy\n%s\n' "$(drive "$number")"; done
}

# The smallest possible data set.
# shellcheck disable=SC2034 # for those who source this
small=(--set stack.data=48MiB --set stack.wal=16MiB)

# Asserts that no array, mount, signature, loop device or journal is left, except the named ones (an array, a
# mount point and drives of others).
#   nothing_left [ARRAY MOUNT NUMBER...]
nothing_left() {
    local array=${1:-none} mount=${2:-none} number line device at drives=() signatures
    shift $(($# < 2 ? $# : 2))
    if [[ -e /proc/mdstat ]]; then
        while read -r line; do
            [[ $line != md* || $line == "$array "* ]] || { echo "left: $line"; return 1; }
        done </proc/mdstat
    fi
    while read -r device at _; do
        [[ ! $device =~ ^/dev/(nvme|md|loop|mapper|dm-) || $at == "$mount" ]] || { echo "left: $device at $at"; return 1; }
    done </proc/mounts
    for number in 0 1 2 3; do
        [[ " $* " == *" $number "* ]] || drives+=("$(drive "$number")")
    done
    signatures=$(wipefs --noheadings "${drives[@]}")
    [[ -z $signatures ]] || { echo "left: $signatures"; return 1; }
    ! compgen -G '/var/lib/stacktune/journal/*' || { cat /var/lib/stacktune/journal/*; return 1; }
    ! compgen -G '/sys/block/loop*/loop/backing_file' || return 1
    # `status` has no other source than the journals.
    [[ -z ${SOAK:-} || $("$STACKTUNE" status --json) == '[]' ]]
}

# Puts somebody's file on a device, and takes it away again.
put_theirs() { mount "$1" /mnt && echo theirs >/mnt/theirs && umount /mnt; }
take_theirs() { mount "$1" /mnt && [[ $(cat /mnt/theirs) == theirs ]] && rm /mnt/theirs && umount /mnt; }

# Sets `windows` to the number of windows in a file.
count_windows() {
    local lines=()
    [[ ! -f $1 ]] || mapfile -t lines <"$1"
    windows=${#lines[@]}
}

# Whether a file has at least that many windows.
has_windows() {
    local windows
    count_windows "$1"
    ((windows >= $2))
}

# A pipe that nobody writes to: a timed read from it sleeps without starting a program. Opened once, because
# opening it would change $! for callers that wait for their own program.
exec {never}<> <(:)

# Waits until a command succeeds, SECONDS at most.
#   wait_for SECONDS COMMAND...
wait_for() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || return 1
        read -rt 0.1 -u "$never" _ || true
    done
}

# Skips the current test for that reason.
skip() {
    printf '%s\n' "$*" >"$LAB_WORK/skipped"
    exit 0
}

need() {
    local tool
    for tool in "$@"; do command -v "$tool" >/dev/null || skip "needs $tool"; done
}

# Runs each test in a shell of its own and prints "ok NAME", "skip NAME: why" or "not ok NAME: why", then a
# failed test's output or a good one's lines that begin with #, and the seconds it took.
run_tests() {
    local name status started log=$LAB_WORK/log
    for name in "$@"; do
        rm -f "$LAB_WORK/skipped"
        started=$SECONDS
        # Not in a condition, where -e would be off.
        (set -euo pipefail; "$name") >"$log" 2>&1
        status=$?
        if [[ -e $LAB_WORK/skipped ]]; then
            printf 'skip %s: %s\n' "$name" "$(<"$LAB_WORK/skipped")"
        elif ((status == 0)); then
            printf 'ok %s\n' "$name"
            sed -n '/^#/p' "$log"
        else
            printf 'not ok %s: %s\n' "$name" "$(tail -n 1 "$log")"
            sed 's/^/# /' "$log"
        fi
        printf '# %d s\n' $((SECONDS - started))
    done
}
