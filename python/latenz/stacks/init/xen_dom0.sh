#!/bin/busybox sh
# shellcheck shell=dash
# The first program of Dom0: gives the first core to the measured domain, holds that domain until
# the load runs, lets it go, waits for its end, and lets the load tell what it did.
# What to do stands on the kernel's command line as latenz.NAME="VALUE".
export PATH=/bin:/usr/bin
export LATENZ_SENDER=2 # 0 and 1 are programs in the measured domain
measured=1             # the only domain beside this one

option() { sed -n "s/.*latenz\.$1=\"\([^\"]*\)\".*/\1/p" /proc/cmdline; }

note() { latenz-send note "$1"; }

end() {
  latenz-send end
  poweroff -f
}

die() {
  note "Dom0 gives up: $1"
  end
}

control() { latenz-xen-control "$@" 2>/run/control.log || die "$(cat /run/control.log)"; }

processes() {
  set -- /proc/[0-9]*
  echo $#
}

# Some of stress-ng's processes do not end when they are told; it waits for them for ever.
kill_stragglers() {
  killed=0
  for folder in /proc/[0-9]*; do
    read -r pid name state _ 2>/dev/null <"$folder/stat" || continue
    case "$name $state" in
      '(stress-ng-'*' Z') ;;
      '(stress-ng-'*) kill -KILL "$pid" && killed=$((killed + 1)) ;;
    esac
  done
  [ $killed = 0 ] || note "$killed processes of the load were killed, as they did not end when told"
}

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
# Small: stress-ng fills them, and Dom0 must keep enough memory to go on.
mount -t tmpfs -o size=32m tmp /tmp
mount -t tmpfs -o size=32m shm /dev/shm
cat /proc/version
modprobe xen_privcmd || die "the module xen_privcmd cannot be loaded"

held_ns=$(control pause $measured)
control pin 0 1
control pin $measured 0
control list

load=$(option load)
load_class=$(option load_class)
load_pid=
if [ -n "$load" ]; then
  cd /tmp || die "there is no /tmp"
  # shellcheck disable=SC2086 # words
  chrt $load_class $load >/tmp/load.log 2>&1 &
  load_pid=$!
fi
# Neither the priorities of the load nor its hunger for memory may keep this from going on.
chrt --fifo --pid 99 $$
echo -1000 >/proc/self/oom_score_adj
running=$(processes)
tries=0
until [ "$running" -ge "$(option least_processes)" ]; do
  [ $((tries += 1)) -le 100 ] || die "the load has only $running processes: $(tail -n 1 /tmp/load.log)"
  usleep 50000
  running=$(processes)
done
usleep "$(option settle_us)"
if [ -n "$load" ] && ! kill -0 "$load_pid" 2>/dev/null; then
  die "the load ended before measuring: $(tail -n 1 /tmp/load.log)"
fi

running=$(processes)
released_ns=$(control unpause $measured)
note "held_ns=$held_ns released_ns=$released_ns processes=$running"

# The measured domain prints now; both would be torn if this one did.
control wait $measured >/run/end.log
cat /run/end.log

if [ -n "$load" ]; then
  kill -0 "$load_pid" 2>/dev/null || note "the load died while measuring: $(tail -n 1 /tmp/load.log)"
  kill -TERM "$load_pid" 2>/dev/null
  (usleep 500000; kill_stragglers; sleep 2; kill -KILL "$load_pid") 2>/dev/null &
  wait "$load_pid"
  cat /tmp/load.log
fi
end
