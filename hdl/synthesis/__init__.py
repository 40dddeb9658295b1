"""What our VHDL becomes: netlists, their size in an FPGA, their speed."""
