// SPDX-License-Identifier: Apache-2.0
// Loads an image as a board does, at its physical addresses, and tells what the hypervisor finds
// there, by the hypervisor's own headers and checks: lines of names and numbers.
#include <elf.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "configuration.hpp"
#include "configuration_check.hpp"
#include "known_boards.hpp"

using namespace latenz::hypervisor;

namespace {

void load(const std::vector<char>& file) {
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + header.e_phoff + (i * sizeof segment), sizeof segment);
    const std::uint64_t page = segment.p_paddr & ~std::uint64_t{4095};
    void* const wanted = reinterpret_cast<void*>(page);
    const void* const got =
        mmap(wanted, segment.p_paddr - page + segment.p_memsz, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != wanted) std::cout << "overlap at " << page << '\n';
    std::memcpy(reinterpret_cast<void*>(segment.p_paddr), file.data() + segment.p_offset,
                segment.p_filesz);
  }
}

void tell(std::initializer_list<std::uint64_t> numbers) {
  for (const std::uint64_t number : numbers) std::cout << ' ' << number;
  std::cout << '\n';
}

void tell_partition(const PartitionEntry& each) {
  std::cout << "partition '" << text_of(each.name) << '\'';
  tell({each.cpu, each.flags, each.memory, each.memory_guest, each.memory_size, each.entry,
        each.argument});
  std::cout << "health";
  tell({each.restarts, static_cast<std::uint64_t>(each.on_fault),
        static_cast<std::uint64_t>(each.on_watchdog), each.restart_window_ns, each.watchdog_ns});
  for (const ImageEntry& image : each.images) {
    std::cout << "image";
    tell({image.stored, image.target, image.size});
  }
}

void tell_source(const Configuration& all, const SourceEntry& each) {
  std::cout << "source '" << text_of(each.name) << '\'';
  tell({each.partition, each.flags, each.interrupt, each.learned, each.learn_events,
        each.bottom_ns});
  std::cout << "distances";
  for (const std::int64_t distance :
       std::span(all.distance_ns).subspan(each.first_distance, each.distances)) {
    std::cout << ' ' << distance;
  }
  std::cout << "\nlimit " << each.limit_period_ns << ' ' << each.limit_jitter_ns;
  for (const std::int64_t distance :
       std::span(all.distance_ns).subspan(each.first_limit_distance, each.limit_distances)) {
    std::cout << ' ' << distance;
  }
  std::cout << '\n';
}

}  // namespace

int main(int /*count*/, const char* const* arguments) {
  std::ifstream stream(arguments[1], std::ios::binary);
  load({std::istreambuf_iterator<char>(stream), {}});
  const auto& all = *reinterpret_cast<const Configuration*>(Configuration::address);
  const Board& board = all.board == known_boards[0].number ? known_boards[0] : known_boards[1];
  std::string_view problem = problem_of(all, {.cpus = 4, .not_for_guests = board.not_for_guests});
  if (problem.empty()) problem = problem_of_arrivals(all);
  std::cout << "problem '" << problem << "'\n";
  if (!problem.empty()) return 0;
  std::cout << "head";
  tell({static_cast<std::uint64_t>(all.mode), all.flags, all.memory_end, all.trace});
  for (const CpuEntry& each : all.cpu) {
    std::cout << "cpu";
    tell({each.trace_records, each.least_cycles});
  }
  for (const auto& each : std::span(all.partition).first(all.partitions)) tell_partition(each);
  for (const auto& each : std::span(all.slot).first(all.slots)) {
    std::cout << "slot";
    tell({each.partition, each.length_ns});
  }
  for (const auto& each : std::span(all.source).first(all.sources)) tell_source(all, each);
  for (const auto& each : std::span(all.mapping).first(all.mappings)) {
    std::cout << "mapping";
    tell({each.partition, each.flags, each.guest, each.physical, each.size});
  }
  for (const auto& each : std::span(all.interrupt).first(all.interrupts)) {
    std::cout << "interrupt";
    tell({each.partition, each.interrupt, each.flags});
  }
  const auto* arrivals = reinterpret_cast<const ArrivalEntry*>(all.arrivals);
  for (std::uint64_t i = 0; i < all.arrival_count; ++i) {
    std::cout << "arrival";
    tell({arrivals[i].time_ns, arrivals[i].source});
  }
}
