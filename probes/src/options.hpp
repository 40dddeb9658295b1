// SPDX-License-Identifier: Apache-2.0
// Command lines: `--name VALUE`, `--name=VALUE` and flags; every mistake is one line.
#pragma once

#include <sched.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latenz::probe {

struct Option {
  std::string_view name;   ///< with its two dashes
  std::string_view value;  ///< what stands for the value in the help text; empty: a flag
  std::string_view help;
  std::function<void(std::string_view)> set;  ///< called with the value (empty for a flag)
};

/// Applies each argument to its option. Throws `Failure` on an unknown or repeated option, a
/// missing value, or a value for a flag.
void parse_options(std::span<const Option> options, std::span<const char* const> arguments);

/// Help text: usage line, purpose, one paragraph an option.
[[nodiscard]] std::string help_text(std::string_view program, std::string_view purpose,
                                    std::span<const Option> options);

/// A decimal integer within bounds; throws `Failure` otherwise.
[[nodiscard]] std::int64_t parse_integer(std::string_view name, std::string_view text,
                                         std::int64_t lowest, std::int64_t highest);

/// Index of `text` in `choices`; throws `Failure` naming the choices otherwise.
[[nodiscard]] std::size_t parse_choice(std::string_view name, std::string_view text,
                                       std::span<const std::string_view> choices);

/// A list such as "0,2-3,0", each CPU as often as it is named; throws `Failure` if it is
/// malformed, longer than 1024, or names a CPU that is not in `enterable`.
[[nodiscard]] std::vector<unsigned> parse_cpus(std::string_view name, std::string_view text,
                                               const cpu_set_t& enterable);

/// The CPUs that an option names, or all that this process can enter if it is absent.
[[nodiscard]] std::vector<unsigned> chosen_cpus(std::string_view name,
                                                const std::optional<std::string>& text);

}  // namespace latenz::probe
