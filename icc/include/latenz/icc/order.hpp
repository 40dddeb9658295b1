// SPDX-License-Identifier: Apache-2.0
// Order policies: how reads and writes of shared control words are ordered between processors.
//
// All control words are 32 bits wide and each has one writer at a time, so loads and stores
// suffice: no policy uses a read-modify-write instruction (exclusive accesses need a monitor that
// memory between unlike processors may not have: Cortex-R5 TRM, "Exclusive accesses").
//
// A policy provides, as static functions:
//   load_relaxed(word), load_acquire(word), store_relaxed(word, value), store_release(word, value)
//   acquire_fence()  later accesses stay behind earlier loads
//   release_fence()  earlier accesses stay before later stores
//   full_fence()     stores before it are visible before loads after it are done
#pragma once

#include <atomic>
#include <cstdint>

namespace latenz::icc {

/// The fences of the language: right wherever both sides are in one inner shareable domain (threads
/// and processes under one operating system, cores of one cluster). On Arm they are `dmb ish`.
struct StandardOrder {
  static std::uint32_t load_relaxed(std::uint32_t& word) noexcept {
    return std::atomic_ref(word).load(std::memory_order_relaxed);
  }
  static std::uint32_t load_acquire(std::uint32_t& word) noexcept {
    return std::atomic_ref(word).load(std::memory_order_acquire);
  }
  static void store_relaxed(std::uint32_t& word, std::uint32_t value) noexcept {
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
  }
  static void store_release(std::uint32_t& word, std::uint32_t value) noexcept {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }
  static void acquire_fence() noexcept { std::atomic_thread_fence(std::memory_order_acquire); }
  static void release_fence() noexcept { std::atomic_thread_fence(std::memory_order_release); }
  static void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
};

#if defined(__aarch64__) || defined(__arm__)
/// Barriers for the whole system, for processors that are not known to share an inner shareable
/// domain: on the Zynq UltraScale+ the Cortex-A53 cluster and the Cortex-R5 cores.
struct ArmSystemOrder {
  static std::uint32_t load_relaxed(std::uint32_t& word) noexcept {
    return *static_cast<volatile std::uint32_t*>(&word);
  }
  static std::uint32_t load_acquire(std::uint32_t& word) noexcept {
    const std::uint32_t value = load_relaxed(word);
    acquire_fence();
    return value;
  }
  static void store_relaxed(std::uint32_t& word, std::uint32_t value) noexcept {
    *static_cast<volatile std::uint32_t*>(&word) = value;
  }
  static void store_release(std::uint32_t& word, std::uint32_t value) noexcept {
    release_fence();
    store_relaxed(word, value);
  }
#ifdef __aarch64__
  static void acquire_fence() noexcept { asm volatile("dmb ld" ::: "memory"); }
#else  // ARMv7 has no barrier for loads alone
  static void acquire_fence() noexcept { asm volatile("dmb sy" ::: "memory"); }
#endif
  static void release_fence() noexcept { asm volatile("dmb sy" ::: "memory"); }
  static void full_fence() noexcept { asm volatile("dmb sy" ::: "memory"); }
};
#endif

/// Every access sequentially consistent, and no fences, which ThreadSanitizer does not understand.
/// Announced pairs stay correct: of a reader's announcement and the writer's next look, one comes
/// first in the single order of all accesses.
struct SanitizerOrder {
  static std::uint32_t load_relaxed(std::uint32_t& word) noexcept {
    return std::atomic_ref(word).load(std::memory_order_seq_cst);
  }
  static std::uint32_t load_acquire(std::uint32_t& word) noexcept { return load_relaxed(word); }
  static void store_relaxed(std::uint32_t& word, std::uint32_t value) noexcept {
    std::atomic_ref(word).store(value, std::memory_order_seq_cst);
  }
  static void store_release(std::uint32_t& word, std::uint32_t value) noexcept {
    store_relaxed(word, value);
  }
  static void acquire_fence() noexcept {}
  static void release_fence() noexcept {}
  static void full_fence() noexcept {}
};

}  // namespace latenz::icc
