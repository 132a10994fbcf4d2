#!/bin/bash
# Settings of md arrays: they are in force while the load runs, and are gone afterwards.
# shellcheck source=tests/lab/lib.sh
. ./lib.sh

modprobe -a md_mod raid1 raid456 ext4 2>/dev/null

array=$(profile arrays "$(drives)")

# Starts recording on a RAID 5 in the background, and waits until the load runs; $pid is the program, $md the array's
# folder in sysfs.
#   begins NAME [MORE...]
begins() {
    local name=$1 consent
    shift
    mapfile -t consent < <(consent)
    "$STACKTUNE" record "$array" --out "/share/$name" --set stack.raid=md5 --set stack.filesystem=none \
        "${consent[@]}" "$@" >"$LAB_WORK/said" 2>&1 &
    pid=$!
    wait_for 120 has_windows "/share/$name/windows.jsonl" 2 || { cat "$LAB_WORK/said"; return 1; }
    md=/sys/block/$(awk '/^md/ { print $1 }' /proc/mdstat)/md
}

# Asserts a setting of the array.
is() {
    local value
    value=$(<"$md/$1")
    [[ $value == "$2" ]] || { echo "$1 is $value, expected $2"; return 1; }
}

an_arrays_settings_are_in_force_and_a_kill_leaves_nothing() {
    begins settings --for 5m --set stack.bitmap=internal --set md.group_thread_cnt=2 \
        --set md.stripe_cache_size=1024 --set md.sync_speed_min=2000 --set md.sync_speed_max=50000
    is group_thread_cnt 2
    is stripe_cache_size 1024
    is sync_speed_min '2000 (local)'
    is sync_speed_max '50000 (local)'
    is bitmap/location '+8'
    "$STACKTUNE" status | grep -q 'stripe_cache_size'
    kill -9 "$pid"
    wait "$pid" || true
    "$STACKTUNE" cleanup
    nothing_left
}

an_arrays_settings_are_put_back_on_one_that_is_kept() {
    begins kept --for 2s --keep --set md.stripe_cache_size=1024 --set md.sync_speed_max=50000
    is stripe_cache_size 1024
    wait "$pid"
    is stripe_cache_size 256
    is sync_speed_max '200000 (system)'
    "$STACKTUNE" cleanup --all
    nothing_left
}

a_lockless_bitmap_is_refused_where_kernel_or_mdadm_lack_it() {
    local consent before
    mapfile -t consent < <(consent)
    before=$(edges)
    expect 2 'lockless bitmaps from' "$STACKTUNE" record "$array" --for 1s --out /share/lockless \
        --set stack.raid=md5 --set stack.bitmap=lockless "${consent[@]}"
    [[ $before == "$(edges)" ]]
    nothing_left
}

# The last member fails; everything written is read back from the others.
an_array_is_measured_healthy_degraded_and_rebuilding() {
    local state summary consent
    mapfile -t consent < <(consent)
    for state in healthy degraded rebuilding; do
        # An array is not wiped: the previous data set on it would be taken for the new one.
        blank_drives
        "$STACKTUNE" record "$array" --for 4s --verify --out "/share/array-$state" --set stack.raid=md5 \
            --set stack.filesystem=none --set stack.assume_clean=off --set md.array=$state \
            --set md.sync_speed_max=1000 "${consent[@]}"
        nothing_left
    done
    if grep 'as set' /share/array-healthy/summary.json; then return 1; fi
    summary=$(</share/array-degraded/summary.json)
    [[ $summary == *'"degraded as set"'* && $summary != *'"degraded"'* ]]
    summary=$(</share/array-rebuilding/summary.json)
    [[ $summary == *'"rebuilding as set"'* && $summary != *'"resync"'* ]]
    "$STACKTUNE" compare /share/array-healthy /share/array-degraded | grep -q 'md.array: A healthy | B degraded'
    expect 2 'the parity was never computed' "$STACKTUNE" check "$array" --set stack.raid=md5 --set md.array=degraded
}

a_run_on_a_rebuilding_array_that_is_killed_leaves_nothing() {
    begins rebuilding --for 5m --set stack.assume_clean=off --set md.array=rebuilding --set md.sync_speed_max=1000
    is sync_action recover
    is degraded 1
    kill -9 "$pid"
    wait "$pid" || true
    "$STACKTUNE" cleanup
    nothing_left
}

