// SPDX-License-Identifier: Apache-2.0
// Every message arrives, whole, once and in order, through each kind of channel. Mailbox and
// exchange go there and back; latest and ring stream both ways at once, and the emulator's turns
// end in the midst of their copies.
#include "clocks.hpp"
#include "letter.hpp"
#include "links.hpp"
#include "task.hpp"
#include "tasks.hpp"

namespace latenz::pair {
namespace {

constexpr std::uint32_t there_seed = 0x1234'5678;
constexpr std::uint32_t back_seed = 0x9ABC'DEF0;

/// `wrong`: how it differs from the letter that must come.
void demand_letter(const Letter& found, std::uint32_t number, std::uint32_t seed,
                   std::string_view link) {
  if (found == Letter::of(number, seed)) return;
  const std::string_view how = found.whole() ? ": letter " : ": torn letter ";
  firmware::fail(
      Line().add(link).add(how).add(found.number).add(" in place of ").add(number).view());
}

/// A counter of 32 bits, read often enough to see it wrap.
class Stopwatch {
 public:
  void lap() {
    const std::uint32_t now = Clocks::now();
    ticks_ += now - before_;
    before_ = now;
  }
  [[nodiscard]] std::uint64_t microseconds() const { return ticks_ * 1'000'000 / Clocks::hz(); }

 private:
  std::uint32_t before_ = Clocks::now();
  std::uint64_t ticks_ = 0;
};

void tell(std::string_view link, std::uint32_t letters, const Stopwatch& watch) {
  Line line;
  line.add(link).add(": ").add(letters).add(" letters, 0 errors, ");
  note(line.add(watch.microseconds()).add(" us"));
}

/// Letters there, and others back.
template <class Link>
void go_there_and_back(bool begins, Area area, std::uint32_t count) {
  static Link link;
  link.open(begins, area);
  Stopwatch watch;
  for (std::uint32_t i = 1; i <= count; ++i, watch.lap()) {
    if (begins) {
      Letter letter = Letter::of(i, there_seed);
      link.trip(letter);
      demand_letter(letter, i, back_seed, Link::name);
    } else {
      Letter letter{};
      link.take(letter);
      demand_letter(letter, i, there_seed, Link::name);
      link.give(Letter::of(i, back_seed));
    }
  }
  tell(Link::name, count, watch);
}

/// Both sides write all letters and read all.
void stream_by_ring(bool begins, Area area, std::uint32_t count) {
  struct Streams : RingLink<Letter, Between> {
    void stream(bool first, std::uint32_t letters, Stopwatch& watch) {
      std::uint32_t sent = 0;
      std::uint32_t received = 0;
      while (sent < letters || received < letters) {
        watch.lap();
        const auto next = Letter::of(sent + 1, first ? there_seed : back_seed);
        if (sent < letters && try_give(next)) ++sent;
        Letter found{};
        if (received < letters && try_take(found)) {
          ++received;
          demand_letter(found, received, first ? back_seed : there_seed, name);
        } else {
          Waiting::pause();
        }
      }
    }
  };
  static Streams streams;
  streams.open(begins, area);
  Stopwatch watch;
  streams.stream(begins, count, watch);
  tell("ring", count, watch);
}

/// Both sides write all letters and read whatever is the newest, until that is the last one.
void stream_by_latest(bool begins, Area area, std::uint32_t count) {
  struct Streams : LatestLink<Letter, Between> {
    std::uint32_t stream(bool first, std::uint32_t letters, Stopwatch& watch) {
      std::uint32_t seen = 0;
      std::uint32_t newest = 0;
      for (std::uint32_t sent = 0; sent < letters || newest < letters;) {
        watch.lap();
        if (sent < letters) give(Letter::of(++sent, first ? there_seed : back_seed));
        Letter found{};
        if (try_take(found)) {
          if (found.number <= newest) firmware::fail("latest: a letter came back");
          newest = found.number;
          demand_letter(found, newest, first ? back_seed : there_seed, name);
          ++seen;
        } else if (sent == letters) {
          Waiting::pause();
        }
      }
      return seen;
    }
  };
  static Streams streams;
  streams.open(begins, area);
  Stopwatch watch;
  const std::uint32_t seen = streams.stream(begins, count, watch);
  tell("latest", seen, watch);
}

}  // namespace

void check() {
  const Task& wanted = task();
  const bool begins = Side::first == (wanted.direction == Direction::there);
  const Area area = area_of(wanted.memory);
  go_there_and_back<MailboxLink<Letter, Between>>(begins, area, wanted.samples);
  Meeting::step();
  go_there_and_back<ExchangeLink<Letter, Between>>(begins, area, wanted.samples);
  Meeting::step();
  stream_by_ring(begins, area, wanted.samples);
  Meeting::step();
  stream_by_latest(begins, area, wanted.samples);
}

}  // namespace latenz::pair
