// SPDX-License-Identifier: Apache-2.0
// How a program gives the core back to the resident loader that started it.
#pragma once

#include "latenz/resident_loader.hpp"

namespace latenz::firmware {

/// Returns if there is no such loader.
inline void go_back_to_loader() {
  const auto& loader = *reinterpret_cast<const volatile LoaderBlock*>(LoaderBlock::zynqmp_address);
  if (loader.magic != LoaderBlock::expected_magic) return;
  reinterpret_cast<void (*)()>(loader.way_back)();
}

}  // namespace latenz::firmware
