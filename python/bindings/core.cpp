// SPDX-License-Identifier: Apache-2.0
// Python bindings of the C++ core: latenz._core, typed by python/latenz/_core.pyi.
#include "core.hpp"

NB_MODULE(_core, module) {
  module.doc() = "Latenz core, bound to Python";
  latenz::python::bind_moments(module);
  latenz::python::bind_sample_scan(module);
  latenz::python::bind_lateness_scan(module);
  latenz::python::bind_histogram(module);
  latenz::python::bind_tdma(module);
  latenz::python::bind_simulation(module);
  latenz::python::bind_adversary(module);
  latenz::python::bind_frame(module);
  latenz::python::bind_channels(module);
}
