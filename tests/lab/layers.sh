#!/bin/bash
# Layers made by a profile's commands: LVM stripes, and dm-crypt on them.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a dm_mod dm_crypt ext4 2>/dev/null

# Without udev here, LVM must create its own nodes.
cat >/etc/lvm/lvmlocal.conf <<'CONF'
activation {
    udev_sync = 0
    udev_rules = 0
}
devices {
    obtain_device_list_from_udev = 0
}
CONF

lvm='[[stack.layer]]
name = "lvm"
up = [
    ["vgcreate", "--quiet", "--yes", "st{id}", "{devices}"],
    ["lvcreate", "--quiet", "--yes", "--wipesignatures=n", "--zero=n", "--type=striped", "--stripes={count}",
     "--stripesize=64k", "--extents=100%FREE", "--name=data", "st{id}"],
]
down = [
    ["vgremove", "--quiet", "--yes", "--force", "st{id}"],
    ["pvremove", "--quiet", "--yes", "{devices}"],
]
device = "/dev/mapper/st{id}-data"'
crypt='[[stack.layer]]
name = "crypt"
up = ["cryptsetup", "open", "--type=plain", "--cipher=aes-xts-plain64", "--key-size=512", "--key-file=/dev/urandom",
      "{device}", "crypt-{id}"]
down = ["cryptsetup", "close", "crypt-{id}"]
device = "/dev/mapper/crypt-{id}"'

# Two drives, to keep the fill small.
two=$(drive 0),$(drive 1)
mapfile -t destroy < <(consent 0 1)

# Records a run on these layers.
#   layered NAME LAYERS [MORE...]
layered() {
    local name=$1 layers=$2
    shift 2
    "$STACKTUNE" record "$(profile "$name" "$two" "$layers")" --for 1s --out "/share/$name-$RANDOM" --json \
        "${small[@]}" --allow-commands "${destroy[@]}" "$@"
}

mapped() { dmsetup ls --noheadings 2>/dev/null | grep -v '^No devices' || true; }

no_layer_left() {
    local left
    left=$(mapped)
    [[ -z $left ]] || { echo "left: $left"; return 1; }
    nothing_left
}

# LVM's stripes write each byte once.
stripes_of_lvm_are_verified_and_leave_nothing() {
    need vgcreate dmsetup
    local out=/share/lvm-one
    "$STACKTUNE" record "$(profile lvm "$two" "$lvm")" --for 3s --verify --out "$out" --json "${small[@]}" \
        --set stack.filesystem=ext4 --allow-commands "${destroy[@]}" >/dev/null
    no_layer_left
    grep -q 'lowest first: .lvm' "$out/host.json"
    # Bytes that reach the drives are counted; if the kernel doesn't count a mapper's I/O, its share is not available.
    awk '/"wa_a":/ { print; wa = $2 + 0 } /"raid":/ { print; raid = $2 ~ /null/ ? 1 : $2 + 0 }
        END { exit !(wa > 0.98 && wa < 1.2 && raid > 0.98 && raid < 1.02) }' "$out/summary.json"
}

dm_crypt_on_lvm_and_on_md_is_verified_and_leaves_nothing() {
    need vgcreate cryptsetup
    layered crypt-lvm "$lvm"$'\n'"$crypt" --verify --set stack.filesystem=ext4 >/dev/null
    no_layer_left
    modprobe -a md_mod raid0 2>/dev/null || true
    layered crypt-md "$crypt" --verify --set stack.raid=md0 --set stack.filesystem=xfs >/dev/null
    no_layer_left
    # Without a file system: on the bare device.
    layered crypt-bare "$crypt" --verify --set stack.raid=md0 >/dev/null
    no_layer_left
}

a_layer_on_a_drive_of_others_is_refused_and_taken_away() {
    need dmsetup
    local before linear
    # Others' file system shows through the layer; the layer must still be taken down.
    mkfs.ext4 -qF "$(node 2)"
    before=$(cksum "$(node 2)")
    linear='[[stack.layer]]
name = "linear"
up = [["dmsetup", "create", "--noudevsync", "lin-{id}", "--table", "0 262144 linear '$(node 2)' 0"], ["dmsetup", "mknodes", "lin-{id}"]]
down = ["dmsetup", "remove", "lin-{id}"]
device = "/dev/mapper/lin-{id}"'
    expect 3 "which is not this stack's" layered foreign "$linear" --set stack.filesystem=ext4
    [[ -z $(mapped) ]]
    # A line break in a word would be read as a new line later on.
    linear='[[stack.layer]]
name = "linear"
up = [["dmsetup", "create", "--noudevsync", "lin-{id}", "--table", "0 262144 linear '$(node 0)' 0\n262144 2048 linear '$(node 2)' 0"], ["dmsetup", "mknodes", "lin-{id}"]]
down = ["dmsetup", "remove", "lin-{id}"]
device = "/dev/mapper/lin-{id}"'
    expect 2 'line break' layered foreign "$linear" --set stack.filesystem=ext4
    [[ $before == "$(cksum "$(node 2)")" ]]
    wipefs --quiet --all "$(node 2)"
    no_layer_left
}

