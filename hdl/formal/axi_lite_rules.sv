// SPDX-License-Identifier: Apache-2.0
// AXI4-Lite as a slave must keep it (AMBA AXI, IHI 0022, A3.1 to A3.3): an answer that waits does
// not change, none comes without its request, and each request has exactly one.
// The master is assumed to keep the same rules; otherwise it does what it likes, waits included.

`default_nettype none

module axi_lite_rules #(
    parameter ADDRESS_BITS = 12,
    // 1: reads may take longer than a cycle; that they are answered is proved elsewhere.
    parameter SLOW_READS = 0,
    // 1: reads and writes take turns; either waits until the other's answer has been taken.
    parameter TURNS = 0,
    // Cycles that a request waits when it need not wait for an answer.
    parameter LONGEST_WAIT = 1
) (
    input wire clk,
    input wire resetn,
    input wire [ADDRESS_BITS-1:0] awaddr,
    input wire awvalid,
    input wire awready,
    input wire [31:0] wdata,
    input wire [3:0] wstrb,
    input wire wvalid,
    input wire wready,
    input wire [1:0] bresp,
    input wire bvalid,
    input wire bready,
    input wire [ADDRESS_BITS-1:0] araddr,
    input wire arvalid,
    input wire arready,
    input wire [31:0] rdata,
    input wire [1:0] rresp,
    input wire rvalid,
    input wire rready,
    // Requests that have been taken and not yet answered.
    output reg address_taken,
    output reg data_taken,
    output reg read_taken,
    // Cycles that a request has waited for nothing but its turn.
    output reg [3:0] write_waits,
    output reg [3:0] read_waits
);
    initial {address_taken, data_taken, read_taken, write_waits, read_waits} = 0;

    reg running = 0;
    reg aw_waits = 0, w_waits = 0, ar_waits = 0, b_waits = 0, r_waits = 0;
    reg [ADDRESS_BITS-1:0] awaddr_before, araddr_before;
    reg [31:0] wdata_before, rdata_before;
    reg [3:0] wstrb_before;
    reg [1:0] bresp_before, rresp_before;

    always @(posedge clk) begin
        running <= resetn;
        write_waits <= resetn && awvalid && wvalid && !awready && !address_taken
            && !(TURNS && (read_taken || (arvalid && arready))) ? write_waits + 1 : 0;
        read_waits <= resetn && arvalid && !arready && !read_taken ? read_waits + 1 : 0;
        aw_waits <= resetn && awvalid && !awready;
        w_waits <= resetn && wvalid && !wready;
        ar_waits <= resetn && arvalid && !arready;
        b_waits <= resetn && bvalid && !bready;
        r_waits <= resetn && rvalid && !rready;
        awaddr_before <= awaddr;
        araddr_before <= araddr;
        wdata_before <= wdata;
        rdata_before <= rdata;
        wstrb_before <= wstrb;
        bresp_before <= bresp;
        rresp_before <= rresp;
        if (awvalid && awready) address_taken <= 1;
        else if (bvalid && bready) address_taken <= 0;
        if (wvalid && wready) data_taken <= 1;
        else if (bvalid && bready) data_taken <= 0;
        if (arvalid && arready) read_taken <= 1;
        else if (rvalid && rready) read_taken <= 0;
        if (!resetn) {address_taken, data_taken, read_taken} <= 0;
    end

    // The master: silent in a reset; otherwise what waits does not change.
    always @* begin
        if (!resetn || !running) begin
            assume (!awvalid && !wvalid && !arvalid);
        end else begin
            if (aw_waits) assume (awvalid && awaddr == awaddr_before);
            if (w_waits) assume (wvalid && wdata == wdata_before && wstrb == wstrb_before);
            if (ar_waits) assume (arvalid && araddr == araddr_before);
        end
    end

    always @* begin
        a_b_stable: assert (!b_waits || (bvalid && bresp == bresp_before));
        a_r_stable: assert (!r_waits || (rvalid && rresp == rresp_before && rdata == rdata_before));
        a_b_has_request: assert (!bvalid || (address_taken && data_taken));
        a_r_has_request: assert (!rvalid || read_taken);
        a_b_once: assert (!(awvalid && awready && address_taken) || (bvalid && bready));
        a_w_once: assert (!(wvalid && wready && data_taken) || (bvalid && bready));
        a_r_once: assert (!(arvalid && arready && read_taken) || (rvalid && rready));
        // No hang: a whole request is taken within LONGEST_WAIT cycles where none is under way that it
        // has to wait for, and answered in the next cycle.
        a_takes_writes: assert (write_waits <= LONGEST_WAIT);
        a_takes_reads: assert (read_waits <= LONGEST_WAIT);
        a_answers_writes: assert (!(address_taken && data_taken) || bvalid);
        a_answers_reads: assert (SLOW_READS || !read_taken || rvalid);
        a_together: assert (address_taken == data_taken);
        a_response_code: assert (!bvalid || bresp == 2'b00 || bresp == 2'b10);
        a_read_code: assert (!rvalid || rresp == 2'b00 || rresp == 2'b10);
    end

    always @* begin
        c_write_waits: cover (b_waits && bvalid && awvalid);
        c_read_waits: cover (r_waits && rvalid && arvalid);
        c_data_first: cover (w_waits && !aw_waits && awvalid);
        c_address_first: cover (aw_waits && !w_waits && wvalid);
        c_both: cover (awvalid && awready && arvalid && (TURNS || arready));
        c_reset_within: cover (aw_waits && !resetn);
    end
endmodule
