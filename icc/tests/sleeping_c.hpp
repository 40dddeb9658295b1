// SPDX-License-Identifier: Apache-2.0
// latenz/icc.h in a process that sleeps until it is woken, however long that is (`Endless`).
#pragma once

#include <cstdint>

#include "endless.hpp"

// clang-format off: before latenz/icc.h
#include "latenz/icc_linux_wait.h"
// clang-format on
#undef LATENZ_ICC_SLEEP
#undef LATENZ_ICC_WAKE
#define LATENZ_ICC_SLEEP(word, value, longest_ns) licc_futex_wait((word), (value), 600000000000)
#define LATENZ_ICC_WAKE(word) (++latenz::icc::tests::Endless::rings, licc_futex_wake(word))
#define LATENZ_ICC_SILENT_BEATS (1U << 22U)

#include "c_endpoints.hpp"

namespace latenz::icc::c::detail {

template <class P>
void choose_payload() {}

}  // namespace latenz::icc::c::detail
