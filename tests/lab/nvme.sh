#!/bin/bash
# In the guest: binds drives to vfio-pci, runs a program's tests on them, and gives them back.
#
#   nvme.sh PROGRAM STACKTUNE      PROGRAM: tests/lab/nvme.rs; STACKTUNE: stacktune's binary
set -euo pipefail
program=$1 stacktune=$2
log=/run/nvme.log

# The PCI address of the drive with that serial.
address() { basename "$(readlink -f "$(dirname "$(grep -l "^$1 *$" /sys/class/nvme/nvme*/serial)")/device")"; }

bind() {
    local device=/sys/bus/pci/devices/$1
    [[ ! -e $device/driver ]] || echo "$1" >"$device/driver/unbind"
    echo "$2" >"$device/driver_override"
    echo "$1" >/sys/bus/pci/drivers_probe
    [[ $(basename "$(readlink -f "$device/driver")") == "$2" ]]
}

run() {
    local status=0
    printf '# %s\n' "$1"
    NVME_TEST=$1 timeout 120 "$program" --exact nvme::the_driver_works_on_emulated_drives --nocapture --test-threads 1 >"$log" 2>&1 </dev/null || status=$?
    grep -vE '^(running|test result|)$|^running|^test result' "$log" || true
    ((status == 0)) || { printf 'not ok %s (%d)\n' "$1" "$status"; dmesg | tail -n 20; exit 1; }
}

# --- the program: drives leave the kernel for a run, and come back ------------------------------------
work=/srv/nvme-work
mkdir -p $work
# shellcheck source=tests/lab/userspace.sh
. "$(dirname "$0")/userspace.sh"
write_profile vfio
# Asserts that it is refused (3) for that reason.
refused() {
    local status=0 said
    said=$(record --out $work/none 2>&1) || status=$?
    if ((status == 3)) && grep -q -- "$1" <<<"$said"; then return; fi
    printf '%s\n' "$said"
    fail "ended with $status, not for: $1"
}
record() { "$stacktune" record $work/array.toml --for 1s "$@"; }

printf '# a run over vfio\n'
record --out $work/out --json >/dev/null || fail 'the run'
all_are_back
"$stacktune" show $work/out | head -n 30
[[ $(tr -d ' \n' <$work/out/summary.json | grep -o '"errors":[0-9]*' | sort -u) == '"errors":0' ]] || fail 'I/O errors'
[[ $(tr -d ' \n' <$work/out/summary.json | grep -o '"ios":[0-9]*' | grep -vc ':0$') -ge 3 ]] || fail 'classes did nothing'
"$stacktune" verify $work/array.toml || fail 'what was written is not there'
if "$stacktune" status | grep -qi dead; then fail 'something is left'; fi

# The returned drives are healthy: by their own log, and with a file system on one of them.
healthy() {
    local at
    if command -v nvme >/dev/null; then
        for at in 0 1; do
            nvme smart-log "/dev/nvme${at}n1" >$work/smart
            if (($(grep -cE '^(critical_warning|media_errors)[[:space:]]*: 0$' $work/smart) != 2)); then
                cat $work/smart
                fail "nvme${at}n1 is not well"
            fi
        done
    fi
    mkfs.ext4 -qF /dev/nvme1n1
    mount /dev/nvme1n1 /mnt
    head -c 1048576 /dev/urandom >/mnt/file
    umount /mnt
    wipefs --quiet --all /dev/nvme1n1
    record --out "$work/healthy-$1" --destroy /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG1_1 --json >/dev/null ||
        fail "not after $1"
}
mkdir -p /mnt
[[ -z ${SOAK:-} ]] || healthy 'a run'

printf '# too little memory may be locked\n'
status=0
(ulimit -l 128; setpriv --bounding-set -ipc_lock "$stacktune" record $work/array.toml --for 1s --out $work/locked) \
    >$work/log 2>&1 || status=$?
if ! ((status == 2)) || ! grep -q 'limit of locked memory, 128 KiB (RLIMIT_MEMLOCK)' $work/log; then
    cat $work/log
    fail "ended with $status"
fi
all_are_back
[[ -z ${SOAK:-} ]] || healthy 'an error'

printf '# a panic\n'
NVME_DRIVE0=$(address RIG0)
export NVME_DRIVE0 NVME_PROFILE=$work/array.toml
run guest_panics
all_are_back
[[ -z ${SOAK:-} ]] || healthy 'a panic'

printf '# pulled while it is polled\n'
sed 's/"array"/"one"/; s/^devices = .*/devices = ["\/dev\/disk\/by-id\/nvme-QEMU_NVMe_Ctrl_RIG2_1"]/' \
    $work/array.toml >$work/one.toml
