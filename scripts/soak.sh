#!/bin/bash
# The whole matrices, of which the gate (`make test`) runs a part: each part takes at most 45 minutes.
#
#   scripts/soak.sh     LIST=1 lists the parts; PART=name runs one; AGAIN=1 also those that have passed
#
# A part that has passed with the current tree is not run again. tests/soak.md keeps the last result of each.
set -euo pipefail
cd "$(dirname "$0")/.."

# As in the Makefile: separate from plain cargo's builds.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/make}

PATH="${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:$PATH:/usr/sbin:/sbin"
# shellcheck source=scripts/tree.sh
. scripts/tree.sh

readonly RESULTS=tests/soak.md PART_S=2700

# name | what it proves | the program of tests and which of its tests, or "$" and a command
readonly PARTS='
bare     | every interface, way of polling and page size on bare NVMe drives; the guard there | lab machines::bare:: machines::the_host_has machines::figures_of machines::interfaces_that_poll
stacks   | every RAID with every file system on NVMe drives, and the states of arrays             | lab machines::stacks::
built    | layers, programs, formats, RocksDB and the papers tables on NVMe drives               | lab machines::built:: machines::the_papers_table
faults   | a tool that fails, a drive in use, at every step; failing and pulled members       | lab machines::faults::
kills    | 50 kills of a stack on NVMe drives beside one of others                           | lab machines::kills::
spdk     | a load over SPDK, with each version that is installed (scripts/spdk.sh says where)  | $ scripts/spdk.sh
machine  | the rest in the virtual machine: VFIO, RocksDB, power cuts, the screen             | lab --skip machines::bare:: --skip machines::stacks:: --skip machines::built:: --skip machines::faults:: --skip machines::kills:: --skip machines::the_host_has --skip machines::figures_of --skip machines::interfaces_that_poll --skip machines::the_papers_table --skip every_test_of_the_guest --skip over_spdk
devices  | loop devices, with 50 kills                                                        | $ scripts/test.sh devices
gate     | the program on files and simulated devices                                         | gate
series   | how often verdicts err, on the whole of the made series                             | $ cargo test --locked --lib -- --nocapture estimate turn_figures duel wander recorded steady_state cusum
turns    | equal settings on a loop device: how often the ledger calls them different         | $ env TURNS=60/0/0 cargo test --locked --test devices -- --nocapture turns::
duels    | the same by duels                                                                   | $ env TURNS=0/10/0 cargo test --locked --test devices -- --nocapture turns::
compared | recordings of equal settings: how often compare calls them different             | $ env RECORDINGS=40 cargo test --locked --test devices -- --nocapture equal_recordings::
planted  | a depth halved and a tenth of a rate taken: how often ledger and duels find it      | $ env TURNS=0/0/6 cargo test --locked --test devices -- --nocapture turns::
hlog     | latency.hlog as the tools of HdrHistogram read it, in Java and Python              | $ scripts/hlog.sh
fuzz     | readers of files, fuzzed for up to seven minutes each                              | $ scripts/fuzz.sh
demo     | a build of the demo from nothing within its CPU time, and that it opens             | $ env FRESH=1 scripts/demo-check.sh
dist     | the files of a release, and that each starts where it should                       | $ scripts/dist.sh
'

field() { sed "s/^ *//; s/ *\$//" <<<"$1"; }

passed() { grep -qs "^$1 $2\$" "$(tree_cache)/soak-passed"; }

# Puts a row into the table, replacing the part's last one.
note() {
    local part=$1 result=$2 minutes=$3 row
    row="| $part | $(date +%F) | $(git rev-parse --short HEAD 2>/dev/null || echo –) | $result | $minutes |"
    # shellcheck disable=SC2016 # Markdown's
    [[ -f $RESULTS ]] || printf '# The soak\n\nThe last result of each part of `make soak`.\n\n| part | date | commit | result | minutes |\n|---|---|---|---|---|\n' >"$RESULTS"
    sed -i "/^| $part |/d" "$RESULTS"
    printf '%s\n' "$row" >>"$RESULTS"
}

# Whether tests ran if there should be some, and every skip is allowed.
sound() {
    local log=$1
    shift
    if [[ "$*" == *'cargo test'* || "$*" == *scripts/test.sh* ]] && ! grep -q '^test result: ok\. [1-9]' "$log"; then
        echo "no test has run"
        return 1
    fi
    SOAK=1 .ci/check-skips "$STACKTUNE_SKIPS"
}

run() {
    local name=$1 hash=$2 started=$SECONDS result=passed words command log
    read -ra words <<<"$3"
    if [[ ${words[0]} == '$' ]]; then
        command=("${words[@]:1}")
    else
        command=(cargo test --locked --no-fail-fast --test "${words[0]}" -- "${words[@]:1}")
    fi
    printf '\n=== %s\n' "$name"
    log=$(mktemp -t stacktune-soak.XXXXXX)
    REMARKS=$(mktemp -t stacktune-soak.XXXXXX)
    STACKTUNE_SKIPS=$(mktemp -t stacktune-skips.XXXXXX)
    export STACKTUNE_SKIPS
    SOAK=1 REMARKS=$REMARKS LAB_SEED=${LAB_SEED:-$RANDOM} RUST_TEST_THREADS=$([[ ${words[0]} == lab ]] && echo 100 || nproc) \
        timeout --kill-after=30 "$PART_S" "${command[@]}" 2>&1 | tee "$log" || result=FAILED
    sound "$log" "${command[@]}" || result=FAILED
    # The row lists what could not run here: passing without it proves less.
    sort -u "$STACKTUNE_SKIPS" | sed 's/^SKIPPED /not run: /' | tee -a "$REMARKS"
    note "$name" "$result$(sed 's/^/; /; s/|/,/g' "$REMARKS" | tr -d '\n')" $(((SECONDS - started + 59) / 60))
    rm -f "$log" "$REMARKS" "$STACKTUNE_SKIPS"
    [[ $result == passed ]] || return 1
    mkdir -p "$(tree_cache)"
    printf '%s %s\n' "$name" "$hash" >>"$(tree_cache)/soak-passed"
}

status=0
in_machine=$(tree_hash) anywhere=$(tree_hash '\.md$')
[[ -n ${LIST:-} ]] || {
    scripts/setup.sh test
    eval "$(scripts/rocksdb.sh)"
}
while IFS='|' read -r name what tests; do
    [[ -n ${name// /} ]] || continue
    name=$(field "$name")
    hash=$([[ $tests == *' lab '* || $name == spdk ]] && echo "$in_machine" || echo "$anywhere")
    [[ $name != spdk ]] || hash+=-$(cksum <<<"${SPDK:-}" | cut -d' ' -f1)
    if [[ -n ${LIST:-} ]]; then
        printf '%-9s %s%s\n' "$name" "$(field "$what")" "$(if passed "$name" "$hash"; then echo " (passed)"; fi)"
        continue
    fi
    [[ -z ${PART:-} || $PART == "$name" ]] || continue
    if [[ $name == spdk ]] && ! scripts/spdk.sh --found; then
        row=$(grep -s '^| spdk |' "$RESULTS" || true)
        printf 'spdk is left out: no SPDK is found. It ran last: %s\n' "${row:-never}"
        continue
    fi
    if [[ -z ${AGAIN:-} ]] && passed "$name" "$hash"; then
        printf '%s has passed with this tree.\n' "$name"
        continue
    fi
    run "$name" "$hash" "$(field "$tests")" </dev/null || status=1
done <<<"$PARTS"
exit "$status"
