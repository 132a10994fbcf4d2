#!/bin/bash
# Checks that everything a make target needs is installed, and installs what is missing through apt.
#
#   scripts/setup.sh build|demo|lab|test|bench|ci
#
# On a terminal it names the packages and asks first; otherwise it installs them if it may (as root, or
# through a sudo that needs no password). NO_INSTALL=1 only names them. Exits with 0 if the target can go on
# (perhaps with less: tests are skipped), and with 1 and the reason if it can't.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH="${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:$PATH:/usr/sbin:/sbin"

# A line for each tool: the targets that want it, what the target can't do without it ("stop": nothing at
# all), the command to look for, and Debian's package. Looking for commands rather than packages means that a
# tool installed by hand counts.
readonly TOOLS='
build,demo,lab,test,bench | stop                                  | cc                 | gcc libc6-dev
build,lab,test,bench      | stop                                  | c++                | g++
build,lab,test,bench      | stop                                  | libclang           | libclang-dev
demo,lab,test             | devices are refused                   | wipefs             | util-linux
demo,lab,test             | devices are refused                   | blkid              | util-linux
test                      | tests on loop devices are skipped     | losetup            | mount
test                      | tests of partition tables are skipped | sfdisk             | fdisk
test                      | comparisons with fio are skipped      | fio                | fio
test                      | tests on ext4 are skipped             | mkfs.ext4          | e2fsprogs
test                      | tests on XFS are skipped              | mkfs.xfs           | xfsprogs
test                      | tests on Btrfs are skipped            | mkfs.btrfs         | btrfs-progs
test                      | tests on F2FS are skipped             | mkfs.f2fs          | f2fs-tools
test                      | tests of md arrays are skipped        | mdadm              | mdadm
test                      | tests of LVM as a layer are skipped   | vgcreate           | lvm2
test                      | tests of dm-crypt are skipped         | cryptsetup         | cryptsetup-bin
test                      | a test of dropped writes is skipped   | dmsetup            | dmsetup
test                      | tests on NVMe drives are skipped      | qemu-system-x86_64 | qemu-system-x86
test                      | tests on NVMe drives are skipped      | busybox            | busybox-static
test                      | tests on NVMe drives are skipped      | modprobe           | kmod
test                      | tests on NVMe drives are skipped      | xz                 | xz-utils
test                      | tests on NVMe drives are skipped      | zstd               | zstd
test                      | no log of a drive is read by nvme-cli | nvme               | nvme-cli
lab                       | stop                                  | qemu-system-x86_64 | qemu-system-x86
lab                       | stop                                  | busybox            | busybox-static
lab                       | stop                                  | modprobe           | kmod
lab                       | stop                                  | xz                 | xz-utils
lab                       | some kernels cannot be unpacked       | zstd               | zstd
lab                       | there are no md arrays                | mdadm              | mdadm
lab                       | there is no ext4                      | mkfs.ext4          | e2fsprogs
lab                       | there is no XFS                       | mkfs.xfs           | xfsprogs
lab                       | there is no Btrfs                     | mkfs.btrfs         | btrfs-progs
lab                       | there is no F2FS                      | mkfs.f2fs          | f2fs-tools
lab                       | there is no trimming or formatting    | nvme               | nvme-cli
bench                     | stop                                  | fio                | fio
bench                     | the row of interfaces is left out     | qemu-system-x86_64 | qemu-system-x86
bench                     | the row of interfaces is left out     | busybox            | busybox-static
bench                     | the row of interfaces is left out     | modprobe           | kmod
bench                     | the row of interfaces is left out     | xz                 | xz-utils
bench                     | stop                                  | python3            | python3
bench                     | rows on loop devices are left out     | losetup            | mount
bench                     | the ext4 row is left out              | mkfs.ext4          | e2fsprogs
ci                        | shell scripts are not checked         | shellcheck         | shellcheck
'

say() { printf '%s\n' "$*" >&2; }

stop() {
    say "stacktune: $1"
    shift
    local line
    for line in "$@"; do say "  $line"; done
    exit 1
}

# Whether a tool is here and works. A compiler without the C library's files can't link anything.
have() {
    case $1 in
        # A library, not a command: it reads RocksDB's header for the Rust compiler, with clang's own headers.
        libclang)
            [[ -n ${LIBCLANG_PATH:-} ]] || { compgen -G '/usr/lib/llvm-*/lib/libclang[.-][0-9s]*' &&
                compgen -G '/usr/lib/llvm-*/lib/clang/*/include/stddef.h'; } >/dev/null
            return
            ;;
    esac
    command -v "$1" >/dev/null || return 1
    case $1 in
        cc)
            local dir linked=0
            dir=$(mktemp -d)
            printf 'int main(void) { return 0; }\n' >"$dir/a.c"
            cc "$dir/a.c" -o "$dir/a" >/dev/null 2>&1 || linked=1
            rm -r "$dir"
            return "$linked"
            ;;
        # Runs in the virtual machine before any library is there.
        busybox) ! ldd "$(command -v busybox)" >/dev/null 2>&1 ;;
        python3) python3 -c 'import json, pty, statistics' 2>/dev/null ;;
    esac
}

