// SPDX-License-Identifier: Apache-2.0
// In which of its ways the library is killed, chosen when compiled: KILL_C, in C instead of C++;
// KILL_FUTEX or KILL_EVENTFD, asleep instead of awake.
#pragma once

#include <poll.h>

#include <cstdint>
#include <ctime>

#include "latenz/icc.hpp"
#include "latenz/icc/linux_eventfd.hpp"
#include "latenz/icc/linux_wait.hpp"
#include "mortal.hpp"

namespace latenz::icc::kill {

/// Waits mostly awake, so that both sides are at work at once, and sleeps now and then, so that a
/// machine with fewer processors than processes gets on.
inline void wait_a_little() {
  static std::uint32_t calls = 0;
  if (++calls % 64 == 0) {
    const timespec time{.tv_sec = 0, .tv_nsec = 10'000};
    nanosleep(&time, nullptr);
  }
}
inline void nothing() {}

constexpr std::int64_t longest_sleep_ns = 1'000'000;

#if defined(KILL_FUTEX) || defined(KILL_EVENTFD)
constexpr bool sleeps = true;
constexpr std::uint32_t patience = 20;
#ifdef KILL_FUTEX
using Wait = Sleep<Futex, longest_sleep_ns>;
#else
using Wait = Sleep<EventFd, longest_sleep_ns>;
#endif
#else
constexpr bool sleeps = false;
constexpr std::uint32_t patience = 4096;
using Wait = WaitHook<wait_a_little, nothing>;
#endif

using P = Platform<MortalMemory, MortalOrder, Impatient<Wait, patience>>;

}  // namespace latenz::icc::kill

#ifdef KILL_C
#define LATENZ_ICC_SILENT_BEATS latenz::icc::kill::patience
#define LATENZ_ICC_LONGEST_SLEEP_NS 1000000
#ifdef KILL_FUTEX
#include "latenz/icc_linux_wait.h"
#elif defined(KILL_EVENTFD)
#include "latenz/icc_linux_eventfd.h"
#else
#define LATENZ_ICC_PAUSE() latenz::icc::kill::wait_a_little()
#endif
#include "../mortal_c.hpp"
#endif

namespace latenz::icc::kill {

#ifdef KILL_C
namespace of = latenz::icc::c;
#else
namespace of = latenz::icc;
#endif

/// An end without a call that waits, in a loop of poll(2) if it has a descriptor: `arm`, a look,
/// `rest` until it is rung for, or for a while.
void arm(auto& end) {
  if constexpr (requires { end.arm(); }) end.arm();
}
void rest(auto& end) {
  if constexpr (requires { end.fd(); }) {
    pollfd bell{.fd = end.fd(), .events = POLLIN, .revents = 0};
    poll(&bell, 1, longest_sleep_ns / 1'000'000);
  } else {
    P::Wait::pause();
  }
}

/// What wakes the sides besides words in memory: nothing, or descriptors made before the fork.
template <class Channel>
struct Bells {
  void give_to(auto& endpoint) const {
    if constexpr (requires { endpoint.use_bells(all); }) endpoint.use_bells(all);
  }
#if defined(KILL_C) && defined(KILL_EVENTFD)
  Bells() { (void)latenz_icc_eventfds_create(&all, 1 + Channel::shape.readers); }
  Bells(const Bells&) = delete;
  Bells& operator=(const Bells&) = delete;
  ~Bells() { latenz_icc_eventfds_close(&all); }
  latenz_icc_eventfds all{};
#elif defined(KILL_EVENTFD)
  EventFds<Channel> all = EventFds<Channel>::create();
#else
  int all = 0;
#endif
};

}  // namespace latenz::icc::kill
