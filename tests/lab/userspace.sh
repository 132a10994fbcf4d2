# Shared by the scripts in which two drives leave the kernel. Sourced while the kernel still has all drives, with
# `work` set to a folder.
# shellcheck shell=bash

serials=$(cat /sys/class/nvme/nvme?/serial | tr -d ' ' | paste -sd' ')

fail() { printf 'not ok: %s\n' "$*"; dmesg | tail -n 20; exit 1; }

# The node of a drive that the kernel's driver has.
node() {
    local i found
    for i in {1..100}; do
        found=$(find "/sys/bus/pci/devices/$1/nvme/" -mindepth 2 -maxdepth 2 -regextype posix-extended \
            -regex '.*/nvme[0-9]+(c[0-9]+)?n[0-9]+' -printf '%f\n' -quit 2>/dev/null || true)
        [[ -z $found || ! -b /dev/$found ]] || { echo "/dev/$found"; return; }
        sleep 0.1
    done
    return 1
}

# Recreates udev's links after drives come back.
link_drives() {
    local serial
    for serial in /sys/class/nvme/nvme*/serial; do
        [[ -e $serial ]] || continue
        ln -sfn "$(node "$(basename "$(readlink -f "$(dirname "$serial")/device")")")" \
            "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_$(tr -d ' ' <"$serial")_1"
    done
}

# All drives are back with the kernel under their former names, and udev's links lead to them again.
all_are_back() {
    local serial i=0
    for serial in $serials; do
        [[ -b /dev/nvme${i}n1 ]] || fail "nvme${i}n1 ($serial) is not back"
        i=$((i + 1))
    done
    [[ $(cat /sys/class/nvme/nvme?/serial | tr -d ' ' | paste -sd' ') == "$serials" ]] || fail 'other names'
    ! grep -q vfio-pci /sys/bus/pci/devices/*/driver_override || fail 'an override is left'
    link_drives
}

# Writes a profile of a load over that interface on the first two drives.
write_profile() {
    cat >"${work:?}/array.toml" <<TOML
name = "array"
[target]
devices = [$(printf '"%s", ' /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG[01]_1)]
[io]
interface = "$1"
poll_sleep = "50us"
[scan]
depth = 16
batch = 4
rate = "4MB/s"
[point]
rate = "2MB/s"
[wal]
rate = "1MB/s"
[background]
rate = "1MB/s"
[run]
window = "500ms"
TOML
}
