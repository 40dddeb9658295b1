// SPDX-License-Identifier: Apache-2.0
// What the harness sees of a C++ model that yosys made: its pins, and one step of its logic. Apart
// from the model, so that the harness is compiled once for all of them.

#pragma once

#include <cstdint>

// The signals of one AXI4-Lite port.
struct Port {
  std::uint32_t *awaddr, *awvalid, *awready, *wdata, *wstrb, *wvalid, *wready, *bresp, *bvalid,
      *bready, *araddr, *arvalid, *arready, *rdata, *rresp, *rvalid, *rready;
};

struct Pins {
  std::uint32_t *aclk, *aresetn, *irq_in, *ack_in;
  const std::uint32_t *m_axis_tdata, *m_axis_tvalid;
  std::uint32_t* m_axis_tready;
  Port samples, registers;
};

class Design {
 public:
  Design();
  Design(const Design&) = delete;
  Design& operator=(const Design&) = delete;
  ~Design();

  // Where the pins are; they stay there.
  Pins pins();
  // Let the logic settle after a change of inputs; a rising aclk is a clock edge.
  void step();

 private:
  struct Model;
  Model* model_;
};

// Of this model's configuration: samples that fit, and cycles from `we` to the begin of a series.
extern const std::uint32_t depth_of_memory;
extern const int cycles_until_ready;
