#!/bin/bash
# The files of a release, in target/dist; never with GPL parts (no SPDK).
#
#   scripts/dist.sh [PART…]      static glibc deb sbom package aarch64 sums chroots; all by default
#
# static   without RocksDB, for any Linux on x86-64 (musl)
# glibc    with RocksDB, compiled by zig for glibc 2.28: Debian 10, Ubuntu 18.10, RHEL 8 and later
# deb      that build as a package, with completions and man page
# sbom     bill of materials, as SPDX
# package  what `cargo publish` would send
# aarch64  the cross-build, and the unit tests under QEMU's user emulation
# sums     sha256 of all files
# chroots  starts each in Debian 12 and Ubuntu 24.04, and times it up to the first figures (needs root)
set -euo pipefail
cd "$(dirname "$0")/.."

readonly ZIGBUILD=0.24.0 ZIG=0.13.0 DEB=3.8.0 SBOM=0.10.0
readonly GLIBC=2.28 FIRST_FIGURES_S=15
readonly X86_MUSL=x86_64-unknown-linux-musl X86_GNU=x86_64-unknown-linux-gnu
readonly ARM_MUSL=aarch64-unknown-linux-musl

PATH="${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:$PATH:/usr/sbin:/sbin"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/make}
tools=${XDG_CACHE_HOME:-$HOME/.cache}/stacktune/dist-tools-$ZIGBUILD-$ZIG-$DEB-$SBOM
out=$PWD/target/dist
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)

say() { printf '\n=== %s\n' "$*"; }

stop() {
    printf 'dist: %s\n' "$1" >&2
    exit 1
}

get_zig() {
    [[ -x $tools/zig/bin/cargo-zigbuild ]] || {
        python3 -m venv "$tools/zig"
        "$tools/zig/bin/pip" install --quiet "cargo-zigbuild==$ZIGBUILD" "ziglang==$ZIG"
    }
    PATH="$tools/zig/bin:$PATH"
}

get_cargo_tool() {
    [[ -x $tools/bin/$1 ]] || env -u CARGO_TARGET_DIR cargo install --quiet --locked --root "$tools" "$1@$2"
    PATH="$tools/bin:$PATH"
}

# An archive of the program $2, named after the target $1.
archive() {
    local name=stacktune-$version-$1 folder
    [[ $(readelf -SW "$2") != *' .symtab '* ]] || stop "$2 has symbols"
    folder=$(mktemp -d)
    install -D -t "$folder/$name" -m 755 "$2"
    install -t "$folder/$name" -m 644 README.md LICENSE CHANGELOG.md
    tar -C "$folder" --owner=0 --group=0 --sort=name --mtime="@$(git log -1 --format=%ct)" \
        -czf "$out/$name.tar.gz" "$name"
    rm -r "$folder"
    printf '%s: %s bytes, the program %s\n' "$name.tar.gz" \
        "$(stat -c %s "$out/$name.tar.gz")" "$(stat -c %s "$2")" | tee -a "${REMARKS:-/dev/null}"
}

static() {
    rustup target add "$X86_MUSL"
    cargo build --profile dist --locked --no-default-features --features full --target "$X86_MUSL"
    archive "$X86_MUSL" "$CARGO_TARGET_DIR/$X86_MUSL/dist/stacktune"
}

glibc() {
    get_zig
    # Zig links its own libc++ statically. Its -msse4.2 does not imply CRC32 as other compilers' do.
    export CXXSTDLIB=c++ CXXFLAGS=-mcrc32 CXX="$tools/zig/bin/python -m ziglang c++ -target x86_64-linux-gnu.$GLIBC" \
        AR="$tools/zig/bin/python -m ziglang ar"
    unset ROCKSDB_LIB_DIR ROCKSDB_STATIC ROCKSDB_INCLUDE_DIR
    eval "$(scripts/rocksdb.sh)"
    [[ -n ${ROCKSDB_LIB_DIR:-} ]] || stop "RocksDB does not compile by zig"
    unset CXX CXXFLAGS AR
    cargo zigbuild --profile dist --locked --target "$X86_GNU.$GLIBC"
    archive "$X86_GNU" "$CARGO_TARGET_DIR/$X86_GNU/dist/stacktune"
}

