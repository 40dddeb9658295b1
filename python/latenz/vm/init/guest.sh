# shellcheck shell=dash disable=SC2154
# Measures in a virtual machine and sends what came of it over a port of virtio-serial. It is told
# on the kernel's command line what to do; over the port it can be told to stop early.
note() {
  echo "$1" >>/results/notes
  echo "latenz: $1"
}

end() {
  sync
  poweroff -f
}

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

counters() { # name
  mkdir -p "/results/$1"
  cat /proc/interrupts >"/results/$1/interrupts"
  cat /proc/stat >"/results/$1/stat"
}

for module in $(option modules); do modprobe "$module"; done
mkdir -p /tmp
tries=0
until set -- /dev/vport*p1 && [ -c "$1" ]; do
  [ $((tries += 1)) -lt 200 ] || {
    echo "latenz: not found; boot stopped: no port of virtio-serial"
    end
  }
  usleep 20000
done
exec 3<>"$1" # it can be opened once only
for card in /sys/class/net/eth*; do
  [ -d "$card" ] && ip link set "${card##*/}" up
done

snapshot
start_load
echo -1000 >/proc/self/oom_score_adj # the load must not get the measuring program killed
measure=$(option measure)
counters before
read -r up _ </proc/uptime
echo "latenz: measuring since $up s"
# Programs are kept off an isolated processor, and would not take it; this one is to run there.
# shellcheck disable=SC2086 # words
taskset -c "$(cat /sys/devices/system/cpu/online)" $measure >"/results/$(option output)" 2>/results/log &
measuring=$!
{
  while read -r word <&3; do
    # Not SIGINT, which a shell has its background programs ignore.
    [ "$word" = stop ] && kill -TERM $measuring
  done
} &
wait $measuring
status=$?
counters after
[ $status = 0 ] || note "${measure%% *} ended with status $status: $(tail -n 1 /results/log)"
stop_load
echo "latenz: sending"
tar -c -C /results . | gzip >&3
end
