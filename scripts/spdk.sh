#!/bin/bash
# The tests over SPDK in the virtual machine, once for each installed SPDK: a part of the soak.
#
#   scripts/spdk.sh             prints the versions that passed, also for the soak's row
#   scripts/spdk.sh --found     exits with 1 if none is installed
#
#   SPDK='PATH ...'     a PKG_CONFIG_PATH for each installation: the folder of its .pc files, and after a colon that
#                       of DPDK's if DPDK was installed separately; by default, PKG_CONFIG_PATH as it is
set -euo pipefail
cd "$(dirname "$0")/.."

PATH="${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:$PATH:/usr/sbin:/sbin"

read -ra installations <<<"${SPDK:-${PKG_CONFIG_PATH:-:}}"

has() { command -v pkg-config >/dev/null && PKG_CONFIG_PATH=$1 pkg-config --exists spdk_nvme spdk_env_dpdk; }

if [[ ${1:-} == --found ]]; then
    for path in "${installations[@]}"; do if has "$path"; then exit; fi; done
    exit 1
fi
eval "$(scripts/rocksdb.sh)"
STACKTUNE_SKIPS=$(mktemp -t stacktune-skips.XXXXXX)
export STACKTUNE_SKIPS
trap 'rm -f "$STACKTUNE_SKIPS"' EXIT
for path in "${installations[@]}"; do
    has "$path" || { printf 'pkg-config finds no SPDK with PKG_CONFIG_PATH=%s\n' "$path" >&2; exit 1; }
    export PKG_CONFIG_PATH=$path
    cargo test --locked --features spdk --test lab -- spdk::
    if [[ -s $STACKTUNE_SKIPS ]]; then
        cat "$STACKTUNE_SKIPS" >&2
        exit 1
    fi
    "${CARGO_TARGET_DIR:-target}/debug/stacktune" host |
        sed -n 's/.*\(SPDK v[^,]*, DPDK [0-9.]*[0-9]\).*/\1 passed/p' | tee -a "${REMARKS:-/dev/null}"
done
