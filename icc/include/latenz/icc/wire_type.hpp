// SPDX-License-Identifier: Apache-2.0
// Which types may lie in memory shared by processors of different instruction sets, what exactly
// they consist of, and a fingerprint of that, all at compile time.
//
// Two compilers agree on a type when every leaf of it (what is neither a struct nor an array) has a
// fixed width and lies at the offset that its width alone gives: a leaf of n bytes at a multiple of
// n. `WireType` checks the first by the leaf's type and the second against the compiler's real
// layout; `fingerprint` lets the two programs compare at run time what they were compiled with.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "latenz/icc/describe.hpp"

namespace latenz::icc {

static_assert(std::endian::native == std::endian::little,
              "latenz::icc: shared memory is little endian, and so is every processor of it");

/// What the bytes of a leaf mean. An enumeration is the integer that it is made of.
enum class FieldKind : std::uint8_t {
  none = 0,  // no field
  unsigned_integer = 1,
  signed_integer = 2,
  floating_point = 3,  // IEEE 754 binary32 or binary64
  bytes = 4,           // char and std::byte: text or anything, without a sign
};

/// As in "uint32", without the number.
constexpr const char* name_of(FieldKind kind) {
  switch (kind) {
    case FieldKind::none:
      return "none";
    case FieldKind::unsigned_integer:
      return "uint";
    case FieldKind::signed_integer:
      return "int";
    case FieldKind::floating_point:
      return "float";
    case FieldKind::bytes:
      return "byte";
  }
  return "unknown";
}

/// A leaf of a type as it is stored in shared memory: 32 bytes, little endian. A member of structs
/// in an array is one field: joints[6] with an angle each is "joints.angle", 6 times.
struct Field {
  std::uint32_t offset = 0;  // of the first element, in bytes
  std::uint16_t size = 0;    // of one element, in bytes
  FieldKind kind = FieldKind::none;
  std::uint8_t reserved = 0;
  std::uint32_t count = 0;   // elements
  std::uint32_t stride = 0;  // bytes from one element to the next; one element: its size
  char name[16] = {};        // "position.x": the first 15 characters, and zeros

