#!/bin/bash
# Writes that the block layer acknowledges and then drops, halves or misplaces in the middle of a run: a device-mapper
# device turns bad under load and good again. dm-log-writes above it logs all writes, and tests/lab/dropped.rs
# compares the log, the drive's content, and the report of verification.
#
#   dropped.sh PROGRAM MIB LOG_MIB SETTING...      each setting (INTERFACE/BUFFERING) gets MIB of the first drive,
#                                                  and LOG_MIB of the second for its log
set -euo pipefail
cd "$(dirname "$0")"
# No udev creates device nodes here.
export STACKTUNE=$1 LAB_WORK=/srv/lab DM_DISABLE_UDEV=1
size=$(($2 * 2048)) log_size=$(($3 * 2048))
shift 3
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a dm_mod dm_flakey dm_log_writes nvmet nvmet_tcp nvme_tcp
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
mkdir -p "$LAB_WORK"

# A table of 2 MiB stretches: intact, dropped, the second half of each 16 KiB page dropped, swapped in pairs.
#   bad DEVICE BEGIN
bad() {
    awk -v all="$size" -v device="$1" -v begin="$2" 'BEGIN {
        each = 4096; page = 32
        drop = "0 1000000 1 drop_writes"
        for (n = 0; n * each < all; n++) {
            at = n * each
            other = int(n / 4) % 2 ? n - 4 : n + 4
            if (n % 4 == 1) printf "%d %d flakey %s %d %s\n", at, each, device, begin + at, drop
            else if (n % 4 == 2) for (p = at; p < at + each; p += page) {
                printf "%d %d linear %s %d\n", p, page / 2, device, begin + p
                printf "%d %d flakey %s %d %s\n", p + page / 2, page / 2, device, begin + p + page / 2, drop
            }
            else if (n % 4 == 3 && other * each < all) printf "%d %d linear %s %d\n", at, each, device, begin + other * each
            else printf "%d %d linear %s %d\n", at, each, device, begin + at
        }
    }'
}

good() { printf '0 %d linear %s %d\n' "$size" "$1" "$2"; }

# Replaces the table under the running load.
turn() {
    dmsetup load faulty
    dmsetup suspend faulty
    dmsetup resume faulty
}

# The guard accepts only drives: the kernel's NVMe target exports a device as one, under its name.
export_it() {
    local tree=/sys/kernel/config/nvmet of
    of=$tree/subsystems/$1
    mkdir -p "$of/namespaces/1" "$tree/ports/1"
    echo 1 >"$of/attr_allow_any_host"
    printf '/dev/mapper/%s' "$1" >"$of/namespaces/1/device_path"
    echo 1 >"$of/namespaces/1/enable"
    if [[ $(<"$tree/ports/1/addr_trtype") != tcp ]]; then
        echo tcp >"$tree/ports/1/addr_trtype"
        echo ipv4 >"$tree/ports/1/addr_adrfam"
        echo 127.0.0.1 >"$tree/ports/1/addr_traddr"
        echo 4420 >"$tree/ports/1/addr_trsvcid"
    fi
    ln -s "$of" "$tree/ports/1/subsystems/$1"
    echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=$1" >/dev/nvme-fabrics
    wait_for 30 exported "$1"
}

# Sets `at` to the exported drive's name in sysfs.
exported() {
    local nqn
    for at in /sys/block/nvme*n[0-9]; do
        read -r nqn <"$at/device/subsysnqn"
        [[ $nqn != "$1" || ! -b /dev/${at##*/} ]] || return 0
    done
    return 1
}

take_back() {
    local tree=/sys/kernel/config/nvmet
    exported "$1"
    echo 1 >"$at/device/delete_controller"
    rm "$tree/ports/1/subsystems/$1"
    echo 0 >"$tree/subsystems/$1/namespaces/1/enable"
    rmdir "$tree/subsystems/$1/namespaces/1" "$tree/subsystems/$1"
}

# A run in which only WAL and background write; little is overwritten more than once.
#   run SETTING TIME NAME
run() {
    "$STACKTUNE" record "$(profile bad "/dev/${at##*/}")" --for "$2" --out "$LAB_WORK/$3" --json --set "io.interface=${1%/*}" \
        --set "io.buffering=${1#*/}" --set io.page_size=16KiB --set scan.enabled=false --set point.enabled=false \
        --set background.rate="${RATE:-8MB/s}" --set background.depth=4 >/dev/null
}

number=0
for setting in "$@"; do
    name=${setting/\//-} begin=$((number * size))
    good "$(node 0)" $begin | dmsetup create faulty
    printf '0 %d linear %s %d\n' "$log_size" "$(node 1)" $((number * log_size)) | dmsetup create log
    export_it faulty
    run "$setting" 1s "filled-$name"
    take_back faulty
    printf '0 %d log-writes /dev/mapper/faulty /dev/mapper/log\n' "$size" | dmsetup create logged
    export_it logged
    run "$setting" "${TIME:-8s}" "$name" &
    wait_for 300 has_windows "$LAB_WORK/$name/windows.jsonl" 2
    bad "$(node 0)" $begin | turn
    wait_for 300 has_windows "$LAB_WORK/$name/windows.jsonl" 8
    good "$(node 0)" $begin | turn
    wait $!
    "$STACKTUNE" verify "$(profile bad "/dev/${at##*/}")" --json >"/share/$name.json" || echo "verify: $?"
    take_back logged
    dmsetup remove --retry logged
    dmsetup remove --retry faulty
    dmsetup remove --retry log
    number=$((number + 1))
done
