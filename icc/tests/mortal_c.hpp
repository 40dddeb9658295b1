// SPDX-License-Identifier: Apache-2.0
// latenz/icc.h in a process that may end before any of its accesses, with little patience.
#pragma once

#include "kill/mortal.hpp"

#define LATENZ_ICC_LOAD_RELAXED(word) latenz::icc::kill::MortalOrder::load_relaxed(*(word))
#define LATENZ_ICC_LOAD_ACQUIRE(word) latenz::icc::kill::MortalOrder::load_acquire(*(word))
#define LATENZ_ICC_STORE_RELAXED(word, value) \
  latenz::icc::kill::MortalOrder::store_relaxed(*(word), (value))
#define LATENZ_ICC_STORE_RELEASE(word, value) \
  latenz::icc::kill::MortalOrder::store_release(*(word), (value))
#define LATENZ_ICC_ACQUIRE_FENCE() latenz::icc::kill::MortalOrder::acquire_fence()
#define LATENZ_ICC_RELEASE_FENCE() latenz::icc::kill::MortalOrder::release_fence()
#define LATENZ_ICC_FULL_FENCE() latenz::icc::kill::MortalOrder::full_fence()
#define LATENZ_ICC_WRITE(shared, own, bytes) \
  latenz::icc::kill::MortalMemory::write((shared), (own), (bytes))
#define LATENZ_ICC_READ(own, shared, bytes) \
  latenz::icc::kill::MortalMemory::read((own), (shared), (bytes))
#ifndef LATENZ_ICC_PAUSE
#define LATENZ_ICC_PAUSE() ((void)0)
#endif
#define LATENZ_ICC_LOOKS_PER_CHECK 1u
#define LATENZ_ICC_CHECKS_PER_BEAT 1u
#ifndef LATENZ_ICC_SILENT_BEATS
#define LATENZ_ICC_SILENT_BEATS 50u
#endif

#include "c_endpoints.hpp"

namespace latenz::icc::c::detail {

template <class P>
void choose_payload() {}

}  // namespace latenz::icc::c::detail
