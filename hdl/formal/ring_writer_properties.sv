// SPDX-License-Identifier: Apache-2.0
// What ring_writer must do, with any ring, any stream and any answers: each record goes to its place,
// none over one that software still needs, each is counted once, and what the bus is offered stays
// until it is taken.
// The memory is assumed to answer only what it has; software to change the ring only while disabled.

`default_nettype none

module ring_writer_properties (
    input wire clk,
    input wire resetn,
    input wire enable,
    input wire [39:4] base,
    input wire [4:0] size_log2,
    input wire [31:0] consumed,
    input wire clear_bus_error,
    input wire [127:0] tdata,
    input wire tvalid,
    input wire awready,
    input wire wready,
    input wire [1:0] bresp,
    input wire bvalid
);
    wire [31:0] written, dropped;
    wire full, idle, bus_error, tready, awvalid, wvalid;
    wire [39:0] awaddr;
    wire [127:0] wdata;
    ring_writer dut (
        .aclk(clk), .aresetn(resetn), .enable(enable), .base(base), .size_log2(size_log2),
        .consumed(consumed), .clear_bus_error(clear_bus_error), .written(written),
        .dropped(dropped), .full(full), .idle(idle), .bus_error(bus_error), .s_axis_tdata(tdata),
        .s_axis_tvalid(tvalid), .s_axis_tready(tready), .m_axi_awaddr(awaddr),
        .m_axi_awvalid(awvalid), .m_axi_awready(awready), .m_axi_wdata(wdata),
        .m_axi_wvalid(wvalid), .m_axi_wready(wready), .m_axi_bresp(bresp), .m_axi_bvalid(bvalid)
    );

    localparam [31:0] ALL_ONES = 32'hFFFFFFFF;
    wire taken = tvalid && tready;
    wire error = bvalid && bresp[1];
    wire [31:0] mask = (32'd1 << size_log2) - 1;

    // Records under way; their addresses and words that the memory has; the next record's number.
    reg [5:0] under_way = 0, addresses = 0, words = 0;
    reg [31:0] number = 0, total = 0;
    reg spoiled = 0;
    always @(posedge clk) begin
        under_way <= under_way + taken - bvalid;
        addresses <= addresses + (awvalid && awready) - bvalid;
        words <= words + (wvalid && wready) - bvalid;
        number <= taken ? number + 1 : under_way == 0 ? written : number;
        total <= total + taken;
        spoiled <= error || (spoiled && under_way != 0);
        if (!resetn) {under_way, addresses, words, number, total, spoiled} <= 0;
    end
    always @* if (addresses == 0 || words == 0 || !resetn) assume (!bvalid);

    reg started = 0, running = 0, enable_before = 0, taken_before = 0;
    reg aw_waits = 0, w_waits = 0, error_before = 0, bvalid_before = 0, spoiled_before = 0;
    reg clear_before = 0, bus_error_before = 0;
    reg [39:4] base_before;
    reg [4:0] size_before;
    reg [31:0] consumed_before, written_before, dropped_before, mask_before, number_before;
    reg [39:0] awaddr_before;
    reg [127:0] wdata_before, tdata_before;
    always @(posedge clk) begin
        started <= 1;
        running <= resetn;
        enable_before <= enable;
        taken_before <= taken && resetn;
        aw_waits <= resetn && awvalid && !awready;
        w_waits <= resetn && wvalid && !wready;
        error_before <= error;
        bvalid_before <= bvalid;
        spoiled_before <= spoiled;
        clear_before <= clear_bus_error;
        bus_error_before <= bus_error;
        base_before <= base;
        size_before <= size_log2;
        consumed_before <= consumed;
        written_before <= written;
        dropped_before <= dropped;
        mask_before <= mask;
        number_before <= number;
        awaddr_before <= awaddr;
        wdata_before <= wdata;
        tdata_before <= tdata;
    end
    always @* if (started && (enable || enable_before || under_way != 0))
        assume (base == base_before && size_log2 == size_before);

    wire [39:0] place = {base_before, 4'b0} + {4'b0, number_before & mask_before, 4'b0};
    always @* begin
        a_under_way: assert (under_way <= 16);
        a_idle: assert (idle == (under_way == 0));
        // Not over a record that software has not done with, as software said a cycle ago.
        a_has_place: assert (!taken || number - consumed_before <= mask);
        a_address: assert (!taken_before || (awvalid && awaddr == place));
        a_word: assert (!taken_before || (wvalid && wdata == tdata_before));
        a_aw_stable: assert (!aw_waits || (awvalid && awaddr == awaddr_before));
        a_w_stable: assert (!w_waits || (wvalid && wdata == wdata_before));
        a_disabled: assert (enable_before || !tready);
        a_stops: assert (!bus_error || !tready);
        a_each_once: assert (dropped == ALL_ONES || total == written + dropped + under_way);
        if (started && running) begin
            a_written: assert (written
                == written_before + (bvalid_before && !error_before && !spoiled_before));
            a_dropped: assert (dropped == dropped_before + (bvalid_before
                && (error_before || spoiled_before) && dropped_before != ALL_ONES));
            a_bus_error: assert (bus_error == (error_before || (bus_error_before && !clear_before)));
        end
        if (started && !running)
            a_reset: assert (written == 0 && dropped == 0 && !bus_error && !awvalid && !wvalid);
    end

    // Ties: model and design are in the same state.
    (* hierconn *) wire [4:0] \dut.under_way ;
    (* hierconn *) wire [31:0] \dut.next_record ;
    (* hierconn *) wire [31:0] \dut.following ;
    (* hierconn *) wire \dut.spoiled ;
    (* hierconn *) wire \dut.running ;
    wire going = \dut.running ;
    always @* begin
        t_under_way: assert (\dut.under_way == under_way);
        t_addresses: assert ({1'b0, addresses} + awvalid == under_way);
        t_words: assert ({1'b0, words} + wvalid == under_way);
        t_number: assert (\dut.next_record == number && \dut.following == number + 32'd1);
        t_spoiled: assert (\dut.spoiled == spoiled);
        t_running: assert (!going || (started && enable_before && !bus_error && !spoiled));
        t_counts: assert (spoiled || number == written + under_way);
        t_full: assert (!going || full == (((number - consumed_before) & ~mask) != 0));
    end

    always @* begin
        c_wraps: cover (taken_before && awaddr == {base_before, 4'b0} && number == 3);
        c_carries: cover (awvalid && aw_waits && awaddr[39:32] != base[39:32]);
        c_full: cover (full && going && tvalid && number == 2);
        c_freed: cover (taken && full == 0 && consumed == 2);
        c_error: cover (bus_error && under_way == 2);
        c_after_error: cover (written == 2 && dropped == 1 && !bus_error);
        c_cleared_at_once: cover (error_before && clear_before && bus_error);
        c_words_first: cover (words > addresses);
        c_addresses_first: cover (addresses > words);
        c_disabled_within: cover (!enable_before && under_way == 2);
    end
endmodule
