#!/bin/bash
# A rebuild is refused or undone at every step: a tool fails, or a drive comes into use, at the first call
# that builds the stack, at the second, and so on; outside the soak, at every fifth.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a md_mod raid1 ext4 2>/dev/null

array=$(profile faults "$(drive 0),$(drive 1)")
mapfile -t consent < <(consent 0 1)
tools=$LAB_WORK/tools
stride=5
[[ -z ${SOAK:-} ]] || stride=1

# Wraps the tools to count calls that change something; just before the AT-th one, something HAPPENS.
#   trap_at AT HAPPENS
trap_at() {
    local tool real
    rm -rf "$tools"
    mkdir -p "$tools"
    for tool in wipefs blkdiscard sfdisk mdadm mkfs.ext4 mount; do
        real=$(command -v "$tool")
        cat >"$tools/$tool" <<SH
#!/bin/bash
case "\$*" in
    *--no-act* | *--json* | *--detail* | *--examine* | *--version* | -V) exec "$real" "\$@" ;;
esac
echo "$tool \$*" >>"$tools/calls"
if (("\$(wc -l <"$tools/calls")" == $1)); then
    $2
fi
exec "$real" "\$@"
SH
        chmod +x "$tools/$tool"
    done
}

# Records a run on a mirror over parts of two drives, with these tools.
run_on_mirror() {
    STACKTUNE_TEST_TOOLS=$tools "$STACKTUNE" record "$array" --for 1s --out "/share/faults-$RANDOM$RANDOM" \
        --set stack.raid=md1 --set stack.filesystem=ext4 "${small[@]}" "${consent[@]}" "$@" 2>&1
}

a_tool_that_fails_at_any_step_leaves_nothing() {
    local at said status
    for ((at = 1; ; at += stride)); do
        trap_at "$at" "touch $tools/failed; echo '$at: no such luck' >&2; exit 1"
        status=0
        said=$(run_on_mirror --set stack.use=60% --set stack.state=trimmed) || status=$?
        # Calls that undo the stack are retried, so failing one doesn't fail the run.
        if ((status == 0)); then break; fi
        printf '# at call %d: %s\n' "$at" "$(sed -n "${at}p" "$tools/calls")"
        ((status == 1)) || { echo "$status: $said"; return 1; }
        grep -q "$at: no such luck" <<<"$said" || { echo "$said"; return 1; }
        nothing_left
    done
    # Two drives, each wiped, trimmed and partitioned; then the array, the file system and the mount.
    echo "# $(((at - 1) / stride)) calls failed, one after the other"
    ((at > 9))
    nothing_left
}

# Somebody mounts the second drive before each step on it.
a_drive_that_comes_into_use_at_any_step_is_refused_and_untouched() {
    local at said status refused=0
    for ((at = 1; ; at += stride)); do
        trap_at "$at" "{ mkfs.ext4 -qF $(node 1) && /usr/bin/mount $(node 1) /mnt && touch $tools/used; } >/dev/null 2>&1"
        status=0
        said=$(run_on_mirror) || status=$?
        # From here on the array holds the drive, and nobody else can take it.
        if [[ ! -e $tools/used ]]; then break; fi
        printf '# at call %d: %s\n' "$at" "$(sed -n "${at}p" "$tools/calls")"
        ((status == 3)) || { echo "$status: $said"; return 1; }
        grep -q 'in use: mounted at' <<<"$said" || { echo "$said"; return 1; }
        mountpoint -q /mnt
        umount /mnt
        e2fsck -fn "$(node 1)" >/dev/null
        nothing_left none none 1
        wipefs -qa "$(node 1)"
        refused=$((refused + 1))
    done
    ((refused > 0 && status == 0))
    nothing_left
}

# In the gate, every tool fails on loop devices instead.
[[ -z ${SOAK:-} ]] || run_tests a_tool_that_fails_at_any_step_leaves_nothing
run_tests a_drive_that_comes_into_use_at_any_step_is_refused_and_untouched
