// SPDX-License-Identifier: Apache-2.0
// attach.json: what is known of the watched threads, replaced as a whole while they are measured.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attach_programs.hpp"
#include "cycle_builder.hpp"
#include "json.hpp"

namespace latenz::attach {

/// A thread as people know it.
struct Identity {
  std::int32_t pid = 0;
  std::string comm;
  std::string folder;                          ///< of its recording; empty: it has none
  std::map<std::size_t, std::uint64_t> calls;  ///< made while it was recorded, by their numbers
};

struct Account {
  std::string_view status;
  std::string_view source;  ///< "bpf", "ftrace", "trace"
  std::string clock;        ///< of a trace; empty: not told
  std::int64_t started_ns = 0;
  std::uint64_t lost = 0;
  std::vector<std::string> absent;
  std::vector<std::string> notes;
  std::vector<ProgramCost> costs;
};

/// The whole file. `functions`: names of timers' handlers by their addresses, as far as known.
[[nodiscard]] std::string told(const Account& account, const CycleBuilder& builder,
                               const std::map<std::int32_t, Identity>& identities,
                               const std::map<std::int64_t, std::string>& functions);

}  // namespace latenz::attach