without_leave_no_command_runs() {
    local file
    file=$(profile denied "$two" "$lvm")
    expect 2 'allow-commands' "$STACKTUNE" record "$file" --for 1s --out /share/denied "${destroy[@]}"
    "$STACKTUNE" check "$file" | grep -q 'vgremove --quiet --yes --force'
    no_layer_left
}

# Kills a run on LVM and dm-crypt once the command succeeds, and cleans up.
#   killed NAME COMMAND...
killed() {
    local name=$1 pid
    shift
    "$STACKTUNE" record "$(profile "$name" "$two" "$lvm"$'\n'"$crypt")" --for 5m --out "/share/$name" --json \
        "${small[@]}" --set stack.filesystem=ext4 --allow-commands "${destroy[@]}" >/dev/null 2>&1 &
    pid=$!
    wait_for 120 "$@"
    kill -9 "$pid"
    wait "$pid" || true
    "$STACKTUNE" cleanup
    no_layer_left
}

begun() { grep -qs "\"command\":\"$1" /var/lib/stacktune/journal/*.jsonl; }

killed_under_load_and_within_up_cleanup_leaves_nothing() {
    need vgcreate cryptsetup
    killed killed-load has_windows /share/killed-load/windows.jsonl 2
    killed killed-vgcreate begun vgcreate
    killed killed-lvcreate begun lvcreate
    killed killed-crypt begun cryptsetup
}

a_kept_layer_is_reported_and_cleaned_up() {
    need vgcreate
    layered kept "$lvm" --set stack.filesystem=ext4 --keep >/dev/null
    [[ -n $(mapped) ]]
    "$STACKTUNE" status | grep -q 'layer .lvm. at /dev/mapper/st'
    "$STACKTUNE" cleanup --all
    no_layer_left
}

# I/O that hangs in the last three of ten seconds, and beyond the run's end, is waited for and counted.
a_device_that_hangs_at_the_end_of_a_run_is_waited_for() {
    need dmsetup
    local out=/share/hung linear name pid
    linear='[[stack.layer]]
name = "linear"
up = [["dmsetup", "create", "--noudevsync", "lin-{id}", "--table", "0 262144 linear {device} 0"], ["dmsetup", "mknodes", "lin-{id}"]]
down = [["dmsetup", "remove", "lin-{id}"]]
device = "/dev/mapper/lin-{id}"'
    mapfile -t destroy < <(consent 0)
    "$STACKTUNE" record "$(profile hung "$(drive 0)" "$linear")" --for 10s --out "$out" --json "${small[@]}" \
        --set scan.enabled=off --set wal.rate=1MB/s --set background.rate=2MB/s --set run.window=500ms \
        --allow-commands "${destroy[@]}" >/dev/null &
    pid=$!
    wait_for 120 has_windows "$out/windows.jsonl" 14
    name=$(mapped | awk '{ print $1; exit }')
    dmsetup suspend --noflush "$name"
    sleep 5
    dmsetup resume "$name"
    wait "$pid"
    mapfile -t destroy < <(consent 0 1)
    no_layer_left
    awk '/"max":/ { print; if ($2 + 0 >= 2.5e9) hung = 1 } /"missed":/ { if ($2 + 0 > 0) missed = 1 }
        /"unfinished":/ { if ($2 + 0 > 0) left = 1 } END { exit !(hung && missed && !left) }' "$out/summary.json"
}

# In the gate the layers are on loop devices.
[[ -n ${SOAK:-} ]] || exit 0
run_tests stripes_of_lvm_are_verified_and_leave_nothing \
    dm_crypt_on_lvm_and_on_md_is_verified_and_leaves_nothing \
    a_layer_on_a_drive_of_others_is_refused_and_taken_away \
    without_leave_no_command_runs \
    killed_under_load_and_within_up_cleanup_leaves_nothing \
    a_kept_layer_is_reported_and_cleaned_up \
    a_device_that_hangs_at_the_end_of_a_run_is_waited_for
