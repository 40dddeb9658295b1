// SPDX-License-Identifier: Apache-2.0
// What the files of the Python bindings share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>

#include "latenz/wide_integer.hpp"

namespace latenz::python {

/// A one-dimensional int64 array, read in place.
using Values = nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig,
                                 nanobind::device::cpu>;

/// A Python integer of the same value; the top limb carries the sign if `has_sign`.
template <std::size_t Limbs>
nanobind::object to_python(const WideInteger<Limbs>& wide, bool has_sign) {
  const nanobind::int_ limb_bits(64);
  const std::uint64_t top = wide.limb[Limbs - 1];
  nanobind::object value =
      has_sign ? nanobind::int_(static_cast<std::int64_t>(top)) : nanobind::int_(top);
  for (std::size_t i = Limbs - 1; i-- > 0;) {
    value = (value << limb_bits) | nanobind::int_(wide.limb[i]);
  }
  return value;
}

void bind_moments(nanobind::module_& module);
void bind_sample_scan(nanobind::module_& module);
void bind_lateness_scan(nanobind::module_& module);
void bind_histogram(nanobind::module_& module);
void bind_tdma(nanobind::module_& module);
void bind_simulation(nanobind::module_& module);
void bind_adversary(nanobind::module_& module);
void bind_frame(nanobind::module_& module);
void bind_channels(nanobind::module_& module);

}  // namespace latenz::python
