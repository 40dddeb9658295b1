# shellcheck shell=dash disable=SC2154
# Linux in a partition beside the one that measures: puts itself under load, tells when that ran, by
# the counter that both see, and keeps it up until the measurement must have ended.
processes() {
  set -- /proc/[0-9]*
  echo $#
}

# Small: stress-ng fills it, and Linux must keep enough memory to go on.
mount -t tmpfs -o size=32m tmp /tmp
mount -o remount,size=32m /dev/shm
cd /tmp || exit
# Neither the priorities of the load nor its hunger for memory may keep this from going on.
chrt --fifo --pid 99 $$ >/dev/null
echo -1000 >/proc/self/oom_score_adj
start_load >/tmp/load.log 2>&1
tries=0
until [ "$(processes)" -ge "$(option least_processes)" ] || [ $((tries += 1)) -gt 100 ]; do
  usleep 50000
done
note "loaded_ns=$(latenz-counter) processes=$(processes)"
until [ "$(latenz-counter)" -ge "$(option until_ns)" ]; do usleep 20000; done
if [ -n "$load" ] && ! kill -0 "$load_pid" 2>/dev/null; then
  note "the load died while measuring: $(tail -n 1 /tmp/load.log)"
fi
note "unloaded_ns=$(latenz-counter) processes=$(processes)"
latenz-send end
while :; do sleep 1000; done # the board is switched off from outside
