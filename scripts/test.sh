#!/bin/bash
# All tests, then the list of those that could not run here, each with its reason.
#
# A test that can't run appends "SKIPPED <test>: <reason>" to the file that STACKTUNE_SKIPS names:
# what a passing test prints, cargo swallows.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH="${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:$PATH:/usr/sbin:/sbin"

scripts/setup.sh test
eval "$(scripts/rocksdb.sh)"

own_list=
if [[ -z ${STACKTUNE_SKIPS:-} ]]; then
    STACKTUNE_SKIPS=$(mktemp -t stacktune-skips.XXXXXX)
    own_list=$STACKTUNE_SKIPS
fi
export STACKTUNE_SKIPS
trap '[[ -z $own_list ]] || rm -f "$own_list"' EXIT
: >"$STACKTUNE_SKIPS"

# Where SPDK is found, the tests that drive drives through it run too.
spdk=()
if command -v pkg-config >/dev/null && pkg-config --exists spdk_nvme spdk_env_dpdk; then
    spdk=(--features spdk)
fi

# A build without RocksDB does what it can, and says what it can't.
without_rocksdb() {
    local told
    told=$(cargo run -q --locked --no-default-features -- check rocksdb 2>&1) || true
    if ! grep -q 'this build has no RocksDB' <<<"$told"; then
        printf 'A build without RocksDB does not say so:\n%s\n' "$told"
        return 1
    fi
    cargo run -q --locked --no-default-features -- record demo --for 1s --out "$1" --set io.interface=sim
}

# Every test binary runs, also after one has failed: one look shows all that is wrong.
status=0
if (($# == 0)); then
    without=$(mktemp -d -t stacktune-without.XXXXXX)
    without_rocksdb "$without/recording" || status=$?
    rm -rf "$without"
fi
cargo test --locked --no-fail-fast "${spdk[@]}" "$@" || status=$?

sort -u -o "$STACKTUNE_SKIPS" "$STACKTUNE_SKIPS"
if [[ -s $STACKTUNE_SKIPS ]]; then
    printf '\nCould not run here (%d):\n' "$(wc -l <"$STACKTUNE_SKIPS")"
    sed 's/^SKIPPED /  /' "$STACKTUNE_SKIPS"
else
    printf '\nEvery test could run here.\n'
fi
exit "$status"
