#!/bin/bash
# Builds what `make demo` builds, and tries it: the screen opens, a run is recorded, and missing commands are
# explained in one sentence. FRESH=1 builds from scratch and limits compilation to 180 CPU-seconds (user and
# system; downloads don't count).
set -euo pipefail
cd "$(dirname "$0")/.."

readonly LIMIT_S=180
build=(cargo build --release --locked --no-default-features)

stop() {
    printf 'demo-check: %s\n' "$1" >&2
    exit 1
}

work=$(mktemp -d -t stacktune-demo.XXXXXX)
trap 'rm -rf "$work"' EXIT

if [[ -n ${FRESH:-} ]]; then
    export CARGO_TARGET_DIR=$work/target
    cargo fetch --locked --quiet
fi
tree=$(cargo tree --locked --no-default-features --edges normal,build --prefix none)
# With its compiler or libclang at hand, a dependency that needs one would go unnoticed.
! grep -E '^(cc|cmake|bindgen|clang-sys|librocksdb-sys|libsqlite3-sys) ' <<<"$tree" || stop "its build asks for more than Rust"
TIMEFORMAT='%U %S'
{ time "${build[@]}" 2>&3; } 3>&2 2>"$work/time"
spent=$(awk '{ printf "%.0f", $1 + $2 }' "$work/time")
if [[ -n ${FRESH:-} ]]; then
    printf 'The build took %s CPU-seconds.\n' "$spent"
else
    printf 'What was not built before took %s CPU-seconds to build.\n' "$spent"
fi
[[ -z ${REMARKS:-} ]] || printf '%s CPU-seconds\n' "$spent" >>"$REMARKS"
[[ -z ${FRESH:-} ]] || ((spent <= LIMIT_S)) || stop "more than $LIMIT_S CPU-seconds"

program=${CARGO_TARGET_DIR:-target}/release/stacktune

# What a newcomer would run, including the fill, on small files.
XDG_CACHE_HOME=$work "$program" record demo --for 1s --out "$work/recording" --set target.files.size=32MiB >/dev/null
[[ -s $work/recording/summary.json ]] || stop "'record demo' left no summary"

said=$("$program" rocksdb 2>&1) || true
grep -q 'this build has no RocksDB.*make build' <<<"${said//$'\n'/ }" ||
    stop "it doesn't say how to get RocksDB: $said"

said=$("$program" check demo --set load.engine=rocksdb 2>&1) || true
grep -q 'no RocksDB.*make build' <<<"${said//$'\n'/ }" || stop "load.engine doesn't say how to get RocksDB: $said"

said=$("$program" check demo --set io.interface=vfio 2>&1) || true
grep -q 'no drives leave the kernel.*make build' <<<"${said//$'\n'/ }" ||
    stop "io.interface doesn't say how to get vfio: $said"

# Every command missing from this build, with any arguments, and the place where the help lists them.
listed=$("$program" --help | grep --after-context 3 'make build') || stop "the help lists none of what it lacks"
for words in 'run demo --out x -- true' 'reproduce --list' attest 'contract trace --json' trace ftl mimic \
    'completions bash' man picture 'run --help'; do
    status=0
    read -ra arguments <<<"$words"
    said=$("$program" "${arguments[@]}" 2>&1) || status=$?
    [[ $status == 2 && $said == *'this build '*'make build'* ]] ||
        stop "'stacktune $words' doesn't say how to get it: $said"
    [[ $listed == *"${arguments[0]}"* ]] || stop "the help doesn't list '${arguments[0]}': $listed"
done
said=$("$program" help attest)
[[ $said == *'this build '*'make build'*fio* ]] || stop "'stacktune help attest' doesn't say how to get it: $said"

# The screen in a pseudo-terminal: it draws the table of classes, and q quits.
export TERM=xterm-256color
timeout 60 script --quiet --return --log-out "$work/screen" --command \
    "stty cols 120 rows 40; '$program' demo --set io.interface=sim" < <(sleep 4; printf q; sleep 2; printf y) \
    >/dev/null || stop "the screen did not open and close: $(tail -c 500 "$work/screen")"
grep -q p99 "$work/screen" || stop "the screen shows no figures: $(tail -c 500 "$work/screen")"
printf 'The demo records, opens its screen, and says how to get RocksDB.\n'
