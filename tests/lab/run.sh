#!/bin/bash
# Runs scripts of this folder one after another, in the guest; tests/lab/machines.rs reads their output.
#
#   run.sh PROGRAM SCRIPT...      PROGRAM: stacktune's binary; SCRIPT: a name without its .sh
#
# Each script starts with blank drives; one that hangs is killed when its time is up.
set -u
cd "$(dirname "$0")" || exit
export STACKTUNE=$1 LAB_WORK=/srv/lab
shift
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

for script in "$@"; do
    printf '# %s, at %s s\n' "$script" "$(cut -d' ' -f1 /proc/uptime)"
    rm -rf "$LAB_WORK"
    mkdir -p "$LAB_WORK"
    blank_drives || printf '# drives could not be blanked\n'
    status=0
    timeout --kill-after=10 "${LAB_SCRIPT_S:-1100}" bash "./$script.sh" </dev/null || status=$?
    printf 'end %s %d\n' "$script" "$status"
done
