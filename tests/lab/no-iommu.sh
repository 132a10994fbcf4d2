#!/bin/bash
# A machine without an IOMMU: no drive leaves the kernel.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

without_an_iommu_drives_stay_with_the_kernel() {
    local profile
    profile=$(profile kept "$(drive 0)")
    expect 2 'no IOMMU is in use' "$STACKTUNE" record "$profile" --for 1s --out /share/kept \
        --set io.interface=vfio
    [[ -b $(node 0) ]]
    "$STACKTUNE" record "$profile" --for 1s --out /share/kept --json >/dev/null
}

run_tests without_an_iommu_drives_stay_with_the_kernel
