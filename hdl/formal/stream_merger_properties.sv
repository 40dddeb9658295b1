// SPDX-License-Identifier: Apache-2.0
// What stream_merger must do, three inputs: every beat once and unchanged, one at a time; what is
// offered stays until it is taken; nobody waits for more than one beat of each other input.
// The inputs are assumed to keep AXI-Stream: what they offer stays until it is taken.

`default_nettype none

module stream_merger_properties (
    input wire clk,
    input wire resetn,
    input wire [383:0] s_tdata,
    input wire [2:0] s_tvalid,
    input wire m_tready
);
    wire [2:0] s_tready;
    wire [127:0] m_tdata;
    wire m_tvalid;
    stream_merger dut (
        .aclk(clk), .aresetn(resetn), .s_axis_tdata(s_tdata), .s_axis_tvalid(s_tvalid),
        .s_axis_tready(s_tready), .m_axis_tdata(m_tdata), .m_axis_tvalid(m_tvalid),
        .m_axis_tready(m_tready)
    );

    wire [2:0] taken = s_tvalid & s_tready;
    wire [127:0] taken_data = (s_tdata[127:0] & {128{taken[0]}})
        | (s_tdata[255:128] & {128{taken[1]}}) | (s_tdata[383:256] & {128{taken[2]}});

    reg running = 0, offered = 0, any_before = 0;
    reg [2:0] waits = 0, taken_before = 0;
    reg [383:0] s_before;
    reg [127:0] m_before;
    always @(posedge clk) begin
        running <= resetn;
        waits <= resetn ? s_tvalid & ~s_tready : 0;
        taken_before <= taken;
        any_before <= resetn && |s_tvalid;
        offered <= resetn && m_tvalid && !m_tready;
        s_before <= s_tdata;
        m_before <= m_tdata;
    end
    integer i;
    always @* for (i = 0; i < 3; i = i + 1) if (waits[i] && resetn) begin
        assume (s_tvalid[i]);
        assume (s_tdata[128*i +: 128] == s_before[128*i +: 128]);
    end
    always @* if (!resetn) assume (s_tvalid == 0);

    // Beats of any one input that were taken while any other one waits.
    (* anyconst *) wire [1:0] patient, other;
    always @* assume (patient < 3 && other < 3 && patient != other);
    reg [1:0] overtaken = 0;
    always @(posedge clk)
        if (!resetn || !s_tvalid[patient] || taken[patient]) overtaken <= 0;
        else if (taken[other] && overtaken != 3) overtaken <= overtaken + 1;

    always @* begin
        a_one: assert (taken == 0 || taken == 1 || taken == 2 || taken == 4);
        a_none_lost: assert ((m_tvalid && m_tready) == (taken != 0));
        a_unchanged: assert (taken == 0 || m_tdata == taken_data);
        a_stable: assert (!offered || !resetn || (m_tvalid && m_tdata == m_before));
        a_no_idling: assert (!any_before || !resetn || m_tvalid || taken_before != 0);
        a_fair: assert (overtaken <= 1);
    end

    (* hierconn *) wire [2:0] \dut.turn ;
    wire [2:0] turn = \dut.turn ;
    wire [1:0] next_other = other == 2 ? 0 : other + 1;
    always @* begin
        t_turn: assert (turn == 1 || turn == 2 || turn == 4);
        t_behind: assert (overtaken == 0 || (!turn[other] && (next_other != patient || turn[patient])));
    end

    always @* begin
        c_first: cover (taken[0] && taken_before[2]);
        c_second: cover (taken[1] && taken_before[0]);
        c_third: cover (taken[2] && taken_before[1]);
        // valid does not wait for ready
        c_waits: cover (offered && m_tvalid && !m_tready);
        c_overtaken: cover (overtaken == 1 && taken[patient]);
        c_reset_within: cover (running && offered && !resetn);
    end
endmodule
