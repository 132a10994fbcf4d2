#!/bin/bash
# The power fails while commits on RocksDB are acknowledged: after the next boot those that were noted on
# another machine are looked for. tests/lab/machines.rs boots a machine on the same drive twice.
#
#   kv_power.sh PROGRAM SYNC COMMITS    what the last one acknowledged is counted; then the power is cut once
#                                          so many commits were noted, or never, with 0
set -euo pipefail
cd "$(dirname "$0")"
export STACKTUNE=$1 LAB_WORK=/run/lab XDG_STATE_HOME=/run/state
sync=$2 commits=$3
mkdir -p "$LAB_WORK" "$XDG_STATE_HOME" /run/pairs
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe ext4 2>/dev/null || true
[[ -n $(wipefs --noheadings "$(node 0)") ]] || mkfs.ext4 -q "$(node 0)"
mount "$(node 0)" /run/pairs
run=("$STACKTUNE" record rocksdb --out "$LAB_WORK/out" --set target.files.dir=/run/pairs/set --set kv.pairs=20000
    --set kv.value_size=400 --set scan.enabled=false --set point.enabled=false --set background.enabled=false
    --set wal.rate=none --set wal.sync="$sync" --set wal.acks="/share/acks-$sync" --set rocksdb.direct_reads=false)
if ((commits == 0)); then
    "${run[@]}" --for 1s --verify 2>&1 | tee "/share/said-$sync"
    exit
fi
"${run[@]}" --for 10m >"$LAB_WORK/said" 2>&1 &
noted() { [[ $(stat -c %s "/share/acks-$sync" 2>/dev/null || echo 0) -ge $((16 + 8 * commits)) ]]; }
until noted; do
    kill -0 $! || { cat "$LAB_WORK/said"; exit 1; }
    sleep 0.05
done
monitor quit
sleep 1000
