// SPDX-License-Identifier: Apache-2.0
// What the whole Latencies IP must do at its ports and between its registers and its core, in the
// published configuration and its overlap policies. The core itself: core_properties.sv.
// Macros of prove.py: QUEUE for that policy. Latencies of 16 bits, a memory of 4.

`default_nettype none

module ip_properties (
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
    localparam WE = 0, ALARM_LAT = 1, LAST = 2, MAX = 3, MIN = 4, NUM = 5, ALARM = 6, WORDS = 7;
    localparam OKAY = 2'b00, SLVERR = 2'b10;

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
    axi_lite_rules #(.TURNS(1)) samples (
        .clk(aclk), .resetn(aresetn), .awaddr(s00_awaddr), .awvalid(s00_awvalid),
        .awready(s00_awready), .wdata(s00_wdata), .wstrb(s00_wstrb), .wvalid(s00_wvalid),
        .wready(s00_wready), .bresp(s00_bresp), .bvalid(s00_bvalid), .bready(s00_bready),
        .araddr(s00_araddr), .arvalid(s00_arvalid), .arready(s00_arready), .rdata(s00_rdata),
        .rresp(s00_rresp), .rvalid(s00_rvalid), .rready(s00_rready),
        .address_taken(s00_address_taken), .data_taken(s00_data_taken), .read_taken(s00_read_taken)
    );
    wire s01_address_taken, s01_data_taken, s01_read_taken;
    axi_lite_rules registers (
        .clk(aclk), .resetn(aresetn), .awaddr(s01_awaddr), .awvalid(s01_awvalid),
        .awready(s01_awready), .wdata(s01_wdata), .wstrb(s01_wstrb), .wvalid(s01_wvalid),
        .wready(s01_wready), .bresp(s01_bresp), .bvalid(s01_bvalid), .bready(s01_bready),
        .araddr(s01_araddr), .arvalid(s01_arvalid), .arready(s01_arready), .rdata(s01_rdata),
        .rresp(s01_rresp), .rvalid(s01_rvalid), .rready(s01_rready),
        .address_taken(s01_address_taken), .data_taken(s01_data_taken), .read_taken(s01_read_taken)
    );

    // The registers, by their documentation: strobes count, errors change nothing.
    wire write = aresetn && s01_awvalid && s01_awready;
    wire [9:0] write_word = s01_awaddr[11:2];
    wire writable = write_word == WE || write_word == ALARM_LAT || write_word == ALARM;
    wire writes_we = write && write_word == WE && s01_wstrb[0];
    wire clears_alarm = write && write_word == ALARM && s01_wstrb[0] && s01_wdata[0];
    wire read = s01_arvalid && s01_arready;
    wire [9:0] read_word = s01_araddr[11:2];

    reg we = 0;
    reg [15:0] alarm_lat = 16'hFFFF;
    wire begins = writes_we && s01_wdata[0] && !we;
    reg write_failed = 0, read_failed = 0;
    reg [31:0] read_expected = 0;
    always @(posedge aclk) begin
        if (writes_we) we <= s01_wdata[0];
        if (write && write_word == ALARM_LAT) begin
            if (s01_wstrb[0]) alarm_lat[7:0] <= s01_wdata[7:0];
            if (s01_wstrb[1]) alarm_lat[15:8] <= s01_wdata[15:8];
        end
        if (write) write_failed <= !writable;
        if (read) begin
            read_failed <= read_word >= WORDS;
            read_expected <= read_word == WE ? we : read_word == ALARM_LAT ? alarm_lat
                : read_word == LAST ? last : read_word == MAX ? maximum
                : read_word == MIN ? minimum : read_word == NUM ? num : alarm;
        end
        if (!aresetn) begin
            we <= 0;
            alarm_lat <= 16'hFFFF;
        end
    end

    (* hierconn *) wire \dut.registers_to_hardware_we ;
    (* hierconn *) wire [31:0] \dut.registers_to_hardware_alarm_lat ;
    (* hierconn *) wire \dut.core.rst ;
    (* hierconn *) wire \dut.core.irq ;
    (* hierconn *) wire \dut.core.ack ;
    (* hierconn *) wire \dut.core.enable ;
    (* hierconn *) wire \dut.core.clear ;
    (* hierconn *) wire [15:0] \dut.core.alarm_limit ;
    (* hierconn *) wire \dut.core.alarm_clear ;
    (* hierconn *) wire \dut.core.sample_valid ;
    (* hierconn *) wire [15:0] \dut.core.last ;
    (* hierconn *) wire [15:0] \dut.core.maximum ;
    (* hierconn *) wire [15:0] \dut.core.minimum ;
    (* hierconn *) wire [15:0] \dut.core.num ;
    wire [15:0] last = \dut.core.last , maximum = \dut.core.maximum ;
    wire [15:0] minimum = \dut.core.minimum , num = \dut.core.num ;

    always @* begin
        // 16: what is written is there, and nothing else has changed.
        a_we: assert (\dut.registers_to_hardware_we == we);
        a_alarm_lat: assert (\dut.registers_to_hardware_alarm_lat == alarm_lat);
        a_write_response: assert (!s01_bvalid || s01_bresp == (write_failed ? SLVERR : OKAY));
        a_read_response: assert (!s01_rvalid || s01_rresp == (read_failed ? SLVERR : OKAY));
        a_read_data: assert (!s01_rvalid || s01_rdata == (read_failed ? 0 : read_expected));
        a_samples_read_only: assert (!s00_bvalid || s00_bresp == SLVERR);
        // The core is told just that: what core_properties.sv proves holds here, too.
        a_core_inputs: assert (\dut.core.rst == !aresetn
            && \dut.core.irq == irq_in && \dut.core.ack == ack_in);
        a_core_enable: assert (\dut.core.enable == we);
        a_core_clear: assert (!aresetn || \dut.core.clear == begins);
        a_core_limit: assert (\dut.core.alarm_limit == alarm_lat);
        a_core_alarm: assert (!aresetn || \dut.core.alarm_clear == clears_alarm);
        a_no_interrupt: assert (!interrupt && !m_axis_tvalid);
    end

    // 7 and 12: with we at 0 nothing is counted; after a reset nothing is there.
    reg started = 0, we_before, reset_before, alarm_before;
    reg measured = 0; // has we been 1 since the last reset?
    reg [15:0] num_before;
    always @(posedge aclk) begin
        started <= 1;
        we_before <= we;
        num_before <= num;
        reset_before <= !aresetn;
        alarm_before <= alarm;
        measured <= aresetn && (measured || begins);
    end
`ifdef QUEUE
    // A queued measurement that ended in the last cycle with we at 1 is counted one cycle later.
    reg we_long_before;
    always @(posedge aclk) we_long_before <= we_before;
    wire off = !we_before && !we_long_before;
    (* hierconn *) wire \dut.core.many_open_queue.valid_now ;
    always @* t_valid: assert (!\dut.core.many_open_queue.valid_now || (we_before && started));
