#!/bin/bash
# Only with SOAK: kills at random moments of building, running and taking down. `cleanup` leaves nothing of the stack,
# and everything of others' array, mount and files.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a md_mod raid1 ext4 2>/dev/null

array=$(profile killed "$(drive 0),$(drive 1)")
mapfile -t consent < <(consent 0 1)
kills=50

runs() {
    exec "$STACKTUNE" record "$array" --for 1s --out "/share/killed-$1" --json "${small[@]}" \
        --set stack.raid=md1 --set stack.filesystem=ext4 "${consent[@]}" >/dev/null 2>&1
}

has_journal() { compgen -G '/var/lib/stacktune/journal/*.jsonl' >/dev/null; }

# Checksums what belongs to others: an array on the other two drives, and a file on it.
their_sum() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
    sha256sum /mnt/theirs
    mdadm --detail --export /dev/md7
}

killed_at_random_moments_cleanup_leaves_nothing() {
    local i pid theirs began_ms part_ms at_ms seed=${LAB_SEED:-$RANDOM} left=0
    RANDOM=$seed
    mdadm --quiet --create /dev/md7 --run --assume-clean --level=1 --metadata=1.2 --raid-devices=2 \
        "$(node 2)" "$(node 3)"
    mkfs.ext4 -q /dev/md7
    mount /dev/md7 /mnt
    dd if=/dev/urandom of=/mnt/theirs bs=1M count=8 status=none
    theirs=$(their_sum)
    # Measures building, running and taking down, once the files they read are cached.
    for i in cold warm; do
        runs "$i" &
        wait_for 60 has_journal
        began_ms=$(date +%s%3N)
        wait $!
    done
    part_ms=$((($(date +%s%3N) - began_ms) / kills))
    nothing_left md7 /mnt 2 3
    for ((i = 0; i < kills; i++)); do
        # One moment in each part of the time from the first step to the end.
        at_ms=$((part_ms * i + RANDOM % (part_ms + 1)))
        runs "$i" &
        pid=$!
        wait_for 60 has_journal
        sleep "$((at_ms / 1000)).$(printf %03d $((at_ms % 1000)))"
        kill -9 "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
        [[ $("$STACKTUNE" status --json) == '[]' ]] || left=$((left + 1))
        "$STACKTUNE" cleanup >"$LAB_WORK/said" 2>&1 || { cat "$LAB_WORK/said"; echo "seed $seed, kill $i at $at_ms ms"; return 1; }
        nothing_left md7 /mnt 2 3 || { echo "seed $seed, kill $i at $at_ms ms"; return 1; }
    done
    [[ $(their_sum) == "$theirs" ]]
    echo "# killed $i times within $((part_ms * kills)) ms, seed $seed: $left times something was left to clean up"
    # On a machine whose speed varies a lot, a run may have ended before its kill.
    ((left > i / 4))
    umount /mnt
    mdadm --quiet --stop /dev/md7
    mdadm --quiet --zero-superblock "$(node 2)" "$(node 3)"
}

run_tests killed_at_random_moments_cleanup_leaves_nothing
