// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "affinity.hpp"
#include "failure.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t most_threads = 1024;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// Ranges of consecutive numbers: "0-3,8".
std::string as_list(const std::vector<unsigned>& cpus) {
  std::string list;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < cpus.size() && cpus[i + 1] == cpus[i] + 1) {
      ++i;
    }
    list += (list.empty() ? "" : ",") + std::to_string(cpus[first]);
    if (i > first) {
      list += "-" + std::to_string(cpus[i]);
    }
  }
  return list;
}

const Option& find(std::span<const Option> options, std::string_view name) {
  const auto found = std::ranges::find(options, name, &Option::name);
  if (found == options.end()) {
    throw Failure(std::string(name) + ": no such option; --help lists them all");
  }
  return *found;
}

std::pair<std::int64_t, std::int64_t> parse_range(std::string_view name, std::string_view item) {
  const auto dash = item.find('-');
  const auto first = whole_number(item.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole_number(item.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last >= CPU_SETSIZE) {
    throw Failure(std::string(name) + ": " + quoted(item) +
                  " is not a CPU or a range of CPUs; write a list such as 0,2-3");
  }
  return {*first, *last};
}

}  // namespace

void parse_options(std::span<const Option> options, std::span<const char* const> arguments) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const auto equals = argument.find('=');
    const Option& option = find(options, argument.substr(0, equals));
    if (!seen.insert(option.name).second) {
      throw Failure(std::string(option.name) + ": is given twice; give it once");
    }
    if (option.value.empty()) {
      if (equals != std::string_view::npos) {
        throw Failure(std::string(option.name) + ": takes no value");
      }
      option.set({});
    } else if (equals != std::string_view::npos) {
      option.set(argument.substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      option.set(arguments[++i]);
    } else {
      throw Failure(std::string(option.name) + ": its value is missing; write " +
                    std::string(option.name) + " " + std::string(option.value));
    }
  }
}

std::string help_text(std::string_view program, std::string_view purpose,
                      std::span<const Option> options) {
  std::string text = "usage: " + std::string(program) + " [OPTION]...\n" + std::string(purpose);
  for (const Option& option : options) {
    text += "\n  " + std::string(option.name);
    if (!option.value.empty()) {
      text += " " + std::string(option.value);
    }
    text += "\n        " + std::string(option.help) + "\n";
  }
  return text;
}

std::int64_t parse_integer(std::string_view name, std::string_view text, std::int64_t lowest,
                           std::int64_t highest) {
  const auto number = whole_number(text);
  if (!number || *number < lowest || *number > highest) {
    throw Failure(std::string(name) + ": " + quoted(text) +
                  " is not possible; write an integer from " + std::to_string(lowest) + " to " +
                  std::to_string(highest));
  }
  return *number;
}

std::size_t parse_choice(std::string_view name, std::string_view text,
                         std::span<const std::string_view> choices) {
  const auto found = std::ranges::find(choices, text);
  if (found == choices.end()) {
    std::string all;
    for (const std::string_view choice : choices) {
      all += (all.empty() ? "" : ", ") + std::string(choice);
    }
    throw Failure(std::string(name) + ": " + quoted(text) + " is not a choice; write one of " +
                  all);
  }
  return static_cast<std::size_t>(found - choices.begin());
}

std::vector<unsigned> parse_cpus(std::string_view name, std::string_view text,
                                 const cpu_set_t& enterable) {
  std::vector<unsigned> cpus;
  for (std::string_view rest = text;;) {
    const auto comma = rest.find(',');
    const auto [first, last] = parse_range(name, rest.substr(0, comma));
    for (std::int64_t number = first; number <= last; ++number) {
      const auto cpu = static_cast<unsigned>(number);
      if (!CPU_ISSET(cpu, &enterable)) {
        throw Failure(std::string(name) + ": CPU " + std::to_string(cpu) +
                      " cannot be entered (absent, offline or outside of the cpuset); choose of " +
                      as_list(cpus_of(enterable)));
      }
      cpus.push_back(cpu);
    }
    if (cpus.size() > most_threads) {
      throw Failure(std::string(name) + ": more than " + std::to_string(most_threads) +
                    " threads; name fewer CPUs");
    }
    if (comma == std::string_view::npos) {
      return cpus;
    }
    rest.remove_prefix(comma + 1);
  }
}

std::vector<unsigned> chosen_cpus(std::string_view name, const std::optional<std::string>& text) {
  const cpu_set_t enterable = enterable_cpus();
  return text ? parse_cpus(name, *text, enterable) : cpus_of(enterable);
}

}  // namespace latenz::probe
