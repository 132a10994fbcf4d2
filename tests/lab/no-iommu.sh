#!/bin/bash
# A machine without an IOMMU: no drive leaves the kernel unless that is explicitly accepted.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

mode=/sys/module/vfio/parameters/enable_unsafe_noiommu_mode
unkept=(--set io.interface=vfio --set io.unsafe_noiommu=true)

without_an_iommu_drives_stay_with_the_kernel() {
    local profile
    profile=$(profile kept "$(drive 0)")
    expect 2 'no IOMMU is in use' "$STACKTUNE" record "$profile" --for 1s --out /share/kept \
        --set io.interface=vfio
    expect 2 'VFIO is not loaded|built without it|does not allow it' "$STACKTUNE" record "$profile" --for 1s \
        --out /share/kept "${unkept[@]}"
    [[ -b $(node 0) ]]
    "$STACKTUNE" record "$profile" --for 1s --out /share/kept --json >/dev/null
}

# Asserts that the kernel's own driver has the drive back, and nothing of ours is left.
is_back() {
    wait_for 30 test -b "$(node 0)"
    [[ $("$STACKTUNE" status --json) == '[]' ]]
}

accepted_by_name_drives_leave_without_an_iommu_and_come_back() {
    local profile pid size
    modprobe -a vfio vfio-pci
    [[ -e $mode ]] || skip "the machine's kernel has no CONFIG_VFIO_NOIOMMU"
    profile=$(profile unkept "$(drive 0)")
    expect 2 'the kernel does not allow it' "$STACKTUNE" record "$profile" --for 1s --out /share/unkept "${unkept[@]}"
    echo Y >"$mode"
    expect 2 'no IOMMU is in use' "$STACKTUNE" record "$profile" --for 1s --out /share/unkept --set io.interface=vfio
    expect 0 'bind 0000:.* with no IOMMU: a fault in it can overwrite any memory' \
        "$STACKTUNE" record "$profile" --dry-run "${unkept[@]}"
    expect 2 'free huge pages of 2 MiB' "$STACKTUNE" record "$profile" --for 1s --out /share/unkept "${unkept[@]}"
    is_back
    echo 128 >/proc/sys/vm/nr_hugepages
    # Crosses the boundaries between pieces of memory, and the size limit of a command.
    for size in 512B 4KiB 128KiB 1MiB; do
        "$STACKTUNE" record "$profile" --for 2s --out "/share/unkept-$size" "${unkept[@]}" --json \
            --set "io.page_size=$size" --set wal.rate=4MB/s --set background.rate=4MB/s --set point.rate=4MB/s >/dev/null
        is_back
        "$STACKTUNE" verify "$profile" --json >"/share/unkept-$size.json"
        grep -q '"complete": true' "/share/unkept-$size.json"
        grep -q '"errors": 0' "/share/unkept-$size/summary.json"
        grep -q 'no IOMMU confines the drives' "/share/unkept-$size/host.json"
    done
    # All huge pages went back to their pool; the same must hold after a killed run.
    [[ $(awk '$1 == "HugePages_Free:" { print $2 }' /proc/meminfo) == 128 ]]
    "$STACKTUNE" record "$profile" --for 60s --out /share/unkept-killed "${unkept[@]}" >/dev/null 2>&1 &
    pid=$!
    wait_for 60 test -s /share/unkept-killed/windows.jsonl
    kill -9 "$pid"
    wait "$pid" || true
    "$STACKTUNE" cleanup
    is_back
    mkfs.ext4 -q "$(node 0)"
    e2fsck -fn "$(node 0)"
    [[ $(awk '$1 == "HugePages_Free:" { print $2 }' /proc/meminfo) == 128 ]]
}

run_tests without_an_iommu_drives_stay_with_the_kernel accepted_by_name_drives_leave_without_an_iommu_and_come_back
