// SPDX-License-Identifier: Apache-2.0
// What a program of a pair says of itself.
#pragma once

#include <cstdint>
#include <string_view>

#include "latenz/icc/result.hpp"
#include "latenz/text.hpp"
#include "output.hpp"
#include "side.hpp"

namespace latenz::pair {

using Line = Text<240>;

inline void note(const Line& line) { firmware::output().text(FrameKind::note, line.view()); }

/// Ends everything unless a call did what it should.
inline void demand(icc::Result result, std::string_view what) {
  if (result == icc::Result::ok) return;
  firmware::fail(Line().add(what).add(": ").add(icc::name_of(result)).view());
}

/// The endpoint, or the end of everything.
template <class Opened>
auto& demand(Opened& opened, std::string_view what) {
  if (!opened) {
    char reason[200];
    opened.problem().describe(reason, sizeof reason);
    firmware::fail(Line().add(what).add(": ").add(reason).view());
  }
  return *opened;
}

}  // namespace latenz::pair
