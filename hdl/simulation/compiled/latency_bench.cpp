// SPDX-License-Identifier: Apache-2.0
// The bench, compiled: what Yosys made of it is design.h, and copy.h copies each of its parts;
// `compile` beside this folder makes both.
#include "design.h"
#include "logic.hpp"

namespace latenz::compiled {
namespace {

// The pins of a slave; its ports are named after what stands before `_axi_`.
#define LATENZ_BUS(name)                                                               \
  Bus {                                                                                \
    name##__axi__awaddr.data, name##__axi__awvalid.data, name##__axi__awready.data,    \
        name##__axi__wdata.data, name##__axi__wstrb.data, name##__axi__wvalid.data,    \
        name##__axi__wready.data, name##__axi__bresp.data, name##__axi__bvalid.data,   \
        name##__axi__bready.data, name##__axi__araddr.data, name##__axi__arvalid.data, \
        name##__axi__arready.data, name##__axi__rdata.data, name##__axi__rresp.data,   \
        name##__axi__rvalid.data, name##__axi__rready.data                             \
  }

class Bench final : public Logic, private cxxrtl_design::p_latency__bench {
 public:
  [[nodiscard]] Pins pins() override {
    return {p_aclk.data,
            p_aresetn.data,
            p_ps__pl__irq.data,
            p_pl__ps__irq.data,
            {LATENZ_BUS(p_t1__s00), LATENZ_BUS(p_t1__s01), LATENZ_BUS(p_t2__s00),
             LATENZ_BUS(p_t2__s01), LATENZ_BUS(p_generator)}};
  }

  bool settle() override {
    bool changed = false;
    for (bool again = true; again;) {
      const bool converged = eval();
      const bool committed = commit();
      changed = changed || committed;
      again = committed && !converged;
    }
    return changed;
  }

  void copy_from(Logic& other) override {
    auto& from = static_cast<Bench&>(other);
#include "copy.h"
  }

 private:
  template <std::size_t bits>
  static void copy(cxxrtl::value<bits>& to, const cxxrtl::value<bits>& from) {
    to = from;
  }
  template <std::size_t bits>
  static void copy(cxxrtl::wire<bits>& to, const cxxrtl::wire<bits>& from) {
    to.curr = from.curr;
    to.next = from.next;
  }
  template <std::size_t bits>
  static void copy(cxxrtl::memory<bits>& to, const cxxrtl::memory<bits>& from) {
    std::copy_n(from.data.get(), from.depth, to.data.get());
  }
};

}  // namespace
}  // namespace latenz::compiled

extern "C" __attribute__((visibility("default"))) latenz::compiled::Logic* latenz_logic_create() {
  return new latenz::compiled::Bench;
}
