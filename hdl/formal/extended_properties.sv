// SPDX-License-Identifier: Apache-2.0
// Both AXI4-Lite slaves of the Latencies IP with every addition keep the protocol, and an error
// changes no register. A histogram of 8 bins, a memory of 4 latencies.

`default_nettype none

module extended_properties (
    input wire aclk,
    input wire aresetn,
    input wire irq_in,
    input wire ack_in,
    input wire [11:0] s00_awaddr,
    input wire s00_awvalid,
    input wire [31:0] s00_wdata,
    input wire [3:0] s00_wstrb,
    input wire s00_wvalid,
    input wire s00_bready,
    input wire [11:0] s00_araddr,
    input wire s00_arvalid,
    input wire s00_rready,
    input wire [11:0] s01_awaddr,
    input wire s01_awvalid,
    input wire [31:0] s01_wdata,
    input wire [3:0] s01_wstrb,
    input wire s01_wvalid,
    input wire s01_bready,
    input wire [11:0] s01_araddr,
    input wire s01_arvalid,
    input wire s01_rready
);
    wire alarm, interrupt, m_axis_tvalid;
    wire [127:0] m_axis_tdata;
    wire s00_awready, s00_wready, s00_bvalid, s00_arready, s00_rvalid;
    wire s01_awready, s01_wready, s01_bvalid, s01_arready, s01_rvalid;
    wire [1:0] s00_bresp, s00_rresp, s01_bresp, s01_rresp;
    wire [31:0] s00_rdata, s01_rdata;

    latencies_ip dut (
        .aclk(aclk), .aresetn(aresetn), .irq_in(irq_in), .ack_in(ack_in), .alarm(alarm),
        .interrupt(interrupt), .time_in(64'd0), .m_axis_tdata(m_axis_tdata),
        .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(1'b1),
        .s00_axi_awaddr(s00_awaddr), .s00_axi_awprot(3'd0), .s00_axi_awvalid(s00_awvalid),
        .s00_axi_awready(s00_awready), .s00_axi_wdata(s00_wdata), .s00_axi_wstrb(s00_wstrb),
        .s00_axi_wvalid(s00_wvalid), .s00_axi_wready(s00_wready), .s00_axi_bresp(s00_bresp),
        .s00_axi_bvalid(s00_bvalid), .s00_axi_bready(s00_bready), .s00_axi_araddr(s00_araddr),
        .s00_axi_arprot(3'd0), .s00_axi_arvalid(s00_arvalid), .s00_axi_arready(s00_arready),
        .s00_axi_rdata(s00_rdata), .s00_axi_rresp(s00_rresp), .s00_axi_rvalid(s00_rvalid),
        .s00_axi_rready(s00_rready),
        .s01_axi_awaddr(s01_awaddr), .s01_axi_awprot(3'd0), .s01_axi_awvalid(s01_awvalid),
        .s01_axi_awready(s01_awready), .s01_axi_wdata(s01_wdata), .s01_axi_wstrb(s01_wstrb),
        .s01_axi_wvalid(s01_wvalid), .s01_axi_wready(s01_wready), .s01_axi_bresp(s01_bresp),
        .s01_axi_bvalid(s01_bvalid), .s01_axi_bready(s01_bready), .s01_axi_araddr(s01_araddr),
        .s01_axi_arprot(3'd0), .s01_axi_arvalid(s01_arvalid), .s01_axi_arready(s01_arready),
        .s01_axi_rdata(s01_rdata), .s01_axi_rresp(s01_rresp), .s01_axi_rvalid(s01_rvalid),
        .s01_axi_rready(s01_rready)
    );

    wire s00_address_taken, s00_data_taken, s00_read_taken;
    axi_lite_rules #(.SLOW_READS(1), .TURNS(1)) samples (
        .clk(aclk), .resetn(aresetn), .awaddr(s00_awaddr), .awvalid(s00_awvalid),
        .awready(s00_awready), .wdata(s00_wdata), .wstrb(s00_wstrb), .wvalid(s00_wvalid),
        .wready(s00_wready), .bresp(s00_bresp), .bvalid(s00_bvalid), .bready(s00_bready),
        .araddr(s00_araddr), .arvalid(s00_arvalid), .arready(s00_arready), .rdata(s00_rdata),
        .rresp(s00_rresp), .rvalid(s00_rvalid), .rready(s00_rready),
        .address_taken(s00_address_taken), .data_taken(s00_data_taken), .read_taken(s00_read_taken)
    );
    wire s01_address_taken, s01_data_taken, s01_read_taken;
    wire [3:0] write_waits, read_waits;
    // The sums of a snapshot take four cycles, in which the registers take nothing.
    axi_lite_rules #(.LONGEST_WAIT(4)) registers (
        .clk(aclk), .resetn(aresetn), .awaddr(s01_awaddr), .awvalid(s01_awvalid),
        .awready(s01_awready), .wdata(s01_wdata), .wstrb(s01_wstrb), .wvalid(s01_wvalid),
        .wready(s01_wready), .bresp(s01_bresp), .bvalid(s01_bvalid), .bready(s01_bready),
        .araddr(s01_araddr), .arvalid(s01_arvalid), .arready(s01_arready), .rdata(s01_rdata),
        .rresp(s01_rresp), .rvalid(s01_rvalid), .rready(s01_rready),
        .address_taken(s01_address_taken), .data_taken(s01_data_taken), .read_taken(s01_read_taken),
        .write_waits(write_waits), .read_waits(read_waits)
    );

    // No read of the histogram is lost on its way: it is in one step exactly, and a step is left
    // unless bins are being swept or a sample goes first. So no hang.
    (* hierconn *) wire \dut.window.waits ;
    (* hierconn *) wire \dut.window.answers ;
    (* hierconn *) wire \dut.bin_valid ;
    (* hierconn *) wire \dut.with_histogram_histogram.pending ;
    (* hierconn *) wire \dut.with_histogram_histogram.sweeping ;
    (* hierconn *) wire \dut.with_histogram_histogram.counts_0 ;
    (* hierconn *) wire [5:0] \dut.with_histogram_histogram.stage_1 ;
    (* hierconn *) wire [5:0] \dut.with_histogram_histogram.stage_2 ;
    (* hierconn *) wire [5:0] \dut.with_histogram_histogram.stage_3 ;
    wire [4:0] steps = {\dut.with_histogram_histogram.pending ,
        \dut.with_histogram_histogram.stage_1 [1], \dut.with_histogram_histogram.stage_2 [1],
        \dut.with_histogram_histogram.stage_3 [1], \dut.bin_valid };
    reg [4:0] steps_before = 0;
    reg stays = 0;
    always @(posedge aclk) begin
        steps_before <= aresetn ? steps : 0;
        stays <= \dut.with_histogram_histogram.sweeping
            || \dut.with_histogram_histogram.counts_0 ;
    end
    always @* begin
        t_read: assert (s00_read_taken == (\dut.window.waits || \dut.window.answers ));
        t_apart: assert (!(\dut.window.waits && \dut.window.answers ));
        a_not_lost: assert (!\dut.window.waits
            || steps == 16 || steps == 8 || steps == 4 || steps == 2 || steps == 1);
        a_none_left: assert (\dut.window.waits || steps[4:1] == 0);
        a_proceeds: assert
            (steps_before < 2 || steps == steps_before >> 1 || (steps == 16 && stays));
    end

    // A request waits as long as sums are being copied, and no longer: commanded is one bit that moves
    // from the highest to the lowest.
    (* hierconn *) wire [3:0] \dut.sums_commanded ;
    always @* begin
        t_write_1: assert (write_waits < 1 || \dut.sums_commanded [3:2] == 0);
        t_write_2: assert (write_waits < 2 || \dut.sums_commanded [3:1] == 0);
        t_write_3: assert (write_waits < 3 || \dut.sums_commanded == 0);
        t_read_1: assert (read_waits < 1 || \dut.sums_commanded [3] == 0);
        t_read_2: assert (read_waits < 2 || \dut.sums_commanded [3:2] == 0);
        t_read_3: assert (read_waits < 3 || \dut.sums_commanded [3:1] == 0);
        t_read_4: assert (read_waits < 4 || \dut.sums_commanded == 0);
    end

    // An error has no side effect: no register that software writes changes in its cycle.
    wire write = s01_awvalid && s01_awready;
    wire refused = s01_bvalid && s01_bresp == 2'b10;
    reg wrote = 0;
    reg [5+192-1:0] settings_before;
    (* hierconn *) wire \dut.registers_to_hardware_we ;
    (* hierconn *) wire [31:0] \dut.registers_to_hardware_alarm_lat ;
    (* hierconn *) wire \dut.registers_to_hardware_mode_wrap ;
    (* hierconn *) wire \dut.registers_to_hardware_mode_histogram_read_clears ;
    (* hierconn *) wire \dut.registers_to_hardware_mode_freeze_on_alarm ;
    (* hierconn *) wire [31:0] \dut.registers_to_hardware_timeout ;
    (* hierconn *) wire \dut.registers_to_hardware_interrupt_enable_alarm ;
    (* hierconn *) wire [31:0] \dut.registers_to_hardware_post_trigger ;
    (* hierconn *) wire [31:0] \dut.registers_to_hardware_histogram_shift ;
    (* hierconn *) wire [31:0] \dut.registers_to_hardware_self_test_delay ;
    (* hierconn *) wire [31:0] \dut.registers_to_hardware_self_test_count ;
    wire [5+192-1:0] settings = {
        \dut.registers_to_hardware_we , \dut.registers_to_hardware_alarm_lat ,
        \dut.registers_to_hardware_mode_wrap ,
        \dut.registers_to_hardware_mode_histogram_read_clears ,
        \dut.registers_to_hardware_mode_freeze_on_alarm , \dut.registers_to_hardware_timeout ,
        \dut.registers_to_hardware_interrupt_enable_alarm ,
        \dut.registers_to_hardware_post_trigger , \dut.registers_to_hardware_histogram_shift ,
        \dut.registers_to_hardware_self_test_delay , \dut.registers_to_hardware_self_test_count };
    // Commands and clears, which last one cycle: none comes of a refused write.
    (* hierconn *) wire \dut.registers_to_hardware_alarm_clear ;
    (* hierconn *) wire \dut.registers_to_hardware_command_snapshot ;
    (* hierconn *) wire \dut.registers_to_hardware_command_self_test ;
    (* hierconn *) wire \dut.registers_to_hardware_interrupt_status_alarm_clear ;
    (* hierconn *) wire \dut.registers_to_hardware_interrupt_status_timeout_clear ;
    wire acts = \dut.registers_to_hardware_alarm_clear || \dut.registers_to_hardware_command_snapshot
        || \dut.registers_to_hardware_command_self_test
        || \dut.registers_to_hardware_interrupt_status_alarm_clear
        || \dut.registers_to_hardware_interrupt_status_timeout_clear ;
    reg acted = 0, reset_before = 1;
    always @(posedge aclk) begin
        wrote <= aresetn && write;
        settings_before <= settings;
        acted <= acts;
        reset_before <= !aresetn;
    end
    always @* if (!reset_before) begin
        a_no_side_effect: assert (!(wrote && refused) || (settings == settings_before && !acted));
        a_only_writes: assert (wrote || (settings == settings_before && !acted));
    end
    always @* begin
        c_slow_read: cover (s00_rvalid && s00_rresp == 0 && steps_before[0]);
        c_refused: cover (wrote && refused);
        c_changed: cover (!reset_before && wrote && settings != settings_before);
    end
endmodule
