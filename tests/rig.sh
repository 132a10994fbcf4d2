#!/bin/bash
# Boots a virtual machine with emulated NVMe drives and runs one command in it, as root.
#
#   tests/rig.sh [options] -- COMMAND [ARGUMENT...]     a single argument is taken as a shell script
#   tests/rig.sh --check                                prints why it can't run here, if it can't
#
#   --drives N      NVMe drives, /dev/nvme0n1 and on, serials RIG0 and on          (4)
#   --size SIZE     of each drive, as a sparse file                                (1G)
#   --dir DIR       the folder for these files, which are removed at the end  ($TMPDIR, /var/tmp)
#   --images DIR    keeps these files in that folder, and uses those already there     (none)
#   --namespaces N  on each drive, each of that size: /dev/nvme0n2 and on               (1)
#   --twins         the last two drives in one slot and IOMMU group, as functions of one device
#   --no-iommu      without an IOMMU: nothing limits the drives' access to memory
#   --mem SIZE      the guest's memory                                             (3G)
#   --cpus N        the guest's CPUs, 2 or more                         (the host's, 2 to 4)
#   --share DIR     a folder that the guest sees as /share and can write to      (none)
#   --timeout S     gives up after that many seconds; with --terminal, only on booting  (600)
#   --monitor       the guest can give commands to QEMU, a line each, through
#                   /dev/virtio-ports/monitor: `device_del drive0` pulls a drive out, `device_add
#                   nvme,id=drive0,drive=file0,serial=RIG0,bus=slot0` plugs it in again, `quit` cuts
#                   the power
#   --terminal      the command gets this terminal: keys, colours, and size changes
#   --append TEXT   more arguments for the kernel
#   --accel NAME    kvm or tcg (software); default: KVM on bare metal if a guest really runs under it
#   --model NAME    the CPU model, as QEMU names it (the host's; emulated, the fastest: qemu64)
#
# The guest has the host's root, read-only, under an overlay in memory that takes its writes: every program
# here is there too, under the same path, except what the user who starts this can't read. Only what is
# written to --share remains. Needs neither root nor a network.
#
# Exit status: the command's; 124 after --timeout; 125 if the machine did not come up or died.
#
# The kernel is this host's own if its image is readable and has the modules; otherwise the distribution's is
# fetched once with "apt-get download" and unpacked (not installed) in $RIG_KERNEL, or
# $XDG_CACHE_HOME/stacktune/lab-kernel by default.
set -euo pipefail

# Modules that the guest's first stage loads, and all that its programs may load.
readonly BOOT_MODULES=(virtio_pci virtio_console 9pnet_virtio 9p overlay)
readonly ALL_MODULES=("${BOOT_MODULES[@]}" nvme loop raid0 raid1 raid10 raid456 ext4 xfs btrfs f2fs
    dm-mod dm-crypt dm-flakey dm-log-writes)
readonly TOOLS='qemu-system-x86_64=qemu-system-x86 busybox=busybox-static modprobe=kmod depmod=kmod
    xz=xz-utils script=bsdutils'
# How long a kernel may take to print its first output under KVM.
readonly KVM_WAIT_S=10
# A machine that has not begun its command by then is considered hung.
readonly BOOT_S=120

drives=4 size=1G mem=3G cpus='' timeout=600 share='' append='' accel='' model='' images=''
namespaces=1 twins='' no_iommu='' monitor='' terminal='' check=''
dir=${TMPDIR:-/var/tmp}
command=()
PATH=$PATH:/usr/sbin:/sbin

die() {
    printf 'rig: %s\n' "$*" >&2
    exit 125
}

# shellcheck source=tests/rig/kernel.sh
. "$(dirname "$(realpath "$0")")/rig/kernel.sh"

help() { sed -n '2,/^set -/{/^#/s/^# \?//p}' "$0"; }

