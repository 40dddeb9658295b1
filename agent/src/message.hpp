// SPDX-License-Identifier: Apache-2.0
// What the two sides of a link say to each other.
//
// A request is one line `VERB ID LENGTH`, then LENGTH bytes of fields; a reply is one line
// `ID ERRNO LENGTH`, then fields. A field is one line with its length, then that many bytes, so
// that any name and any content fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latenz::agent {

inline constexpr int protocol_version = 1;
inline constexpr std::size_t largest_request = 16U << 20U;

using Fields = std::vector<std::string>;

struct Request {
  std::string verb;
  std::uint64_t id = 0;
  Fields fields;
};

/// Throws `probe::Failure` if a request has fewer fields than its verb needs.
void require(const Fields& fields, std::size_t least);

/// A reply as it goes over the link; `error` is 0 or an errno value, then `fields` say more.
[[nodiscard]] std::string reply(std::uint64_t id, int error, const Fields& fields);

/// Takes whole requests out of what has arrived so far.
class Inbox {
 public:
  void add(std::string_view bytes) { held_ += bytes; }
  void clear() { held_.clear(); }

  /// The next whole request, if there is one. Throws `probe::Failure` if these are no requests.
  [[nodiscard]] std::optional<Request> next();

 private:
  std::string held_;
};

/// A decimal number of at most 18 digits and nothing else.
[[nodiscard]] std::optional<std::int64_t> number(std::string_view text);

/// The same; throws `probe::Failure` that names `what` if it is none or out of bounds.
[[nodiscard]] std::int64_t number(std::string_view what, std::string_view text, std::int64_t lowest,
                                  std::int64_t highest);

}  // namespace latenz::agent
