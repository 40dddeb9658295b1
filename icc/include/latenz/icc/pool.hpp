// SPDX-License-Identifier: Apache-2.0
// Pool: messages of varying length, from a writer to a reader, in blocks of several sizes.
//
// A message is up to Max items. It lies in a block of the smallest size class that has room for it:
// a line, or four times the class before, up to Max items. The smallest class has N blocks, each
// next one a quarter of them, at least two: one is read while the next is made. Each class is for
// itself: a flood of short messages takes no block from the long ones.
//
// The reader may hold several messages, and gives them back in any order. Each block has two words,
// its ticket and its state, and each word one writing side. The ticket goes up by 2 with each
// message that the block carries; the state follows, by 1 when the reader takes the message and by
// 1 when it gives the block back. So a block is free when they are equal, whoever died meanwhile:
// no list of free blocks can be lost, and no count of messages wraps into a state that was before.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "latenz/icc/endpoint.hpp"
#include "latenz/icc/lines.hpp"

namespace latenz::icc {

namespace detail {

/// Blocks of one size.
struct PoolClass {
  std::uint32_t block_bytes = 0;
  std::uint32_t blocks = 0;
  std::uint32_t first = 0;   ///< number of its first block
  std::uint32_t offset = 0;  ///< of that block in the channel
};

/// A message on its way.
struct PoolEntry {
  std::uint32_t block;
  std::uint32_t items;
  std::uint32_t ticket;
  std::uint32_t reserved;
};

/// Where things are in a pool; docs/icc-abi.md has it as a byte table.
struct PoolPlan {
  static constexpr std::size_t most_classes = 16;

  std::array<PoolClass, most_classes> classes{};  ///< from the smallest blocks to the largest
  std::uint32_t count = 0;                        ///< of classes
  std::uint32_t blocks = 0;                       ///< of all classes
  std::uint32_t entries = 0;                      ///< a power of two, more than blocks
  std::size_t head = 0;
  std::size_t tickets = 0;
  std::size_t table = 0;
  std::size_t taken = 0;
  std::size_t states = 0;
  std::size_t first_block = 0;
  std::size_t bytes = 0;  ///< of the channel: less than 3 GiB
};

constexpr PoolPlan plan_pool(std::size_t data, std::size_t longest_bytes,
                             std::uint32_t messages) noexcept {
  PoolPlan plan{};
  std::array<std::size_t, PoolPlan::most_classes> sizes{};
  for (std::size_t size = whole_lines(std::max<std::size_t>(longest_bytes, 1));;
       size = whole_lines(size / 4)) {
    sizes[plan.count++] = size;
    if (size == line_bytes) {
      break;
    }
  }
  std::uint32_t blocks = messages;
  for (std::uint32_t i = 0; i < plan.count; ++i, blocks = std::max<std::uint32_t>(blocks / 4, 2)) {
    const auto size = static_cast<std::uint32_t>(sizes[plan.count - 1 - i]);
    plan.classes[i] = {.block_bytes = size, .blocks = blocks, .first = plan.blocks};
    plan.blocks += blocks;
  }
  plan.entries = 2;
  while (plan.entries <= plan.blocks) {
    plan.entries *= 2;
  }
  const std::size_t words = whole_lines(plan.blocks * sizeof(std::uint32_t));
  plan.head = data;
  plan.tickets = plan.head + line_bytes;
  plan.table = plan.tickets + words;
  plan.taken = whole_pairs(plan.table + whole_lines(plan.entries * sizeof(PoolEntry)));
  plan.states = plan.taken + line_bytes;
  plan.first_block = whole_pairs(plan.states + words);
  plan.bytes = plan.first_block;
  for (std::uint32_t i = 0; i < plan.count; ++i) {
    plan.classes[i].offset = static_cast<std::uint32_t>(plan.bytes);
    plan.bytes += std::size_t{plan.classes[i].blocks} * plan.classes[i].block_bytes;
  }
  return plan;
}

}  // namespace detail

template <std::size_t Max, std::size_t N, class Item = std::byte, class P = Platform<>>
class Pool {
  static_assert(Max >= 1 && Max <= (1U << 30U) / sizeof(Item),
                "latenz::icc: the longest message of a pool has at most 1 GiB");
  static_assert(N >= 2 && N <= 1U << 16U, "latenz::icc: a pool has 2 to 65536 blocks of a line");

