# shellcheck shell=dash disable=SC2154
# An emulated host: runs a virtual machine under KVM, or a measuring program itself, and sends what
# came of it over the second serial line. What to do stands in /order (see vm/nested.py).
note() {
  echo "$1" >>/sent/notes
  echo "latenz: $1"
}

end() {
  sync
  poweroff -f
}

pinned() { # vCPU, mask of CPUs or -, priority or -
  thread=
  until [ "$thread" ]; do
    for task in /proc/[0-9]*/task/[0-9]*; do
      read -r name 2>/dev/null <"$task/comm"
      [ "$name" = "CPU $1/KVM" ] && thread=${task##*/}
    done
    kill -0 $machine 2>/dev/null || return
    [ "$thread" ] || usleep 5000
  done
  [ "$2" = - ] || taskset -p "$2" "$thread" >/dev/null || note "vCPU $1 was not pinned"
  [ "$3" = - ] || chrt -f -p "$3" "$thread" >/dev/null || note "vCPU $1 got no priority"
}

written() { # tuning, value, files that may be absent or refuse
  tuning=$1
  value=$2
  shift 2
  for file in "$@"; do
    [ -e "$file" ] && { echo "$value" >"$file"; } 2>/dev/null && echo "$tuning" >>/sent/written
  done
}

# Only the names of timers' functions are wanted in the trace; all of them are four times its size.
fewer_symbols() {
  grep -E ' [tT] [a-z_]*(timer|tick|wakeup|timeout)[a-z_]*$' /proc/kallsyms >/tmp/symbols
  mount --bind /tmp/symbols /proc/kallsyms
}

# Runs a command between two marks by which the guest's clock is joined with the trace's.
marked='latenz-wakeup --mark-clock; "$@"; status=$?; latenz-wakeup --mark-clock; exit $status'

# Both see the machine's whole life, so that both count the same exits.
traced() {
  perf kvm --host stat record -a -o /tmp/perf.data >/dev/null 2>&1 &
  perf=$!
  usleep 300000
  # shellcheck disable=SC2046 # words
  trace-cmd record -q -b 20000 -C mono $(trace_events) -o /sent/trace.dat \
    sh -c "$marked" marked "$@" \
    >/sent/trace-cmd.log 2>&1
  kill -INT $perf
  wait $perf
  perf kvm --host -i /tmp/perf.data stat report >/sent/perf-kvm-stat.txt 2>&1
}

# Tells on the third serial line that virtual time passes, whatever load there is.
beat() {
  taskset 1 chrt -f 1 sh -c 'while usleep 100000; do echo >/dev/ttyS2; done'
}

mkdir -p /tmp /dev/hugepages
mount -t tracefs tracefs /sys/kernel/tracing
. /order
beat &
tuned
[ "$tracing" ] && fewer_symbols
start_load
echo "latenz: starting"
if [ "$tracing" ]; then traced sh /machine & else sh /machine & fi
machine=$!
threads
wait $machine
status=$?
[ $status = 0 ] || note "what measures ended with status $status"
stop_load
echo "latenz: sending"
stty -F /dev/ttyS1 raw -echo
tar -c -C /sent . >/dev/ttyS1
end
