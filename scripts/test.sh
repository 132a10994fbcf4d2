#!/bin/bash
# The gate's tests, then a list of those that could not run here, each with its reason.
#
#   scripts/test.sh             all of them (`make test`)
#   scripts/test.sh quick [NAME...]   the unit tests, all or by name, and the house's (`make quick`)
#   scripts/test.sh devices     those on loop devices, each in a process of its own
#   scripts/test.sh ARGUMENT... passed to cargo test: --test devices guard::, say
#
# The virtual machine runs if anything that it tests has changed since it last passed; LAB=1 always runs it.
# A test that can't run appends "SKIPPED <test>: <reason>" to the file that STACKTUNE_SKIPS names, because
# cargo swallows the output of passing tests.
# The stages are called by name.
# shellcheck disable=SC2317
set -euo pipefail
cd "$(dirname "$0")/.."

# As in the Makefile: separate from plain cargo's builds.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/make}

PATH="${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:$PATH:/usr/sbin:/sbin"
# shellcheck source=scripts/tree.sh
. scripts/tree.sh

# Most tests spend more time waiting (for time, the disk, programs) than computing.
readonly AT_ONCE=4
# Tests that need all loop devices: most compare rates with another program's, and need processors and a quiet disk.
readonly MEASURES='^fio::\|^trace::\|^trace_latency::\|^attest::\|^others_io::\|^program_figures::pro\|^program_figures::a_client\|^stack_undo::a_cgroup'
export RUST_TEST_THREADS=$AT_ONCE

scripts/setup.sh test

own_list=
if [[ -z ${STACKTUNE_SKIPS:-} ]]; then
    STACKTUNE_SKIPS=$(mktemp -t stacktune-skips.XXXXXX)
    own_list=$STACKTUNE_SKIPS
fi
export STACKTUNE_SKIPS
work=$(mktemp -d -t stacktune-test.XXXXXX)
trap 'rm -rf "$work"; [[ -z $own_list ]] || rm -f "$own_list"' EXIT
touch "$STACKTUNE_SKIPS"

eval "$(scripts/rocksdb.sh)"

# If SPDK is installed, the tests that use it run too.
features=()
if command -v pkg-config >/dev/null && pkg-config --exists spdk_nvme spdk_env_dpdk; then
    features=(--features spdk)
fi
test=(cargo test --locked --no-fail-fast "${features[@]}")
# The library's unit tests aren't optimized: that would save a few seconds and quadruple the compile time.
unit=("${test[@]}" --config profile.dev.package.stacktune.opt-level=0 --lib)

status=0
stage() {
    local started=$SECONDS name=$1
    shift
    "$@" || status=1
    printf -- '--- %s: %d s\n\n' "$name" $((SECONDS - started))
}

# The test binary of tests/$1.
program_of() { sed -n "s|^ *Executable tests/$1/main.rs (\(.*\))\$|\1|p" "$work/built"; }

# Compiles the test binaries that match a pattern.
programs() { CARGO_TERM_COLOR=never "${test[@]}" --no-run --test "$1" 2>&1 | tee "$work/built"; }

build() {
    "${unit[@]}" --no-run
    programs '*'
}

# Unit tests compute while the others mostly wait, so they run at the lowest priority in the time left over.
begin_unit() {
    (
        ended=0
        nice -n 19 "${unit[@]}" >"$work/unit" 2>&1 || ended=$?
        echo "$ended" >"$work/unit-status"
    ) &
}

unit_ended() {
    wait
    cat "$work/unit"
    return "$(<"$work/unit-status")"
}

# The house's tests read only the source: compiled separately, they don't need a build of the program.
house() {
    local program=$work/house
    CARGO_MANIFEST_DIR=$PWD rustc --edition 2024 --test tests/house/main.rs -o "$program" && "$program" --quiet
}

# Runs each test of a binary that grep (given the other arguments) selects in its own process, a few at once.
# A process that starts a program briefly shares its open descriptors; another test would find a device busy.
one_by_one() {
    local program name=$1
    shift
    program=$(program_of "$name")
    [[ -x $program ]] || { echo "the program of tests/$name was not built"; return 1; }
    # shellcheck disable=SC2016 # expanded by the inner shell
    "$program" --list --format terse | sed -n 's/: test$//p' | grep "$@" |
        xargs -P "$AT_ONCE" -I{} bash -c 'log=$(mktemp "$2/log.XXXXXX")
            if "$1" --exact "$3" >"$log" 2>&1 && grep -q "^test result: ok. 1 passed" "$log"; then
                echo "test $3 ... ok ($SECONDS s)"
            else
                sed "s/^/    /" "$log"
                echo "test $3 ... FAILED ($SECONDS s)"
                exit 1
            fi' bash "$program" "$work" {} | tee "$work/$name"
    local failed passed
    failed=$(grep -c '^test .* \.\.\. FAILED (' "$work/$name") || true
    passed=$(grep -c '^test .* \.\.\. ok (' "$work/$name") || true
    printf '\ntest result: %s. %d passed; %d failed\n' "$( ((failed || !passed)) && echo FAILED || echo ok)" \
        "$passed" "$failed"
    ((passed && !failed))
}

# Its tests wait for a few machines, and each waiting test takes a thread.
lab() {
    local hash
    hash=$(tree_hash)
    if [[ -z ${LAB:-} ]] && lab_passed "$hash"; then
        printf 'The virtual machine is left out: nothing that it tests has changed since it passed (%s).\n' "$(lab_passed "$hash")"
        return
    fi
    local times=${CARGO_TARGET_DIR:-target}/tmp/lab/times failed=0
    rm -f "$times"
    RUST_TEST_THREADS=100 "${test[@]}" --test lab || failed=1
    if [[ -s $times ]]; then sed 's/^/  machine: /' "$times"; fi
    ((!failed)) || return
    # If the machine can't run here at all, its tests are on the list of skips.
    if tests/rig.sh --check 2>/dev/null; then lab_has_passed "$hash"; fi
}

case ${1:-} in
    '')
        stage build build
        ((status)) || {
            stage 'the house' "${test[@]}" --test house
            begin_unit
            stage 'gate' "${test[@]}" --test gate
            stage 'loop devices' one_by_one devices -v "$MEASURES"
            stage 'unit tests (beside those)' unit_ended
            stage 'measurements on loop devices' one_by_one devices "$MEASURES"
            stage 'virtual machine' lab
        }
        ;;
    quick)
        shift
        stage 'the house' house
        stage 'unit tests' "${unit[@]}" -- "$@"
        ;;
    devices)
        stage build programs devices
        ((status)) || stage 'loop devices' one_by_one devices .
        ;;
    *) "${test[@]}" "$@" || status=$? ;;
esac

sort -u -o "$STACKTUNE_SKIPS" "$STACKTUNE_SKIPS"
if [[ -s $STACKTUNE_SKIPS ]]; then
    printf '\nCould not run here (%d):\n' "$(wc -l <"$STACKTUNE_SKIPS")"
    sed 's/^SKIPPED /  /' "$STACKTUNE_SKIPS"
else
    printf '\nEvery test could run here.\n'
fi
exit "$status"
