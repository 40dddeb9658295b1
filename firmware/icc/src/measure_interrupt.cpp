// SPDX-License-Identifier: Apache-2.0
// Inter-processor interrupts: ways there only, since the way back is another. The reply is a word.
#include "doorbell.hpp"
#include "measurement.hpp"

/// What is called by the interrupt vector.
extern "C" {
extern void (*const interrupt_handler)();
void (*const interrupt_handler)() = latenz::pair::Doorbell::on_interrupt;
}

namespace latenz::pair {
namespace {

void begin(RawLink<Between>& raw, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    Sample& next = sample_store[i];
    next.began = Clocks::now();
    raw.trip();
    const std::uint32_t sent = Clocks::now();
    next.raw = sent - next.began;
    Here::ring();
    raw.take();
    next.one_way = Clocks::own_time(Meeting::stamps.other().read()) - sent;
  }
}

void answer(RawLink<Between>& raw, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    raw.take();
    raw.give();
    while (!Doorbell::was_rung()) Waiting::pause();
    Meeting::stamps.own().write(Doorbell::seen());
    raw.give();
  }
}

}  // namespace

void measure_interrupt(const Task& wanted) {
  const bool begins = Side::first == (wanted.direction == Direction::there);
  if (begins && !Here::can_ring())
    firmware::fail("task direction: who is called gets no interrupts here");
  const std::uint32_t count = wanted.warm_up + wanted.samples;
  RawLink<Between> raw;
  if (!begins) Doorbell::open();
  raw.open(begins, on_chip);
  if (!begins) {
    answer(raw, count);
    return;
  }
  begin(raw, count);
  report("interrupt", {sample_store + wanted.warm_up, wanted.samples}, false);
}

}  // namespace latenz::pair
