#!/bin/bash
# Fuzzes the readers of files, starting from the kept seeds, two readers at a time.
#
#   scripts/fuzz.sh                  all of them, SECONDS_EACH (420) each, half that where few strangers write
#   scripts/fuzz.sh READER…          these
#   scripts/fuzz.sh READER FILE      only that input, once
#
# The seeds are in fuzz/seeds; new inputs that the fuzzer finds go to fuzz/corpus, and are used the next time. An
# input that stops a reader fails the run, and goes to fuzz/artifacts: once the reader is fixed, keep it among the
# seeds under a name that says what it does. The gate feeds all seeds (tests/gate/seeds.rs).
set -euo pipefail
cd "$(dirname "$0")/.."

readonly CARGO_FUZZ=0.13.2 TOOLCHAIN=nightly TARGET=x86_64-unknown-linux-gnu
readonly SECONDS_EACH=${SECONDS_EACH:-420} MEMORY_MB=512 INPUT_S=30 INPUT_BYTES=65536

PATH="${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:$PATH"
# shellcheck source=scripts/tree.sh
. scripts/tree.sh
tools=$(tree_cache)/cargo-fuzz-$CARGO_FUZZ
build=${CARGO_TARGET_DIR:-$PWD/target/make}/fuzz

stop() {
    printf 'fuzz: %s\n' "$1" >&2
    exit 1
}

readers() { for path in fuzz/fuzz_targets/*.rs; do basename "$path" .rs; done; }

prepare() {
    cargo "+$TOOLCHAIN" --version >/dev/null 2>&1 ||
        stop "it needs Rust's nightly, for the compiler's instrumentation: rustup toolchain install $TOOLCHAIN"
    [[ -x $tools/bin/cargo-fuzz ]] ||
        env -u CARGO_TARGET_DIR cargo install --quiet --locked --root "$tools" "cargo-fuzz@$CARGO_FUZZ"
    PATH="$tools/bin:$PATH"
    # Compiled like the tests, with arithmetic checks.
    cargo "+$TOOLCHAIN" fuzz build --dev --target "$TARGET" --target-dir "$build"
}

# A reader's fuzzer. Leaks aren't detected: what looks leaked is meant to live until the process ends.
fuzzer() {
    local reader=$1
    shift
    ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16 TMPDIR=$scratch nice -n 19 \
        "$build/$TARGET/debug/$reader" -rss_limit_mb="$MEMORY_MB" -timeout="$INPUT_S" "$@"
}

# Runs one reader for its time; prints a summary, or how to repeat the input that stopped it.
run() {
    local reader=$1 log=fuzz/artifacts/$1.log seconds=$SECONDS_EACH found
    [[ $reader != @(host|state|found) ]] || seconds=$((SECONDS_EACH / 2))
    mkdir -p "fuzz/corpus/$reader" "fuzz/artifacts/$reader"
    if fuzzer "$reader" -max_total_time="$seconds" -max_len="$INPUT_BYTES" -print_final_stats=1 \
        -artifact_prefix="fuzz/artifacts/$reader/" "fuzz/corpus/$reader" "fuzz/seeds/$reader" >"$log" 2>&1; then
        printf '%-8s %s executions, no input stopped it\n' "$reader" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
        return
    fi
    found=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n1)
    grep -aE '^(thread |assertion|SUMMARY|==[0-9]+== ?ERROR)|panicked at' -A3 "$log" | head -n 20 || tail -n 20 "$log"
    printf '%-8s FAILED; to repeat it:  scripts/fuzz.sh %s %s\n' "$reader" "$reader" "${found:-(see $log)}"
    return 1
}

scratch=$(mktemp -d -p "$([[ -w /dev/shm ]] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$scratch"' EXIT

prepare
if (($# == 2)) && [[ -f $2 ]]; then
    fuzzer "$1" "$2"
    exit
fi
if (($# == 0)); then
    mapfile -t all < <(readers)
    set -- "${all[@]}"
fi
status=0 running=0
for reader in "$@"; do
    [[ -f fuzz/fuzz_targets/$reader.rs ]] || stop "there is no reader $reader: $(readers | xargs)"
    ((running < 2)) || { wait -n || status=1; running=$((running - 1)); }
    run "$reader" &
    running=$((running + 1))
done
for ((; running; running--)); do wait -n || status=1; done
exit "$status"
