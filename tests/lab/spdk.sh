#!/bin/bash
# In the guest: a load over SPDK on two drives that leave the kernel, with every kind of ending.
#
#   spdk.sh STACKTUNE      stacktune's binary, built with SPDK
set -euo pipefail
stacktune=$1
work=/srv/spdk-work
mkdir -p $work /dev/hugepages

# shellcheck source=tests/lab/userspace.sh
. "$(dirname "$0")/userspace.sh"

# No I/O failed, and each class did some.
did_well() {
    local text
    text=$(tr -d ' \n' <"$1/summary.json")
    [[ $(grep -o '"errors":[0-9]*' <<<"$text" | sort -u) == '"errors":0' ]] || fail "$1: I/O errors"
    [[ $(grep -o '"ios":[0-9]*' <<<"$text" | grep -vc ':0$') -ge 4 ]] || fail "$1: a class did nothing"
}

record() { "$stacktune" record $work/array.toml "$@"; }

# Starts a run in the background, sets `pid`, and waits until windows are recorded.
begin() {
    # Not through a function, which would give the pid of a subshell around it.
    "$stacktune" record $work/array.toml --for 600s --out "$work/$1" >"$work/log" 2>&1 &
    pid=$!
    for _ in {1..1500}; do [[ ! -s $work/$1/windows.jsonl ]] || return 0; sleep 0.1; done
    cat $work/log
    fail "$1 does not begin"
}

write_profile spdk

printf '# what is missing is said\n'
status=0
said=$(record --for 1s --out $work/none 2>&1) || status=$?
if ! ((status == 2)) || ! grep -q 'no huge pages are set aside' <<<"$said"; then fail "ended with $status: $said"; fi
"$stacktune" host | grep -A5 '^SPDK'
echo 400 >/proc/sys/vm/nr_hugepages
mount -t hugetlbfs none /dev/hugepages

printf '# a run\n'
record --for 3s --out $work/out --json >/dev/null || fail 'the run'
all_are_back
did_well $work/out
"$stacktune" show $work/out | head -n 40
grep -q 'in a separate process' $work/out/host.json $work/out/summary.json || fail 'the run does not say by what'
"$stacktune" verify $work/array.toml || fail 'what was written is not there'

printf '# every page size, flushes of each kind, and the largest depth\n'
for page in 512 4KiB 1MiB; do
    record --for 2s --out "$work/out-$page" --set "io.page_size=$page" --set wal.sync=dsync --json >/dev/null || fail "$page"
    all_are_back
    did_well "$work/out-$page"
done
record --for 2s --out "$work/deep" --set io.page_size=4KiB --set scan.depth=1024 --set scan.batch=256 --set scan.rate=none \
    --json >/dev/null || fail 'depth 1,024'
all_are_back
"$stacktune" verify $work/array.toml || fail 'what was written is not there'

printf '# the helper dies: the classes stop, and the run ends in order\n'
begin died
kill -ABRT "$(pgrep -P $pid)"
for _ in {1..300}; do ! grep -q 'signal 6' $work/log || break; sleep 0.1; done
grep -q 'stopped: the process that drives SPDK has ended: signal 6' $work/log || { cat $work/log; fail 'it is not reported'; }
status=0
wait $pid || status=$?
((status != 0)) || fail 'a run that has lost its drives ends as if it had not'
all_are_back

printf '# killed, and cleaned up\n'
begin killed
kill -9 $pid
wait $pid 2>/dev/null || true
"$stacktune" cleanup || fail 'the cleanup'
all_are_back
! pgrep -f drive-spdk || fail 'a helper is left'
"$stacktune" verify $work/array.toml || fail 'what was written is not there'

if dmesg | grep -E 'DMAR:.*fault|BUG:|WARNING:'; then exit 1; fi
printf '\nall went well\n'
