// SPDX-License-Identifier: Apache-2.0
// Sleeping under Linux until a file descriptor is readable: the bells of `Sleep<EventFd>`, for
// programs that also wait for other things by poll(2) or epoll(7).
//
// Each side of a channel has one eventfd(2), and each process all of them:
//
//   EventFds<Servo> bells = EventFds<Servo>::create();   before fork(2), which the child inherits
//   bells.send(socket);                                  or to another process, by SCM_RIGHTS
//   EventFds<Servo> bells = EventFds<Servo>::receive(socket);
//
//   servo->use_bells(bells);                             first, after create or attach
//
// Who keeps them for a side that may die and start anew is the process that created them.
#pragma once

#ifndef __linux__
#error "latenz/icc/linux_eventfd.hpp is for programs under Linux"
#endif

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "latenz/icc/wait.hpp"

namespace latenz::icc {

/// The eventfds of all sides of a channel, by number of the side; side 0 is the one that writes (or
/// the client). Closed at the end, so this outlives the endpoints that use it.
template <class Channel>
class EventFds {
 public:
  static constexpr std::uint32_t sides = 1 + Channel::shape.readers;

  /// New ones; without them, `problem` says why. Not inherited by programs started by execve(2).
  static EventFds create() noexcept {
    EventFds made;
    for (int& each : made.all_) {
      each = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
      if (each < 0) {
        made.problem_ = strerror(errno);
        break;
      }
    }
    return made;
  }

  /// Those that another process sends through a Unix socket. Blocks until they are there.
  static EventFds receive(int socket) noexcept {
    EventFds received;
    Letter letter;
    ssize_t bytes = 0;
    do {
      bytes = recvmsg(socket, &letter.header, MSG_CMSG_CLOEXEC);
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0) {
      received.problem_ = strerror(errno);
      return received;
    }
    std::uint32_t came = 0;
    const cmsghdr* const rights = CMSG_FIRSTHDR(&letter.header);
    if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
      came = static_cast<std::uint32_t>((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      memcpy(received.all_.data(), CMSG_DATA(rights), std::min(came, sides) * sizeof(int));
    }
    if (came != sides || letter.told != sides || (letter.header.msg_flags & MSG_CTRUNC) != 0) {
      received.problem_ = bytes == 0 ? "the sender has closed the socket"
                                     : "no eventfds of a channel with as many sides";
    }
    return received;
  }

  /// Sends them to another process, which uses the same ones from then on; false: `errno` says why.
  [[nodiscard]] bool send(int socket) const noexcept {
    Letter letter;
    cmsghdr* const rights = CMSG_FIRSTHDR(&letter.header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof all_);
    memcpy(CMSG_DATA(rights), all_.data(), sizeof all_);
    ssize_t bytes = 0;
    do {
      bytes = sendmsg(socket, &letter.header, MSG_NOSIGNAL);
    } while (bytes < 0 && errno == EINTR);
    return bytes == sizeof letter.told;
  }

  EventFds(const EventFds&) = delete;
  EventFds(EventFds&& other) noexcept
      : all_{std::exchange(other.all_, none())}, problem_{other.problem_} {}
  EventFds& operator=(EventFds other) noexcept {
    std::swap(all_, other.all_);
    problem_ = other.problem_;
    return *this;
  }
  ~EventFds() {
    for (const int each : all_) {
      if (each >= 0) {
        close(each);
      }
    }
  }

  /// Whether all of them are there; if not, `problem` says why in a few words.
  explicit operator bool() const noexcept { return problem_ == nullptr; }
  [[nodiscard]] const char* problem() const noexcept { return problem_ == nullptr ? "" : problem_; }

  /// The one that wakes this side; -1: there is none.
  [[nodiscard]] int of(std::uint32_t side) const noexcept { return side < sides ? all_[side] : -1; }

 private:
  using All = std::array<int, sides>;

  static constexpr All none() noexcept {
    All all{};
    all.fill(-1);
    return all;
  }

  /// A message that carries them, and says how many.
  struct Letter {
    Letter() noexcept {
      header.msg_iov = &part;
      header.msg_iovlen = 1;
      header.msg_control = rights;
      header.msg_controllen = CMSG_LEN(sizeof(All));  // no room for more than these
    }
    Letter(const Letter&) = delete;
    Letter& operator=(const Letter&) = delete;

    std::uint32_t told = sides;
    iovec part{&told, sizeof told};
    alignas(cmsghdr) char rights[CMSG_SPACE(sizeof(All))]{};
    msghdr header{};
  };

  EventFds() = default;

  All all_ = none();
  const char* problem_ = nullptr;
};

/// The bells of one endpoint, which `use_bells` gives it. Until then nobody hears it, and it hears
/// nobody: its waiting calls look again every `longest_ns` of `Sleep`.
class EventFd {
 public:
  EventFd() noexcept { all_.fill(-1); }
  template <class Channel>
  EventFd(const EventFds<Channel>& all, std::uint32_t own) noexcept : own_{all.of(own)} {
    for (std::uint32_t side = 0; side < most_sides; ++side) {
      all_[side] = all.of(side);
    }
  }

  [[nodiscard]] int fd() const noexcept { return own_; }

  void silence() const noexcept {
    eventfd_t rings = 0;
    eventfd_read(own_, &rings);  // EAGAIN: none
  }

  void ring(std::uint32_t side) const noexcept { eventfd_write(all_[side], 1); }

  /// Sleeps until this side's bell is rung, at most so long. Signals do not end it.
  void wait(const std::uint32_t& /*word*/, std::uint32_t /*value*/,
            std::int64_t longest_ns) const noexcept {
    const std::int64_t end_ns = now_ns() + longest_ns;
    std::int64_t left_ns = longest_ns;
    pollfd bell{.fd = own_, .events = POLLIN, .revents = 0};  // less than 0: sleeps all the time
    do {
      const timespec left{static_cast<time_t>(left_ns / 1'000'000'000),
                          static_cast<long>(left_ns % 1'000'000'000)};
      if (ppoll(&bell, 1, &left, nullptr) >= 0 || errno != EINTR) {
        return;
      }
      left_ns = end_ns - now_ns();
    } while (left_ns > 0);
  }

 private:
  static constexpr std::uint32_t most_sides = 33;  // of a Ring or Latest with 32 readers

  static std::int64_t now_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

  int own_ = -1;
  std::array<int, most_sides> all_{};
};

}  // namespace latenz::icc
