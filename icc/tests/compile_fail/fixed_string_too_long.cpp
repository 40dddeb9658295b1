// SPDX-License-Identifier: Apache-2.0
// No payload has room for it.
// refused: a FixedString holds 1 to 65535 bytes
#include <cstddef>
#include <cstdint>

#include "latenz/icc/fixed.hpp"

#ifdef CORRECTED
latenz::icc::FixedString<65532> text;
#else
latenz::icc::FixedString<65536> text;
#endif

int main() { return static_cast<int>(text.size()); }
