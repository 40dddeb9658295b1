// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "failure.hpp"
#include "file.hpp"
#include "intercore_case.hpp"

#ifdef LATENZ_HAS_BOOST
#include <boost/lockfree/spsc_queue.hpp>
#endif

namespace latenz::probe {
namespace {

/// Repeats a system call that a stop and continue may have interrupted; its result if it is
/// `wanted`.
template <class Call>
void demand(const char* what, ssize_t wanted, Call call) {
  ssize_t result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  if (result != wanted) {
    throw Failure(std::string(what) + ": " + std::strerror(result < 0 ? errno : EIO));
  }
}

/// A descriptor that a system call has returned.
File taken(const char* what, int descriptor) {
  if (descriptor < 0) {
    throw Failure(std::string(what) + ": " + std::strerror(errno));
  }
  return File(descriptor);
}

/// A message in shared memory, on lines of its own behind a word.
template <std::size_t size>
struct Slot {
  alignas(64) std::atomic<std::uint32_t> word;
  alignas(64) Message<size> message;
};

/// The slots for the way there and the way back.
template <std::size_t size>
struct Slots {
  Slots(std::span<std::byte> memory, LinkSide side) {
    auto* const there = reinterpret_cast<Slot<size>*>(memory.data());
    auto* const back = reinterpret_cast<Slot<size>*>(memory.data() + memory.size() / 2);
    sent = side == LinkSide::asking ? there : back;
    received = side == LinkSide::asking ? back : there;
  }

  Slot<size>* sent;
  Slot<size>* received;
};

/// Calls and serves by `send` and `receive` of Way.
template <class Way>
class LinkBy {
 public:
  using Message = Way::Message;
  using Resources = Way::Resources;

  LinkBy(std::span<std::byte> memory, LinkSide side, Resources& resources)
      : way_(memory, side, resources) {}

  void call(const Message& message, Message& reply) {
    way_.send(message);
    way_.receive(reply);
  }

  template <class Received>
  void serve(Received received) {
    Message message;
    way_.receive(message);
    received();
    way_.send(message);
  }

 private:
  Way way_;
};

/// A number for each message in a word that sleeps in the kernel: FUTEX_WAIT and FUTEX_WAKE.
template <std::size_t size>
class FutexWay {
 public:
  using Message = probe::Message<size>;
  using Resources = NoResources;

  FutexWay(std::span<std::byte> memory, LinkSide side, const Resources& /*none*/)
      : slots_(memory, side) {}

  void send(const Message& message) {
    slots_.sent->message = message;
    slots_.sent->word.store(++sent_, std::memory_order_release);
    futex(slots_.sent->word, FUTEX_WAKE, 1);
  }

  void receive(Message& message) {
    const std::uint32_t seen = received_++;
    while (slots_.received->word.load(std::memory_order_acquire) != received_) {
      futex(slots_.received->word, FUTEX_WAIT, seen);
    }
    message = slots_.received->message;
  }

 private:
  static void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
    syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
  }

  Slots<size> slots_;
  std::uint32_t sent_ = 0;
  std::uint32_t received_ = 0;
};

struct EventDescriptors {
  EventDescriptors()
      : there(taken("eventfd", eventfd(0, EFD_CLOEXEC))),
        back(taken("eventfd", eventfd(0, EFD_CLOEXEC))) {}
  File there;
  File back;
};

/// The message in shared memory, the news of it through an eventfd.
template <std::size_t size>
class EventWay {
 public:
  using Message = probe::Message<size>;
  using Resources = EventDescriptors;

  EventWay(std::span<std::byte> memory, LinkSide side, const Resources& resources)
      : slots_(memory, side),
        to_(side == LinkSide::asking ? resources.there : resources.back),
        from_(side == LinkSide::asking ? resources.back : resources.there) {}

  void send(const Message& message) {
    slots_.sent->message = message;
    std::atomic_thread_fence(std::memory_order_release);
    const std::uint64_t one = 1;
    demand("eventfd", sizeof one, [&] { return write(to_.descriptor(), &one, sizeof one); });
  }

  void receive(Message& message) {
    std::uint64_t count = 0;
    demand("eventfd", sizeof count, [&] { return read(from_.descriptor(), &count, sizeof count); });
    std::atomic_thread_fence(std::memory_order_acquire);
    message = slots_.received->message;
  }

 private:
  Slots<size> slots_;
  const File& to_;
  const File& from_;
};

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Failure(std::string("pipe: ") + std::strerror(errno));
    }
    reading = File(ends[0]);
    writing = File(ends[1]);
  }
  File reading;
  File writing;
};

struct Pipes {
  Pipe there;
  Pipe back;
};