  using A = detail::Access<P>;
  using Entry = detail::PoolEntry;

  static constexpr std::size_t fields = detail::fields_of<Item>.size();
  static constexpr detail::PoolPlan plan =
      detail::plan_pool(detail::data_offset(fields, 2), Max * sizeof(Item), N);

 public:
  /// Bytes of shared memory that the channel takes; they begin at a line.
  static constexpr std::size_t bytes = plan.bytes;

  static constexpr detail::Shape shape{
      .kind = ChannelKind::pool,
      .channel_bytes = static_cast<std::uint32_t>(bytes),
      .readers = 1,
      .slots = N,
      .payload_bytes = {sizeof(Item), static_cast<std::uint32_t>(Max * sizeof(Item))},
      .fingerprint = {fingerprint<Item>(), 0},
      .fields = {detail::fields_of<Item>.data(), nullptr},
      .field_count = {fields, 0},
  };

  /// Who writes which lines.
  static constexpr auto lines() noexcept {
    return lines_of_classes(std::make_index_sequence<plan.count>{});
  }

  /// Blocks that have room for as many items, and for no fewer than a class before: what `try_loan`
  /// of so many chooses from; 0 if no message is so long.
  static constexpr std::uint32_t blocks_for(std::size_t items) noexcept {
    const std::uint32_t fitting = class_for(items);
    return fitting == plan.count ? 0 : plan.classes[fitting].blocks;
  }

 private:
  template <std::size_t... i>
  static constexpr auto lines_of_classes(std::index_sequence<i...> /*all*/) noexcept {
    const auto run = [](std::size_t begin, std::size_t end, std::uint8_t side, const char* part) {
      return LineRun{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin),
                     LineOwner::side, side, part};
    };
    return detail::lines_of<2>(
        shape, run(plan.head, plan.tickets, 0, "head"), run(plan.tickets, plan.table, 0, "tickets"),
        run(plan.table, plan.taken, 0, "messages"), run(plan.taken, plan.states, 1, "taken"),
        run(plan.states, plan.first_block, 1, "states"),
        run(plan.classes[i].offset,
            plan.classes[i].offset + plan.classes[i].blocks * plan.classes[i].block_bytes, 0,
            "blocks")...);
  }

  /// The smallest class with room for so many items; the number of classes if there is none.
  static constexpr std::uint32_t class_for(std::size_t items) noexcept {
    std::uint32_t fitting = 0;
    while (fitting < plan.count &&
           (items > Max || items * sizeof(Item) > plan.classes[fitting].block_bytes)) {
      ++fitting;
    }
    return fitting;
  }

  static constexpr std::uint32_t class_of(std::uint32_t block) noexcept {
    std::uint32_t its = 0;
    while (block >= plan.classes[its].first + plan.classes[its].blocks) {
      ++its;
    }
    return its;
  }

  /// Blocks and control words.
  struct Data {
    std::byte* base = nullptr;

