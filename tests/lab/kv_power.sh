#!/bin/bash
# The power fails while commits on RocksDB are acknowledged: after the next boot the commits noted on another
# machine are looked for. tests/lab/array.rs boots a machine on the same drives twice; the first drive holds
# pairs with a synced log, the second pairs without.
#
#   kv_power.sh PROGRAM COMMITS    counts what was acknowledged before; then the power is cut once each load has
#                                  noted that many commits, or never, with 0
set -euo pipefail
cd "$(dirname "$0")"
export STACKTUNE=$1 LAB_WORK=/srv/lab XDG_STATE_HOME=/run/state
commits=$2
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe ext4 2>/dev/null || true
mkdir -p "$LAB_WORK" "$XDG_STATE_HOME"

# Loads only commits onto that drive's pairs.
#   load DRIVE SYNC ARGUMENT...
load() {
    local at=/run/media/pairs-$1 sync=$2
    shift 2
    "$STACKTUNE" record rocksdb --out "$LAB_WORK/out-$sync" --set target.files.dir="$at/set" --set kv.pairs=20000 \
        --set kv.value_size=400 --set scan.enabled=false --set point.enabled=false --set background.enabled=false \
        --set wal.rate=none --set wal.sync="$sync" --set wal.acks="/share/acks-$sync" \
        --set rocksdb.direct_reads=false "$@"
}

noted() { [[ $(stat -c %s "/share/acks-$1" 2>/dev/null || echo 0) -ge $((16 + 8 * commits)) ]]; }

drive=0
for sync in fdatasync none; do
    [[ -n $(wipefs --noheadings "$(node $drive)") ]] || mkfs.ext4 -q "$(node $drive)"
    mkdir -p "/run/media/pairs-$drive"
    mount "$(node $drive)" "/run/media/pairs-$drive"
    if ((commits == 0)); then
        load $drive $sync --for 1s --verify 2>&1 | tee "/share/said-$sync"
    else
        load $drive $sync --for 10m >"$LAB_WORK/said-$sync" 2>&1 &
    fi
    drive=$((drive + 1))
done
((commits)) || exit 0
until noted fdatasync && noted none; do
    (($(jobs -rp | wc -l) == 2)) || { cat "$LAB_WORK"/said-*; exit 1; }
    sleep 0.05
done
monitor quit
sleep 1000