`else
    wire off = !we_before;
`endif
    always @* if (started) begin
        a_frozen: assert (!off || num == num_before || num == 0);
        a_after_reset: assert (!reset_before || (num == 0 && last == 0 && maximum == 0
            && minimum == 16'hFFFF && !alarm && !s00_bvalid && !s00_rvalid && !s01_bvalid
            && !s01_rvalid));
        a_none_before_we: assert (measured || (num == 0 && !we && !alarm));
        a_sticky: assert (!alarm_before || alarm || reset_before || cleared_before);
    end
    reg cleared_before;
    always @(posedge aclk) cleared_before <= clears_alarm;

    // S00 gives back what the memory holds, and keeps it while the master waits.
    wire [9:0] sample_word = s00_araddr[11:2];
    (* hierconn *) wire [15:0] \dut.core.memory.memory[0] ;
    (* hierconn *) wire [15:0] \dut.core.memory.memory[1] ;
    (* hierconn *) wire [15:0] \dut.core.memory.memory[2] ;
    (* hierconn *) wire [15:0] \dut.core.memory.memory[3] ;
    reg sample_failed = 0;
    reg [15:0] sample_expected = 0;
    always @(posedge aclk) if (s00_arvalid && s00_arready) begin
        sample_failed <= sample_word > 3;
        sample_expected <= sample_word == 0 ? \dut.core.memory.memory[0]
            : sample_word == 1 ? \dut.core.memory.memory[1]
            : sample_word == 2 ? \dut.core.memory.memory[2] : \dut.core.memory.memory[3] ;
    end
    always @* begin
        a_sample_response: assert (!s00_rvalid || s00_rresp == (sample_failed ? SLVERR : OKAY));
        a_sample_data: assert (!s00_rvalid || sample_failed || s00_rdata == sample_expected);
    end

    always @* begin
        c_measured: cover (num == 2 && maximum == 3 && !we);
        c_alarm: cover (alarm && alarm_lat == 2);
        c_second_series: cover (num == 0 && measured && we && alarm);
        c_read_sample: cover (s00_rvalid && !sample_failed && num == 1 && last == 3 && s00_rdata == 3);
        c_refused: cover (s01_bvalid && s01_bresp == SLVERR);
        c_reset_within: cover (!aresetn && \dut.core.sample_valid );
    end
endmodule
