#!/bin/bash
# Drives that leave the kernel together: namespaces of one controller, and functions of one IOMMU group.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

namespace() { printf '/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG%d_%d' "$1" "$2"; }

# A profile over vfio on those devices.
over_vfio() {
    profile "$1" "$2" '[io]
interface = "vfio"'
}

all_are_there() {
    local drive namespace
    for drive in 0 1 2; do
        for namespace in 1 2; do [[ -b $(namespace "$drive" "$namespace") ]] || return; done
    done
}

# A run over vfio, verified through the kernel's ordinary path, with all drives back.
#   runs NAME DEVICES
runs() {
    local profile
    profile=$(over_vfio "$1" "$2")
    "$STACKTUNE" record "$profile" --for 1s --out "/share/$1" --json >/dev/null
    wait_for 20 all_are_there
    "$STACKTUNE" verify "$profile" --json >"/share/$1.json"
    [[ $("$STACKTUNE" status --json) == '[]' ]]
}

namespaces_leave_and_come_back_together() { runs namespaces "$(namespace 0 1),$(namespace 0 2)"; }

a_namespace_in_use_keeps_its_drive() {
    local profile at=$LAB_WORK/mounted
    profile=$(over_vfio beside "$(namespace 1 1),$(namespace 2 1)")
    mkdir -p "$at"
    mkfs.ext4 -q "$(namespace 2 2)"
    mount "$(namespace 2 2)" "$at"
    expect 3 "mounted at $at" "$STACKTUNE" record "$profile" --for 1s --out /share/beside
    umount "$at"
    wipefs --quiet --all "$(namespace 2 2)"
    wait_for 20 all_are_there
}

# The other namespace leaves the kernel too, but nothing is written to it.
a_namespace_beside_is_left_as_it_is() {
    local before after
    head -c 4194304 /dev/urandom >"$(namespace 0 2)"
    before=$(cksum <"$(namespace 0 2)")
    runs alone "$(namespace 0 1)"
    after=$(cksum <"$(namespace 0 2)")
    [[ $before == "$after" ]]
}

drives_of_one_group_leave_only_together() {
    expect 3 'shares its IOMMU group with' "$STACKTUNE" record "$(over_vfio twin "$(namespace 1 1)")" \
        --for 1s --out /share/twin
    wait_for 20 all_are_there
    [[ -z ${SOAK:-} ]] || runs twins "$(namespace 1 1),$(namespace 2 1)"
}

run_tests a_namespace_in_use_keeps_its_drive drives_of_one_group_leave_only_together
[[ -z ${SOAK:-} ]] || run_tests namespaces_leave_and_come_back_together a_namespace_beside_is_left_as_it_is
