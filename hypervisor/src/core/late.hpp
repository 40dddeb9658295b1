// SPDX-License-Identifier: Apache-2.0
// Room for an object that is made later: all zero until then, so that it takes no place in an
// image. Freestanding.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace latenz::hypervisor {

template <typename Value>
class Late {
 public:
  static_assert(std::is_trivially_destructible_v<Value>, "nobody destroys it");

  constexpr Late() : nothing_() {}

  template <typename... Arguments>
  void make(Arguments&&... arguments) {
    std::construct_at(&value_, std::forward<Arguments>(arguments)...);
  }

  /// Only once it was made.
  Value* operator->() { return &value_; }
  const Value* operator->() const { return &value_; }

 private:
  union {
    char nothing_;
    Value value_;
  };
};

}  // namespace latenz::hypervisor
