// SPDX-License-Identifier: Apache-2.0
// Keeps CPUs apart in what they share: the console. Held for a bounded time, interrupts masked.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

class SpinLock {
 public:
  void lock() {
    while (__atomic_exchange_n(&taken_, 1U, __ATOMIC_ACQUIRE) != 0) asm volatile("yield");
  }
  void unlock() { __atomic_store_n(&taken_, 0U, __ATOMIC_RELEASE); }

 private:
  std::uint32_t taken_ = 0;
};

class LockGuard {
 public:
  explicit LockGuard(SpinLock& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace latenz::hypervisor
