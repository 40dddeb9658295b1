// SPDX-License-Identifier: Apache-2.0
// What event_counter must do from any value on: 2^32 events are too many to simulate. The ties of an
// induction are not needed: its first state is any.

`default_nettype none

module event_counter_properties (
    input wire clk,
    input wire clear,
    input wire event_now
);
    localparam [31:0] ALL_ONES = 32'hFFFFFFFF;
    wire [31:0] total;
    event_counter dut (.clk(clk), .clear(clear), .event_now(event_now), .total(total));

    reg started = 0, clear_before, event_before;
    reg [31:0] total_before;
    always @(posedge clk) begin
        started <= 1;
        clear_before <= clear;
        event_before <= event_now;
        total_before <= total;
    end
    always @* if (started) begin
        a_clears: assert (!clear_before || total == 0);
        a_counts: assert (clear_before || !event_before || total_before == ALL_ONES
            || total == total_before + 1);
        a_stops: assert (clear_before || total_before != ALL_ONES || total == ALL_ONES);
        a_stays: assert (clear_before || event_before || total == total_before);
    end
    always @* c_counted: cover (total == 3 && started && !event_before);
endmodule
