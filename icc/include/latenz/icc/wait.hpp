// SPDX-License-Identifier: Apache-2.0
// Wait policies: what a side does between two looks at a word that has not changed yet.
//
// A policy provides
//   pause()            called after each look in vain
//   notify()           called after every store that the other side may be waiting for
//   looks_per_check    looks between two checks of the deadline (a power of two)
//   checks_per_beat    such checks between two signs of life given and looked for
//   silent_beats       looks for a sign of life in vain after which a call without deadline ends:
//                      some seconds with `Pause` on one machine
//
// or, if it sleeps, has a `Bell` in place of `notify`: then the channel itself sees to it that no
// wake-up is lost (`detail::Endpoint::sleep`).
#pragma once

#include <cstdint>

#if __STDC_HOSTED__ && defined(__unix__)
#include <sched.h>
#endif

namespace latenz::icc {

/// Looks without pause, which suits memory that is not cached. Where it is, a spinner takes the
/// line back while it is being filled.
struct Spin {
  static constexpr std::uint32_t looks_per_check = 64;
  static constexpr std::uint32_t checks_per_beat = 16;
  static constexpr std::uint32_t silent_beats = 1U << 17U;

  static void pause() noexcept {}
  static void notify() noexcept {}
};

/// Tells the core that it waits: it looks less often, and leaves more to its other hardware thread.
struct Pause : Spin {
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    asm volatile("yield" ::: "memory");
#endif
  }
};

#if __STDC_HOSTED__ && defined(__unix__)
/// Lets other threads of this core run meanwhile.
struct Yield : Spin {
  static constexpr std::uint32_t looks_per_check = 1;
  static constexpr std::uint32_t checks_per_beat = 1;
  static constexpr std::uint32_t silent_beats = 1U << 20U;

  static void pause() noexcept { sched_yield(); }
};
#endif

#if defined(__aarch64__) || defined(__arm__)
/// Sleeps until an event: of `notify` on a core whose events reach this one (cores of one cluster),
/// or of the timer's event stream, without which a dead peer's waiter would sleep for ever.
struct WaitForEvent : Spin {
  static constexpr std::uint32_t looks_per_check = 1;
  static constexpr std::uint32_t checks_per_beat = 1;

  static void pause() noexcept { asm volatile("wfe" ::: "memory"); }
  static void notify() noexcept { asm volatile("dsb sy\n\tsev" ::: "memory"); }
};
#endif

/// Functions of the user's, for instance those of an RTOS: `pause` may block for a short while.
template <auto pause_function, auto notify_function>
struct WaitHook : Spin {
  static constexpr std::uint32_t looks_per_check = 1;
  static constexpr std::uint32_t checks_per_beat = 1;

  static void pause() noexcept { pause_function(); }
  static void notify() noexcept { notify_function(); }
};

/// Sleeps until the other side rings. `Bell` provides
///   wait(word, value, longest_ns)   sleeps while `word` in shared memory has this value, until
///                                   `wake`, at most so long; may return early
///   wake(word)                      wakes all who sleep on this word
/// under Linux `Futex` (linux_wait.hpp). Or each side has a bell of its own, outside the memory,
/// which stays rung until it is silenced; then `Bell` is an object, which each endpoint is given by
/// `use_bells`, and provides in place of `wake`
///   silence()                       forgets rings so far
///   ring(side)                      rings the bell of the side of this number
/// under Linux `EventFd` (linux_eventfd.hpp).
///
/// Nobody sleeps longer than `longest_ns` without a look: so a dead peer is noticed, and so is what
/// comes from a peer that does not ring because its policy is another one, or its processor cannot.
/// Each write costs a fence and a look at who sleeps; ringing is a call of the system.
template <class BellPolicy, std::int64_t longest_ns = 10'000'000>
struct Sleep {
  static_assert(longest_ns >= 1000 && longest_ns <= 1'000'000'000,
                "a sleep takes microseconds, and a sign of life is given each second");

  using Bell = BellPolicy;
  static constexpr std::int64_t longest_sleep_ns = longest_ns;
  static constexpr std::uint32_t looks_per_check = 1;
  static constexpr std::uint32_t checks_per_beat = 1;
  static constexpr std::uint32_t silent_beats =
      static_cast<std::uint32_t>(5'000'000'000 / longest_ns);

  /// Where there is nobody yet who could ring.
  static void pause() noexcept {
    std::uint32_t nobodys = 0;
    Bell{}.wait(nobodys, 0, longest_ns < 1'000'000 ? longest_ns : 1'000'000);
  }
};

namespace detail {

/// Whether a wait policy sleeps.
template <class WaitPolicy>
concept Sleeping = requires { typename WaitPolicy::Bell; };

/// Whether each side has a bell of its own.
template <class WaitPolicy>
concept OwnBells =
    Sleeping<WaitPolicy> && requires(typename WaitPolicy::Bell bell) { bell.ring(0U); };

/// What an endpoint keeps of the bells: nothing if they are words in shared memory.
template <class WaitPolicy>
struct KeptBell {
  struct Type {};
};
template <Sleeping WaitPolicy>
struct KeptBell<WaitPolicy> {
  using Type = typename WaitPolicy::Bell;
};

}  // namespace detail

}  // namespace latenz::icc
