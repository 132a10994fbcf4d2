#!/bin/bash
# The power fails while a stack is built or runs: after the next boot `status` lists what is left, and
# `cleanup` removes it. tests/lab/array.rs boots a machine on the same drives for each step.
#
#   power.sh PROGRAM CUT NUMBER    cleans up what the last one left, then cuts the power once the journal of a
#                                  new stack has NUMBER steps, or never, with 0
#
# The fourth drive holds the state, as the system's own drive would.
set -euo pipefail
cd "$(dirname "$0")"
export STACKTUNE=$1 LAB_WORK=/srv/lab XDG_STATE_HOME=/run/state
cut=$2 number=$3
mkdir -p "$LAB_WORK" "$XDG_STATE_HOME"
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a md_mod raid456 ext4 2>/dev/null
[[ -n $(wipefs --noheadings "$(node 3)") ]] || mkfs.ext4 -q "$(node 3)"
mount "$(node 3)" "$XDG_STATE_HOME"
journals=$XDG_STATE_HOME/stacktune/journal

steps() { cat "$journals"/*.jsonl 2>/dev/null | grep -c '"line":"intend"' || true; }

if (($(steps) > 0)); then
    # The second time, assembles the members that udev would find.
    if ((cut > 2)); then mdadm --assemble --scan --run 2>&1 || true; fi
    "$STACKTUNE" status --json >"/share/status-$cut.json"
    "$STACKTUNE" status
    "$STACKTUNE" cleanup
    [[ $("$STACKTUNE" status --json) == '[]' ]]
    [[ -z $(ls -A "$journals") ]]
    if grep '^md' /proc/mdstat; then exit 1; fi
    for i in 0 1 2; do
        [[ -z $(wipefs --noheadings "$(node "$i")") ]] || { wipefs "$(node "$i")"; exit 1; }
    done
    echo "cleaned up"
fi
((number > 0)) || exit 0

array=$(profile power "$(drive 0),$(drive 1),$(drive 2)")
mapfile -t consent < <(consent 0 1 2)
"$STACKTUNE" record "$array" --for 10m --out "$LAB_WORK/out" "${small[@]}" --set stack.use=60% \
    --set stack.raid=md5 --set stack.filesystem=ext4 "${consent[@]}" >"$LAB_WORK/said" 2>&1 &
until (($(steps) >= number)); do
    kill -0 $! || { cat "$LAB_WORK/said"; exit 1; }
    sleep 0.02
done
monitor quit
sleep 1000
