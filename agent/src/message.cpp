// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <charconv>
#include <utility>

#include "failure.hpp"

namespace latenz::agent {
namespace {

using probe::Failure;

constexpr std::size_t longest_line = 64;
constexpr std::size_t most_digits = 18;

/// Cuts off the first word of a line.
std::string_view word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view first = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return first;
}

std::string field(std::string_view bytes) {
  std::string text = std::to_string(bytes.size());
  text += '\n';
  text += bytes;
  return text;
}

Fields parse_fields(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    const std::size_t end = bytes.substr(0, longest_line).find('\n');
    const auto length = end == std::string_view::npos ? std::nullopt : number(bytes.substr(0, end));
    if (!length || static_cast<std::size_t>(*length) > bytes.size() - end - 1) {
      throw Failure("a request holds fields that do not end where it ends");
    }
    fields.emplace_back(bytes.substr(end + 1, static_cast<std::size_t>(*length)));
    bytes.remove_prefix(end + 1 + static_cast<std::size_t>(*length));
  }
  return fields;
}

}  // namespace

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (text.empty() || text.size() > most_digits || text.front() == '-') return std::nullopt;
  const auto [stopped, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

std::int64_t number(std::string_view what, std::string_view text, std::int64_t lowest,
                    std::int64_t highest) {
  const auto value = number(text);
  if (!value || *value < lowest || *value > highest) {
    throw Failure(std::string(what) + ": '" + std::string(text.substr(0, 40)) +
                  "' is not a number from " + std::to_string(lowest) + " to " +
                  std::to_string(highest));
  }
  return *value;
}

void require(const Fields& fields, std::size_t least) {
  if (fields.size() < least) throw Failure("the request has too few fields");
}

std::string reply(std::uint64_t id, int error, const Fields& fields) {
  std::string payload;
  for (const std::string& each : fields) payload += field(each);
  return std::to_string(id) + ' ' + std::to_string(error) + ' ' + std::to_string(payload.size()) +
         '\n' + payload;
}

std::optional<Request> Inbox::next() {
  const std::string_view held = held_;
  const std::size_t end = held.substr(0, longest_line).find('\n');
  if (end == std::string_view::npos) {
    if (held.size() >= longest_line) throw Failure("what arrives are no requests");
    return std::nullopt;
  }
  std::string_view line = held.substr(0, end);
  Request request;
  request.verb = word(line);
  const auto id = number(word(line));
  const auto length = number(word(line));
  if (!id || !length || !line.empty() || std::cmp_greater(*length, largest_request)) {
    throw Failure("what arrives are no requests");
  }
  const std::size_t whole = end + 1 + static_cast<std::size_t>(*length);
  if (held.size() < whole) return std::nullopt;
  request.id = static_cast<std::uint64_t>(*id);
  request.fields = parse_fields(held.substr(end + 1, static_cast<std::size_t>(*length)));
  held_.erase(0, whole);
  return request;
}

}  // namespace latenz::agent
