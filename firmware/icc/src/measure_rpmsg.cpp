// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "belled_measurement.hpp"
#include "rpmsg_peer.hpp"

namespace latenz::pair {
namespace {

/// The Cortex-A53 is the driver, as it is below Linux, whoever begins.
template <class T, class P>
class RpmsgLink {
  using Kick = std::conditional_t<std::is_same_v<P, Belled>, DoorbellBell, NoBell>;
  using Polling = icc::Platform<typename P::Memory, typename P::Order, Waiting>;
  using End = std::conditional_t<Side::first, peer::RpmsgDriver<Polling, Kick>,
                                 peer::RpmsgDevice<Polling, Kick>>;

 public:
  static constexpr std::string_view name = "rpmsg";

  void open(bool /*begins*/, Area area) {
    if (Side::first) end_.open(reinterpret_cast<void*>(area.begin));
    Meeting::step();
    if (!Side::first) end_.open(reinterpret_cast<void*>(area.begin));
    Meeting::step();
  }

  void trip(T& message) {
    give(message);
    take(message);
  }
  void take(T& message) {
    if (!end_.receive(&message, sizeof message)) firmware::fail("rpmsg: another length");
  }
  void give(const T& message) { end_.send(&message, sizeof message); }

 private:
  End end_;
};

}  // namespace

void measure_rpmsg(const Task& wanted) {
  constexpr std::size_t sizes = std::bit_width(peer::rpmsg_payload_bytes);
  measure_either<RpmsgLink, std::make_index_sequence<sizes>>(wanted);
}

}  // namespace latenz::pair
