#!/bin/busybox sh
# shellcheck shell=dash
# What every first program of Linux on a board begins with. What to do stands on the kernel's
# command line as latenz.NAME="VALUE".
export PATH=/bin:/usr/bin

option() { sed -n "s/.*latenz\.$1=\"\([^\"]*\)\".*/\1/p" /proc/cmdline; }

note() { latenz-send note "$1"; }

# Files of /proc and /sys have no size before they are read: an archiver would store nothing.
copy() { # to, files; one process for all, as starting one takes longer than a hundred files
  to=$1
  shift
  folders=
  readable=
  for file in "$@"; do
    if [ -r "$file" ] && ! [ -d "$file" ]; then
      readable="$readable $file"
      folders="$folders $to${file%/*}"
    fi
  done
  # shellcheck disable=SC2086 # words; none of these paths has a space
  mkdir -p $folders && awk -v to="$to" \
    'FNR == 1 { close(path); path = to FILENAME } { print >path }' $readable
}

# As `latenz tune snapshot` takes it: a tree that `latenz tune check --root` reads.
snapshot() {
  tree=/tmp/tree
  copy $tree /proc/cmdline /proc/version /proc/cpuinfo /proc/meminfo /proc/stat /proc/interrupts \
    /proc/swaps /proc/mounts /proc/uptime /proc/timer_list /proc/sys/kernel/osrelease \
    /proc/sys/kernel/version /proc/sys/kernel/sched_rt_runtime_us /proc/sys/kernel/nmi_watchdog \
    /proc/sys/kernel/soft_watchdog /proc/sys/kernel/timer_migration /proc/sys/vm/stat_interval \
    /proc/irq/default_smp_affinity /proc/irq/*/smp_affinity_list \
    /proc/irq/*/effective_affinity_list /sys/devices/system/cpu/vulnerabilities/* \
    /sys/devices/system/clocksource/clocksource0/current_clocksource \
    /sys/devices/system/clocksource/clocksource0/available_clocksource \
    /sys/devices/system/cpu/online \
    /sys/devices/system/cpu/possible /sys/devices/system/cpu/present \
    /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full \
    /sys/devices/system/cpu/cpuidle/* /sys/devices/system/cpu/smt/active \
    /sys/devices/system/clockevents/*/current_device /sys/module/haltpoll/parameters/* \
    /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \
    /sys/devices/virtual/workqueue/cpumask /sys/hypervisor/type \
    /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name \
    /proc/[0-9]*/task/[0-9]*/stat /proc/[0-9]*/task/[0-9]*/status
  for link in /sys/bus/pci/devices/*/driver; do
    [ -e "$link" ] || continue
    mkdir -p "$tree${link%/*}"
    ln -s "$(readlink "$link")" "$tree$link"
  done
  mkdir -p $tree/latenz
  dmesg >$tree/latenz/dmesg
  tar -c -C $tree -f /results/guest.tar .
  rm -r $tree
}

start_load() {
  load=$(option load)
  [ -n "$load" ] || return 0
  # shellcheck disable=SC2086 # words
  $load &
  load_pid=$!
  usleep "$(option settle_us)"
  kill -0 $load_pid 2>/dev/null || note "the load ended before measuring: $load"
}

# Some of stress-ng's processes do not end when they are told; it waits for them for ever.
kill_stragglers() {
  for folder in /proc/[0-9]*; do
    read -r pid name _ 2>/dev/null <"$folder/stat" || continue
    case $name in '(stress-ng-'*) kill -KILL "$pid" ;; esac
  done
}

stop_load() {
  [ -n "$load" ] || return 0
  chrt -f -p 1 $$ >/dev/null # a load of a thousand processes must not keep this from going on
  if kill -TERM "$load_pid" 2>/dev/null; then
    (sleep 1; kill_stragglers; sleep 1; kill -KILL "$load_pid") 2>/dev/null &
    wait "$load_pid"
  else
    note "the load died while measuring: $load"
  fi
}

end() {
  latenz-send end
  poweroff -f
}

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /results
mount -t tmpfs shm /dev/shm
cat /proc/version

# Until the kernel's random numbers are seeded, each system call computes a new key for the random
# offset of its stack: 9 us of a wake-up latency of 13 us.
head -c 1 /dev/random >/dev/null
