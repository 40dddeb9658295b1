// Small straight programs over a few words, to try the memory machines themselves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "explorer.hpp"

namespace latenz::explorer {

enum class Do : std::uint8_t {
  relaxed_load,
  acquire_load,
  relaxed_store,
  release_store,
  full_fence,
  acquire_fence,
  release_fence
};

struct Instruction {
  Do what;
  std::uint32_t word = 0;
  std::uint32_t value = 0;
};

using Program = std::vector<std::vector<Instruction>>;

inline std::uint32_t& word(std::uint32_t number) {
  return reinterpret_cast<std::uint32_t*>(Arena::memory())[number];
}

struct Straight final : Thread {
  explicit Straight(const std::vector<Instruction>& code) : size(code.size()) {
    std::copy(code.begin(), code.end(), instructions.begin());
  }
  void operation() override {
    const Instruction& now = instructions[at];
    switch (now.what) {
      case Do::relaxed_load:
        read[reads++] = ExploredOrder::load_relaxed(word(now.word));
        break;
      case Do::acquire_load:
        read[reads++] = ExploredOrder::load_acquire(word(now.word));
        break;
      case Do::relaxed_store:
        ExploredOrder::store_relaxed(word(now.word), now.value);
        break;
      case Do::release_store:
        ExploredOrder::store_release(word(now.word), now.value);
        break;
      case Do::full_fence:
        ExploredOrder::full_fence();
        break;
      case Do::acquire_fence:
        ExploredOrder::acquire_fence();
        break;
      case Do::release_fence:
        ExploredOrder::release_fence();
        break;
    }
    ++at;
  }
  [[nodiscard]] bool ended() const override { return at == size; }

  std::array<Instruction, 6> instructions{};
  std::size_t size;
  std::size_t at = 0;
  std::array<std::uint32_t, 6> read{};
  std::size_t reads = 0;
};

// What the threads' loads gave, in the order of the program, as digits: "01 1".
using Outcomes = std::set<std::string>;

inline Outcomes outcomes(Model model, const Program& program, Report* report = nullptr) {
  for (std::uint32_t i = 0; i < 4; ++i) word(i) = 0;
  Explorer explorer(model);
  std::vector<const Straight*> threads;
  for (const auto& code : program) threads.push_back(&explorer.add<Straight>("thread", code));
  Outcomes seen;
  explorer.at_end([&] {
    std::string outcome;
    for (const Straight* thread : threads) {
      for (std::size_t i = 0; i < thread->reads; ++i)
        outcome += static_cast<char>('0' + thread->read[i]);
      outcome += ' ';
    }
    outcome.pop_back();
    seen.insert(outcome);
  });
  const Report got = explorer.run();
  EXPECT_TRUE(got.passed()) << got.failure;
  if (report != nullptr) *report = got;
  return seen;
}

}  // namespace latenz::explorer