deb() {
    local folder=$CARGO_TARGET_DIR/$X86_GNU/dist shell
    [[ -x $folder/stacktune ]] || stop "make the part glibc first"
    get_cargo_tool cargo-deb "$DEB"
    # cargo-deb looks for generated files here.
    mkdir -p "$folder/share"
    "$folder/stacktune" man >"$folder/share/stacktune.1"
    for shell in bash zsh fish; do
        "$folder/stacktune" completions "$shell" >"$folder/share/stacktune.$shell"
    done
    rm -f "$out"/*.deb
    cargo deb --no-build --no-strip --locked --profile dist --target "$X86_GNU" --output "$out"
    dpkg-deb --info "$out"/*.deb
    dpkg-deb --contents "$out"/*.deb
}

sbom() {
    get_cargo_tool cargo-sbom "$SBOM"
    cargo sbom --output-format spdx_json_2_3 >"$out/stacktune-$version.spdx.json"
}

package() {
    eval "$(scripts/rocksdb.sh)"
    cargo package --locked
}

sums() { (cd "$out" && sha256sum -- *.tar.gz *.deb *.json >SHA256SUMS && cat SHA256SUMS); }

# Runs a command in the system $1, with this system's processes and devices.
inside() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount bash -c 'for folder in proc sys dev; do mount --bind "/$folder" "$1/$folder"; done
        exec env -i HOME=/tmp/home PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$@"' bash "$@"
}

# Unpacks the archive $2 in the system $1, and times it up to the first figures in a recording.
start_in() {
    local root=$1 name=${2##*/} started spent
    name=${name%.tar.gz}
    rm -rf "$root/tmp/home" && mkdir "$root/tmp/home"
    started=$EPOCHREALTIME
    tar -C "$root/tmp" -xzf "$2"
    inside "$root" "/tmp/$name/stacktune" record demo --for 1s --out /tmp/home/run >"$work/log" 2>&1 ||
        stop "$name does not run in ${root##*/}: $(tail -n5 "$work/log")"
    spent=$(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    [[ -s $root/tmp/home/run/summary.json ]] || stop "'record demo' left no summary"
    printf '%s in %s: a second is recorded after %s s, unpacking and filling included\n' "$name" "${root##*/}" "$spent"
    grep -i 'smaller' "$work/log" || true
    awk -v spent="$spent" -v most="$FIRST_FIGURES_S" 'BEGIN { exit spent > most }' || stop "more than $FIRST_FIGURES_S s"
}

# Makes the system $1 with the debootstrap script $3, and starts our builds there.
in_system() {
    local suite=$1 mirror=$2 script=/usr/share/debootstrap/scripts/$3 root=$work/$1 target
    debootstrap --variant=minbase "${@:4}" "$suite" "$root" "$mirror" "$script" >"$work/$suite.log" 2>&1 || {
        printf '%s is left out: %s\n' "$suite" "$(tail -n1 "$work/$suite.log")" | tee -a "${REMARKS:-/dev/null}"
        return 0
    }
    for target in "$X86_MUSL" "$X86_GNU"; do start_in "$root" "$out/stacktune-$version-$target.tar.gz"; done
    cp "$out"/*.deb "$root/tmp/"
    inside "$root" sh -c 'dpkg --install /tmp/*.deb && stacktune --version &&
        test -s /usr/share/bash-completion/completions/stacktune &&
        test -s /usr/share/zsh/vendor-completions/_stacktune &&
        test -s /usr/share/fish/vendor_completions.d/stacktune.fish'
    systems=$((systems + 1))
}

chroots() {
    ((EUID == 0)) || stop "chroots need root"
    command -v debootstrap >/dev/null || stop "no debootstrap: apt-get install debootstrap"
    local systems=0
    work=$(mktemp -d -p /var/tmp stacktune-dist.XXXXXX)
    trap 'rm -rf --one-file-system "$work"' EXIT
    in_system bookworm http://deb.debian.org/debian sid
    # Debian has neither Ubuntu's keyring nor a script for noble; only our own builds are started there.
    in_system noble http://archive.ubuntu.com/ubuntu gutsy --no-check-gpg
    ((systems == 2)) || stop "only $systems of the two systems could be made"
}

# Static, so that the emulator needs no system libraries.
aarch64() {
    command -v qemu-aarch64-static >/dev/null || stop "no qemu-aarch64-static: apt-get install qemu-user-static"
    rustup target add "$ARM_MUSL"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64-static
    cargo build --profile dist --locked --no-default-features --features full --target "$ARM_MUSL"
    archive "$ARM_MUSL" "$CARGO_TARGET_DIR/$ARM_MUSL/dist/stacktune"
    # QEMU's user emulation lacks io_uring, libaio, preadv2 and direct I/O. The other tests run.
    local name lacking=(load::io::uring:: load::calibrate:: load::workers::tests:: ui::tui::pty_tests::
        counts_of_the_helper_arrive what_is_cached_is_dropped who_quits_while_the_load_drains) skips=()
    for name in "${lacking[@]}"; do skips+=(--skip "$name"); done
    printf 'aarch64 without %s\n' "${lacking[*]}" | tee -a "${REMARKS:-/dev/null}"
    cargo test --lib --locked --no-default-features --features full --target "$ARM_MUSL" -- "${skips[@]}"
}

mkdir -p "$out"
(($#)) || set -- static glibc deb sbom package aarch64 sums chroots
for part; do
    say "$part"
    case $part in
        static | glibc | deb | sbom | package | aarch64 | sums | chroots) ;;
        *) stop "there is no part $part" ;;
    esac
    # In a condition, -e would be off.
    set +e
    (set -e; "$part")
    status=$?
    set -e
    ((status == 0)) || stop "$part failed"
done
