// SPDX-License-Identifier: Apache-2.0
#include "intercore_plan.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "failure.hpp"
#include "options.hpp"

namespace latenz::probe {
namespace {

constexpr std::int64_t most_samples = 1'000'000;
constexpr std::int64_t longest_block = 2000;
constexpr std::size_t fewest_blocks = 40;  // in a run: the raw limit changes within seconds

/// What is given as text, and checked when all is known.
struct Texts {
  std::optional<std::string> cpus;
  std::optional<std::int64_t> bytes;
  std::optional<std::int64_t> block;
};

std::vector<Option> options_of(IntercorePlan& plan, Texts& texts) {
  return {
      {"--output", "DIR", "folder for the recording; must not hold one already (required)",
       [&plan](std::string_view text) { plan.output = text; }},
      {"--through", "NAME",
       "raw (one polled word), mailbox, exchange, latest, ring, or a peer: boost-spsc, eventfd, "
       "pipe, futex, posix-mq (default: exchange)",
       [&plan](std::string_view text) {
         plan.through = static_cast<Through>(parse_choice("--through", text, through_names));
       }},
      {"--bytes", "N", "of a message: a power of two, 1 to 4096 (default: 8); raw has none",
       [&texts](std::string_view text) {
         texts.bytes = parse_integer("--bytes", text, 1, most_message_bytes);
       }},
      {"--samples", "N", "in each of the three sample sets (default: 10000)",
       [&plan](std::string_view text) {
         plan.samples = static_cast<std::size_t>(parse_integer("--samples", text, 1, most_samples));
       }},
      {"--block", "N",
       "round trips in a row before the next kind has its turn (default: 2000, or fewer for at "
       "least 40 turns)",
       [&texts](std::string_view text) {
         texts.block = parse_integer("--block", text, 1, longest_block);
       }},
      {"--cpus", "A,B",
       "CPU that asks, CPU that answers (default: the first two that can be entered)",
       [&texts](std::string_view text) { texts.cpus = text; }},
      {"--wait", "NAME",
       "spin or pause: what a polling side does between two looks (default: pause)",
       [&plan](std::string_view text) {
         plan.wait = static_cast<Waiting>(parse_choice("--wait", text, waiting_names));
       }},
      {"--progress", "", "a line of JSON on standard error each half second",
       [&plan](std::string_view /*none*/) { plan.progress = true; }},
      {"--help", "", "print this text", [&plan](std::string_view /*none*/) { plan.help = true; }},
      {"--version", "", "print the version",
       [&plan](std::string_view /*none*/) { plan.version = true; }},
  };
}

std::vector<unsigned> two_cpus(const std::optional<std::string>& text) {
  std::vector<unsigned> cpus = chosen_cpus("--cpus", text);
  if (!text && cpus.size() < 2) {
    throw Failure("only CPU " + std::to_string(cpus.front()) +
                  " can be entered; messages between processors need two");
  }
  if (text && (cpus.size() != 2 || cpus[0] == cpus[1])) {
    throw Failure("--cpus: '" + *text + "' is not two different CPUs; write for example 0,1");
  }
  cpus.resize(2);
  return cpus;
}

std::size_t message_bytes(const IntercorePlan& plan, const std::optional<std::int64_t>& given) {
  if (plan.through == Through::raw) {
    if (given) {
      throw Failure("--bytes: raw carries no message; leave the option out");
    }
    return 0;
  }
  const auto bytes = static_cast<std::size_t>(given.value_or(8));
  if (!std::has_single_bit(bytes)) {
    throw Failure("--bytes: " + std::to_string(bytes) +
                  " is not a power of two; write 1, 2, 4 ... 4096");
  }
  return bytes;
}

}  // namespace

IntercorePlan parse_intercore_plan(std::span<const char* const> arguments) {
  IntercorePlan plan;
  Texts texts;
  parse_options(options_of(plan, texts), arguments);
  if (plan.help || plan.version) {
    return plan;
  }
  if (plan.output.empty()) {
    throw Failure("--output: is missing; name a folder for the recording");
  }
  plan.bytes = message_bytes(plan, texts.bytes);
  plan.cpus = two_cpus(texts.cpus);
  const std::size_t for_enough = (plan.samples + fewest_blocks - 1) / fewest_blocks;
  const auto usual = std::min<std::size_t>(for_enough, longest_block);
  plan.block = texts.block ? static_cast<std::size_t>(*texts.block) : usual;
  return plan;
}

std::string intercore_help() {
  IntercorePlan plan;
  Texts texts;
  return help_text("latenz-intercore", R"(
Sends messages between two processes on two CPUs through shared memory, and measures in turns the
case, the case with stamps on both CPUs, and the raw limit: one cache line that both poll. Every
message comes back and is compared with what was sent. Leaves three sample sets (half-round-trip,
one-way, raw) and its account, intercore.json. All times are integers in nanoseconds.

Exit code: 0 complete; 1 messages came back damaged; 2 wrong usage; 3 a measuring process was ended
by others; 4 disk full or not writable; 128 + signal (130, 143) ended by a signal. All samples
taken are kept in each case.
)",
                   options_of(plan, texts));
}

}  // namespace latenz::probe
