#!/bin/bash
# Writes reverted after a run that bypasses the block layer: verification finds each, and nothing else.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

readonly PAGE=16384 EACH=100
one=$(profile lost "$(drive 0)")

# A run in which the background writer does most of the writing.
#   writes PROFILE NAME INTERFACE
writes() {
    "$STACKTUNE" record "$1" --for 4s --out "/share/lost-$2" --set "io.interface=$3" --set io.buffering=direct \
        --set scan.enabled=off --set point.enabled=off --set background.rate=16MB/s --json >/dev/null
}

image() { dd if="$(drive 0)" of="$1" bs=1M iflag=direct status=none; }

# Whether a half of a page differs; arguments: the page's number, and which half.
differs() { ! cmp --quiet --bytes=$((PAGE / 2)) --ignore-initial=$(($1 * PAGE + $2 * PAGE / 2)) before after; }

# In turn: reverts a page to its content before the last run, reverts half a page, and puts another page in its place.
# The first MiB is the data set's header; the WAL may be beyond the first third.
plant() {
    local at from=-1 kind=0 planted=0
    for ((at = 64; at < 20000 && planted < 3 * EACH; at += 2)); do
        differs "$at" 0 || continue
        differs "$at" 1 || continue
        case $kind in
            0) dd if=before of="$(drive 0)" bs=$PAGE skip="$at" seek="$at" count=1 oflag=direct status=none ;;
            1) dd if=before of="$(drive 0)" bs=$((PAGE / 2)) skip=$((2 * at)) seek=$((2 * at)) count=1 oflag=direct status=none ;;
            *) dd if=after of="$(drive 0)" bs=$PAGE skip="$from" seek="$at" count=1 oflag=direct status=none ;;
        esac
        from=$at kind=$(((kind + 1) % 3)) planted=$((planted + 1))
    done
    ((planted == 3 * EACH)) || { echo "$planted writes were taken back"; return 1; }
}

#   are_found INTERFACE
are_found() {
    local kind report
    cd "$LAB_WORK"
    writes "$one" "first-$1" "$1"
    image before
    writes "$one" "second-$1" "$1"
    "$STACKTUNE" verify "$one"
    image after
    plant
    expect 1 'not everything is as written' "$STACKTUNE" verify "$one"
    report=$("$STACKTUNE" verify "$one" --json 2>/dev/null | tr -d ' \n') || true
    for kind in lost torn misplaced; do
        grep -qE "\"$kind\":\{[^}]*\"pages\":${EACH}[,}]" <<<"$report" || { echo "$kind: $report"; return 1; }
    done
    for kind in never_written foreign damaged stale unreadable; do
        grep -qE "\"$kind\":\{[^}]*\"pages\":0[,}]" <<<"$report" || { echo "$kind: $report"; return 1; }
    done
    # The whole run is reverted, with the header.
    dd if=before of="$(drive 0)" bs=1M oflag=direct status=none
    expect 1 'not everything is as written' "$STACKTUNE" verify "$one"
    dd if=after of="$(drive 0)" bs=1M oflag=direct status=none
    "$STACKTUNE" verify "$one"
    rm before after
}

writes_of_nvme_commands_that_are_taken_back_are_found() { are_found nvme_passthrough; }
writes_over_vfio_that_are_taken_back_are_found() { are_found vfio; }

# Chooses the mirror member to read from: the other is read only if necessary.
read_from() {
    local name number set
    for number in 0 1; do
        name=$(basename "$(node $number)")
        ((number == $1)) && set=-writemostly || set=writemostly
        echo "$set" >"/sys/block/md77/md/dev-$name/state"
    done
}

mounted() {
    mdadm --quiet --assemble /dev/md77 "$(drive 0)" "$(drive 1)"
    read_from "$1"
    mount /dev/md77 "$LAB_WORK/mirror"
}

dismounted() {
    umount "$LAB_WORK/mirror"
    mdadm --quiet --stop /dev/md77
}

# A member whose part of the data file missed the last run, without knowing it.
a_stale_member_of_a_mirror_is_found() {
    local first last
    need mdadm mkfs.ext4 filefrag
    cd "$LAB_WORK"
    mkdir mirror
    modprobe -a md_mod raid1 ext4 2>/dev/null
    mdadm --quiet --create /dev/md77 --metadata=1.0 --level=1 --raid-devices=2 --assume-clean --run "$(drive 0)" "$(drive 1)"
    mkfs.ext4 -q /dev/md77
    mount /dev/md77 mirror
    sed "s,^devices = .*,files = { dir = \"$LAB_WORK/mirror/data\"\, count = 1\, size = \"24MiB\" }," "$one" >mirror.toml
    writes mirror.toml first-mirror io_uring
    sync
    # In blocks of 4 KiB: the second extent of the file; the first has the data set's header.
    read -r first last < <(filefrag -b4096 -v mirror/data/data-0 | awk -F'[ .:]+' '$2 == "1" { print $5, $6 }')
    image before
    writes mirror.toml second-mirror io_uring
    "$STACKTUNE" verify mirror.toml
    dismounted
    dd if=before of="$(drive 0)" bs=4096 skip="$first" seek="$first" count=$((last - first + 1)) oflag=direct status=none
    mounted 0
    expect 1 'not everything is as written' "$STACKTUNE" verify mirror.toml
    dismounted
    mounted 1
    "$STACKTUNE" verify mirror.toml
    dismounted
    blank_drives
}

[[ -n ${SOAK:-} ]] || exit 0
run_tests writes_of_nvme_commands_that_are_taken_back_are_found writes_over_vfio_that_are_taken_back_are_found \
    a_stale_member_of_a_mirror_is_found
