// SPDX-License-Identifier: Apache-2.0
// The pins of a ULX3S and its PLL, 25 to 75 MHz; all else is VHDL, ulx3s_bench.
// In Verilog, because GHDL's netlists give a foreign part no parameters. See docs/ip-ulx3s.md.

module ulx3s (
    input        clk_25mhz,
    output       ftdi_rxd,
    input        ftdi_txd,
    output       stimulus,
    input        answer,
    input        begin_in,
    input        sw,
    output [7:0] led,
    // Held high: the module on the board that could load another design stays quiet.
    output       wifi_gpio0
);
    wire clk;
    wire locked;

    assign wifi_gpio0 = 1'b1;

    // 25 MHz * 3 = 600 MHz / 8: the oscillator runs at 400 to 800 MHz.
    EHXPLLL #(
        .CLKI_DIV(1),
        .CLKFB_DIV(3),
        .CLKOP_DIV(8),
        .CLKOP_CPHASE(7),
        .CLKOP_ENABLE("ENABLED"),
        .FEEDBK_PATH("CLKOP"),
        .OUTDIVIDER_MUXA("DIVA"),
        .PLLRST_ENA("DISABLED"),
        .STDBY_ENABLE("DISABLED"),
        .DPHASE_SOURCE("DISABLED"),
        .INTFB_WAKE("DISABLED")
    ) pll (
        .CLKI(clk_25mhz),
        .CLKFB(clk),
        .CLKOP(clk),
        .LOCK(locked),
        .RST(1'b0),
        .STDBY(1'b0),
        .PHASESEL0(1'b0),
        .PHASESEL1(1'b0),
        .PHASEDIR(1'b1),
        .PHASESTEP(1'b1),
        .PHASELOADREG(1'b1),
        .PLLWAKESYNC(1'b0),
        .ENCLKOP(1'b0)
    );

    ulx3s_bench bench (
        .clk(clk),
        .rst(~locked),
        .ftdi_rxd(ftdi_rxd),
        .ftdi_txd(ftdi_txd),
        .stimulus(stimulus),
        .answer(answer),
        .begin_in(begin_in),
        .sw(sw),
        .led(led)
    );
endmodule
