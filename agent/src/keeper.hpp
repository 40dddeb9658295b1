// SPDX-License-Identifier: Apache-2.0
// What stays on the target while it is measured: starts programs there, keeps what they record
// until the other side has it, and ends them all when it is told to, or hears nothing for too long.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "child.hpp"
#include "file.hpp"
#include "files.hpp"
#include "home.hpp"
#include "message.hpp"
#include "system_calls.hpp"

namespace latenz::agent {

/// Opens the place where links arrive. Throws `probe::Failure`.
[[nodiscard]] probe::File listen_for_links(const std::string& token);
/// Connects with a keeper. Throws `probe::Failure`.
[[nodiscard]] probe::File connect_to_keeper(const std::string& token);

class Keeper {
 public:
  /// `begun`: the folder with the agent's program, which is removed.
  Keeper(probe::File listening, const std::string& begun);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper();

  /// Returns when all is over; nothing of it is left then.
  void serve();

 private:
  using Verb = Fields (Keeper::*)(const Fields&);

  void start_janitor();
  void wait_for_something();
  void take_link();
  void take_requests();
  void send();
  void lose_link();
  void reap();
  [[nodiscard]] std::string answer(const Request& request);

  Fields hello(const Fields& fields);
  Fields lease(const Fields& fields);
  Fields beat(const Fields& fields);
  Fields clocks(const Fields& fields);
  Fields usage(const Fields& fields);
  Fields leave(const Fields& fields);
  Fields priority(const Fields& fields);
  Fields start(const Fields& fields);
  Fields status(const Fields& fields);
  Fields stop(const Fields& fields);
  Fields news(const Fields& fields);
  Fields call(const Fields& fields);
  Fields end(const Fields& fields);

  probe::File listening_;
  Home home_;
  Mirror mirror_;
  SystemCalls system_calls_;
  probe::File signals_;
  probe::File janitor_;  ///< closed with this process: the janitor's turn
  probe::File link_;
  Inbox inbox_;
  std::string outgoing_;
  std::map<std::int64_t, std::unique_ptr<Child>> children_;
  std::int64_t lease_ns_;
  std::int64_t last_heard_ns_;
  std::int64_t received_bytes_ = 0;
  std::int64_t sent_bytes_ = 0;
  std::int64_t links_ = 0;
  bool over_ = false;
};

}  // namespace latenz::agent
