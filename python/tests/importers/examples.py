"""Small files of the formats for which no output of a real tool is kept, written by hand.

Their layout follows the tools' sources and manuals: Xenomai's latency.c, rtla's timerlat_hist.c,
IEEE 1364 for value change dumps, Vivado's `write_hw_ila_data -csv_file`.
"""

VCD = """\
$date today $end
$version by hand $end
$timescale 10 ps $end
$scope module top $end
$var wire 1 ! irq $end
$var wire 8 " ack [7:0] $end
$scope module inner $end
$var wire 1 # irq $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
$dumpvars
0!
b0 "
x#
$end
#100
1!
#1250
b00000001 "
#2000
0!
b0 "
#3000
1!
#3150
b11 "
"""

ILA = """\
Sample in Buffer,Sample in Window,TRIGGER,top/irq,top/ack[1:0],top/count[7:0]
Radix - UNSIGNED,UNSIGNED,UNSIGNED,BINARY,HEX,SIGNED
0,0,0,0,0,-3
1,1,1,1,0,-2
2,2,0,1,0,-1
3,3,0,1,1,0
4,4,0,0,2,1
5,5,0,1,2,2
6,6,0,1,3,3
"""

XENOMAI_HISTOGRAM = """\
== Sampling period: 100 us
== Test mode: in-kernel timer handler
== All results in microseconds
warming up...
RTT|  00:00:01  (in-kernel timer handler, 100 us period, priority 99)
RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
RTD|      0.853|      1.708|    412.002|       1|     0|      0.853|    412.002
RTD|      0.901|      1.717|      3.100|       1|     0|      0.853|    412.002
---|--param|----range-|--samples
HSD|    min|   0 -  1 |        2
---|--param|----range-|--samples
HSD|    avg|   0 -  1 |     1200
HSD|    avg|   1 -  2 |    17800
HSD|    avg|   3 -  4 |      998
HSD|    avg| 299 -300 |        2
---|--param|----range-|--samples
HSD|    max|   3 -  4 |        1
HSD|    max| 299 -300 |        1
HSH|--param|--samples-|--average--|---stddev--
HSS|    min|         2|      0.000|      0.000
HSS|    avg|     20000|      1.070|      3.024
HSS|    max|         2|    151.000|    209.304
---|-----------|-----------|-----------|--------|------|-------------------------
RTS|      0.853|      1.712|    412.002|       1|     0|    00:00:02/00:00:02
"""

XENOMAI_PLOT = """\
1 1
1.5 18
2.5 1
3.5 601
4.5 3
5 1
"""

RTLA_ALL = """\
# RTLA timerlat histogram
# Time unit is nanoseconds (ns)
# Duration:   0 00:00:02
Index   IRQ-001   Thr-001   Usr-001
0            10         0         0
500         900       700         1
1000         90       290       880
1500          0         7        90
over:         0         3        29
count:     1000      1000      1000
min:        481       612       991
avg:        701       901      1400
max:       1309      7812      9120
ALL:        IRQ       Thr       Usr
count:     1000      1000      1000
min:        481       612       991
avg:        701       901      1400
max:       1309      7812      9120
"""

CSV = """\
time_s,latency (us),other [ns],comment
0.001,12.5,7,first
0.002,13.0625,,"second, quoted"
0.003,1.25e1,-9,third
"""

CSV_HISTOGRAM = "latency_us;count\n3;10\n4;7\n9;1\n"

OSLAT_CORES = """\
oslat V 2.40
        Core:\t 1 2
Counter Freq:\t 2702 2702 (Mhz)
    001 (us):\t 500 600
    002 (us):\t 3 0
    003 (us):\t 0 2
    004 (us):\t 1 7 (including overflows)
     Minimum:\t 1 1 (us)
     Average:\t 1.000 1.002 (us)
     Maximum:\t 4 93 (us)
     Max-Min:\t 3 92 (us)
    Duration:\t 2.997 2.998 (sec)
"""

EXPORTED = """\
sample_set,latency_ns,width_ns,count,latenz_metadata
cpu0,3000,1000,2,"{""form"": ""histogram"", \
""columns"": [""latency_ns"", ""width_ns"", ""count""], \
""metadata"": {""name"": ""cpu0"", ""time_base"": ""silicon"", ""beyond_range"": 4, \
""beyond_range_from_ns"": 9000, ""reported"": {""n"": 9, ""min_ns"": 3000, ""max_ns"": 12000}}}"
cpu0,5000,1000,3,
idle,,,,"{""form"": ""summary"", ""columns"": [], ""metadata"": {""name"": ""idle"", \
""time_base"": ""virtual"", ""reported"": {""n"": 3, ""max_ns"": 8}}}"
"""