"$stacktune" record $work/one.toml --for 60s --out $work/pulled >$work/log 2>&1 &
pid=$!
for i in {1..1500}; do [[ ! -s $work/pulled/windows.jsonl ]] || break; sleep 0.1; done
pulled=$(basename /sys/bus/pci/drivers/vfio-pci/0000:*)
echo 'device_del drive2' >/dev/virtio-ports/monitor
status=0
wait $pid || status=$?
if ! ((status == 1)) || ! grep -qE 'wants [0-9a-f:.]+ back|no longer there' $work/log ||
    [[ ! -s $work/pulled/summary.json ]]; then
    cat $work/log
    fail "ended with $status"
fi
for i in {1..200}; do [[ -e /sys/bus/pci/devices/$pulled ]] || break; sleep 0.1; done
# QEMU refuses until the guest has switched the slot off, which happens after the drive is gone from sysfs.
for i in {1..200}; do
    [[ ! -b /dev/nvme2n1 ]] || break
    ((i % 10 != 1)) || echo 'device_add nvme,id=drive2,drive=file2,serial=RIG2,bus=slot2' >/dev/virtio-ports/monitor
    sleep 0.1
done
all_are_back

printf '# refused\n'
mkfs.ext4 -qF "$(readlink -f /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG1_1)"
refused ext4
mount "$(readlink -f /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG1_1)" /mnt
refused 'mounted at /mnt'
umount /mnt
all_are_back

printf '# killed, and cleaned up\n'
"$stacktune" record $work/array.toml --for 600s --out $work/killed \
    --destroy /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG1_1 >$work/log 2>&1 &
pid=$!
for i in {1..1500}; do [[ ! -s $work/killed/windows.jsonl ]] || break; sleep 0.1; done
kill -9 $pid
wait $pid 2>/dev/null || true
[[ ! -e /dev/nvme0n1 ]] || fail 'it was not handed over'
"$stacktune" status
"$stacktune" status | grep -q 'detached from the kernel' || fail 'it is not reported'
"$stacktune" cleanup || fail 'the cleanup'
all_are_back
"$stacktune" verify $work/array.toml || fail 'what was written is not there'
healthy 'a kill'

if [[ -n ${SOAK:-} ]]; then
    printf '# interrupted\n'
    "$stacktune" record $work/array.toml --for 60s --out $work/interrupted >$work/log 2>&1 &
    pid=$!
    for i in {1..1500}; do [[ ! -s $work/interrupted/windows.jsonl ]] || break; sleep 0.1; done
    kill -INT $pid
    status=0
    wait $pid || status=$?
    ((status == 130)) || { cat $work/log; fail "ended with $status"; }
    all_are_back
fi

# --- the driver by itself --------------------------------------------------------------------------
modprobe vfio-pci
for i in 0 1 2 3; do
    export "NVME_DRIVE$i=$(address "RIG$i")"
    name=NVME_DRIVE$i
    bind "${!name}" vfio-pci
done
for test in identify patterns beyond_the_end; do run "guest_$test"; done

# Back to the kernel, which reads the driver's writes and finds the drive healthy.
bind "$NVME_DRIVE0" nvme
NVME_NODE=$(node "$NVME_DRIVE0")
export NVME_NODE
run guest_kernel_reads
if command -v nvme >/dev/null; then nvme smart-log "$NVME_NODE" | grep -E 'critical_warning|media_errors'; fi
mkfs.ext4 -q "$NVME_NODE"
mount "$NVME_NODE" /mnt
umount /mnt
bind "$NVME_DRIVE0" vfio-pci

# The same on large pages.
echo 64 >/proc/sys/vm/nr_hugepages
for test in patterns reset_during_load stuck_command; do run "guest_$test"; done
[[ -z ${SOAK:-} ]] || run guest_iops

# Killed while it polls: VFIO resets the drive, and the kernel can take it back.
NVME_TEST=guest_killed "$program" --exact nvme::the_driver_works_on_emulated_drives --nocapture >"$log" 2>&1 </dev/null &
pid=$!
for i in {1..100}; do grep -q loading "$log" && break; sleep 0.1; done
sleep 0.5
kill -9 $pid
wait $pid 2>/dev/null || true
# shellcheck disable=SC2153 # set in the loop above
bind "$NVME_DRIVE1" nvme
dd if="$(node "$NVME_DRIVE1")" of=/dev/null bs=1M count=8 status=none

run guest_stops_answering
run guest_pulled
# shellcheck disable=SC2153
for i in {1..200}; do [[ -e /sys/bus/pci/devices/$NVME_DRIVE2 ]] || break; sleep 0.1; done
[[ ! -e /sys/bus/pci/devices/$NVME_DRIVE2 ]]
if dmesg | grep -E 'DMAR:.*fault|BUG:|WARNING:'; then exit 1; fi
printf '\nall went well\n'