read_arguments() {
    while (($#)); do
        case $1 in
            --drives | --size | --dir | --images | --mem | --cpus | --share | --timeout | --append | --accel | --model | --namespaces)
                (($# > 1)) || die "$1 wants a value"
                printf -v "${1#--}" %s "$2"
                shift
                ;;
            --monitor | --terminal | --check | --twins) printf -v "${1#--}" yes ;;
            --no-iommu) no_iommu=yes ;;
            -h | --help) help; exit ;;
            --) shift; command=("$@"); break ;;
            *) die "unknown option $1 (--help lists them)" ;;
        esac
        shift
    done
    [[ -n $check || ${#command[@]} -gt 0 ]] || die "no command (--help shows how)"
    if [[ -z $cpus ]]; then
        cpus=$(nproc)
        cpus=$((cpus < 2 ? 2 : cpus > 4 ? 4 : cpus))
    fi
    # With one CPU, QEMU omits memory barriers from the code it generates, and its drives miss requests.
    ((cpus >= 2)) || die "--cpus must be 2 or more"
    [[ -z $terminal || (-t 0 && -t 1) ]] || die "--terminal needs a terminal"
}

# Exits with the reason if a tool is missing.
need_tools() {
    local pair packages=()
    [[ $(uname -m) == x86_64 ]] || die "needs an x86-64 host"
    for pair in $TOOLS; do
        command -v "${pair%=*}" >/dev/null || packages+=("${pair#*=}")
    done
    if ((${#packages[@]} == 0)) && ldd "$(command -v busybox)" >/dev/null 2>&1; then
        packages+=(busybox-static)
    fi
    ((${#packages[@]} == 0)) ||
        die "needs packages that are not installed: $(printf '%s\n' "${packages[@]}" | sort -u | paste -sd' ')"
}

# Whether a guest runs under KVM: on some hosts the device opens, but the guest never starts.
kvm_works() {
    local known pid i
    [[ -r /dev/kvm && -w /dev/kvm ]] || return 1
    # Under nested virtualization a guest may boot under KVM and hang later; --accel kvm tries it anyway.
    ! grep -q '^flags.* hypervisor' /proc/cpuinfo || return 1
    known=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/stacktune/kvm-$(</proc/sys/kernel/random/boot_id)
    if [[ -e $known ]]; then
        [[ $(<"$known") == yes ]]
        return
    fi
    timeout "$KVM_WAIT_S" qemu-system-x86_64 -machine q35,accel=kvm -cpu max -smp 2 -m 512 -nodefaults \
        -no-user-config -display none -no-reboot -kernel "$kernel" -serial "file:$run/kvm" \
        -append "console=ttyS0 earlyprintk=ttyS0 panic=-1" </dev/null >/dev/null 2>&1 &
    pid=$!
    for ((i = 0; i < KVM_WAIT_S * 10; i++)); do
        grep -qs 'Linux version' "$run/kvm" && break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    local answer=no
    grep -qs 'Linux version' "$run/kvm" && answer=yes
    { mkdir -p "${known%/*}" && rm -f "${known%-*-*-*-*-*}"-* && echo $answer >"$known"; } 2>/dev/null || true
    [[ $answer == yes ]]
}

# The rate of the host's time-stamp counter, which an emulated guest reads too. Measured while the guest boots on a
# busy host, it comes out up to four times too low, and the guest's clock runs fast by that factor. Without a
# frequency driver, as in most virtual machines, the kernel reports the counter's rate as the processor's frequency.
tsc_khz() {
    [[ ! -e /sys/devices/system/cpu/cpu0/cpufreq ]] || return 0
    awk -F: '/^cpu MHz/ { printf "tsc_early_khz=%d", $2 * 1000; exit }' /proc/cpuinfo
}

# --- what the guest starts with ---------------------------------------------------------------------

# Copies the first stage's modules, unpacked, in load order.
copy_modules() {
    local path number=100 to
    while read -r path; do
        number=$((number + 1)) to=$run/root/modules/$number.ko
        case $path in
            *.xz) xz -dc "$path" >"$to" ;;
            *.zst) zstd -dcq "$path" >"$to" || die "needs zstd to unpack the kernel's modules" ;;
            *.gz) gzip -dc "$path" >"$to" ;;
            *) cp "$path" "$to" ;;
        esac
    done < <(modprobe -d "$base" -S "$release" --all --show-depends "${BOOT_MODULES[@]}" |
        awk '$1 == "insmod" && !seen[$2]++ { print $2 }')
}

# The first stage, in busybox: overlays the host's root with memory, and mounts everything else.
write_first_stage() {
    local modules=
    [[ $base == / ]] || modules="mount --bind $(printf %q "/host$base/lib/modules") lib/modules"
    cat >"$run/root/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir -p /host /memory /new
for module in /modules/*.ko; do insmod \$module; done
p9=trans=virtio,version=9p2000.L,msize=262144
mount -t 9p -o ro,\$p9,cache=loose host /host
mount -t tmpfs memory /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work root /new
cd /new
mkdir -p .rig share lib/modules proc sys dev run var/lib/stacktune
cp /second /command ${terminal:+/session} .rig
mount -t proc proc proc
mount -t sysfs sys sys
mount -t cgroup2 cgroup sys/fs/cgroup
mount -t devtmpfs dev dev
mount -t tmpfs run run
# The host's stacks are not the guest's.
mount -t tmpfs -o mode=700 state var/lib/stacktune
mkdir -p dev/shm dev/pts dev/virtio-ports run/home
mount -t tmpfs shm dev/shm
mount -t devpts pts dev/pts
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
$modules
${share:+mount -t 9p -o \$p9,cache=mmap share share}
ifconfig lo up
hostname practice
exec switch_root /new /bin/bash /.rig/second
INIT
    chmod +x "$run/root/init"
}

# The second stage, the host's bash as process 1: waits for the drives, names ports and drives as udev would,
# runs the command, and sends its exit status.
write_second_stage() {
    local run_it='bash /.rig/command </dev/null >/dev/virtio-ports/output 2>&1' name
    if [[ -n $terminal ]]; then
        # The virtio console loses output that a slow terminal doesn't take at once, so the command gets a
        # pseudo-terminal, and `script` copies between it and the port.
        printf 'stty sane rows %d cols %d\ntty >/run/terminal\nexec bash /.rig/command\n' "${1:-24}" "${2:-80}" \
            >"$run/root/session"
        # shellcheck disable=SC2016 # the guest expands them
        run_it='while read -r rows columns; do
    stty rows "$rows" cols "$columns" <"$(</run/terminal)"
done </dev/virtio-ports/size &
script --quiet --return --flush --command "bash /.rig/session" /dev/null <>/dev/virtio-ports/terminal >&0 2>&1'
    fi
    {
        printf 'drives=%d namespaces=%d\n' "$drives" "$namespaces"
        printf 'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run/home\n'
        for name in TERM COLORTERM NO_COLOR LANG LC_ALL LC_CTYPE; do
            [[ -n ${!name:-} ]] && printf 'export %s=%q\n' "$name" "${!name}"
        done
        cat <<'SECOND'
for port in /sys/class/virtio-ports/*/name; do
    device=${port%/name}
    ln -s "/dev/${device##*/}" "/dev/virtio-ports/$(<"$port")"
done
modprobe nvme
for i in {1..600}; do
    found=(/sys/block/nvme*n*)
    [[ -e ${found[0]} && ${#found[@]} -ge $((drives * namespaces)) ]] && break
    ((drives == 0)) && break
    sleep 0.1
done
mkdir -p /dev/disk/by-id
for drive in /sys/block/nvme*n*; do
    [[ -e $drive ]] || continue
    read -r model <"$drive/device/model"
    read -r serial <"$drive/device/serial"
    ln -s "../../${drive##*/}" "/dev/disk/by-id/nvme-${model// /_}_${serial}_${drive##*n}"
done
ulimit -l unlimited
echo up >/dev/virtio-ports/status
SECOND
        printf 'cd %q 2>/dev/null || cd /\n' "$PWD"
        printf '%s\n' "$run_it"
        # The power goes off while this process sleeps; process 1 must not exit.
        printf 'echo "exit $?" >/dev/virtio-ports/status\nsync\necho o >/proc/sysrq-trigger\nsleep 1000\n'
    } >"$run/root/second"
}

write_initrd() {
    mkdir -p "$run/root/bin" "$run/root/modules"
    cp "$(command -v busybox)" "$run/root/bin/busybox"
    copy_modules
    write_first_stage
    # shellcheck disable=SC2046 # two words: rows and columns
    write_second_stage $([[ -z $terminal ]] || stty size <&3)
    if ((${#command[@]} == 1)); then
        printf '%s\n' "${command[0]}"
    else
        printf '%q ' "${command[@]}"
    fi >"$run/root/command"
    (cd "$run/root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$run/initrd"
}

# --- the machine ------------------------------------------------------------------------------------

# Adds a port for the guest: its name, then the options of its other end.
port() { machine+=(-chardev "$2,id=$1" -device "virtserialport,chardev=$1,name=$1"); }

# Fills `machine` with QEMU's arguments; their commas are QEMU's syntax.
# shellcheck disable=SC2054
describe_machine() {
    # When emulated, the plainest processor is the fastest, by up to two times: using the extras of `max`
    # (AVX, five-level page tables, hardware checksums) costs more than doing without them. And a program that
    # always loads at the same addresses is translated only once, which is a third of the time it takes to
    # start one. RocksDB's checksum is compiled for SSE4.2 and carry-less multiplication.
    local fit=max more=$append
    if [[ $accel == tcg ]]; then
        fit=qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+pclmulqdq more="norandmaps $(tsc_khz) $append"
    fi
    machine=(-machine "q35,kernel-irqchip=split,accel=$accel" -cpu "${model:-$fit}" -smp "$cpus" -m "$mem"
        -nodefaults -no-user-config -display none -no-reboot -serial "file:$run/log"
        -kernel "$kernel" -initrd "$run/initrd"
        -append "console=ttyS0 quiet panic=-1 oops=panic no_timer_check tsc=reliable mitigations=off intel_iommu=on iommu=pt $more"
        -fsdev local,id=host,path=/,readonly=on,security_model=none,multidevs=remap
        -device virtio-9p-pci,fsdev=host,mount_tag=host -device virtio-serial-pci)
    # Before the drives, so that VFIO works in the guest.
    [[ -n $no_iommu ]] || machine+=(-device "intel-iommu,intremap=on,caching-mode=on")
    if [[ -n $terminal ]]; then
        port terminal "stdio,signal=off"
        port size "pipe,path=$run/size"
    else
        port output "file,path=$run/output"
    fi
    port status "file,path=$run/status"
    if [[ -n $monitor ]]; then
        # QEMU serves its own monitor: the guest's port is a client of the monitor's socket.
        machine+=(-chardev "socket,id=ears,path=$run/monitor,server=on,wait=off" -mon chardev=ears,mode=readline)
        port monitor "socket,path=$run/monitor"
    fi
    if [[ -n $share ]]; then
        machine+=(-fsdev "local,id=share,path=$share,security_model=none,multidevs=remap"
            -device virtio-9p-pci,fsdev=share,mount_tag=share)
    fi
    local i
    for ((i = 0; i < drives; i++)); do describe_drive "$i"; done
}

# Chooses how QEMU reads and writes the drives' files. Its default, threads, takes up most of a processor, and
# would hide the differences between the guest's interfaces.
choose_aio() {
    truncate -s 1M "$run/probe"
    aio=threads
    if echo quit | qemu-system-x86_64 -machine none -nodefaults -no-user-config -display none -monitor stdio \
        -blockdev "driver=file,node-name=probe,aio=io_uring,filename=$run/probe" >/dev/null 2>&1; then
        aio=io_uring
    fi
}

# Adds a file as a QEMU block device of that name.
image() {
    [[ -e $images/drive$1 ]] || truncate -s "$size" "$images/drive$1"
    machine+=(-blockdev "driver=raw,node-name=file$1,discard=unmap,file.driver=file,file.aio=$aio,file.filename=$images/drive$1")
}

# shellcheck disable=SC2054
describe_drive() {
    local i=$1 bus=slot$1 at='' n
    # Each drive gets a slot of its own: devices on the root bus can't be pulled out.
    machine+=(-device "pcie-root-port,id=slot$i,chassis=$((i + 1)),slot=$((i + 1))")
    if [[ -n $twins ]] && ((i == drives - 2)); then at=,addr=0.0,multifunction=on; fi
    if [[ -n $twins ]] && ((i == drives - 1)); then bus=slot$((i - 1)) at=,addr=0.1; fi
    if ((namespaces == 1)); then
        image "$i"
        machine+=(-device "nvme,id=drive$i,drive=file$i,serial=RIG$i,bus=$bus$at")
        return
    fi
    machine+=(-device "nvme,id=drive$i,serial=RIG$i,bus=$bus$at")
    for ((n = 1; n <= namespaces; n++)); do
        image "$i-$n"
        machine+=(-device "nvme-ns,drive=file$i-$n,bus=drive$i,nsid=$n")
    done
}

# shellcheck disable=SC2317 # a trap calls it
end() {
    local status=$?
    trap '' INT TERM HUP WINCH
    if [[ -n $qemu ]]; then
        kill "$qemu" 2>/dev/null || true
        wait "$qemu" 2>/dev/null || true
    fi
    rm -rf "$run"
    # A closed terminal has no modes to restore.
    [[ -z $modes ]] || stty "$modes" <&3 2>/dev/null || true
    exit "$status"
}

# Waits for QEMU to end; a trapped signal only interrupts `wait`.
wait_for_qemu() {
    local status
    while :; do
        status=0
        wait "$qemu" || status=$?
        kill -0 "$qemu" 2>/dev/null || break
    done
    qemu=
    ended=$status
}

# Whether the command begins in time and QEMU does not end first.
comes_up() {
    local i
    for ((i = 0; i < BOOT_S * 10; i++)); do
        if [[ -s $run/status ]] || ! kill -0 "$qemu" 2>/dev/null; then return 0; fi
        sleep 0.1 || true
    done
    return 1
}

# Runs the machine with its output through a pipe: not every file can be reopened by name.
run_batch() {
    [[ -p $run/output ]] || mkfifo "$run/output"
    cat "$run/output" &
    timeout --foreground --kill-after=5 "$timeout" \
        qemu-system-x86_64 "${machine[@]}" </dev/null >"$run/qemu" 2>&1 &
    qemu=$!
    # QEMU may fail before it opens the pipe, and `cat` would wait forever.
    exec 4<>"$run/output"
    if ! comes_up; then
        printf 'rig: the machine did not come up within %s s; its last words:\n' "$BOOT_S" >&2
        tail -n 5 "$run/log" >&2 || true
        kill "$qemu" 2>/dev/null || true
    fi
    wait_for_qemu
    exec 4>&-
    wait
}

# Runs the machine on the terminal, opened here with its own file description: QEMU makes it non-blocking,
# which would break others sharing it.
run_terminal() {
    local i
    mkfifo "$run/size.in" "$run/size.out"
    exec 5<>"$run/size.in"
    trap 'stty size <&3 >&5' WINCH
    stty raw -echo -onlcr <&3
    qemu-system-x86_64 "${machine[@]}" <&3 >&3 2>"$run/qemu" &
    qemu=$!
    for ((i = 0; i < timeout * 10; i++)); do
        { [[ -s $run/status ]] || ! kill -0 "$qemu" 2>/dev/null; } && break
        sleep 0.1 || true
    done
    [[ -s $run/status ]] || kill "$qemu" 2>/dev/null || true
    wait_for_qemu
    stty "$modes" <&3
}

main() {
    read_arguments "$@"
    need_tools
    find_kernel
    [[ -z $check ]] || exit 0
    qemu='' modes='' ended=0
    mkdir -p "$dir"
    if [[ -n $share ]]; then mkdir -p "$share" && share=$(realpath "$share"); fi
    run=$(mktemp -d "$(realpath "$dir")/stacktune-rig.XXXXXX")
    if [[ -n $images ]]; then mkdir -p "$images" && images=$(realpath "$images"); else images=$run; fi
    trap end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    if [[ -n $terminal ]]; then
        exec 3<>/dev/tty
        modes=$(stty -g <&3)
    fi
    if [[ -z $accel ]]; then if kvm_works; then accel=kvm; else accel=tcg; fi; fi
    write_initrd
    choose_aio
    describe_machine
    if [[ -n $terminal ]]; then run_terminal; else run_batch; fi
    # On a very busy host an emulated kernel may fail to calibrate its clocks, or hang while booting. The
    # command has not begun then, so the machine is run again.
    for _ in 1 2; do
        if [[ -z $terminal && $ended -ne 124 && ! -s $run/status ]]; then run_batch; fi
    done
    local code
    code=$(sed -n 's/^exit //p' "$run/status" 2>/dev/null || true)
    [[ -z $code ]] || exit "$code"
    cat "$run/qemu" >&2
    tail -n 30 "$run/log" >&2 || true
    if ((ended == 124)); then
        printf 'rig: gave up after %s s\n' "$timeout" >&2
        exit 124
    fi
    die "the guest ended without an exit status"
}

main "$@"
