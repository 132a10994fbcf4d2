#!/bin/bash
# All tests, then the list of those that could not run here, each with its reason.
#
# A test that can't run appends "SKIPPED <test>: <reason>" to the file that STACKTUNE_SKIPS names:
# what a passing test prints, cargo swallows.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH="${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:$PATH:/usr/sbin:/sbin"

scripts/setup.sh test

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

# Every test binary runs, also after one has failed: one look shows all that is wrong.
status=0
cargo test --locked --no-fail-fast "${spdk[@]}" "$@" || status=$?

sort -u -o "$STACKTUNE_SKIPS" "$STACKTUNE_SKIPS"
if [[ -s $STACKTUNE_SKIPS ]]; then
    printf '\nCould not run here (%d):\n' "$(wc -l <"$STACKTUNE_SKIPS")"
    sed 's/^SKIPPED /  /' "$STACKTUNE_SKIPS"
else
    printf '\nEvery test could run here.\n'
fi
exit "$status"
