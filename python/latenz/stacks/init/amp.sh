# shellcheck shell=dash disable=SC2154
# Loads, starts and supervises the real-time core; the program there measures and sends for itself.
remote() {
  told=$(latenz-remote "$@" 2>&1) || note "$told"
  note "real-time core: $1, then $(latenz-remote status 2>&1)"
}

start_load
remote load /firmware.elf
remote start
usleep "$(option measure_us)" # in peace
while status=$(latenz-remote status) && [ "$status" = running ]; do
  usleep 50000
done
note "real-time core: $status"
stop_load
end
