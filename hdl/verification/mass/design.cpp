// SPDX-License-Identifier: Apache-2.0
// The pins of the C++ model that yosys made, which is the header that DESIGN names.

#include "design.hpp"

#include DESIGN

const std::uint32_t depth_of_memory = DEPTH;
const int cycles_until_ready = UNTIL_READY;

struct Design::Model : cxxrtl_design::p_latencies__ip {};

Design::Design() : model_(new Model) {}

Design::~Design() { delete model_; }

void Design::step() { model_->step(); }

Pins Design::pins() {
  Model& d = *model_;
  return {d.p_aclk.data,
          d.p_aresetn.data,
          d.p_irq__in.data,
          d.p_ack__in.data,
          d.p_m__axis__tdata.data,
          d.p_m__axis__tvalid.data,
          d.p_m__axis__tready.data,
          {d.p_s00__axi__awaddr.data, d.p_s00__axi__awvalid.data, d.p_s00__axi__awready.data,
           d.p_s00__axi__wdata.data, d.p_s00__axi__wstrb.data, d.p_s00__axi__wvalid.data,
           d.p_s00__axi__wready.data, d.p_s00__axi__bresp.data, d.p_s00__axi__bvalid.data,
           d.p_s00__axi__bready.data, d.p_s00__axi__araddr.data, d.p_s00__axi__arvalid.data,
           d.p_s00__axi__arready.data, d.p_s00__axi__rdata.data, d.p_s00__axi__rresp.data,
           d.p_s00__axi__rvalid.data, d.p_s00__axi__rready.data},
          {d.p_s01__axi__awaddr.data, d.p_s01__axi__awvalid.data, d.p_s01__axi__awready.data,
           d.p_s01__axi__wdata.data, d.p_s01__axi__wstrb.data, d.p_s01__axi__wvalid.data,
           d.p_s01__axi__wready.data, d.p_s01__axi__bresp.data, d.p_s01__axi__bvalid.data,
           d.p_s01__axi__bready.data, d.p_s01__axi__araddr.data, d.p_s01__axi__arvalid.data,
           d.p_s01__axi__arready.data, d.p_s01__axi__rdata.data, d.p_s01__axi__rresp.data,
           d.p_s01__axi__rvalid.data, d.p_s01__axi__rready.data}};
}
