#!/bin/bash
# Builds RocksDB once for all builds of this user, and prints the settings that pass it to cargo:
#
#   eval "$(scripts/rocksdb.sh)"
#
# The sources are those of the crate librocksdb-sys. They compile as four large files instead of 330,
# in under a third of the time, into a cache folder named after version, compiler and flags:
# ${XDG_CACHE_HOME:-~/.cache}/stacktune/rocksdb. CXX, AR and CXXFLAGS are respected. If this fails, nothing is
# printed, and the crate compiles RocksDB itself.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH="${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:$PATH"

readonly SHARDS=4
# Memory that compiling one shard takes, with room to spare (3.2 GiB with g++ 12).
readonly SHARD_KB=$((3500 * 1024))

say() { printf 'stacktune: %s\n' "$*" >&2; }

# If this build fails, the crate compiles RocksDB itself.
give_up() {
    say "RocksDB is compiled by cargo, which takes longer: $1"
    exit 0
}

# The folder of a crate's sources.
crate() {
    grep -o "\"manifest_path\":\"[^\"]*/$1-[0-9][^\"/]*/Cargo.toml\"" <<<"$metadata" |
        sed 's#^"manifest_path":"\(.*\)/Cargo.toml"$#\1#'
}

available_kb() { sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo; }

# As many shards at once as there are cores and memory for.
jobs_at_once() {
    local cores fit
    cores=$(nproc)
    fit=$(($(available_kb) / SHARD_KB))
    printf '%s\n' "$((fit < cores ? fit : cores))"
}

# Builds the archive in the folder $1. All compiler output goes to a log there.
compile() {
    local folder=$1 part
    grep -v util/build_version.cc "$source/rocksdb_lib_sources.txt" | tr -d ' \r' | grep . >"$folder/list"
    split -n "l/$SHARDS" -d "$folder/list" "$folder/shard"
    for part in "$folder"/shard0?; do
        sed 's#.*#\#include "rocksdb/&"#' "$part" >"$part.cc"
    done
    echo '#include "build_version.cc"' >>"$part.cc"
    # shellcheck disable=SC2016 # expanded by the inner shell
    printf '%s\0' "$folder"/shard0?.cc |
        xargs -0 -P "$jobs" -I{} sh -c '"$@" -c {} -o {}.o' sh "${cxx[@]}" "${flags[@]}" &&
        "${ar[@]}" crs "$folder/librocksdb.a" "$folder"/shard0?.cc.o
}

[[ -z ${ROCKSDB_LIB_DIR:-}${ROCKSDB_COMPILE:-} ]] || exit 0 # the caller has already chosen

metadata=$(cargo metadata --locked --format-version 1) || exit 1
source=$(crate librocksdb-sys) lz4=$(crate lz4-sys) zstd=$(crate zstd-sys)
read -ra cxx <<<"${CXX:-c++}"
read -ra ar <<<"${AR:-ar}"
compiler=$("${cxx[@]}" --version 2>/dev/null | head -n1) || give_up "${cxx[*]} does not run."
machine=$("${cxx[@]}" -dumpmachine)

flags=(-O2)
case $machine in
    x86_64-*) flags+=(-msse4.2 -mpclmul) crc32c=SSE4.2 ;;
    aarch64-*) flags+=(-march=armv8-a+crc+crypto) crc32c=ARMv8 ;;
    *) crc32c=software ;;
esac
# The definitions are those of the crate's build script for Linux.
flags+=("${ROCKSDB_CXX_STD:--std=c++20}" -fPIC -ffunction-sections -fdata-sections -w -include cstdint
    -DNDEBUG=1 -DLZ4=1 -DZSTD=1 -DHAVE_ALIGNED_NEW -DHAVE_UINT128_EXTENSION
    -DOS_LINUX -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX -DROCKSDB_SCHED_GETCPU_PRESENT
    -DROCKSDB_AUXV_GETAUXVAL_PRESENT -DROCKSDB_FALLOCATE_PRESENT -DROCKSDB_RANGESYNC_PRESENT)
read -ra own <<<"${CXXFLAGS:-}"
flags+=("${own[@]}")

version=${source##*/librocksdb-sys-}
key=$(printf '%s\n' "$version" "$compiler" "$machine" "${cxx[*]}" "${flags[*]}" "$SHARDS" | sha256sum)
key=$version-${key:0:12}
cache=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/stacktune/rocksdb
mkdir -p "$cache"
flags+=(-I "$source/rocksdb/include" -I "$source/rocksdb" -I "$source" -I "$lz4/liblz4/lib" -I "$zstd/zstd/lib")

if [[ ! -e $cache/$key/librocksdb.a ]]; then
    exec 9>"$cache/lock"
    flock -n 9 || { say "Another build compiles RocksDB; waiting for it."; flock 9; }
fi
if [[ ! -e $cache/$key/librocksdb.a ]]; then
    [[ ! -e $cache/$key.failed ]] || give_up "it failed before; $cache/$key.failed says why. Remove it to try again."
    jobs=$(jobs_at_once)
    ((jobs)) || give_up "there are not $((SHARD_KB / 1024)) MiB of memory free."
    say "Compiling RocksDB ${version#*+} once, $jobs files at a time; it takes 3 minutes on two fast cores."
    new=$(mktemp -d "$cache/new.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    if ! compile "$new" >"$new/log" 2>&1; then
        mv "$new/log" "$cache/$key.failed"
        give_up "${cxx[*]} can't compile it in large files; see $cache/$key.failed."
    fi
    rm "$new"/shard* "$new/list" "$new/log"
    printf 'unity build, %s, %s\ncrc32c %s\n' "$compiler" "${flags[0]}" "$crc32c" >"$new/built"
    chmod 755 "$new"
    mv "$new" "$cache/$key"
fi
printf 'export ROCKSDB_STATIC=1 ROCKSDB_LIB_DIR=%q ROCKSDB_INCLUDE_DIR=%q\n' \
    "$cache/$key" "$source/rocksdb/include"
