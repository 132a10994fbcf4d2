#!/bin/bash
# Writes reverted after a run that bypasses the block layer: verification finds each, and nothing else.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

# A thousand of each kind, in rounds that the drive has room for.
readonly PAGE=16384 EACH=250 ROUNDS=4
one=$(profile lost "$(drive 0)")

# A run in which the background writer does most of the writing.
#   writes PROFILE NAME INTERFACE
writes() {
    "$STACKTUNE" record "$1" --for 4s --out "/share/lost-$2" --set "io.interface=$3" --set io.buffering=direct \
        --set scan.enabled=off --set point.enabled=off --set background.rate=16MB/s --json >/dev/null
}

image() { dd if="$(drive 0)" of="$1" bs=1M iflag=direct status=none; }

# In turn, in the pages of which both halves were written: reverts a page to its content before the last run, reverts
# half a page, and puts another page in its place. The first MiB is the data set's header; the WAL may be beyond the
# first third.
plant() {
    # shellcheck disable=SC2016 # Perl's
    perl -e '
        use IO::Handle;
        my ($drive, $page, $each) = @ARGV;
        open(my $before, "<:raw", "before") or die $!;
        open(my $after, "<:raw", "after") or die $!;
        open(my $disk, "+<:raw", $drive) or die $!;
        sub page { sysseek($_[0], $_[1] * $page, 0); sysread($_[0], my $bytes, $page); $bytes }
        my ($half, $from, $planted) = ($page / 2, -1, 0);
        for (my $at = 64; $at < 20000 && $planted < 3 * $each; $at++) {
            my ($old, $new) = (page($before, $at), page($after, $at));
            next if substr($old, 0, $half) eq substr($new, 0, $half) || substr($old, $half) eq substr($new, $half);
            my @content = ($old, substr($old, 0, $half) . substr($new, $half), $from < 0 ? "" : page($after, $from));
            sysseek($disk, $at * $page, 0);
            syswrite($disk, $content[$planted % 3]) == $page or die "page $at: $!";
            ($from, $planted) = ($at, $planted + 1);
        }
        $disk->sync;
        $planted == 3 * $each or die "only $planted writes were taken back\n";
    ' "$(drive 0)" "$PAGE" "$EACH"
    blockdev --flushbufs "$(drive 0)"
}

#   are_found INTERFACE
are_found() {
    local kind report round
    need perl
    cd "$LAB_WORK"
    writes "$one" "first-$1" "$1"
    for ((round = 1; round <= ROUNDS; round++)); do
        image before
        writes "$one" "second-$1-$round" "$1"
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
        dd if=after of="$(drive 0)" bs=1M oflag=direct status=none
    done
    echo "# $1: $((EACH * ROUNDS)) lost, torn and misplaced each, every one found"
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
