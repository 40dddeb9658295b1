// SPDX-License-Identifier: Apache-2.0
// What a struct consists of, at compile time: its members and their names.
//
// An aggregate of at most 32 members, each of which `{}` can make, needs nothing. Any other type
// with public members says once, in its own namespace and in the order of declaration, what they
// are:
//
//   LATENZ_DESCRIBE(Pose, x, y, angle)
//
// Nothing of this is in the program.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace latenz::icc::detail {

template <class T>
struct Type {
  using type = T;
};

template <class... T>
struct TypeList {
  static constexpr std::size_t size = sizeof...(T);
};

template <class T>
concept Described = requires(const T* type) { latenz_icc_names(type); };

/// Stands for any base class of T and for nothing else.
template <class T>
struct AnyBase {
  template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>)
  operator Base() const;  // NOLINT(misc-explicit-constructor): what it is for
};

template <class T>
concept HasBase = requires { T{AnyBase<T>{}}; };

// How many members has an aggregate? As many as it takes `{}`, which, unlike a value, never stands
// for an element of a member that is an array.
// clang-format off
#define LATENZ_ICC_OPEN(...) __VA_ARGS__
#define LATENZ_ICC_8 {}, {}, {}, {}, {}, {}, {}, {}
#define LATENZ_ICC_TO_8 m1, m2, m3, m4, m5, m6, m7, m8
#define LATENZ_ICC_TO_16 m9, m10, m11, m12, m13, m14, m15, m16
#define LATENZ_ICC_TO_24 m17, m18, m19, m20, m21, m22, m23, m24
#define LATENZ_ICC_TO_32 m25, m26, m27, m28, m29, m30, m31, m32
#define LATENZ_ICC_MEMBERS(X)                                                                   \
  X(32, (LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8),                               \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, LATENZ_ICC_TO_24, LATENZ_ICC_TO_32))                    \
  X(31, (LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}, {}, {}, {}, {}),                 \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, LATENZ_ICC_TO_24, m25, m26, m27, m28, m29, m30, m31))   \
  X(30, (LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}, {}, {}, {}),                     \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, LATENZ_ICC_TO_24, m25, m26, m27, m28, m29, m30))        \
  X(29, (LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}, {}, {}),                         \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, LATENZ_ICC_TO_24, m25, m26, m27, m28, m29))             \
  X(28, (LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}, {}),                             \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, LATENZ_ICC_TO_24, m25, m26, m27, m28))                  \
  X(27, (LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}),                                 \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, LATENZ_ICC_TO_24, m25, m26, m27))                       \
  X(26, (LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, {}, {}),                                     \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, LATENZ_ICC_TO_24, m25, m26))                            \
  X(25, (LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, {}),                                         \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, LATENZ_ICC_TO_24, m25))                                 \
  X(24, (LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8),                                             \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, LATENZ_ICC_TO_24))                                      \
  X(23, (LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}, {}, {}, {}, {}),                               \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, m17, m18, m19, m20, m21, m22, m23))                     \
  X(22, (LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}, {}, {}, {}),                                   \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, m17, m18, m19, m20, m21, m22))                          \
  X(21, (LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}, {}, {}),                                       \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, m17, m18, m19, m20, m21))                               \
  X(20, (LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}, {}),                                           \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, m17, m18, m19, m20))                                    \
  X(19, (LATENZ_ICC_8, LATENZ_ICC_8, {}, {}, {}),                                               \
    (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, m17, m18, m19))                                         \
  X(18, (LATENZ_ICC_8, LATENZ_ICC_8, {}, {}), (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, m17, m18))    \
  X(17, (LATENZ_ICC_8, LATENZ_ICC_8, {}), (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16, m17))             \
  X(16, (LATENZ_ICC_8, LATENZ_ICC_8), (LATENZ_ICC_TO_8, LATENZ_ICC_TO_16))                      \
  X(15, (LATENZ_ICC_8, {}, {}, {}, {}, {}, {}, {}),                                             \
    (LATENZ_ICC_TO_8, m9, m10, m11, m12, m13, m14, m15))                                        \
  X(14, (LATENZ_ICC_8, {}, {}, {}, {}, {}, {}), (LATENZ_ICC_TO_8, m9, m10, m11, m12, m13, m14)) \
  X(13, (LATENZ_ICC_8, {}, {}, {}, {}, {}), (LATENZ_ICC_TO_8, m9, m10, m11, m12, m13))          \
  X(12, (LATENZ_ICC_8, {}, {}, {}, {}), (LATENZ_ICC_TO_8, m9, m10, m11, m12))                   \
  X(11, (LATENZ_ICC_8, {}, {}, {}), (LATENZ_ICC_TO_8, m9, m10, m11))                            \
  X(10, (LATENZ_ICC_8, {}, {}), (LATENZ_ICC_TO_8, m9, m10))                                     \
  X(9, (LATENZ_ICC_8, {}), (LATENZ_ICC_TO_8, m9))                                               \
  X(8, (LATENZ_ICC_8), (LATENZ_ICC_TO_8))                                                       \
  X(7, ({}, {}, {}, {}, {}, {}, {}), (m1, m2, m3, m4, m5, m6, m7))                              \
  X(6, ({}, {}, {}, {}, {}, {}), (m1, m2, m3, m4, m5, m6))                                      \
  X(5, ({}, {}, {}, {}, {}), (m1, m2, m3, m4, m5))                                              \
  X(4, ({}, {}, {}, {}), (m1, m2, m3, m4))                                                      \
  X(3, ({}, {}, {}), (m1, m2, m3))                                                              \
  X(2, ({}, {}), (m1, m2))                                                                      \
  X(1, ({}), (m1))
