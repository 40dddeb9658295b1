// Seeded defects, made by changing accesses of the shipped headers on their way to memory.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "access.hpp"

namespace latenz::explorer {

// What is done to one access; it may perform it changed, later, or not at all.
class Changed final : public Mutant {
 public:
  using Change = std::function<std::uint32_t(const Access&)>;
  explicit Changed(Change change) : change_(std::move(change)) {}
  std::uint32_t access(Access wanted) override { return change_(wanted); }

 private:
  Change change_;
};

inline int thread() { return current_run == nullptr ? -1 : current_run->thread; }
inline std::size_t offset(const Access& access) { return std::size_t{access.word} * 4; }
inline bool is(const Access& access, Kind kind, std::size_t at) {
  return access.kind == kind && offset(access) == at;
}

inline Changed without_fence(Kind fence, int of) {
  return Changed([=](const Access& wanted) {
    return wanted.kind == fence && thread() == of ? 0 : perform(wanted);
  });
}

// A release store or acquire load that orders nothing.
inline Changed relaxed(Kind kind, std::size_t at) {
  return Changed([=](Access wanted) {
    if (is(wanted, kind, at)) wanted.ordered = false;
    return perform(wanted);
  });
}
inline Changed relaxed(Kind kind, std::size_t at, std::size_t end) {
  return Changed([=](Access wanted) {
    if (wanted.kind == kind && offset(wanted) >= at && offset(wanted) < end) wanted.ordered = false;
    return perform(wanted);
  });
}

// A load that always gives the same, or the value changed.
inline Changed loads(std::size_t at, int of, std::function<std::uint32_t(std::uint32_t)> as) {
  return Changed([=, as = std::move(as)](const Access& wanted) {
    const std::uint32_t value = perform(wanted);
    return is(wanted, Kind::load, at) && thread() == of ? as(value) : value;
  });
}

// Stores (and writes) to [at, end) come after the thread's next store to `behind`.
class StoredLater final : public Mutant {
 public:
  StoredLater(std::size_t at, std::size_t end, std::size_t behind)
      : at_(at), end_(end), behind_(behind) {}
  void begin() override { held_.clear(); }
  std::uint32_t access(Access wanted) override {
    const bool stores = wanted.kind == Kind::store || wanted.kind == Kind::write;
    if (stores && offset(wanted) >= at_ && offset(wanted) < end_ && offset(wanted) != behind_) {
      held_.push_back(wanted);
      return 0;
    }
    const std::uint32_t value = perform(wanted);
    if (stores && offset(wanted) == behind_) {
      const std::vector<Access> held = std::exchange(held_, {});
      for (const Access& each : held) perform(each);
    }
    return value;
  }

 private:
  std::size_t at_, end_, behind_;
  std::vector<Access> held_;
};

}  // namespace latenz::explorer