template <std::size_t size>
class PipeWay {
 public:
  using Message = probe::Message<size>;
  using Resources = Pipes;

  PipeWay(std::span<std::byte> /*memory*/, LinkSide side, const Resources& resources)
      : to_(side == LinkSide::asking ? resources.there : resources.back),
        from_(side == LinkSide::asking ? resources.back : resources.there) {}

  void send(const Message& message) {
    demand("pipe", size, [&] { return write(to_.writing.descriptor(), &message, size); });
  }

  /// Messages up to PIPE_BUF (4096 on Linux) arrive whole.
  void receive(Message& message) {
    demand("pipe", size, [&] { return read(from_.reading.descriptor(), &message, size); });
  }

 private:
  const Pipe& to_;
  const Pipe& from_;
};

/// A queue without a name once it is open.
File message_queue(std::size_t bytes) {
  const std::string name = "/latenz-intercore-" + std::to_string(getpid());
  mq_attr attributes{};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = static_cast<long>(bytes);
  constexpr mode_t own = 0600;
  File queue =
      taken("POSIX message queue",
            mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, own, &attributes));
  mq_unlink(name.c_str());
  return queue;
}

template <std::size_t size>
struct MessageQueues {
  File there = message_queue(size);
  File back = message_queue(size);
};

template <std::size_t size>
class QueueWay {
 public:
  using Message = probe::Message<size>;
  using Resources = MessageQueues<size>;

  QueueWay(std::span<std::byte> /*memory*/, LinkSide side, const Resources& resources)
      : to_(side == LinkSide::asking ? resources.there : resources.back),
        from_(side == LinkSide::asking ? resources.back : resources.there) {}

  void send(const Message& message) {
    const auto* const bytes = reinterpret_cast<const char*>(&message);
    demand("mq_send", 0, [&] { return mq_send(to_.descriptor(), bytes, size, 0); });
  }

  void receive(Message& message) {
    auto* const bytes = reinterpret_cast<char*>(&message);
    demand("mq_receive", size,
           [&] { return mq_receive(from_.descriptor(), bytes, size, nullptr); });
  }

 private:
  const File& to_;
  const File& from_;
};

#ifdef LATENZ_HAS_BOOST
/// Two of Boost's queues for one producer and one consumer, in shared memory.
template <std::size_t size>
class BoostWay {
 public:
  using Message = probe::Message<size>;
  using Resources = NoResources;

  BoostWay(std::span<std::byte> memory, LinkSide side, const Resources& /*none*/) {
    auto* const there = reinterpret_cast<Queue*>(memory.data());
    auto* const back = reinterpret_cast<Queue*>(memory.data() + memory.size() / 2);
    if (side == LinkSide::asking) {
      new (there) Queue;
      new (back) Queue;
    }
    to_ = side == LinkSide::asking ? there : back;
    from_ = side == LinkSide::asking ? back : there;
  }

  void send(const Message& message) {
    while (!to_->push(message)) {
      ChosenWait::pause();
    }
  }

  void receive(Message& message) {
    while (!from_->pop(message)) {
      ChosenWait::pause();
    }
  }

 private:
  using Queue = boost::lockfree::spsc_queue<Message, boost::lockfree::capacity<8>>;
  static_assert(sizeof(Queue) <= link_bytes / 2);

  Queue* to_;
  Queue* from_;
};

template <std::size_t size>
using BoostLink = LinkBy<BoostWay<size>>;
#endif

template <std::size_t size>
using FutexLink = LinkBy<FutexWay<size>>;
template <std::size_t size>
using EventLink = LinkBy<EventWay<size>>;
template <std::size_t size>
using PipeLink = LinkBy<PipeWay<size>>;
template <std::size_t size>
using QueueLink = LinkBy<QueueWay<size>>;

std::unique_ptr<Case> boost_case([[maybe_unused]] std::size_t bytes) {
#ifdef LATENZ_HAS_BOOST
  return case_of_size<BoostLink>(bytes);
#else
  throw Failure(
      "--through: boost-spsc was not there when this program was built; install "
      "libboost-dev and build again");
#endif
}

}  // namespace

std::unique_ptr<Case> peer_case(Through through, std::size_t bytes) {
  switch (through) {
    case Through::boost_spsc:
      return boost_case(bytes);
    case Through::eventfd:
      return case_of_size<EventLink>(bytes);
    case Through::pipe:
      return case_of_size<PipeLink>(bytes);
    case Through::futex:
      return case_of_size<FutexLink>(bytes);
    case Through::posix_mq:
      return case_of_size<QueueLink>(bytes);
    default:
      return nullptr;
  }
}

}  // namespace latenz::probe
