#!/bin/bash
# The IOMMU mode below a stack: in force while the stack stands, and back to the host's afterwards.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

array=$(profile iommu "$(drive 0),$(drive 1)")

# The file with the type of a drive's IOMMU group.
type_of() { printf '/sys/class/block/%s/device/device/iommu_group/type' "$(basename "$(node "$1")")"; }

the_iommus_mode_is_in_force_and_the_hosts_afterwards() {
    local consent before mode wanted types=()
    mapfile -t consent < <(consent 0 1)
    before=$(<"$(type_of 0)")
    for mode in passthrough=identity strict=DMA lazy=DMA-FQ; do
        wanted=${mode#*=}
        types+=("$wanted")
        "$STACKTUNE" record "$array" --for 2s --verify --out "/share/iommu-$wanted" --set stack.iommu="${mode%=*}" \
            --keep "${consent[@]}"
        [[ $(<"$(type_of 0)") == "$wanted" && $(<"$(type_of 1)") == "$wanted" ]]
        "$STACKTUNE" cleanup --all
        [[ $(<"$(type_of 0)") == "$before" && $(<"$(type_of 1)") == "$before" ]]
        nothing_left
    done
}

a_run_that_is_killed_leaves_the_iommus_mode_to_cleanup() {
    local consent before pid wanted=identity
    mapfile -t consent < <(consent 0 1)
    before=$(<"$(type_of 0)")
    [[ $before != identity ]] || wanted=DMA
    "$STACKTUNE" record "$array" --for 5m --out /share/iommu-killed --set stack.iommu="$(
        [[ $wanted == identity ]] && echo passthrough || echo strict)" "${consent[@]}" &
    pid=$!
    wait_for 120 has_windows /share/iommu-killed/windows.jsonl 2
    [[ $(<"$(type_of 0)") == "$wanted" ]]
    kill -9 "$pid"
    wait "$pid" || true
    "$STACKTUNE" status | grep -q 'IOMMU type of'
    "$STACKTUNE" cleanup
    [[ $(<"$(type_of 0)") == "$before" && $(<"$(type_of 1)") == "$before" ]]
    nothing_left
}

[[ -n ${SOAK:-} ]] || exit 0
run_tests the_iommus_mode_is_in_force_and_the_hosts_afterwards a_run_that_is_killed_leaves_the_iommus_mode_to_cleanup
