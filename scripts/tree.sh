# A hash of what the virtual machine's tests depend on, and a record of when they last passed. To be sourced.
# shellcheck shell=bash

# Files that can't affect the machine: documents, tests that run elsewhere, and scripts, except rocksdb.sh, which
# builds a library that runs there, and spdk.sh, which selects its tests. Drawn and printed text is left out too: the
# machine's tests read a few words of it (of `show`, `compare` and the screen), but the gate tests it.
readonly SCRIPTS='bench|bench-polled|bench_tools|demo-check|dist|fuzz|hlog|setup|soak|test|tree'
readonly HARMLESS='\.md$|^(LICENSE|\.gitignore|\.shellcheckrc|rustfmt\.toml|clippy\.toml|Makefile)$|^\.ci/|^assets/|^scripts/('"$SCRIPTS"')\.(sh|py)$|^fuzz/|^src/ui/(tui|report)/|[_/]tests\.rs$|/snapshots/|^tests/(gate|devices|house|readers|recordings)/|^tests/skips\.txt$'

tree_cache() { printf '%s' "${STACKTUNE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/stacktune}"; }

# Covers the current content of every file that is not harmless (or not matched by the pattern in $1), and the
# versions of the tools that matter.
tree_hash() {
    {
        rustc --version
        qemu-system-x86_64 --version 2>/dev/null | head -n1
        git ls-files -z --cached --others --exclude-standard | grep -zvE "${1:-$HARMLESS}" | sort -z | xargs -0 sha256sum 2>&1
    } | sha256sum | cut -c1-16
}

# Prints when the machine passed with that tree, if it did.
lab_passed() {
    local record
    record=$(tree_cache)/lab-passed
    [[ -r $record ]] && grep "^$1 " "$record" | tail -n1 | grep .
}

lab_has_passed() {
    local record
    record=$(tree_cache)/lab-passed
    mkdir -p "${record%/*}"
    printf '%s on %s at %s\n' "$1" "$(date +%F)" "$(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')" >>"$record"
}
