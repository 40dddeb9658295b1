// SPDX-License-Identifier: Apache-2.0
// What latencies_core must do, beside a model of it that is written from its documentation: a list
// of ages, one of each open measurement. Proved by prove.py for every overlap policy.
// The inputs are free: any edges, enable, clear, limit and reset in any cycle.
// Macros of prove.py: WIDTH, NUM_WIDTH, INDEX_BITS, CAPACITY (measurements open at once), STAGES
// (of the synchronisers), and RESTART or QUEUE for the policy.

`default_nettype none

module core_properties (
    input wire clk,
    input wire rst,
    input wire irq,
    input wire ack,
    input wire enable,
    input wire clear,
    input wire alarm_clear,
    input wire [WIDTH-1:0] alarm_limit,
    input wire read_enable,
    input wire [INDEX_BITS-1:0] read_address
);
    localparam WIDTH = `WIDTH;
    localparam NUM_WIDTH = `NUM_WIDTH;
    localparam INDEX_BITS = `INDEX_BITS;
    localparam CAPACITY = `CAPACITY;
    localparam [WIDTH:0] BEYOND = 1 << WIDTH;
    localparam [WIDTH-1:0] ALL_ONES = {WIDTH{1'b1}};

    reg [63:0] tick = 0;
    always @(posedge clk) tick <= tick + 1;

    wire alarm, sample_valid, saturated, is_open, orphan, overlap, missed, timed_out;
    wire new_maximum, new_alarm;
    wire [63:0] start_tick;
    wire [WIDTH-1:0] last, maximum, minimum, sample, read_data;
    wire [NUM_WIDTH-1:0] num;

    latencies_core dut (
        .clk(clk), .rst(rst), .irq(irq), .ack(ack), .enable(enable), .clear(clear), .tick(tick),
        .timeout(32'd0), .alarm_limit(alarm_limit), .alarm_clear(alarm_clear), .alarm(alarm),
        .last(last), .maximum(maximum), .minimum(minimum), .num(num),
        .sample_valid(sample_valid), .sample(sample), .saturated(saturated),
        .start_tick(start_tick), .new_maximum(new_maximum), .new_alarm(new_alarm),
        .is_open(is_open), .orphan(orphan), .overlap(overlap), .missed(missed),
        .timed_out(timed_out), .place_valid(1'b0), .place({INDEX_BITS{1'b0}}),
        .read_enable(read_enable), .read_address(read_address), .read_data(read_data)
    );

    // The model: inputs as they were, high before power-up (corner cases 3 and 7).
    reg [`STAGES:0] irq_before = {(`STAGES + 1){1'b1}};
    reg [`STAGES:0] ack_before = {(`STAGES + 1){1'b1}};
    always @(posedge clk) begin
        irq_before <= {irq_before, irq};
        ack_before <= {ack_before, ack};
    end
`ifdef SYNCHRONISED
    wire start = irq_before[`STAGES-1] && !irq_before[`STAGES];
    wire stop = ack_before[`STAGES-1] && !ack_before[`STAGES];
`else
    wire start = irq && !irq_before[0];
    wire stop = ack && !ack_before[0];
`endif

    // What is open, oldest first: its age, where BEYOND and more are the same; with the queue, the
    // tick of its start.
`ifdef QUEUE
    localparam KEPT_WIDTH = 64;
    wire [KEPT_WIDTH-1:0] first = tick;
    wire [KEPT_WIDTH-1:0] oldest_age = tick - kept[0];
    `define ONE_CYCLE_LATER(value) (value)
`else
    localparam KEPT_WIDTH = WIDTH + 1;
    wire [KEPT_WIDTH-1:0] first = 1;
    wire [KEPT_WIDTH-1:0] oldest_age = kept[0];
    `define ONE_CYCLE_LATER(value) ((value) + ((value) != BEYOND))
`endif
    (* mem2reg *) reg [KEPT_WIDTH-1:0] kept [0:CAPACITY-1];
    reg [7:0] open_count = 0;

    // The queue's samples come one cycle later, so that it must forget them in a reset itself.
`ifdef QUEUE
    wire measures = enable && !rst;
`else
    wire measures = enable;
`endif
    wire closes = measures && stop && open_count > 0;
    wire at_once = measures && stop && start && open_count == 0;
    wire [7:0] remaining = open_count - closes;
    wire opens = measures && start && !at_once;
    wire has_room = remaining < CAPACITY;

    wire model_valid = closes || at_once;
    wire [KEPT_WIDTH-1:0] model_age = at_once ? 0 : oldest_age;
    wire model_saturated = model_age >= BEYOND;
    wire [WIDTH-1:0] model_sample = model_saturated ? ALL_ONES : model_age[WIDTH-1:0];

    integer i;
    always @(posedge clk) begin
        for (i = 0; i < CAPACITY; i = i + 1) begin
            if (closes && i + 1 < CAPACITY) kept[i] <= `ONE_CYCLE_LATER(kept[i+1]);
            else kept[i] <= `ONE_CYCLE_LATER(kept[i]);
            if (opens && has_room && remaining == i) kept[i] <= first;
        end
`ifdef RESTART
        if (opens && !has_room) kept[0] <= first;
`endif
        open_count <= !measures ? 0 : remaining + (opens && has_room);
    end

    wire model_orphan = measures && stop && open_count == 0 && !start;
    wire model_overlap = measures && start && remaining != 0;
    wire model_missed = opens && !has_room;

    // With the queue a sample appears one cycle after its stop, and so does what is counted.
`ifdef QUEUE
    reg due_orphan = 0, due_overlap = 0, due_missed = 0;
    always @(posedge clk) begin
        due_orphan <= model_orphan;
        due_overlap <= model_overlap;
        due_missed <= model_missed;
    end
    reg due = 0, due_saturated = 0;
    reg [WIDTH-1:0] due_sample = 0;
    reg [WIDTH-1:0] limit = 0;
    always @(posedge clk) begin
        limit <= alarm_limit;
        due <= model_valid;
        due_sample <= model_sample;
        due_saturated <= model_saturated;
    end
`else
    wire due_orphan = model_orphan, due_overlap = model_overlap, due_missed = model_missed;
    wire due = model_valid;
    wire due_saturated = model_saturated;
    wire [WIDTH-1:0] due_sample = model_sample;
    wire [WIDTH-1:0] limit = alarm_limit;
`endif

    // Exactly the samples of the model, and what the counters of events are told (1 2 3 4 5 7 12).
    always @* begin
        a_sample: assert (sample_valid == due);
        a_sample_value: assert (!due || (sample == due_sample && saturated == due_saturated));
        a_open: assert (is_open == (open_count != 0));
        a_orphan: assert (orphan == due_orphan);
        a_overlap: assert (overlap == due_overlap);
        a_missed: assert (missed == due_missed);
        a_no_timeout: assert (!timed_out);
    end

    // Statistics follow the samples; without one they stand still.
    reg started = 0;
    reg [NUM_WIDTH-1:0] num_before;
    reg [WIDTH-1:0] last_before, maximum_before, minimum_before, sample_before, limit_before;
    reg valid_before, saturated_before, cleared_before, reset_before, alarm_before;
    reg alarm_cleared_before;
    always @(posedge clk) begin
        started <= 1;
        num_before <= num;
        last_before <= last;
        maximum_before <= maximum;
        minimum_before <= minimum;
        sample_before <= sample;
        limit_before <= limit;
        valid_before <= sample_valid;
        saturated_before <= saturated;
        cleared_before <= clear || rst;
        reset_before <= rst;
        alarm_before <= alarm;
        alarm_cleared_before <= alarm_clear;
    end
    wire exceeded = valid_before && (saturated_before || sample_before > limit_before);

    always @* if (started) begin
        a_cleared: assert (!cleared_before
            || (num == 0 && last == 0 && maximum == 0 && minimum == ALL_ONES));
        a_counts_once: assert (cleared_before
            || num == num_before + (valid_before && num_before != {NUM_WIDTH{1'b1}}));
        a_last: assert (cleared_before || last == (valid_before ? sample_before : last_before));
        a_maximum_never_falls: assert (cleared_before || maximum >= maximum_before);
        a_minimum_never_rises: assert (cleared_before || minimum <= minimum_before);
        a_maximum: assert (cleared_before || maximum
            == (valid_before && sample_before > maximum_before ? sample_before : maximum_before));
        a_minimum: assert (cleared_before || minimum
            == (valid_before && sample_before < minimum_before ? sample_before : minimum_before));
        // 14: strictly greater, the limit of the acknowledgement counts, setting wins, sticky.
        a_alarm: assert (alarm == (!reset_before
            && (exceeded || (alarm_before && !alarm_cleared_before))));
    end
    always @* begin
        a_order: assert (num == 0 || (minimum <= last && last <= maximum));
        a_before_first: assert (num != 0 || (last == 0 && maximum == 0 && minimum == ALL_ONES));
        a_new_maximum: assert (new_maximum == (sample_valid && sample > maximum));
        a_new_alarm: assert
            (new_alarm == (sample_valid && (saturated || sample > limit)));
    end

    // Sample i stays at address i, for any one address; the rest is not stored (6, 11).
    (* anyconst *) wire [INDEX_BITS-1:0] any_address;
    reg stored = 0;
    reg [WIDTH-1:0] stored_sample;
    reg read_before = 0;
    reg [WIDTH-1:0] read_expected;
    always @(posedge clk) begin
        if (clear || rst) stored <= 0;
        else if (sample_valid && num == any_address) begin
            stored <= 1;
            stored_sample <= sample;
        end
        read_before <= read_enable && read_address == any_address && stored;
        read_expected <= stored_sample;
    end
    always @* begin
        a_memory: assert (!read_before || read_data == read_expected);
        a_stored: assert (stored == (num > any_address));
    end

    // Ties: model and design are in the same state. An induction that starts in any state needs them.
    (* hierconn *) wire [`STAGES:0] \dut.interrupt.seen ;
    (* hierconn *) wire [`STAGES:0] \dut.acknowledgement.seen ;
    always @* begin
        t_irq: assert (\dut.interrupt.seen == irq_before);
        t_ack: assert (\dut.acknowledgement.seen == ack_before);
        t_open: assert (open_count <= CAPACITY);
    end

    (* hierconn *) wire [WIDTH-1:0] \dut.memory.memory[0] ;
    (* hierconn *) wire [WIDTH-1:0] \dut.memory.memory[1] ;
    (* hierconn *) wire [WIDTH-1:0] \dut.memory.memory[2] ;
    (* hierconn *) wire [WIDTH-1:0] \dut.memory.memory[3] ;
    wire [WIDTH-1:0] stored_there = any_address[1]
        ? (any_address[0] ? \dut.memory.memory[3] : \dut.memory.memory[2] )
        : (any_address[0] ? \dut.memory.memory[1] : \dut.memory.memory[0] );
    always @* t_memory: assert (!stored || stored_there == stored_sample);

`ifdef QUEUE
    (* hierconn *) wire [1:0] \dut.many_open_queue.count ;
    (* hierconn *) wire \dut.many_open_queue.second ;
    (* hierconn *) wire [63:0] \dut.many_open_queue.head ;
    (* hierconn *) wire \dut.many_open_queue.free ;
    (* hierconn *) wire [63:0] \dut.many_open_queue.memory[0] ;
    (* hierconn *) wire [63:0] \dut.many_open_queue.memory[1] ;
    wire swapped = !\dut.many_open_queue.second ;
    always @* begin
        t_count: assert (\dut.many_open_queue.count == open_count);
        t_free: assert (\dut.many_open_queue.free == (swapped ^ open_count[0]));
        t_head: assert (open_count < 1 || kept[0] == \dut.many_open_queue.head );
        t_second: assert (open_count < 2 || kept[1] == (swapped
            ? \dut.many_open_queue.memory[0] : \dut.many_open_queue.memory[1] ));
    end
`else
    (* hierconn *) wire [WIDTH-1:0] \dut.one_open_counter.counter ;
    (* hierconn *) wire \dut.one_open_counter.beyond ;
    always @* begin
        t_age: assert (open_count == 0 || (kept[0] != 0 && kept[0] <= BEYOND));
        t_counter: assert (\dut.one_open_counter.counter
            == (open_count == 0 ? 0 : kept[0] == BEYOND ? ALL_ONES : kept[0]));
        t_beyond: assert (\dut.one_open_counter.beyond
            == (open_count == 0 || kept[0] == BEYOND));
    end
`endif

    // Everything happens at least once: an acknowledged, a saturated, a zero, a lost one; a full
    // memory with an alarm; a clear of the alarm.
    always @* begin
        c_sample: cover (num == 2 && minimum == 2 && maximum == 3);
        c_zero: cover (sample_valid && sample == 0 && num == 1);
`ifdef SMALL
        c_saturated: cover (sample_valid && saturated);
        c_exactly_all_ones: cover (sample_valid && !saturated && sample == ALL_ONES);
        c_num_stopped: cover (num == {NUM_WIDTH{1'b1}} && sample_valid);
`endif
        c_missed: cover (missed && enable);
        c_orphan: cover (orphan);
        c_close_and_open: cover (closes && start && open_count == 1);
        c_aborted: cover (!enable && is_open);
        c_alarm_cleared: cover (started && alarm_before && !alarm && !reset_before);
        c_held: cover (num == 1 && irq && irq_before[0] && !is_open && open_count == 0);
    end
`ifdef PLANTED
    // False on purpose: prove.py must refuse it.
    always @* a_planted: assert (num < 2);
`endif
endmodule