    [[nodiscard]] std::uint32_t& word(std::size_t offset) const noexcept {
      return *reinterpret_cast<std::uint32_t*>(base + offset);
    }
    /// Number of the newest message.
    [[nodiscard]] std::uint32_t& head() const noexcept { return word(plan.head); }
    /// State that a block has when the reader has given it back.
    [[nodiscard]] std::uint32_t& ticket(std::uint32_t block) const noexcept {
      return word(plan.tickets + block * sizeof(std::uint32_t));
    }
    /// Number of the last message that the reader has taken.
    [[nodiscard]] std::uint32_t& taken() const noexcept { return word(plan.taken); }
    /// Odd while the reader holds what is in the block.
    [[nodiscard]] std::uint32_t& state(std::uint32_t block) const noexcept {
      return word(plan.states + block * sizeof(std::uint32_t));
    }
    [[nodiscard]] void* entry_at(std::uint32_t number) const noexcept {
      return base + plan.table + number % plan.entries * sizeof(Entry);
    }
    [[nodiscard]] Entry entry(std::uint32_t number) const noexcept {
      Entry read;
      A::read(&read, entry_at(number), sizeof read);
      return read;
    }
    [[nodiscard]] std::byte* block(std::uint32_t number) const noexcept {
      const detail::PoolClass& its = plan.classes[class_of(number)];
      return base + its.offset + std::size_t{number - its.first} * its.block_bytes;
    }
    /// The block that begins here; the number of blocks if none does.
    [[nodiscard]] std::uint32_t block_at(const void* address) const noexcept {
      const std::size_t offset =
          reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base);
      for (std::uint32_t i = 0; i < plan.count; ++i) {
        const detail::PoolClass& its = plan.classes[i];
        const std::size_t behind = offset - its.offset;
        if (offset >= its.offset && behind / its.block_bytes < its.blocks) {
          return behind % its.block_bytes == 0
                     ? its.first + static_cast<std::uint32_t>(behind / its.block_bytes)
                     : plan.blocks;
        }
      }
      return plan.blocks;
    }
    /// Whether an entry leads to nothing but a block, and no farther than to its end.
    [[nodiscard]] static bool leads_inside(const Entry& entry) noexcept {
      return entry.block < plan.blocks && entry.items <= Max &&
             entry.items * sizeof(Item) <= plan.classes[class_of(entry.block)].block_bytes;
    }
  };

 public:
  /// The side that writes. For one thread.
  class Writer : public detail::Openable<Writer, Pool, P> {
    using Base = detail::Openable<Writer, Pool, P>;
    friend Base;

   public:
    Writer() = default;

    /// Where the next message, of so many items, may be made: `ok`, or `full` if no block of its
    /// class is free. Nobody sees it before `publish`; a loan that is not published is the next
    /// one's. The items hold what an earlier message left there. Wait-free: a load for each block
    /// of the class at most, mostly one.
    Result try_loan(std::size_t items, std::span<Item>& message) noexcept
      requires(P::Memory::in_place)
    {
      return lend(find(items), items, message);
    }

    /// The same as soon as a block is free; `full` at once if no message is so long. Blocking.
    Result loan_until(std::size_t items, std::span<Item>& message, Deadline auto deadline) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = await_block(items, deadline);
      return result == Result::ok ? lend(result, items, message) : result;
    }

    /// Sends the first `items` of what was lent last, at most as many as were lent; once for each
    /// loan. Wait-free.
    void publish(std::size_t items) noexcept {
      if (lent_) {
        items = std::min(items, lent_items_);
        P::Memory::clean(data_.block(block_), items * sizeof(Item));
        tell(items);
      }
    }

    /// The same with all that was lent.
    void publish() noexcept { publish(lent_items_); }

    /// Writes if a block of the message's class is free: `ok`, `full`. Wait-free.
    Result try_write(std::span<const Item> message) noexcept {
      return put(find(message.size()), message);
    }

    /// Writes as soon as a block of the message's class is free; `full` at once if no message is so
    /// long. Blocking; after any other answer than `ok` nothing was written.
    Result write_until(std::span<const Item> message, Deadline auto deadline) noexcept {
      return put(await_block(message.size(), deadline), message);
    }

    /// The same without deadline: ends when it is written, or the reader restarted or is gone.
    Result write(std::span<const Item> message) noexcept { return write_until(message, Never{}); }

    /// Number of the newest message, from 1 and wrapping.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

   private:
    explicit Writer(void* memory) noexcept
        : Base{memory, 0},
          data_{static_cast<std::byte*>(memory)},
          number_{A::load_relaxed(data_.head())} {
      // An earlier incarnation may have died between the newest message and its ticket.
      if (const Entry newest = data_.entry(number_); newest.block < plan.blocks) {
        A::store_relaxed(data_.ticket(newest.block), newest.ticket);
      }
      this->enter();
    }

    /// Looks for a free block of the class, from behind the one it found last.
    Result find(std::size_t items) noexcept {
      lent_ = false;
      const std::uint32_t fitting = class_for(items);
      if (fitting == plan.count) {
        return Result::full;
      }
      const detail::PoolClass& its = plan.classes[fitting];
      std::uint32_t& next = next_[fitting];
      for (std::uint32_t i = 0; i < its.blocks; ++i) {
        block_ = its.first + next;
        next = next + 1 == its.blocks ? 0 : next + 1;
        ticket_ = A::load_relaxed(data_.ticket(block_));
        if (A::load_acquire(data_.state(block_)) == ticket_) {
          return Result::ok;
        }
      }
      return this->not_yet(Result::full);
    }

    Result await_block(std::size_t items, Deadline auto& deadline) noexcept {
      if (class_for(items) == plan.count) {
        return Result::full;
      }
      detail::Peer<P> reader{detail::Header<P>{data_.base}.side(fields, 1)};
      return this->wait_until(
          reader, [this, items] { return find(items) == Result::ok; }, deadline);
    }

    Result lend(Result found, std::size_t items, std::span<Item>& message) noexcept {
      if (found == Result::ok) {
        lent_ = true;
        lent_items_ = items;
        message = {reinterpret_cast<Item*>(data_.block(block_)), items};
      }
      return found;
    }

    Result put(Result found, std::span<const Item> message) noexcept {
      if (found == Result::ok) {
        A::write(data_.block(block_), message.data(), message.size_bytes());
        tell(message.size());
      }
      return found;
    }

    /// The message counts from `head` on. Its ticket comes behind: would it come before, and this
    /// side die between, nobody gave the block back.
    void tell(std::size_t items) noexcept {
      lent_ = false;
      const Entry entry{block_, static_cast<std::uint32_t>(items), ticket_ + 2, 0};
      A::write(data_.entry_at(number_ + 1), &entry, sizeof entry);
      A::store_release(data_.head(), ++number_);
      A::store_release(data_.ticket(block_), entry.ticket);
      this->notify();
    }

    Data data_;
    std::uint32_t number_ = 0;
    std::uint32_t block_ = 0;   ///< found last
    std::uint32_t ticket_ = 0;  ///< its
    std::size_t lent_items_ = 0;
    bool lent_ = false;
    std::array<std::uint32_t, plan.count> next_{};  ///< of each class: where to look first
  };

  /// The side that reads. For one thread. A restarted reader goes on with the message after the
  /// last one that was taken; what its predecessor held is given back, and counted as dropped.
  class Reader : public detail::Openable<Reader, Pool, P> {
    using Base = detail::Openable<Reader, Pool, P>;
    friend Base;

   public:
    Reader() = default;

    /// The next message where it stands; it stays until its `release`, and others may be taken
    /// meanwhile: `ok`, `empty`, `peer_restarted`, `busy` if what is there is none of this library:
    /// it is passed over and counted as dropped. Wait-free.
    Result try_take(std::span<const Item>& message) noexcept
      requires(P::Memory::in_place)
    {
      return hold(look(), message);
    }

    /// The same as soon as it is there. Blocking.
    Result take_until(std::span<const Item>& message, Deadline auto deadline) noexcept
      requires(P::Memory::in_place)
    {
      return hold(await_message(deadline), message);
    }

    /// Gives the block of a message back that was taken: `ok`; `empty` if it is not held.
    /// Wait-free.
    Result release(std::span<const Item> message) noexcept {
      const std::uint32_t block = data_.block_at(message.data());
      return block < plan.blocks ? give_back(block) : Result::empty;
    }

    /// Copies the next message, and tells its items in `count`; otherwise as `try_take`. Wait-free.
    Result try_read(std::span<Item, Max> message, std::size_t& count) noexcept {
      return copy(look(), message, count);
    }

    /// The same as soon as it is there. Blocking.
    Result read_until(std::span<Item, Max> message, std::size_t& count,
                      Deadline auto deadline) noexcept {
      return copy(await_message(deadline), message, count);
    }

    /// The same without deadline.
    Result read(std::span<Item, Max> message, std::size_t& count) noexcept {
      return read_until(message, count, Never{});
    }

   private:
    explicit Reader(void* memory) noexcept
        : Base{memory, 1},
          data_{static_cast<std::byte*>(memory)},
          writer_{detail::Header<P>{memory}.side(fields, 0)},
          number_{A::load_relaxed(data_.taken())},
          seen_{number_} {
      recover();
      this->enter();
    }

    [[nodiscard]] const detail::Peer<P>& peer() const noexcept { return writer_; }

    /// Gives back what an earlier incarnation held. It may have died between the last message it
    /// took and that one's state; the writer has not written over the entry, since there are more
    /// entries than blocks.
    void recover() noexcept {
      const Entry last = data_.entry(number_);
      if (is_next(last)) {
        A::store_release(data_.state(last.block), last.ticket - 1);
      }
      for (std::uint32_t block = 0; block < plan.blocks; ++block) {
        if (give_back(block) == Result::ok) {
          this->count_dropped();
        }
      }
    }

    /// Whether an entry is a message that was not taken yet.
    [[nodiscard]] bool is_next(const Entry& entry) const noexcept {
      return Data::leads_inside(entry) && entry.ticket % 2 == 0 &&
             A::load_relaxed(data_.state(entry.block)) == entry.ticket - 2;
    }

    Result give_back(std::uint32_t block) noexcept {
      const std::uint32_t state = A::load_relaxed(data_.state(block));
      if (state % 2 == 0) {
        return Result::empty;
      }
      A::store_release(data_.state(block), state + 1);
      this->notify();
      return Result::ok;
    }

    [[nodiscard]] bool is_there() noexcept {
      if (seen_ == number_) {
        seen_ = A::load_acquire(data_.head());
      }
      return seen_ != number_;
    }

    Result look() noexcept {
      if (writer_.restarted()) {
        return Result::peer_restarted;
      }
      return is_there() ? next() : this->not_yet(Result::empty);
    }

    Result await_message(Deadline auto& deadline) noexcept {
      const Result result = this->wait_until(writer_, [this] { return is_there(); }, deadline);
      if (writer_.restarted()) {
        return Result::peer_restarted;
      }
      return result == Result::ok ? next() : result;
    }

    /// Takes the next message. First its number, then its state: would this side die between in the
    /// other order, a message whose block was given back would be taken.
    Result next() noexcept {
      if (seen_ - number_ > plan.blocks) {  // each has a block, so there are not so many
        number_ = seen_ - 1;
      }
      ++number_;
      entry_ = data_.entry(number_);
      A::store_relaxed(data_.taken(), number_);
      if (!is_next(entry_)) {
        this->count_dropped();
        return Result::busy;
      }
      A::store_release(data_.state(entry_.block), entry_.ticket - 1);
      return Result::ok;
    }

    Result hold(Result found, std::span<const Item>& message) noexcept {
      if (found == Result::ok) {
        const std::byte* const block = data_.block(entry_.block);
        P::Memory::invalidate(block, entry_.items * sizeof(Item));
        message = {reinterpret_cast<const Item*>(block), entry_.items};
      }
      return found;
    }

    Result copy(Result found, std::span<Item, Max> message, std::size_t& count) noexcept {
      count = 0;
      if (found == Result::ok) {
        A::read(message.data(), data_.block(entry_.block), entry_.items * sizeof(Item));
        count = entry_.items;
        give_back(entry_.block);
      }
      return found;
    }

    Data data_;
    detail::Peer<P> writer_;
    std::uint32_t number_ = 0;  ///< of the message taken last
    std::uint32_t seen_ = 0;    ///< newest message that is known to be there
    Entry entry_{};             ///< of the message taken last
  };
};

}  // namespace latenz::icc