  friend constexpr bool operator==(const Field&, const Field&) = default;
};
static_assert(sizeof(Field) == 32 && offsetof(Field, name) == 16, "the layout is the ABI");

/// The rules of a wire type, in the order in which they are checked.
enum class WireRule : std::uint8_t {
  obeyed,
  no_bool,
  no_pointer,
  no_reference,
  no_long_double,
  no_wide_character,
  no_other_integer,
  no_open_enumeration,
  no_const_or_volatile,
  no_other_leaf,
  no_union,
  no_virtual,
  trivially_copyable,
  standard_layout,
  no_base_class,
  not_empty,
  visible_members,
  no_bit_field,
  at_most_64_kib,
  natural_layout,
  few_fields,
};

inline constexpr std::size_t max_wire_bytes = 65536;
inline constexpr std::size_t max_fields = 256;

namespace detail {

template <class T, class... Choices>
concept OneOf = (std::same_as<T, Choices> || ...);

template <class T>
concept FixedInteger = OneOf<T, std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                             std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>;
template <class T>
concept WideCharacter = OneOf<T, wchar_t, char8_t, char16_t, char32_t>;

/// An integer initialises only enumerations whose underlying type was written down; that of others
/// is the compiler's choice: `enum E { a }` is one byte for arm-none-eabi and four elsewhere.
template <class T>
concept FixedEnumeration = std::is_enum_v<T> && requires { T{0}; };

template <class T>
struct ArrayOf {
  static constexpr std::size_t size = 0;
};
template <class T, std::size_t n>
struct ArrayOf<T[n]> {
  using Element = T;
  static constexpr std::size_t size = n;
};
template <class T, std::size_t n>
struct ArrayOf<std::array<T, n>> : ArrayOf<T[n]> {};
template <class T>
struct ArrayOf<std::array<T, 0>> : ArrayOf<void> {};

template <class T>
concept Array = (ArrayOf<T>::size > 0);
template <class T>
concept Struct = std::is_class_v<T> && !Array<T>;

struct TypesOf {
  template <class... Member>
  TypeList<Member...> operator()(const Member&... /*members*/) const {
    return {};
  }
};

template <class T>
using MemberTypes = decltype(visit_members(std::declval<const T&>(), TypesOf{}));

/// Calls `call` with the type of each member, its position and the result so far.
template <class... M, class Call>
constexpr void for_each_type(TypeList<M...> /*members*/, Call&& call) {
  std::size_t i = 0;
  (call(Type<M>{}, i++), ...);
}

constexpr std::size_t round_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

struct Extent {
  std::size_t size = 0;
  std::size_t alignment = 1;
};

/// Size and alignment by the natural rule, whatever the compiler thinks.
template <class T>
consteval Extent natural_extent() {
  if constexpr (Array<T>) {
    constexpr Extent element = natural_extent<typename ArrayOf<T>::Element>();
    return {element.size * ArrayOf<T>::size, element.alignment};
  } else if constexpr (Struct<T>) {
    Extent whole;
    for_each_type(MemberTypes<T>{}, [&]<class M>(Type<M>, std::size_t) {
      constexpr Extent member = natural_extent<M>();
      whole.size = round_up(whole.size, member.alignment) + member.size;
      whole.alignment = std::max(whole.alignment, member.alignment);
    });
    whole.size = round_up(whole.size, whole.alignment);
    return whole;
  } else {
    return {sizeof(T), sizeof(T)};
  }
}

/// Where the natural rule puts the members of a struct.
template <class T>
consteval auto natural_offsets() {
  std::array<std::uint32_t, MemberTypes<T>::size> offsets{};
  std::size_t end = 0;
  for_each_type(MemberTypes<T>{}, [&]<class M>(Type<M>, std::size_t i) {
    constexpr Extent member = natural_extent<M>();
    end = round_up(end, member.alignment);
    offsets[i] = static_cast<std::uint32_t>(end);
    end += member.size;
  });
  return offsets;
}

/// The bytes of the leaf that a member begins with.
template <class T>
constexpr auto first_leaf(const T& member) {
  if constexpr (Array<T>) {
    return first_leaf(member[0]);
  } else if constexpr (Struct<T>) {
    return visit_members(member,
                         [](const auto& first, const auto&...) { return first_leaf(first); });
  } else {
    return std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(member);
  }
}

/// A byte that tells seven bits of its offset. It is below 0x80, so no leaf becomes a NaN.
constexpr std::uint8_t offset_digit(std::size_t offset, unsigned digit) {
  return static_cast<std::uint8_t>((offset >> (7U * digit)) & 0x7FU);
}

/// Does the compiler have the members of T where the natural rule puts them? An object is made of
/// bytes that tell their offsets, and each member shows where its first bytes come from.
template <class T, unsigned digit>
consteval bool offsets_are_natural() {
  std::array<std::uint8_t, sizeof(T)> bytes{};
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = offset_digit(i, digit);
  const T object = std::bit_cast<T>(bytes);
  constexpr auto offsets = natural_offsets<T>();
  bool natural = true;
  std::size_t member = 0;
  const auto check = [&](const auto& leaf) {
    for (std::size_t i = 0; i < leaf.size(); ++i) {
      natural = natural && leaf[i] == offset_digit(offsets[member] + i, digit);
    }
    ++member;
  };
  visit_members(object, [&](const auto&... members) { (check(first_leaf(members)), ...); });
  return natural;
}

/// Members in the order of declaration that fill the struct can lie in one way only.
template <class T>
consteval bool has_no_gap() {
  std::size_t bytes = 0;
  for_each_type(MemberTypes<T>{}, [&]<class M>(Type<M>, std::size_t) { bytes += sizeof(M); });
  return bytes == sizeof(T) && !Described<T>;
}

template <class T>
consteval bool is_natural() {
  constexpr Extent extent = natural_extent<T>();
  if constexpr (extent.size != sizeof(T) || extent.alignment != alignof(T)) {
    return false;
  } else if constexpr (has_no_gap<T>()) {
    return true;
  } else {
    return offsets_are_natural<T, 0>() && offsets_are_natural<T, 1>() &&
           offsets_are_natural<T, 2>();
  }
}

template <class T>
consteval bool has_bit_field() {
  if constexpr (Described<T>) {
    return false;  // LATENZ_DESCRIBE takes the address of each
  } else {
    return []<std::size_t... n>(std::index_sequence<n...>) {
      return !(AddressableMember<T, n> && ...);
    }(std::make_index_sequence<member_count<T>()>());
  }
}

/// The first rule that a type breaks, and the type (T or something in it) that breaks it.
template <WireRule broken, class Offender>
struct Verdict {
  static constexpr WireRule rule = broken;
  using offender = Offender;
};

template <class T>
consteval auto judge();

template <class First, class... Rest>
consteval auto judge_members(TypeList<First, Rest...> /*members*/) {
  constexpr auto verdict = judge<First>();
  if constexpr (verdict.rule != WireRule::obeyed || sizeof...(Rest) == 0) {
    return verdict;
  } else {
    return judge_members(TypeList<Rest...>{});
  }
}

template <class T>
consteval WireRule leaf_rule() {
  if (FixedInteger<T> || OneOf<T, float, double, char, std::byte>) return WireRule::obeyed;
  if (std::is_same_v<T, bool>) return WireRule::no_bool;
  if (std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T>) {
    return WireRule::no_pointer;
  }
  if (std::is_reference_v<T>) return WireRule::no_reference;
  if (std::is_same_v<T, long double>) return WireRule::no_long_double;
  if (WideCharacter<T>) return WireRule::no_wide_character;
  if (std::is_integral_v<T>) return WireRule::no_other_integer;
  return std::is_enum_v<T> ? WireRule::no_open_enumeration : WireRule::no_other_leaf;
}

/// Such a type is bound to what its `get` returns, not to its members.
template <class T>
concept TupleLike = requires { sizeof(std::tuple_size<T>); };

/// Can all members be seen?
template <class T>
consteval bool is_visible() {
  if constexpr (Described<T>) {
    return true;
  } else if constexpr (std::is_aggregate_v<T> && !TupleLike<T>) {
    return !HasBase<T> && member_count<T>() > 0 && member_count<T>() < too_many_members;
  } else {
    return false;
  }
}

/// What can be said of a struct without looking into it.
template <class T>
consteval WireRule whole_rule() {
  if (std::is_polymorphic_v<T>) return WireRule::no_virtual;
  if (!std::is_trivially_copyable_v<T>) return WireRule::trivially_copyable;
  if (!std::is_standard_layout_v<T>) return WireRule::standard_layout;
  if (!std::is_copy_assignable_v<T>) return WireRule::no_const_or_volatile;
  if (std::is_empty_v<T>) return WireRule::not_empty;
  if (sizeof(T) > max_wire_bytes) return WireRule::at_most_64_kib;
  if (is_visible<T>()) return WireRule::obeyed;
  if constexpr (std::is_aggregate_v<T>) {
    if (HasBase<T>) return WireRule::no_base_class;
  }
  return WireRule::visible_members;
}

template <class T>
consteval WireRule struct_rule() {
  constexpr WireRule whole = whole_rule<T>();
  if constexpr (whole != WireRule::obeyed) {
    return whole;
  } else if constexpr (has_bit_field<T>()) {
    return WireRule::no_bit_field;
  } else {
    return is_natural<T>() ? WireRule::obeyed : WireRule::natural_layout;
  }
}

template <class T>
consteval auto judge_struct() {
  if constexpr (is_visible<T>()) {
    constexpr auto inner = judge_members(MemberTypes<T>{});
    if constexpr (inner.rule != WireRule::obeyed) {
      return inner;
    } else {
      return Verdict<struct_rule<T>(), T>{};
    }
  } else {
    return Verdict<whole_rule<T>(), T>{};
  }
}

template <class T>
consteval auto judge() {
  if constexpr (std::is_const_v<T> || std::is_volatile_v<T>) {
    return Verdict<WireRule::no_const_or_volatile, T>{};
  } else if constexpr (Array<T>) {
    constexpr auto element = judge<typename ArrayOf<T>::Element>();
    if constexpr (element.rule == WireRule::obeyed && sizeof(T) > max_wire_bytes) {
      return Verdict<WireRule::at_most_64_kib, T>{};
    } else {
      return element;
    }
  } else if constexpr (std::is_union_v<T>) {
    return Verdict<WireRule::no_union, T>{};
  } else if constexpr (std::is_class_v<T>) {
    return judge_struct<T>();
  } else if constexpr (FixedEnumeration<T> && !std::is_same_v<T, std::byte>) {
    return Verdict<leaf_rule<std::underlying_type_t<T>>(), T>{};
  } else {
    return Verdict<leaf_rule<T>(), T>{};
  }
}

/// A leaf's name, from the whole to the part; an element of an array has an index instead.
struct Path {
  const Path* outer = nullptr;
  std::string_view name;
  std::size_t index = 0;

