// SPDX-License-Identifier: Apache-2.0
// What calls on channels answer. Nothing here throws, allocates or blocks.
#pragma once

#include <cstdint>

namespace latenz::icc {

/// How a call on a channel ended.
enum class Result : std::uint8_t {
  ok,
  timeout,         ///< the deadline passed; the peer gave signs of life or may yet
  peer_gone,       ///< the peer left; or, without deadline, gave no sign of life for long
  peer_restarted,  ///< the peer began anew; nothing was delivered; the next call goes on with it
  empty,           ///< `try_`: nothing is there
  full,            ///< `try_`: what was written before is not taken yet
  busy,            ///< the writer overtook every bounded try (read-only looks into a ring)
  layout_changed,  ///< the channel was formatted anew: attach again
};

constexpr const char* name_of(Result result) noexcept {
  switch (result) {
    case Result::ok:
      return "ok";
    case Result::timeout:
      return "timeout";
    case Result::peer_gone:
      return "peer gone";
    case Result::peer_restarted:
      return "peer restarted";
    case Result::empty:
      return "empty";
    case Result::full:
      return "full";
    case Result::busy:
      return "busy";
    case Result::layout_changed:
      return "layout changed";
  }
  return "unknown";
}

}  // namespace latenz::icc