# A sweep changes the array's state between runs, a duel under load; returning to healthy takes a rebuild.
an_arrays_states_are_steps_of_a_sweep_and_values_of_a_duel() {
    local state consent sweep pid
    mapfile -t consent < <(consent)
    blank_drives
    sweep=$(profile states "$(drives)")
    cat >>"$sweep" <<TOML
[stack]
raid = "md5"
assume_clean = false
[md]
sync_speed_max = 1000
[sweep]
for = "3s"
repeat = 2
seed = 1
TOML
    for state in healthy degraded rebuilding; do
        printf '[[step]]\nlabel = "%s"\nmd.array = "%s"\n' $state $state >>"$sweep"
    done
    "$STACKTUNE" record "$sweep" --out /share/states "${consent[@]}"
    nothing_left
    for state in healthy degraded rebuilding; do
        compgen -G "/share/states/*-$state-r2/summary.json" >/dev/null
    done
    for state in degraded rebuilding; do
        [[ $(grep -l "\"$state as set\"" /share/states/*/summary.json) == /share/states/*-$state-r1/*$'\n'/share/states/*-$state-r2/* ]]
    done
    # A state that was set on purpose is not reported as a loss.
    if grep -l '"degraded"\|"resync"' /share/states/*/summary.json; then return 1; fi
    "$STACKTUNE" show /share/states | grep -q rebuilding
    "$STACKTUNE" record "$array" --out /share/duel --set stack.raid=md5 --set stack.filesystem=none \
        --set stack.assume_clean=off --set md.array=degraded --set md.sync_speed_max=1000 \
        --duel md.array=degraded,rebuilding "${consent[@]}" >"$LAB_WORK/said" 2>&1 &
    pid=$!
    for state in degraded rebuilding; do
        wait_for 300 grep -qs "$state as set" /share/duel/windows.jsonl || { cat "$LAB_WORK/said"; return 1; }
    done
    kill -INT "$pid"
    wait "$pid" || [[ $? -eq 130 ]] || { cat "$LAB_WORK/said"; return 1; }
    nothing_left
    expect 2 'healthy again only once it is rebuilt' "$STACKTUNE" record "$array" --out /share/none \
        --set stack.raid=md5 --set stack.assume_clean=off --duel md.array=healthy,degraded "${consent[@]}"
    nothing_left
}

a_degraded_array_that_is_kept_is_rebuilt() {
    begins kept-degraded --for 8s --keep --set stack.assume_clean=off --set md.array=degraded
    is degraded 1
    "$STACKTUNE" status | grep -q 'degraded: 1 of its members missing'
    "$STACKTUNE" status | grep -q 'RIG3).*failed on purpose (md.array)'
    wait "$pid"
    if "$STACKTUNE" status | grep 'failed on purpose'; then return 1; fi
    wait_for 120 is degraded 0 >/dev/null
    if "$STACKTUNE" status | grep degraded; then return 1; fi
    "$STACKTUNE" cleanup --all
    nothing_left
}

# A fake mdadm that stops at one act, before or after performing it, long enough for the program to be killed.
#   stops_at ACT WHEN
stops_at() {
    local tools=$LAB_WORK/tools
    mkdir -p "$tools"
    rm -f "$LAB_WORK/stopped"
    cat >"$tools/mdadm" <<SHIM
#!/bin/bash
case " \$* " in
    *" $1 "*)
        [[ $2 == before ]] || /sbin/mdadm "\$@" || exit
        echo \$\$ >$LAB_WORK/stopped
        sleep 2
        [[ $2 == before ]] || exit 0
        ;;
esac
exec /sbin/mdadm "\$@"
SHIM
    chmod +x "$tools/mdadm"
    export STACKTUNE_TEST_TOOLS=$tools
}

killed_while_a_member_is_failed_or_replaced_cleanup_leaves_nothing() {
    local act when consent
    mapfile -t consent < <(consent)
    for act in --fail --remove --zero-superblock --add; do
        # mdadm is killed with the program, or has not acted yet, or has.
        for when in never before after; do
            stops_at "$act" "${when/never/before}"
            "$STACKTUNE" record "$array" --for 1m --out "/share/killed$act-$when" --set stack.raid=md5 \
                --set stack.filesystem=none --set stack.assume_clean=off --set md.array=rebuilding \
                --set md.sync_speed_max=1000 "${consent[@]}" >"$LAB_WORK/said" 2>&1 &
            pid=$!
            wait_for 120 test -s "$LAB_WORK/stopped" || { cat "$LAB_WORK/said"; return 1; }
            kill -9 "$pid"
            [[ $when != never ]] || kill -9 "$(<"$LAB_WORK/stopped")"
            wait "$pid" || true
            unset STACKTUNE_TEST_TOOLS
            "$STACKTUNE" status >"$LAB_WORK/status"
            grep -q 'failed on purpose' "$LAB_WORK/status" || { cat "$LAB_WORK/status"; return 1; }
            "$STACKTUNE" cleanup || { echo "$act, $when"; return 1; }
            nothing_left || { echo "$act, $when"; return 1; }
        done
    done
}

[[ -n ${SOAK:-} ]] || exit 0
run_tests an_arrays_settings_are_in_force_and_a_kill_leaves_nothing \
    an_arrays_settings_are_put_back_on_one_that_is_kept \
    a_lockless_bitmap_is_refused_where_kernel_or_mdadm_lack_it \
    an_array_is_measured_healthy_degraded_and_rebuilding \
    a_run_on_a_rebuilding_array_that_is_killed_leaves_nothing \
    an_arrays_states_are_steps_of_a_sweep_and_values_of_a_duel \
    a_degraded_array_that_is_kept_is_rebuilt \
    killed_while_a_member_is_failed_or_replaced_cleanup_leaves_nothing
