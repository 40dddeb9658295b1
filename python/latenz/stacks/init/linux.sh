# shellcheck shell=dash disable=SC2154
# Measures by a program of Linux and sends what it wrote.
# A guest that others hold at first must not measure before they have let it go.
not_before_s=$(option not_before_s)
while read -r up _ </proc/uptime && [ "${up%.*}" -lt "${not_before_s:-0}" ]; do usleep 50000; done

[ -z "$(option snapshot)" ] || snapshot
start_load
echo -1000 >/proc/self/oom_score_adj # the load must not get the measuring program killed
measure=$(option measure)
# shellcheck disable=SC2086 # words
$measure >"/results/$(option output)" 2>/results/log
status=$?
[ $status = 0 ] || note "${measure%% *} ended with status $status: $(tail -n 1 /results/log)"
stop_load
tar -c -C /results . | gzip | latenz-send file results.tar.gz
end
