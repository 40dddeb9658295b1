#!/bin/busybox sh
# shellcheck shell=dash
# What every first program of Linux on a board begins with. What to do stands on the kernel's
# command line as latenz.NAME="VALUE".
export PATH=/bin:/usr/bin

option() { sed -n "s/.*latenz\.$1=\"\([^\"]*\)\".*/\1/p" /proc/cmdline; }

note() { latenz-send note "$1"; }

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
