// SPDX-License-Identifier: Apache-2.0
// Names of exit reasons, as the kernel's event kvm_exit prints them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace latenz::trace {

enum class Isa : std::uint8_t { vmx = 1, svm = 2 };  ///< the numbers of kvm_exit's field isa

/// The name that Linux 6.18 gives this number; in hex if it has none. With FAILED_VMENTRY behind
/// it where that bit of VMX is set.
[[nodiscard]] std::string reason_name(Isa isa, std::uint32_t number);

/// The same names for those of libtraceevent's plugin, such as EXIT_IOIO for io, and for numbers
/// that it has no name for (`UNKNOWN (75)`); others unchanged.
[[nodiscard]] std::string kernel_reason(std::string_view name);

[[nodiscard]] std::string hex(std::uint64_t value);

}  // namespace latenz::trace
