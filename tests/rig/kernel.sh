# Finds a kernel and its modules for the machine; sourced by tests/rig.sh, which defines ALL_MODULES and die.
# shellcheck shell=bash

# Whether all modules of a release are present under a root (built-in ones count).
has_modules() {
    modprobe -d "$1" -S "$2" --all --show-depends "${ALL_MODULES[@]}" >/dev/null 2>&1
}

# Sets `kernel` (the image), `release` and `base` (the root above its modules).
find_kernel() {
    local cache
    cache=$(realpath -m "${RIG_KERNEL:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/stacktune/lab-kernel}")
    release=$(uname -r) base=/ kernel=/boot/vmlinuz-$release
    [[ -r $kernel ]] && has_modules / "$release" && return
    base=$cache kernel=$cache/vmlinux
    [[ -r $kernel ]] || fetch_kernel "$cache"
    release=$(ls "$base/lib/modules")
}

# The packages of the newest kernel that apt knows: the image and its modules.
kernel_packages() {
    local name
    for name in linux-image-amd64 linux-image-generic; do
        apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
            --no-replaces --no-enhances "$name" 2>/dev/null |
            grep -E '^linux-(image|modules|modules-extra)-[0-9]' | sort -u | grep . && return
    done
    return 1
}

fetch_kernel() {
    local packages new
    command -v apt-get >/dev/null || die "needs a kernel with the modules ${ALL_MODULES[*]}, and there is no apt to fetch one"
    packages=$(kernel_packages) || die "apt knows no kernel package: run apt-get update"
    mkdir -p "${1%/*}" || die "cannot write to ${1%/*}"
    new=$(mktemp -d "$1.XXXX") || die "cannot write to ${1%/*}"
    (
        cd "$new"
        # apt's sandbox user can't write here, and apt would warn about that.
        # shellcheck disable=SC2086 # a list of words
        apt-get download -qq -o APT::Sandbox::User="$(id -un)" $packages >&2
        for package in ./*.deb; do dpkg-deb -x "$package" . && rm "$package"; done
        depmod -b . "$(ls lib/modules)"
        unpack_kernel boot/vmlinuz-* vmlinux
        chmod 755 .
    ) || { rm -rf "$new"; die "could not fetch the kernel: $(paste -sd' ' <<<"$packages")"; }
    mv -T "$new" "$1" 2>/dev/null || rm -rf "$new" # another process was first
}

# The uncompressed kernel inside the image boots too, and saves decompression on an emulated CPU.
unpack_kernel() {
    local magic tool offset
    for magic in $'\xfd7zXZ=xz' $'\x28\xb5\x2f\xfd=zstd'; do
        tool=${magic##*=}
        command -v "$tool" >/dev/null || continue
        for offset in $(LC_ALL=C grep -aboF "${magic%=*}" "$1" | cut -d: -f1 | head -n4); do
            tail -c "+$((offset + 1))" "$1" | "$tool" -dc >"$2" 2>/dev/null || true
            [[ $(head -c 4 "$2" | tr -d '\0') == $'\x7fELF' ]] && return
        done
    done
    cp "$1" "$2"
}
