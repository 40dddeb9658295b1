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

counters() { # name
  mkdir -p "/results/$1"
  cat /proc/interrupts >"/results/$1/interrupts"
  cat /proc/stat >"/results/$1/stat"
}

# What the guest's kernel does while it measures, told with the times of CLOCK_MONOTONIC.
tracing=/sys/kernel/tracing
start_trace() {
  mount -t tracefs tracefs $tracing || {
    note "nothing was traced: this kernel has no tracefs"
    return
  }
  echo mono >$tracing/trace_clock
  echo 8192 >$tracing/buffer_size_kb
  for event in $(option trace); do
    [ -e "$tracing/events/$event/enable" ] && echo 1 >"$tracing/events/$event/enable"
  done
  # What kept a real-time thread from its processor: where the other one was, and where it gave way.
  # An idle processor was nowhere, and its stack would only cost time.
  echo 'stacktrace if prio < 100 && common_pid != 0' >$tracing/events/sched/sched_waking/trigger
  echo 'stacktrace if next_prio < 100 && prev_prio > 99 && prev_pid > 0' \
    >$tracing/events/sched/sched_switch/trigger
  latenz-wakeup --mark-clock # what the host's clock is joined by
}

stop_trace() {
  [ -e $tracing/tracing_on ] || return
  latenz-wakeup --mark-clock
  echo 0 >$tracing/tracing_on
  cat $tracing/trace >/results/trace.txt || { # as text it is larger than the ring, and memory too
    rm -f /results/trace.txt
    note "the trace does not fit into the memory of the virtual machine"
  }
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
[ "$(option trace)" ] && start_trace
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
echo "latenz: measured"
counters after
[ "$(option trace)" ] && stop_trace
[ $status = 0 ] || note "${measure%% *} ended with status $status: $(tail -n 1 /results/log)"
stop_load
echo "latenz: sending"
tar -c -C /results . | gzip >&3
end
