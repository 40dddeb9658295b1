// SPDX-License-Identifier: Apache-2.0
// What axi_lite_selector must do, three channels: to its master it is one slave that keeps AXI4-Lite;
// a request reaches the channel of its address and no other, its answer comes back, and what is of no
// channel is answered SLVERR.
// The channels take and answer as our slaves do: a write in the cycle after it was offered, a read at
// once; answers of writes come at once, those of reads at any time; data and codes are any.

`default_nettype none

module selected_slave (
    input wire clk,
    input wire resetn,
    input wire awvalid,
    output reg awready,
    output reg bvalid,
    input wire bready,
    input wire arvalid,
    output wire arready,
    output reg rvalid,
    input wire rready,
    input wire answers,
    output reg read_under_way
);
    initial {awready, bvalid, rvalid, read_under_way} = 0;
    assign arready = !read_under_way;
    always @(posedge clk) begin
        awready <= awvalid && !awready && !bvalid;
        if (awready) bvalid <= 1;
        else if (bready) bvalid <= 0;
        if (arvalid && arready) read_under_way <= 1;
        else if (rvalid && rready) read_under_way <= 0;
        if (rvalid && rready) rvalid <= 0;
        else if (read_under_way && answers) rvalid <= 1;
        if (!resetn) {awready, bvalid, rvalid, read_under_way} <= 0;
    end
endmodule

module axi_lite_selector_properties (
    input wire clk,
    input wire resetn,
    input wire [7:0] awaddr,
    input wire awvalid,
    input wire [31:0] wdata,
    input wire [3:0] wstrb,
    input wire wvalid,
    input wire bready,
    input wire [7:0] araddr,
    input wire arvalid,
    input wire rready,
    input wire [2:0] answers,
    input wire [5:0] channel_bresp,
    input wire [5:0] channel_rresp,
    input wire [95:0] channel_rdata
);
    wire awready, wready, bvalid, arready, rvalid, channel_bready, channel_rready;
    wire [1:0] bresp, rresp;
    wire [31:0] rdata;
    wire [2:0] to_write, takes, written, to_read, free, read, under_way;
    axi_lite_selector dut (
        .aclk(clk), .aresetn(resetn), .awaddr(awaddr), .awvalid(awvalid), .awready(awready),
        .wvalid(wvalid), .wready(wready), .bresp(bresp), .bvalid(bvalid), .bready(bready),
        .araddr(araddr), .arvalid(arvalid), .arready(arready), .rdata(rdata), .rresp(rresp),
        .rvalid(rvalid), .rready(rready), .channel_awvalid(to_write), .channel_awready(takes),
        .channel_bresp(channel_bresp), .channel_bvalid(written), .channel_bready(channel_bready),
        .channel_arvalid(to_read), .channel_arready(free), .channel_rdata(channel_rdata),
        .channel_rresp(channel_rresp), .channel_rvalid(read), .channel_rready(channel_rready)
    );
    genvar i;
    generate for (i = 0; i < 3; i = i + 1) begin : channel
        selected_slave slave (
            .clk(clk), .resetn(resetn), .awvalid(to_write[i]), .awready(takes[i]),
            .bvalid(written[i]), .bready(channel_bready), .arvalid(to_read[i]),
            .arready(free[i]), .rvalid(read[i]), .rready(channel_rready), .answers(answers[i]),
            .read_under_way(under_way[i])
        );
    end endgenerate

    wire address_taken, data_taken, read_taken;
    wire [3:0] write_waits, read_waits;
    axi_lite_rules #(.ADDRESS_BITS(8), .SLOW_READS(1)) rules (
        .clk(clk), .resetn(resetn), .awaddr(awaddr), .awvalid(awvalid), .awready(awready),
        .wdata(wdata), .wstrb(wstrb), .wvalid(wvalid), .wready(wready), .bresp(bresp),
        .bvalid(bvalid), .bready(bready), .araddr(araddr), .arvalid(arvalid), .arready(arready),
        .rdata(rdata), .rresp(rresp), .rvalid(rvalid), .rready(rready),
        .address_taken(address_taken), .data_taken(data_taken), .read_taken(read_taken),
        .write_waits(write_waits), .read_waits(read_waits)
    );

    // Whom the requests under way are for, by their addresses.
    reg [3:0] write_for = 0, read_for = 0;
    reg write_waits_before = 0, read_waits_before = 0;
    reg [5:0] bresp_before, rresp_before;
    reg [95:0] rdata_before;
    always @(posedge clk) begin
        if (awvalid && awready) write_for <= awaddr[7:4];
        if (arvalid && arready) read_for <= araddr[7:4];
        write_waits_before <= resetn && |written && !bready;
        read_waits_before <= resetn && |read && !rready;
        bresp_before <= channel_bresp;
        rresp_before <= channel_rresp;
        rdata_before <= channel_rdata;
    end
    // The channels' answers: stable while they wait, and of the codes that our slaves have.
    always @* begin
        if (write_waits_before) assume (channel_bresp == bresp_before);
        if (read_waits_before)
            assume (channel_rresp == rresp_before && channel_rdata == rdata_before);
        assume (!(channel_bresp & 6'b010101) && !(channel_rresp & 6'b010101));
    end

    wire [2:0] write_to = awaddr[7:4] < 3 ? 3'd1 << awaddr[7:4] : 3'd0;
    wire [2:0] read_from = araddr[7:4] < 3 ? 3'd1 << araddr[7:4] : 3'd0;
    always @* begin
        a_write_goes_there: assert ((to_write & ~write_to) == 0);
        a_read_goes_there: assert ((to_read & ~read_from) == 0);
        a_write_taken_there: assert (!(awvalid && awready) || takes == write_to);
        a_read_taken_there: assert (to_read == (arvalid && arready ? read_from : 3'd0));
        a_write_answer: assert (!bvalid || bresp
            == (write_for < 3 ? channel_bresp[2 * write_for[1:0] +: 2] : 2'b10));
        a_read_answer: assert (!rvalid || (rresp
            == (read_for < 3 ? channel_rresp[2 * read_for[1:0] +: 2] : 2'b10)));
        a_read_data: assert (!rvalid || read_for >= 3
            || rdata == channel_rdata[32 * read_for[1:0] +: 32]);
    end

    // Ties: the selector, the rules and the channels are in the same state.
    (* hierconn *) wire \dut.writing ;
    (* hierconn *) wire \dut.reading ;
    (* hierconn *) wire \dut.write_absent ;
    (* hierconn *) wire \dut.read_absent ;
    (* hierconn *) wire \dut.takes_absent ;
    wire [2:0] written_by = address_taken && write_for < 3 ? 3'd1 << write_for : 3'd0;
    wire [2:0] read_by = read_taken && read_for < 3 ? 3'd1 << read_for : 3'd0;
    always @* begin
        t_writing: assert (\dut.writing == address_taken);
        t_reading: assert (\dut.reading == read_taken);
        t_write_absent: assert (\dut.write_absent == (address_taken && write_for >= 3));
        t_read_absent: assert (\dut.read_absent == (read_taken && read_for >= 3));
        t_written: assert (written == written_by);
        t_read: assert (under_way == read_by && (read & ~under_way) == 0);
        t_takes: assert (!resetn || takes == 0 || (takes == write_to && !\dut.takes_absent ));
        t_takes_offered: assert (!(takes != 0 || \dut.takes_absent )
            || !resetn || (awvalid && wvalid && !address_taken));
        t_absent: assert (!\dut.takes_absent || !resetn || write_to == 0);
        t_write_waits: assert (write_waits == 0 || takes != 0 || \dut.takes_absent );
    end

    always @* begin
        c_written: cover (written[2] && bready);
        c_write_absent: cover (bvalid && write_for == 3 && bready);
        c_read: cover (read[1] && rready && rdata == 5);
        c_read_absent: cover (rvalid && read_for == 15 && rready);
        c_both: cover (written[0] && read[2]);
        c_reset_within: cover (under_way[1] && !resetn);
        c_after_reset: cover (read[2] && written[1] && write_waits_before && read_waits_before);
    end
endmodule
