// SPDX-License-Identifier: Apache-2.0
// Python bindings of the C++ core: latenz._core.
#include <nanobind/nanobind.h>

NB_MODULE(_core, module) { module.doc() = "Latenz core, bound to Python"; }