// clang-format on

inline constexpr std::size_t too_many_members = 33;

/// The members of an aggregate without base classes; too_many_members if that or more.
template <class T>
consteval std::size_t member_count() {
  constexpr bool too_many =
      requires { T{LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, LATENZ_ICC_8, {}}; };
  std::size_t count = too_many ? 1 : 0;
#define LATENZ_ICC_COUNT(n, braces, names) count += requires { T{LATENZ_ICC_OPEN braces}; } ? 1 : 0;
  LATENZ_ICC_MEMBERS(LATENZ_ICC_COUNT)
#undef LATENZ_ICC_COUNT
  return count;  // what takes n takes less, too
}

/// Calls `visit` with all members of `object`.
template <class T, class Visit>
constexpr decltype(auto) visit_members(const T& object, Visit&& visit) {
  if constexpr (Described<T>) {
    return latenz_icc_members(object, visit);
  } else {
    constexpr std::size_t count = member_count<T>();
    static_assert(count > 0 && count < too_many_members);
#define LATENZ_ICC_BIND(n, braces, names)         \
  if constexpr (count == (n)) {                   \
    const auto& [LATENZ_ICC_OPEN names] = object; \
    return visit(LATENZ_ICC_OPEN names);          \
  } else
    LATENZ_ICC_MEMBERS(LATENZ_ICC_BIND) {}
#undef LATENZ_ICC_BIND
  }
}
#undef LATENZ_ICC_MEMBERS
#undef LATENZ_ICC_OPEN
#undef LATENZ_ICC_TO_32
#undef LATENZ_ICC_TO_24
#undef LATENZ_ICC_TO_16
#undef LATENZ_ICC_TO_8
#undef LATENZ_ICC_8

template <class T>
struct Shadow {
  T object;
};

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
/// Never defined: only the addresses of its members are looked at, by the compiler.
template <class T>
extern const Shadow<T> shadow;

template <class Member>
struct Address {
  const Member* address;
};

template <std::size_t n, class First, class... Rest>
constexpr auto address_of_nth(const First& first, const Rest&... rest) {
  if constexpr (n == 0) {
    return Address<First>{&first};
  } else {
    return address_of_nth<n - 1>(rest...);
  }
}

