// SPDX-License-Identifier: Apache-2.0
// Linux's side of an echo: asks, checks each answer, and counts what went wrong; or answers.
//
//   latenz-icc-echo call REGION TRIPS [CALLS]   exit code 1 if an answer was wrong or trips are
//                                               missing
//   latenz-icc-echo serve REGION                until its caller leaves, or is silent for 20 s
//
// REGION: shm:/NAME, mem:ADDRESS, uio:NUMBER or reserved:NAME. A call without answer within 0.2 s
// is made again, so the other side may restart meanwhile; CALLS (10) in a row are the last.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "echo_messages.hpp"
#include "latenz/icc/linux_memory.hpp"
#include "program.hpp"

namespace echo {
namespace {

using latenz::icc::LinuxMemory;
using latenz::icc::MonotonicClock;
using latenz::icc::Result;
using program::give_up;
using program::opened_or_give_up;
using program::print;

#ifdef __aarch64__  // memory that is not Linux's own is Device memory there
using Platform =
    latenz::icc::Platform<latenz::icc::DeviceWord, latenz::icc::ArmSystemOrder, latenz::icc::Yield>;
#else
using Platform =
    latenz::icc::Platform<latenz::icc::Coherent, latenz::icc::StandardOrder, latenz::icc::Yield>;
#endif
using Echo = Channel<Platform>;
using Deadline = latenz::icc::Until<MonotonicClock>;

constexpr std::int64_t answer_within_ns = 200'000'000;
constexpr std::uint64_t usual_silent_calls = 10;
constexpr std::int64_t wait_for_caller_ns = 20'000'000'000;
constexpr const char* usage =
    "usage: latenz-icc-echo call REGION TRIPS [CALLS] | serve REGION; a REGION is shm:/NAME, "
    "mem:ADDRESS, uio:NUMBER or reserved:NAME";

std::uint64_t number_in(std::string_view text) {
  const bool is_hexadecimal = text.starts_with("0x");
  if (is_hexadecimal) text.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, is_hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) give_up(usage);
  return number;
}

LinuxMemory open(const std::string& region, bool creates) {
  const std::size_t colon = region.find(':');
  const std::string scheme = region.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : region.substr(colon + 1);
  if (scheme == "shm") {
    return creates ? LinuxMemory::create_shared(rest.c_str(), Echo::bytes)
                   : LinuxMemory::shared(rest.c_str(), Echo::bytes);
  }
  if (scheme == "mem") return LinuxMemory::physical(number_in(rest), Echo::bytes);
  if (scheme == "uio") {
    return LinuxMemory::uio(static_cast<unsigned>(number_in(rest)), 0, Echo::bytes);
  }
  if (scheme == "reserved") return LinuxMemory::reserved(rest.c_str(), Echo::bytes);
  give_up(usage);
}

int call(const std::string& region, std::uint64_t trips, std::uint64_t most_silent_calls) {
  const LinuxMemory memory = open(region, true);
  if (!memory) give_up(memory.problem());
  auto client = opened_or_give_up(Echo::Client::create(memory.data(), Echo::bytes, "echo"));
  std::uint64_t answered = 0;
  std::uint64_t wrong = 0;
  std::uint64_t restarts = 0;
  std::uint64_t without_answer = 0;
  std::uint64_t silent_calls = 0;
  for (std::uint64_t number = 1; answered < trips && silent_calls < most_silent_calls;
       number += 2) {
    Message reply{};
    const Result result =
        client.call_until(Message::make(number), reply, Deadline::after(answer_within_ns));
    silent_calls = result == Result::timeout || result == Result::peer_gone ? silent_calls + 1 : 0;
    if (result == Result::ok) {
      ++answered;
      if (!reply.is_whole() || reply.number != number + 1) ++wrong;
    } else if (result == Result::peer_restarted) {
      ++restarts;
    } else if (result == Result::layout_changed) {
      give_up("the channel was formatted anew by another program");
    } else {
      ++without_answer;
    }
  }
  client.close();
  print(stdout, region + ": " + std::to_string(answered) + " answers, " + std::to_string(wrong) +
                    " wrong, " + std::to_string(restarts) + " restarts, " +
                    std::to_string(without_answer) + " calls without answer\n");
  return answered == trips && wrong == 0 ? 0 : 1;
}

int serve(const std::string& region) {
  const std::int64_t end_ns = MonotonicClock::now_ns() + wait_for_caller_ns;
  while (MonotonicClock::now_ns() < end_ns) {  // until there is such memory
    const LinuxMemory memory = open(region, false);
    if (!memory) continue;
    auto server = opened_or_give_up(Echo::Server::attach_until(
        memory.data(), Echo::bytes, Deadline::after(wait_for_caller_ns)));
    Result result = Result::ok;
    while (result == Result::ok || result == Result::peer_restarted) {
      result = server.serve_until(answer, Deadline::after(wait_for_caller_ns));
    }
    return result == Result::peer_gone ? 0 : 1;
  }
  give_up(region + ": no such memory");
}

int run(const std::vector<std::string>& arguments) {
  if ((arguments.size() == 3 || arguments.size() == 4) && arguments[0] == "call") {
    const bool told = arguments.size() == 4;
    return call(arguments[1], number_in(arguments[2]),
                told ? number_in(arguments[3]) : usual_silent_calls);
  }
  if (arguments.size() == 2 && arguments[0] == "serve") return serve(arguments[1]);
  give_up(usage);
}

}  // namespace
}  // namespace echo

int main(int count, char** arguments) {
  return echo::run({arguments + (count > 0 ? 1 : 0), arguments + count});
}