# Fills `missing` (packages), `lost` (what can't be done without them) and `stopped` (commands that the target
# can't do without).
look() {
    missing=() lost=() stopped=()
    local targets loss command packages package
    while IFS='|' read -r targets loss command packages; do
        targets=${targets//[[:space:]]/}
        command=${command//[[:space:]]/}
        loss=${loss#"${loss%%[![:space:]]*}"} loss=${loss%"${loss##*[![:space:]]}"}
        [[ ",$targets," == *",$1,"* ]] || continue
        have "$command" && continue
        if [[ $loss == stop ]]; then stopped+=("$command"); else lost+=("no $command: $loss"); fi
        for package in $packages; do
            [[ " ${missing[*]} " == *" $package "* ]] || missing+=("$package")
        done
    done <<<"$(grep '|' <<<"$TOOLS")"
}

# Sets `become` to the prefix that runs a command as root; fails if there is none. On a terminal sudo may ask
# for its password.
find_root() {
    become=()
    ((EUID == 0)) && return 0
    command -v sudo >/dev/null || return 1
    become=(sudo)
    [[ $1 == terminal ]] || sudo -n true 2>/dev/null
}

apt_install() {
    local apt=("${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120)
    local install=("${apt[@]}" install --yes --no-install-recommends) package known=() status=0
    # Fresh containers have no package lists; outdated lists name files that no longer exist.
    if compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
        "${install[@]}" "$@" && return
        say "That failed; fetching the package lists and trying once more."
    fi
    # 100 is apt's own error, perhaps for one source of several; others mean that it did not run.
    "${apt[@]}" update || status=$?
    ((status == 0 || status == 100)) || return "$status"
    # One package missing from this system's sources (like fio on an Ubuntu without universe) must not block
    # the others.
    for package; do
        if apt-get install --simulate --no-install-recommends "$package" >/dev/null 2>&1; then
            known+=("$package")
        else
            say "This system's package sources can't give $package."
        fi
    done
    ((${#known[@]})) && "${install[@]}" "${known[@]}"
}

# Installs what is missing, or says why not.
install_missing() {
    local names="${missing[*]}" answer
    if [[ -n ${NO_INSTALL:-} && ${NO_INSTALL} != 0 ]]; then
        say "Missing packages: $names (not installed: NO_INSTALL is set)."
        return
    fi
    if ! command -v apt-get >/dev/null; then
        say "Missing: $names (by their Debian names; there is no apt here, so install them yourself)."
        return
    fi
    if [[ -t 0 && -t 2 ]]; then
        find_root terminal || { say "Missing packages: $names (not installed: not root, and no sudo)."; return; }
        say "Missing packages: $names"
        read -r -p "Install them with \"${become[*]}${become:+ }apt-get install\"? [Y/n] " answer || answer=n
        [[ ${answer:-y} == [Yy]* ]] || { say "Not installed."; return; }
    else
        find_root quiet ||
            { say "Missing packages: $names (not installed: not root, and sudo is missing or needs a password)."; return; }
        say "Installing: $names"
    fi
    apt_install "${missing[@]}" >&2 || say "apt-get could not install: $names"
}

# Rust itself comes from rustup: the distributions' compilers are too old.
check_rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if ! command -v cargo >/dev/null; then
        stop "there is no cargo in PATH or in ~/.cargo/bin; Rust $wanted or newer is needed. Install it with" \
            "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y" \
            ${SUDO_USER:+"(or run make without sudo: it asks for sudo itself where it needs it)"}
    fi
    if ! found=$(rustc --version 2>&1); then
        stop "rustc does not run: $found" "rustup default stable    installs a working one"
    fi
    found=$(cut -d' ' -f2 <<<"$found")
    if [[ $(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -n1) != "$wanted" ]]; then
        stop "Rust $found is too old ($(command -v rustc)); $wanted or newer is needed. Get it with" \
            "rustup update stable"
    fi
}

main() {
    case ${1:-} in
        build | demo | lab | test | bench | ci) ;;
        *) stop "usage: scripts/setup.sh build|demo|lab|test|bench|ci" ;;
    esac
    check_rust
    look "$1"
    if ((${#missing[@]})); then
        install_missing
        look "$1"
    fi
    if ((${#stopped[@]})); then
        stop "can't go on without ${stopped[*]}. On Debian and Ubuntu:" \
            "sudo apt-get install ${missing[*]}"
    fi
    ((${#lost[@]} == 0)) || printf 'Going on without: %s\n' "${lost[@]}" >&2
}

main "$@"
