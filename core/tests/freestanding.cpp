// SPDX-License-Identifier: Apache-2.0
// Compiled for every target with -ffreestanding, no exceptions, no RTTI: the headers keep their promise.
#include "latenz/wide_integer.hpp"

latenz::WideInteger add(latenz::WideInteger a, const latenz::WideInteger& b) { return a += b; }