  template <class Put>
  constexpr void spell(Put&& put) const {
    if (outer != nullptr) outer->spell(put);
    if (name.empty()) {
      put('[');
      spell_number(index, put);
      put(']');
    } else {
      if (outer != nullptr) put('.');
      for (const char character : name) put(character);
    }
  }

 private:
  template <class Put>
  static constexpr void spell_number(std::size_t number, Put& put) {
    if (number >= 10) spell_number(number / 10, put);
    put(static_cast<char>('0' + (number % 10)));
  }
};

template <class T>
consteval FieldKind kind_of() {
  if constexpr (OneOf<T, char, std::byte>) {
    return FieldKind::bytes;
  } else if constexpr (std::is_enum_v<T>) {
    return kind_of<std::underlying_type_t<T>>();
  } else if constexpr (std::is_floating_point_v<T>) {
    return FieldKind::floating_point;
  } else {
    return std::is_signed_v<T> ? FieldKind::signed_integer : FieldKind::unsigned_integer;
  }
}

/// Calls `call(path, field)` for each leaf of T, of which there are `count` at this stride. The
/// name is left to the path, which knows all of it.
template <class T, class Call>
constexpr void for_each_leaf(const Path* path, Field place, Call& call) {
  if constexpr (Array<T>) {
    constexpr auto n = static_cast<std::uint32_t>(ArrayOf<T>::size);
    constexpr auto stride = static_cast<std::uint32_t>(sizeof(typename ArrayOf<T>::Element));
    if (place.count == 1 || place.stride == n * stride) {
      place.count *= n;
      place.stride = stride;
      for_each_leaf<typename ArrayOf<T>::Element>(path, place, call);
    } else {  // two strides: one field for each element of the inner array
      for (std::uint32_t i = 0; i < n; ++i) {
        const Path element{.outer = path, .name = {}, .index = i};
        for_each_leaf<typename ArrayOf<T>::Element>(&element, place, call);
        place.offset += stride;
      }
    }
  } else if constexpr (Struct<T>) {
    constexpr auto offsets = natural_offsets<T>();
    constexpr auto names = names_of<T>();
    for_each_type(MemberTypes<T>{}, [&]<class M>(Type<M>, std::size_t i) {
      const Path member{.outer = path, .name = names[i], .index = 0};
      Field inner = place;
      inner.offset += offsets[i];
      for_each_leaf<M>(&member, inner, call);
    });
  } else {
    place.size = sizeof(T);
    place.kind = kind_of<T>();
    if (place.count == 1) place.stride = sizeof(T);
    call(*path, place);
  }
}

template <class T, class Call>
constexpr void for_each_leaf_of(Call&& call) {
  constexpr Path value{.outer = nullptr, .name = "value", .index = 0};
  Field whole;
  whole.count = 1;
  for_each_leaf<T>(Struct<T> ? nullptr : &value, whole, call);
}

template <class T>
consteval std::size_t count_leaves() {
  std::size_t count = 0;
  for_each_leaf_of<T>([&](const Path&, const Field&) { ++count; });
  return count;
}

/// The verdict on a whole payload.
template <class T>
consteval auto judge_payload() {
  constexpr auto verdict = judge<T>();
  if constexpr (verdict.rule == WireRule::obeyed) {
    return Verdict<count_leaves<T>() <= max_fields ? WireRule::obeyed : WireRule::few_fields, T>{};
  } else {
    return verdict;
  }
}

template <WireRule rule, class Offender>
consteval void explain() {
  static_assert(rule != WireRule::no_bool,
                "latenz::icc: no bool in a wire type: bytes other than 0 and 1 are undefined as "
                "bool, so use std::uint8_t");
  static_assert(rule != WireRule::no_pointer,
                "latenz::icc: no pointer in a wire type: the peer has another address space, so "
                "use an index or an offset");
  static_assert(rule != WireRule::no_reference,
                "latenz::icc: no reference in a wire type: the peer has another address space, so "
                "use an index or an offset");
  static_assert(rule != WireRule::no_long_double,
                "latenz::icc: no long double in a wire type: it has 8 bytes on one processor and "
                "16 on another, so use double");
  static_assert(rule != WireRule::no_wide_character,
                "latenz::icc: no wide character in a wire type: use char for UTF-8 text, or "
                "std::uint16_t or std::uint32_t");
  static_assert(rule != WireRule::no_other_integer,
                "latenz::icc: an integer of a wire type is spelled std::int8_t to std::int64_t or "
                "std::uint8_t to std::uint64_t: others have no fixed width");
  static_assert(rule != WireRule::no_open_enumeration,
                "latenz::icc: an enumeration of a wire type fixes its underlying type, as in "
                "`enum class Mode : std::uint8_t`: otherwise its size is the compiler's choice");
  static_assert(rule != WireRule::no_const_or_volatile,
                "latenz::icc: no const or volatile in a wire type: it is copied in and out");
  static_assert(rule != WireRule::no_other_leaf,
                "latenz::icc: a wire type consists of fixed-width integers, float, double, char, "
                "std::byte and enumerations, and arrays and structs of them");
  static_assert(rule != WireRule::no_union,
                "latenz::icc: no union in a wire type: nothing tells which member is meant, so "
                "share one struct for each case");
  static_assert(rule != WireRule::no_virtual,
                "latenz::icc: no virtual function in a wire type: it is called by an address of "
                "this program");
  static_assert(rule != WireRule::trivially_copyable,
                "latenz::icc: a wire type is trivially copyable: no copy constructor, assignment "
                "or destructor of its own or of a member");
  static_assert(rule != WireRule::standard_layout,
                "latenz::icc: a wire type has standard layout: all members public, in one class, "
                "none of them a reference");
  static_assert(rule != WireRule::no_base_class,
                "latenz::icc: no base class in a wire type: make it a member, or name all members "
                "by LATENZ_DESCRIBE");
  static_assert(rule != WireRule::not_empty,
                "latenz::icc: no empty struct in a wire type: it has a size but nothing to share");
  static_assert(
      rule != WireRule::visible_members,
      "latenz::icc: the members of this type cannot be seen: it is not an aggregate of at "
      "most 32 members that `{}` can make, so name all of them by LATENZ_DESCRIBE");
  static_assert(rule != WireRule::no_bit_field,
                "latenz::icc: no bit-field or packed member in a wire type: where it lies is the "
                "compiler's choice, so use masks of a whole integer");
  static_assert(rule != WireRule::at_most_64_kib,
                "latenz::icc: a wire type has at most 64 KiB: share larger data in pieces");
  static_assert(rule != WireRule::natural_layout,
                "latenz::icc: in a wire type every leaf of n bytes lies at a multiple of n and "
                "nothing else moves it: no packing, no alignas, no member left out of "
                "LATENZ_DESCRIBE or out of order there");
  static_assert(rule != WireRule::few_fields,
                "latenz::icc: a wire type has at most 256 fields: an array inside an array of "
                "structs counts one for each of its elements");
}

/// FNV-1a of 64 bits.
class Hash {
 public:
  constexpr void add(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x0000'0100'0000'01B3U; }
  constexpr void add(std::uint32_t number, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) add(static_cast<std::uint8_t>(number >> (8 * i)));
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF2'9CE4'8422'2325U;
};

}  // namespace detail

/// The first rule that T breaks.
template <class T>
inline constexpr WireRule wire_rule_of = decltype(detail::judge_payload<T>())::rule;

/// A type that all supported compilers lay out in the same way.
template <class T>
concept WireType = (wire_rule_of<T> == WireRule::obeyed);

/// Makes the compiler say which rule T breaks, and which type in T.
template <class T>
consteval void require_wire_type() {
  using Verdict = decltype(detail::judge_payload<T>());
  detail::explain<Verdict::rule, typename Verdict::offender>();
}

/// How many fields T has. If it is not a wire type the compiler says why, once.
template <class T>
consteval std::size_t field_count() {
  if constexpr (WireType<T>) {
    return detail::count_leaves<T>();
  } else {
    require_wire_type<T>();
    return 0;
  }
}

namespace detail {

/// Calls `call(path, field)` for each field of T; for none if T is not a wire type.
template <class T, class Call>
consteval void for_each_field(Call&& call) {
  if constexpr (WireType<T>) for_each_leaf_of<T>(call);
}

}  // namespace detail

/// The fields of T in the order of their offsets; those of an array of structs together.
/// An array of structs that hold arrays has no single stride: "joints.pose[0]", "joints.pose[1]".
template <class T>
consteval std::array<Field, field_count<T>()> fields() {
  std::array<Field, field_count<T>()> table{};
  std::size_t row = 0;
  detail::for_each_field<T>([&](const detail::Path& path, const Field& field) {
    table[row] = field;
    std::size_t length = 0;
    path.spell([&](char character) {
      if (length + 1 < sizeof field.name) table[row].name[length++] = character;
    });
    ++row;
  });
  return table;
}

/// A number that differs (but for one chance in 2^64) when T and the peer's type differ in anything
/// that counts: FNV-1a over kind (1 byte), size (2), offset, count, stride (4 each, little endian),
/// the whole name and a zero byte of each field, then sizeof and alignof (4 each).
template <class T>
consteval std::uint64_t fingerprint() {
  detail::Hash hash;
  detail::for_each_field<T>([&](const detail::Path& path, const Field& field) {
    hash.add(static_cast<std::uint8_t>(field.kind));
    hash.add(field.size, 2);
    hash.add(field.offset, 4);
    hash.add(field.count, 4);
    hash.add(field.stride, 4);
    path.spell([&](char character) { hash.add(static_cast<std::uint8_t>(character)); });
    hash.add(0, 1);
  });
  hash.add(sizeof(T), 4);
  hash.add(alignof(T), 4);
  return hash.value();
}

}  // namespace latenz::icc