template <class T, std::size_t n>
consteval auto member_address() {
  return visit_members(shadow<T>.object,
                       [](const auto&... members) { return address_of_nth<n>(members...); });
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

/// The last identifier of the member's address, which compilers print as
///   [with auto member = Address<float>{(& shadow<Pose>.Shadow<Pose>::object.Pose::angle)}]  (g++)
///   [member = {&shadow.object.angle}]  (clang)
template <auto member>
consteval auto printed_name() {  // `auto`: g++ would print another type behind the member
  const std::string_view printed = __PRETTY_FUNCTION__;
  const std::size_t end = printed.find_last_not_of(")}]") + 1;
  const std::size_t start = printed.find_last_of(".:", end - 1) + 1;
  return printed.substr(start, end - start);
}

/// A bit-field has no address.
template <class T, std::size_t n>
concept AddressableMember = requires { printed_name<member_address<T, n>()>(); };

/// "x, y, angle" cut at the commas.
template <std::size_t count>
consteval std::array<std::string_view, count> cut(std::string_view list) {
  std::array<std::string_view, count> names{};
  for (std::string_view& name : names) {
    name = list.substr(0, list.find_first_of(" ,"));
    list = list.substr(std::min(list.size(), list.find_first_not_of(" ,", name.size())));
  }
  return names;
}

template <class T>
consteval auto names_of() {
  if constexpr (Described<T>) {
    return latenz_icc_names(static_cast<const T*>(nullptr));
  } else {
    return []<std::size_t... n>(std::index_sequence<n...>) {
      return std::array{printed_name<member_address<T, n>()>()...};
    }(std::make_index_sequence<member_count<T>()>());
  }
}

}  // namespace latenz::icc::detail

// clang-format off
#define LATENZ_ICC_EXPAND_4(...) __VA_ARGS__
#define LATENZ_ICC_EXPAND_3(...) \
  LATENZ_ICC_EXPAND_4(LATENZ_ICC_EXPAND_4(LATENZ_ICC_EXPAND_4(LATENZ_ICC_EXPAND_4(__VA_ARGS__))))
#define LATENZ_ICC_EXPAND_2(...) \
  LATENZ_ICC_EXPAND_3(LATENZ_ICC_EXPAND_3(LATENZ_ICC_EXPAND_3(LATENZ_ICC_EXPAND_3(__VA_ARGS__))))
#define LATENZ_ICC_EXPAND(...) \
  LATENZ_ICC_EXPAND_2(LATENZ_ICC_EXPAND_2(LATENZ_ICC_EXPAND_2(LATENZ_ICC_EXPAND_2(__VA_ARGS__))))
#define LATENZ_ICC_PARENTHESES ()
#define LATENZ_ICC_EACH_AGAIN() LATENZ_ICC_EACH
/// What a preprocessor can do of a loop, at most 64 times: what(first) between() ... what(last).
/// NOLINTNEXTLINE(bugprone-macro-parentheses): it makes lists, too
#define LATENZ_ICC_EACH(what, between, first, ...) \
  what(first) __VA_OPT__(between() LATENZ_ICC_EACH_AGAIN LATENZ_ICC_PARENTHESES( \
      what, between, __VA_ARGS__))
#define LATENZ_ICC_COMMA() ,
// NOLINTNEXTLINE(bugprone-macro-parentheses): an operator
#define LATENZ_ICC_PLUS() +
#define LATENZ_ICC_ONE(member) 1
#define LATENZ_ICC_OF_OBJECT(member) (*&object.member)  // so that no bit-field is taken
// clang-format on

/// Names the members of a type that is not a plain aggregate (it has constructors, a base class, or
/// more than 32 members), all of them, in the order of declaration. They must be public. To be
/// written in the namespace of the type, once, in every program that shares it.
/// A plain aggregate's fingerprint does not change by it.
#define LATENZ_DESCRIBE(Described, ...)                                                           \
  template <class Visit>                                                                          \
  constexpr decltype(auto) latenz_icc_members(const Described& object, Visit&& visit) {           \
    return visit(                                                                                 \
        LATENZ_ICC_EXPAND(LATENZ_ICC_EACH(LATENZ_ICC_OF_OBJECT, LATENZ_ICC_COMMA, __VA_ARGS__))); \
  }                                                                                               \
  consteval auto latenz_icc_names(const Described*) {                                             \
    return latenz::icc::detail::cut<LATENZ_ICC_EXPAND(                                            \
        LATENZ_ICC_EACH(LATENZ_ICC_ONE, LATENZ_ICC_PLUS, __VA_ARGS__))>(#__VA_ARGS__);            \
  }                                                                                               \
  static_assert(true)
