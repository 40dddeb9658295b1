// SPDX-License-Identifier: Apache-2.0
#include "attach_programs.hpp"

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <span>

#include "clock.hpp"
#include "failure.hpp"
#include "text.hpp"
#include "trace_format.hpp"

namespace latenz::attach {

using probe::BpfAssembler;
using probe::Failure;
using Size = BpfAssembler::Size;
using If = BpfAssembler::If;

/// Written on its own CPU only, but for `watching`, and what we write.
struct alignas(128) Programs::Cpu {
  std::uint64_t timer_active;  ///< a timer's handler runs
  std::uint64_t timer_due;     ///< of that timer, by its own clock; 0: not known
  std::uint64_t timer_now;     ///< of the timer's clock when its handler was called
  std::uint64_t timer_function;
  std::uint64_t interrupt_began;  ///< 0: none is handled
  std::uint64_t interrupt_number;
  std::uint64_t softirq_began;  ///< 0: none is handled
  std::uint64_t softirq_vector;
  std::uint64_t stolen_before_softirq;
  std::uint64_t stolen;
  std::uint64_t watching;       ///< a watched thread is ready here
  std::uint64_t has_deadlines;  ///< written by us: threads of SCHED_DEADLINE are watched
  std::uint64_t lost;
  std::uint64_t written;  ///< records in this CPU's lane, since the start
  std::uint64_t taken;    ///< of these, by us
};

/// What the programs keep for each thread.
struct Programs::Thread {
  std::uint32_t is_deadline;
  std::uint32_t slot;  ///< in the counts of its calls
  std::int64_t call;
  std::uint64_t argument_0;
  std::uint64_t argument_1;
  std::uint64_t all_calls;
};

/// Threads by their numbers: so many have a place that may share it. Whether a thread is watched,
/// and what is kept of the first, is in one line, which is reached without a call.
struct alignas(128) Programs::Threads {
  static constexpr int ways = 2;
  std::array<std::uint32_t, ways> tid;  ///< `nobody`: free
  std::array<Thread, ways> thread;
};

/// Timers by a mix of their addresses, so many in a set; of more the oldest gives way. What is
/// looked at for each timer is in one line.
struct alignas(128) Programs::Timers {
  static constexpr int ways = 4;
  std::array<std::uint64_t, ways> address;
  std::array<std::uint64_t, ways> due;
  std::array<std::uint32_t, ways> owner;  ///< of SCHED_DEADLINE, whom no waking tells of; 0: others
  std::uint32_t next;                     ///< the way that is taken next
};
namespace {

constexpr unsigned most_cpus = 1024;
constexpr int cpu_bits = 7;
constexpr std::uint32_t most_threads = 1024;
constexpr std::uint32_t thread_sets = 4096;
constexpr int threads_bits = 7;
constexpr int calls_bits = 11;
constexpr std::uint32_t nobody = UINT32_MAX;
constexpr int record_bits = 6;
static_assert(sizeof(Event) == 1U << record_bits);
constexpr std::uint32_t all_lanes_bytes = 2U << 20U;
constexpr std::uint32_t smallest_lane = 1024;  ///< records
constexpr std::uint32_t ring_bytes = 4U << 20U;

constexpr int timers_bits = 7;
constexpr unsigned timer_sets = 256;
constexpr int mixing = 0x61C88647;  ///< the golden ratio's, as the kernel mixes
constexpr int mixed_bits = 32;      ///< the lower ones are mixed least

constexpr unsigned stack = 10;
constexpr unsigned context = 6;
constexpr unsigned cpu = 7;
constexpr unsigned thread = 8;
constexpr int record = -64;
constexpr int record_bytes = sizeof(Event);

constexpr int in_record(std::size_t offset) { return record + static_cast<int>(offset); }
constexpr int of(std::size_t offset) { return static_cast<int>(offset); }

[[noreturn]] void refuse(const std::string& what, int error) {
  std::string remedy = "; see latenz doctor";
  if (error == EPERM || error == EACCES) {
    const std::string text = probe::first_line("/sys/kernel/security/lockdown");
    if (text.find("[confidentiality]") != std::string::npos) {
      remedy =
          ": the kernel is locked down (confidentiality); boot with lockdown=integrity or none";
    } else if (geteuid() != 0) {
      remedy = "; run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN";
    } else {
      remedy =
          ": this container or service lacks CAP_BPF and CAP_PERFMON (before Linux 5.8 "
          "CAP_SYS_ADMIN); start it with --cap-add=BPF --cap-add=PERFMON, or outside";
    }
  } else if (error == ENOSYS) {
    remedy = ": this kernel has no BPF; boot one with CONFIG_BPF_SYSCALL=y";
  }
  throw Failure(what + " is refused (" + std::strerror(error) + ")" + remedy);
}

probe::File opened(probe::File file, const char* what) {
  if (!file.is_open()) refuse(what, errno);
  return file;
}

long perf_event_open(perf_event_attr& attributes, int pid, int on_cpu) {
  return syscall(SYS_perf_event_open, &attributes, pid, on_cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

std::string content_of(const std::filesystem::path& path) {
  std::string text;
  probe::Text::of_file(path).line(text, '\0');  // which none of these files has
  return text;
}

/// How many CPUs this machine may ever have; not those that we may run on.
std::uint32_t possible_cpus() {
  const std::string text = probe::first_line("/sys/devices/system/cpu/possible");
  const auto last = text.find_last_of("-,");
  std::uint32_t number = 0;
  const char* const begin = text.data() + (last == std::string::npos ? 0 : last + 1);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc() && number < most_cpus ? number + 1 : most_cpus;
}

void copy_name(BpfAssembler& code, int from) {
  for (const int part : {0, 8}) {
    code.load(Size::dword, 1, context, from + part);
    code.store(Size::dword, stack, in_record(offsetof(Event, comm)) + part, 1);
  }
}

void copy_field(BpfAssembler& code, Size size, int from, std::size_t to) {
  code.load(size, 1, context, from).store(size, stack, in_record(to), 1);
}

void clear_record(BpfAssembler& code) {
  for (int part = 0; part < record_bytes; part += 8) {
    code.store_constant(Size::dword, stack, record + part, 0);
  }
}

}  // namespace

Programs::~Programs() {
  const auto give_back = [](auto memory) {
    if (memory.data() != nullptr) munmap(memory.data(), memory.size_bytes());
  };
  give_back(cpu_memory_);
  give_back(threads_memory_);
  give_back(timers_memory_);
  give_back(counts_memory_);
  give_back(lanes_memory_);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (consumer_ != nullptr) munmap(consumer_, page);
  if (producer_ != nullptr) {
    munmap(const_cast<std::byte*>(producer_), page + 2UL * ring_bytes);  // NOLINT: as mmap gave it
  }
}

void Programs::attach(const std::filesystem::path& tracefs, bool count_cost) {
  static_assert(sizeof(Cpu) == 1U << cpu_bits && sizeof(Threads) == 1U << threads_bits);
  static_assert(sizeof(Timers) == 1U << timers_bits && sizeof(CallCounts) == 1U << calls_bits);
  tracefs_ = tracefs;
  make_maps();
  if (count_cost) {
    bpf_attr attributes{};
    attributes.enable_stats.type = BPF_STATS_RUN_TIME;
    statistics_ = probe::File(static_cast<int>(probe::bpf(BPF_ENABLE_STATS, attributes)));
  }
  attach_to("timer/hrtimer_start", true, &Programs::write_timer_start);
  attach_to("timer/hrtimer_expire_entry", true, &Programs::write_timer_entry);
  attach_to("timer/hrtimer_expire_exit", true, &Programs::write_timer_exit);
  attach_to("irq/irq_handler_entry", false, &Programs::write_interrupt_entry);
  attach_to("irq/irq_handler_exit", false, &Programs::write_interrupt_exit);
  attach_to("irq/softirq_entry", false, &Programs::write_softirq_entry);
  attach_to("irq/softirq_exit", false, &Programs::write_softirq_exit);
  attach_to("raw_syscalls/sys_enter", false, &Programs::write_call_entry);
  attach_to("exceptions/page_fault_user", false, &Programs::write_fault);
  // Where faults are told, they tell who has left a call; nobody else sleeps outside of one.
  if (!absent_.empty() && absent_.back() == "exceptions/page_fault_user") attach_to_call_exit();
  attach_to("sched/sched_process_fork", false, &Programs::write_fork);
  attach_to("vmscan/mm_vmscan_direct_reclaim_begin", false, &Programs::write_reclaim_begin);
  attach_to("vmscan/mm_vmscan_direct_reclaim_end", false, &Programs::write_reclaim_end);
  attach_to("vmscan/mm_vmscan_memcg_reclaim_begin", false, &Programs::write_reclaim_begin);
  attach_to("vmscan/mm_vmscan_memcg_reclaim_end", false, &Programs::write_reclaim_end);
  attach_to("power/cpu_frequency", false, &Programs::write_frequency);
  attach_to("sched/sched_process_exit", false, &Programs::write_gone);
  attach_to("sched/sched_waking", true, &Programs::write_waking);
  attach_to("sched/sched_switch", true, &Programs::write_switch);
}

/// An array in one value, so that the programs need no call to reach it, and neither do we.
template <typename Each>
std::span<Each> Programs::shared_array(probe::File& map, std::size_t count) {
  const std::size_t bytes = count * sizeof(Each);
  map = opened(probe::create_bpf_map(BPF_MAP_TYPE_ARRAY, sizeof(std::uint32_t),
                                     static_cast<std::uint32_t>(bytes), 1, BPF_F_MMAPABLE),
               "BPF");
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map.descriptor(), 0);
  if (memory == MAP_FAILED) refuse("memory of BPF", errno);
  return {static_cast<Each*>(memory), count};
}

void Programs::make_maps() {
  cpu_memory_ = shared_array<Cpu>(cpus_, most_cpus);
  threads_memory_ = shared_array<Threads>(threads_, thread_sets);
  timers_memory_ = shared_array<Timers>(timers_, timer_sets);
  counts_memory_ = shared_array<CallCounts>(counts_, most_threads);
  for (Threads& each : threads_memory_) each.tid.fill(nobody);
  for (std::uint32_t slot = most_threads; slot > 0; --slot) free_slots_.push_back(slot - 1);
  const std::uint32_t cpus = possible_cpus();
  lane_records_ = std::max(all_lanes_bytes / std::bit_ceil(cpus) >> record_bits, smallest_lane);
  lanes_memory_ = shared_array<Event>(lanes_, std::size_t{std::bit_ceil(cpus)} * lane_records_);
  seen_written_.resize(cpus);
  ring_ = opened(probe::create_bpf_map(BPF_MAP_TYPE_RINGBUF, 0, 0, ring_bytes), "BPF's ring");
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* consumer = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring_.descriptor(), 0);
  if (consumer == MAP_FAILED) refuse("memory of BPF's ring", errno);
  consumer_ = static_cast<std::byte*>(consumer);
  // The kernel maps the data twice in a row, so that no record is cut by the ring's end.
  const void* producer = mmap(nullptr, page + 2UL * ring_bytes, PROT_READ, MAP_SHARED,
                              ring_.descriptor(), static_cast<off_t>(page));
  if (producer == MAP_FAILED) refuse("memory of BPF's ring", errno);
  producer_ = static_cast<const std::byte*>(producer);
}

Programs::Offsets Programs::offsets_of(std::string_view tracepoint) const {
  const std::string text = content_of(tracefs_ / "events" / tracepoint / "format");
  Offsets found;
  if (const auto format = trace::parse_format(text)) {
    for (const trace::Field& field : format->fields) {
      found[field.name] = static_cast<int>(field.offset);
    }
  }
  return found;
}

void Programs::attach_to(std::string_view tracepoint, bool is_needed,
                         void (Programs::*write)(BpfAssembler&, const Offsets&)) {
  const std::string name(tracepoint);
  const std::string number = content_of(tracefs_ / "events" / tracepoint / "id");
  const Offsets offsets = offsets_of(tracepoint);
  int error = ENOENT;
  if (!number.empty()) {
    try {
      BpfAssembler code;
      (this->*write)(code, offsets);
      Attached made{
          .tracepoint = name, .program = code.load_program(BPF_PROG_TYPE_TRACEPOINT), .event = {}};
      error = errno;
      if (made.program.is_open()) {
        perf_event_attr attributes{};
        attributes.type = PERF_TYPE_TRACEPOINT;
        attributes.size = sizeof attributes;
        attributes.config = std::strtoull(number.c_str(), nullptr, 10);
        attributes.sample_period = 1;
        attributes.disabled = 1;  // the program runs on all CPUs; no samples are wanted
        made.event = probe::File(
            static_cast<int>(perf_event_open(attributes, -1, std::max(0, sched_getcpu()))));
        error = errno;
        if (made.event.is_open() && ioctl(made.event.descriptor(), PERF_EVENT_IOC_SET_BPF,
                                          made.program.descriptor()) == 0) {
          attached_.push_back(std::move(made));
          return;
        }
        error = errno;
      }
    } catch (const std::out_of_range&) {  // the kernel's event has other fields
      error = EPROTO;
    }
  }
  if (is_needed) {
    refuse("BPF on the tracepoint " + name, error);
  }
  absent_.push_back(name);
}

/// By a uprobe, which the kernel plants into the memory of this process alone.
void Programs::mark(const Place& place, std::int32_t pid, std::uint32_t value) {
  const std::filesystem::path source = "/sys/bus/event_source/devices/uprobe";
  const std::string type = probe::first_line(source / "type");
  if (type.empty()) {
    throw Failure(
        "this kernel has no uprobes, which --begin and --end need; boot one with "
        "CONFIG_UPROBE_EVENTS=y, or mark the program by latenz/mark.h");
  }
  BpfAssembler code;
  write_mark(code, value);
  const std::string name = "uprobe " + place.file + "+" + std::to_string(place.offset);
  Attached made{
      .tracepoint = name, .program = code.load_program(BPF_PROG_TYPE_KPROBE), .event = {}};
  if (!made.program.is_open()) refuse("BPF on a uprobe", errno);
  perf_event_attr attributes{};
  attributes.type = static_cast<std::uint32_t>(std::strtoul(type.c_str(), nullptr, 10));
  attributes.size = sizeof attributes;
  constexpr unsigned semaphore_bits = 32;
  attributes.config = (place.semaphore << semaphore_bits) | (place.at_return ? 1U : 0U);
  attributes.uprobe_path = probe::bpf_pointer(place.file.c_str());
  attributes.probe_offset = place.offset;
  made.event = probe::File(static_cast<int>(perf_event_open(attributes, pid, -1)));
  if (!made.event.is_open() ||
      ioctl(made.event.descriptor(), PERF_EVENT_IOC_SET_BPF, made.program.descriptor()) != 0) {
    refuse("a uprobe in " + place.file, errno);
  }
  attached_.push_back(std::move(made));
}

Programs::Seat Programs::seat_of(std::uint32_t tid) {
  Threads& set = threads_memory_[tid & (thread_sets - 1)];
  for (const std::uint32_t wanted : {tid, nobody}) {
    for (std::size_t way = 0; way < set.tid.size(); ++way) {
      if (set.tid[way] == wanted) return {.tid = &set.tid[way], .thread = &set.thread[way]};
    }
  }
  return {};
}

bool Programs::watch(std::int32_t tid, bool is_deadline) {
  const auto number = static_cast<std::uint32_t>(tid);
  const Seat place = seat_of(number);
  if (place.tid == nullptr) return false;
  const bool is_new = *place.tid == nobody;
  if (is_new && free_slots_.empty()) return false;
  const std::uint32_t slot = is_new ? free_slots_.back() : place.thread->slot;
  if (is_new) {
    free_slots_.pop_back();
    counts_memory_[slot] = {};
  }
  *place.thread = {.is_deadline = is_deadline ? 1U : 0U,
                   .slot = slot,
                   .call = unknown_call,
                   .argument_0 = 0,
                   .argument_1 = 0,
                   .all_calls = 0};
  if (is_deadline) {
    watch_deadlines();
  }
  std::atomic_ref(*place.tid).store(number, std::memory_order_release);
  return true;
}

/// Their timers are told, and so must be whether they are in a call when they leave their CPU
/// without sleeping.
void Programs::watch_deadlines() {
  if (std::exchange(has_deadlines_, true)) return;
  for (Cpu& each : cpu_memory_) each.has_deadlines = 1;
  attach_to_call_exit();
}

void Programs::attach_to_call_exit() {
  constexpr std::string_view name = "raw_syscalls/sys_exit";
  const bool is_attached =
      std::ranges::any_of(attached_, [&](const Attached& each) { return each.tracepoint == name; });
  if (!is_attached) attach_to(name, false, &Programs::write_call_exit);
}

void Programs::forget(std::int32_t tid) {
  const Seat place = seat_of(static_cast<std::uint32_t>(tid));
  if (place.tid == nullptr || *place.tid == nobody) return;
  std::atomic_ref(*place.tid).store(nobody, std::memory_order_release);
  free_slots_.insert(free_slots_.begin(), place.thread->slot);  // a program may just be at it
}

void Programs::forget_timers() {
  for (Timers& each : timers_memory_) each.address = {};
}

/// What a CPU has written until the last time is handed on now: by then it is there for every
/// processor to see, and what another one wrote before is there, too.
void Programs::drain(const std::function<void(const Event&)>& take) {
  batch_.clear();
  for (std::size_t cpu = 0; cpu < seen_written_.size(); ++cpu) drain_lane(cpu);
  drain_ring();
  std::ranges::stable_sort(batch_, {}, &Event::t_ns);
  for (const Event& event : batch_) take(event);
  until_ns_ = probe::read_clock_ns(CLOCK_MONOTONIC);
  for (std::size_t cpu = 0; cpu < seen_written_.size(); ++cpu) {
    seen_written_[cpu] = std::atomic_ref(cpu_memory_[cpu].written).load(std::memory_order_acquire);
  }
}

void Programs::drain_lane(std::size_t cpu) {
  const auto lane = lanes_memory_.subspan(cpu * lane_records_, lane_records_);
  std::uint64_t taken = cpu_memory_[cpu].taken;
  while (taken < seen_written_[cpu]) {
    const Event& event = lane[taken & (lane_records_ - 1)];
    if (event.t_ns > until_ns_) break;
    batch_.push_back(event);
    ++taken;
  }
  std::atomic_ref(cpu_memory_[cpu].taken).store(taken, std::memory_order_release);
}

void Programs::drain_ring() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto& consumed = *reinterpret_cast<std::uint64_t*>(consumer_);
  // The kernel counts up beside us; reading needs no write.
  auto& produced =
      *const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(producer_));  // NOLINT
  const std::byte* data = producer_ + page;
  std::uint64_t at = std::atomic_ref(consumed).load(std::memory_order_acquire);
  const std::uint64_t end = std::atomic_ref(produced).load(std::memory_order_acquire);
  while (at < end) {
    const std::byte* place = data + (at & (ring_bytes - 1));
    auto& head =
        *const_cast<std::uint32_t*>(reinterpret_cast<const std::uint32_t*>(place));  // NOLINT
    const std::uint32_t length = std::atomic_ref(head).load(std::memory_order_acquire);
    if ((length & BPF_RINGBUF_BUSY_BIT) != 0) break;
    const std::uint32_t bytes = length & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    if ((length & BPF_RINGBUF_DISCARD_BIT) == 0 && bytes == sizeof(Event)) {
      Event event;
      std::memcpy(&event, place + BPF_RINGBUF_HDR_SZ, sizeof event);
      if (event.t_ns > until_ns_) break;
      batch_.push_back(event);
    }
    at += (bytes + BPF_RINGBUF_HDR_SZ + 7U) & ~7U;
    std::atomic_ref(consumed).store(at, std::memory_order_release);
  }
}

Programs::Calls Programs::calls(std::int32_t tid) {
  Calls found{};
  const Seat place = seat_of(static_cast<std::uint32_t>(tid));
  if (place.tid != nullptr && *place.tid != nobody) {
    std::ranges::copy(counts_memory_[place.thread->slot], found.begin());
  }
  return found;
}

std::uint64_t Programs::lost() const {
  std::uint64_t sum = 0;
  for (Cpu& each : cpu_memory_) {
    sum += std::atomic_ref(each.lost).load(std::memory_order_relaxed);
  }
  return sum;
}

std::vector<ProgramCost> Programs::costs() const {
  std::vector<ProgramCost> found;
  if (!statistics_.is_open()) return found;
  for (const Attached& each : attached_) {
    bpf_prog_info info{};
    bpf_attr attributes{};
    attributes.info.bpf_fd = static_cast<std::uint32_t>(each.program.descriptor());
    attributes.info.info_len = sizeof info;
    attributes.info.info = probe::bpf_pointer(&info);
    if (probe::bpf(BPF_OBJ_GET_INFO_BY_FD, attributes) == 0) {
      found.push_back(
          {.tracepoint = each.tracepoint, .runs = info.run_cnt, .total_ns = info.run_time_ns});
    }
  }
  return found;
}

// ---- the programs. All return 1: others who sample the same tracepoints by perf get their
// samples.

void Programs::load_cpu(BpfAssembler& code, BpfAssembler::Label beyond) const {
  const auto within = code.label();
  code.call(BPF_FUNC_get_smp_processor_id);
  code.jump_if(If::less, 0, static_cast<int>(seen_written_.size()), within);
  code.jump(beyond);
  code.bind(within);
  code.compute(BPF_LSH, 0, cpu_bits);
  code.load_map_value(cpu, cpus_).compute_with(BPF_ADD, cpu, 0);
}

/// `thread`: the one whose number is in `tid`. Uses r2 and r3.
void Programs::find_thread(BpfAssembler& code, unsigned tid, BpfAssembler::Label unwatched) const {
  const auto first = code.label();
  const auto found = code.label();
  code.copy(2, tid).compute(BPF_AND, 2, thread_sets - 1).compute(BPF_LSH, 2, threads_bits);
  code.load_map_value(thread, threads_).compute_with(BPF_ADD, thread, 2);
  code.load(Size::word, 3, thread, of(offsetof(Threads, tid))).jump_if_same(3, tid, first);
  code.load(Size::word, 3, thread, of(offsetof(Threads, tid) + sizeof(std::uint32_t)));
  code.jump_if_differs(3, tid, unwatched);
  code.compute(BPF_ADD, thread, of(offsetof(Threads, thread) + sizeof(Thread))).jump(found);
  code.bind(first).compute(BPF_ADD, thread, of(offsetof(Threads, thread)));
  code.bind(found);
}

/// r1: the number of the current thread.
void load_current(BpfAssembler& code) {
  constexpr int word_bits = 32;
  code.call(BPF_FUNC_get_current_pid_tgid).copy(1, 0);
  code.compute(BPF_LSH, 1, word_bits).compute(BPF_RSH, 1, word_bits);
}

/// `thread`: the current one. Its number gets into the record, of which nothing else is set.
void Programs::find_current(BpfAssembler& code, BpfAssembler::Label unwatched) const {
  load_current(code);
  find_thread(code, 1, unwatched);
  clear_record(code);
  code.store(Size::word, stack, in_record(offsetof(Event, tid)), 1);
}

/// r3: the `Timers` that the timer of the event is in, whose address is in r1. Uses r2.
void Programs::find_timers(BpfAssembler& code) const {
  code.copy(2, 1).compute(BPF_MUL, 2, mixing).compute(BPF_RSH, 2, mixed_bits);
  code.compute(BPF_AND, 2, timer_sets - 1).compute(BPF_LSH, 2, timers_bits);
  code.load_map_value(3, timers_).compute_with(BPF_ADD, 3, 2);
}

/// After the record was cleared.
void tell_cpu(BpfAssembler& code) {
  code.call(BPF_FUNC_get_smp_processor_id);
  code.store(Size::half, stack, in_record(offsetof(Event, cpu)), 0);
}

/// Puts the time and the kind into the record, and the record into the ring.
void Programs::emit(BpfAssembler& code, EventKind kind) const {
  const auto taken = code.label();
  code.store_constant(Size::byte, stack, in_record(offsetof(Event, kind)), static_cast<int>(kind));
  code.call(BPF_FUNC_ktime_get_ns);
  code.store(Size::dword, stack, in_record(offsetof(Event, t_ns)), 0);
  code.load_map(1, ring_).copy(2, stack).compute(BPF_ADD, 2, record);
  code.set(3, sizeof(Event)).set(4, BPF_RB_NO_WAKEUP).call(BPF_FUNC_ringbuf_output);
  code.jump_if(If::equal, 0, 0, taken);
  code.set(1, 1).add_to(cpu, of(offsetof(Cpu, lost)), 1);
  code.bind(taken);
}

/// As `emit`, of events that happen with interrupts off: a CPU writes them into a lane of its own,
/// which costs it no call and no lock.
void Programs::emit_in_lane(BpfAssembler& code, EventKind kind) const {
  const auto room = code.label();
  const auto done = code.label();
  code.store_constant(Size::byte, stack, in_record(offsetof(Event, kind)), static_cast<int>(kind));
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, written)));
  code.load(Size::dword, 2, cpu, of(offsetof(Cpu, taken))).compute_with(BPF_SUB, 1, 2);
  code.jump_if(If::less, 1, static_cast<int>(lane_records_), room);
  code.set(1, 1).add_to(cpu, of(offsetof(Cpu, lost)), 1).jump(done);
  code.bind(room).call(BPF_FUNC_ktime_get_ns);
  code.store(Size::dword, stack, in_record(offsetof(Event, t_ns)), 0);
  code.call(BPF_FUNC_get_smp_processor_id);
  code.compute(BPF_LSH, 0, record_bits + std::countr_zero(lane_records_));
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, written)));
  code.copy(2, 1).compute(BPF_AND, 2, static_cast<int>(lane_records_ - 1));
  code.compute(BPF_LSH, 2, record_bits).compute_with(BPF_OR, 2, 0);
  code.compute(BPF_AND, 2, static_cast<int>(lanes_memory_.size_bytes() - sizeof(Event)));
  code.load_map_value(3, lanes_).compute_with(BPF_ADD, 3, 2);
  for (int part = 0; part < record_bytes; part += 8) {
    code.load(Size::dword, 4, stack, record + part).store(Size::dword, 3, part, 4);
  }
  code.compute(BPF_ADD, 1, 1).store(Size::dword, cpu, of(offsetof(Cpu, written)), 1);
  code.bind(done);
}

void Programs::write_timer_start(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  code.copy(context, 1).load(Size::dword, 1, context, at.at("hrtimer"));
  find_timers(code);
  code.load(Size::dword, 5, context, at.at("softexpires"));
  for (int way = 0; way < Timers::ways; ++way) {
    const auto other = code.label();
    code.load(Size::dword, 4, 3, of(offsetof(Timers, address)) + way * 8);
    code.jump_if_differs(4, 1, other);
    code.store(Size::dword, 3, of(offsetof(Timers, due)) + way * 8, 5).jump(end);
    code.bind(other);
  }
  write_timer_first_start(code, at, end);
  code.bind(end).exit(1);
}

/// A timer that is not known yet. In a timer's handler the current thread has nothing to do with
/// it.
void Programs::write_timer_first_start(BpfAssembler& code, const Offsets& at,
                                       BpfAssembler::Label end) const {
  const auto owned = code.label();
  load_cpu(code, end);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, timer_active)));
  code.jump_if(If::not_equal, 1, 0, end);
  load_current(code);
  find_thread(code, 1, end);
  code.load(Size::word, 2, thread, of(offsetof(Thread, is_deadline)));
  code.jump_if(If::not_equal, 2, 0, owned);
  code.set(1, 0);
  code.bind(owned).copy(9, 1);
  code.load(Size::dword, 1, context, at.at("hrtimer"));
  find_timers(code);
  code.load(Size::dword, 5, context, at.at("softexpires"));
  code.load(Size::word, 4, 3, of(offsetof(Timers, next)));
  code.copy(2, 4).compute(BPF_ADD, 2, 1).store(Size::word, 3, of(offsetof(Timers, next)), 2);
  code.compute(BPF_AND, 4, Timers::ways - 1);
  constexpr int dword_bits = 3;
  constexpr int word_bits = 2;
  code.copy(2, 4).compute(BPF_LSH, 2, word_bits).compute_with(BPF_ADD, 2, 3);
  code.store(Size::word, 2, of(offsetof(Timers, owner)), 9);
  code.compute(BPF_LSH, 4, dword_bits).compute_with(BPF_ADD, 3, 4);
  code.store(Size::dword, 3, of(offsetof(Timers, due)), 5);
  code.store(Size::dword, 3, of(offsetof(Timers, address)), 1);
}

void Programs::write_timer_entry(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  const auto known = code.label();
  code.copy(context, 1);
  load_cpu(code, end);
  code.set(1, 1).store(Size::dword, cpu, of(offsetof(Cpu, timer_active)), 1);
  for (const auto& [field, to] : {std::pair{"now", offsetof(Cpu, timer_now)},
                                  std::pair{"function", offsetof(Cpu, timer_function)}}) {
    code.load(Size::dword, 1, context, at.at(field)).store(Size::dword, cpu, of(to), 1);
  }
  code.load(Size::dword, 1, context, at.at("hrtimer"));
  find_timers(code);
  for (int way = 0; way < Timers::ways; ++way) {
    const auto other = code.label();
    code.load(Size::dword, 4, 3, of(offsetof(Timers, address)) + way * 8);
    code.jump_if_differs(4, 1, other);
    code.load(Size::dword, 5, 3, of(offsetof(Timers, due)) + way * 8);
    code.set(4, of(offsetof(Timers, owner)) + way * 4).jump(known);
    code.bind(other);
  }
  code.set(5, 0).store(Size::dword, cpu, of(offsetof(Cpu, timer_due)), 5).jump(end);
  code.bind(known).store(Size::dword, cpu, of(offsetof(Cpu, timer_due)), 5);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, has_deadlines)));
  code.jump_if(If::equal, 1, 0, end);
  code.compute_with(BPF_ADD, 3, 4).load(Size::word, 9, 3, 0);
  code.jump_if(If::equal, 9, 0, end);
  clear_record(code);
  code.store(Size::word, stack, in_record(offsetof(Event, tid)), 9);
  code.store(Size::dword, stack, in_record(offsetof(Event, a)), 5);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen)));
  code.store(Size::dword, stack, in_record(offsetof(Event, b)), 1);
  copy_field(code, Size::dword, at.at("function"), offsetof(Event, c));
  tell_cpu(code);
  emit(code, EventKind::replenish);
  code.bind(end).exit(1);
}

void Programs::write_timer_exit(BpfAssembler& code, const Offsets& /*at*/) {
  const auto end = code.label();
  load_cpu(code, end);
  code.set(1, 0).store(Size::dword, cpu, of(offsetof(Cpu, timer_active)), 1);
  code.bind(end).exit(1);
}

void Programs::write_waking(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  const auto no_timer = code.label();
  const auto no_interrupt = code.label();
  const auto source_known = code.label();
  code.copy(context, 1);
  code.load(Size::word, 1, context, at.at("pid"));
  find_thread(code, 1, end);
  clear_record(code);
  code.store(Size::word, stack, in_record(offsetof(Event, tid)), 1);
  load_cpu(code, end);
  tell_cpu(code);
  code.call(BPF_FUNC_get_current_pid_tgid);
  code.store(Size::word, stack, in_record(offsetof(Event, other)), 0);
  code.copy(1, stack).compute(BPF_ADD, 1, in_record(offsetof(Event, comm)));
  code.set(2, sizeof(Event::comm)).call(BPF_FUNC_get_current_comm);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen)));
  code.store(Size::dword, stack, in_record(offsetof(Event, b)), 1);
  const auto say = [&](int flags, std::size_t source) {
    code.store_constant(Size::byte, stack, in_record(offsetof(Event, flags)), flags);
    code.load(Size::dword, 1, cpu, of(source));
    code.store(Size::dword, stack, in_record(offsetof(Event, c)), 1);
  };
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, timer_active)));
  code.jump_if(If::equal, 1, 0, no_timer);
  say(by_timer | due_known, offsetof(Cpu, timer_function));
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, timer_due)));
  code.store(Size::dword, stack, in_record(offsetof(Event, a)), 1);
  code.jump_if(If::not_equal, 1, 0, source_known);
  code.store_constant(Size::byte, stack, in_record(offsetof(Event, flags)), by_timer);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, timer_now)));
  code.store(Size::dword, stack, in_record(offsetof(Event, a)), 1);
  code.jump(source_known);
  code.bind(no_timer);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, interrupt_began)));
  code.jump_if(If::equal, 1, 0, no_interrupt);
  say(by_interrupt, offsetof(Cpu, interrupt_number));
  code.jump(source_known);
  code.bind(no_interrupt);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, softirq_began)));
  code.jump_if(If::equal, 1, 0, source_known);
  say(by_softirq, offsetof(Cpu, softirq_vector));
  code.bind(source_known);
  const auto late_known = code.label();
  code.load(Size::word, 1, context, at.at("target_cpu"))
      .compute(BPF_AND, 1, (1 << target_bits) - 1);
  code.set(2, static_cast<int>(late_unknown));
  code.load(Size::byte, 3, stack, in_record(offsetof(Event, flags)));
  const auto no_due = code.label();
  code.jump_if(If::any_bit, 3, due_known, late_known);
  code.jump(no_due);
  code.bind(late_known);
  code.load(Size::dword, 3, cpu, of(offsetof(Cpu, timer_now)));
  code.load(Size::dword, 4, stack, in_record(offsetof(Event, a))).compute_with(BPF_SUB, 3, 4);
  code.compute(BPF_RSH, 3, late_unit_bits);  // of what is early a great number, which is not known
  const auto too_late = code.label();
  const auto is_late = code.label();
  code.jump_if(If::less, 3, static_cast<int>(late_unknown), is_late);
  code.jump(too_late);
  code.bind(is_late).copy(2, 3);
  code.bind(too_late).bind(no_due);
  code.compute(BPF_LSH, 2, target_bits).compute_with(BPF_OR, 1, 2);
  code.store(Size::word, stack, in_record(offsetof(Event, value)), 1);
  emit_in_lane(code, EventKind::waking);
  code.load(Size::word, 1, context, at.at("target_cpu"));
  const auto within = code.label();
  code.jump_if(If::less, 1, most_cpus, within);
  code.jump(end);
  code.bind(within);
  code.compute(BPF_LSH, 1, cpu_bits).load_map_value(2, cpus_).compute_with(BPF_ADD, 2, 1);
  code.set(1, 1).store(Size::dword, 2, of(offsetof(Cpu, watching)), 1);
  code.bind(end).exit(1);
}

void Programs::write_switch(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  const auto next = code.label();
  const auto sleeps = code.label();
  const auto foreign = code.label();
  code.copy(context, 1);
  load_cpu(code, end);

  code.load(Size::word, 1, context, at.at("prev_pid"));
  find_thread(code, 1, next);
  clear_record(code);
  code.store(Size::word, stack, in_record(offsetof(Event, tid)), 1);
  tell_cpu(code);
  copy_field(code, Size::word, at.at("next_pid"), offsetof(Event, other));
  copy_name(code, at.at("next_comm"));
  code.load(Size::dword, 1, thread, of(offsetof(Thread, all_calls)));
  code.store(Size::byte, stack, in_record(offsetof(Event, flags)), 1);
  code.load(Size::dword, 1, thread, of(offsetof(Thread, argument_1))).compute(BPF_LSH, 1, 16);
  code.load(Size::dword, 2, context, at.at("prev_state")).compute(BPF_AND, 2, 0xFFFF);
  code.compute_with(BPF_OR, 1, 2).store(Size::word, stack, in_record(offsetof(Event, value)), 1);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen)));
  code.store(Size::dword, stack, in_record(offsetof(Event, a)), 1);
  code.load(Size::dword, 1, thread, of(offsetof(Thread, call)));
  code.store(Size::dword, stack, in_record(offsetof(Event, b)), 1);
  code.load(Size::dword, 1, thread, of(offsetof(Thread, argument_0)));
  code.store(Size::dword, stack, in_record(offsetof(Event, c)), 1);
  code.load(Size::dword, 1, context, at.at("prev_state"));
  code.jump_if(If::any_bit, 1, 0xFF, sleeps);
  code.set(1, 1).store(Size::dword, cpu, of(offsetof(Cpu, watching)), 1);
  code.bind(sleeps);
  emit_in_lane(code, EventKind::out);

  code.bind(next);
  code.load(Size::word, 1, context, at.at("next_pid"));
  find_thread(code, 1, foreign);
  clear_record(code);
  tell_cpu(code);
  code.load(Size::dword, 1, thread, of(offsetof(Thread, all_calls)));
  code.store(Size::dword, stack, in_record(offsetof(Event, b)), 1);
  copy_field(code, Size::word, at.at("next_pid"), offsetof(Event, tid));
  copy_field(code, Size::word, at.at("prev_pid"), offsetof(Event, other));
  copy_field(code, Size::word, at.at("prev_prio"), offsetof(Event, value));
  copy_name(code, at.at("prev_comm"));
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen)));
  code.store(Size::dword, stack, in_record(offsetof(Event, a)), 1);
  code.load(Size::word, 1, context, at.at("next_prio"));
  code.store(Size::dword, stack, in_record(offsetof(Event, c)), 1);
  code.set(1, 0).store(Size::dword, cpu, of(offsetof(Cpu, watching)), 1);
  emit_in_lane(code, EventKind::in);
  code.jump(end);

  code.bind(foreign);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, watching)));
  code.jump_if(If::equal, 1, 0, end);
  clear_record(code);
  tell_cpu(code);
  copy_field(code, Size::word, at.at("prev_pid"), offsetof(Event, other));
  copy_field(code, Size::word, at.at("prev_prio"), offsetof(Event, value));
  copy_name(code, at.at("prev_comm"));
  code.load(Size::word, 1, context, at.at("next_pid"));
  code.store(Size::dword, stack, in_record(offsetof(Event, a)), 1);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen)));
  code.store(Size::dword, stack, in_record(offsetof(Event, b)), 1);
  emit_in_lane(code, EventKind::foreign);
  code.bind(end).exit(1);
}

void Programs::write_interrupt_entry(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  code.copy(context, 1);
  load_cpu(code, end);
  code.load(Size::word, 1, context, at.at("irq"));
  code.store(Size::dword, cpu, of(offsetof(Cpu, interrupt_number)), 1);
  code.call(BPF_FUNC_ktime_get_ns);
  code.store(Size::dword, cpu, of(offsetof(Cpu, interrupt_began)), 0);
  code.bind(end).exit(1);
}

void Programs::write_interrupt_exit(BpfAssembler& code, const Offsets& /*at*/) {
  const auto end = code.label();
  load_cpu(code, end);
  code.call(BPF_FUNC_ktime_get_ns);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, interrupt_began)));
  code.jump_if(If::equal, 1, 0, end);  // attached in its middle
  code.compute_with(BPF_SUB, 0, 1).load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen)));
  code.compute_with(BPF_ADD, 1, 0).store(Size::dword, cpu, of(offsetof(Cpu, stolen)), 1);
  code.set(1, 0).store(Size::dword, cpu, of(offsetof(Cpu, interrupt_began)), 1);
  code.bind(end).exit(1);
}

void Programs::write_softirq_entry(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  code.copy(context, 1);
  load_cpu(code, end);
  code.load(Size::word, 1, context, at.at("vec"));
  code.store(Size::dword, cpu, of(offsetof(Cpu, softirq_vector)), 1);
  code.call(BPF_FUNC_ktime_get_ns);
  code.store(Size::dword, cpu, of(offsetof(Cpu, softirq_began)), 0);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen)));
  code.store(Size::dword, cpu, of(offsetof(Cpu, stolen_before_softirq)), 1);
  code.bind(end).exit(1);
}

/// Interrupts within the softirq are in the sum already; all of its time from begin to end counts.
void Programs::write_softirq_exit(BpfAssembler& code, const Offsets& /*at*/) {
  const auto end = code.label();
  load_cpu(code, end);
  code.call(BPF_FUNC_ktime_get_ns);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, softirq_began)));
  code.jump_if(If::equal, 1, 0, end);
  code.compute_with(BPF_SUB, 0, 1);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen_before_softirq)));
  code.compute_with(BPF_ADD, 1, 0).store(Size::dword, cpu, of(offsetof(Cpu, stolen)), 1);
  code.set(1, 0).store(Size::dword, cpu, of(offsetof(Cpu, softirq_began)), 1);
  code.bind(end).exit(1);
}

void Programs::write_call_entry(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  code.copy(context, 1);
  load_current(code);
  find_thread(code, 1, end);
  for (const auto& [from, to] :
       {std::pair{at.at("id"), offsetof(Thread, call)},
        std::pair{at.at("args"), offsetof(Thread, argument_0)},
        std::pair{at.at("args") + static_cast<int>(sizeof(long)), offsetof(Thread, argument_1)}}) {
    code.load(Size::dword, 1, context, from).store(Size::dword, thread, of(to), 1);
  }
  code.load(Size::dword, 1, thread, of(offsetof(Thread, all_calls))).compute(BPF_ADD, 1, 1);
  code.store(Size::dword, thread, of(offsetof(Thread, all_calls)), 1);
  const auto known = code.label();
  code.load(Size::dword, 1, context, at.at("id"));
  code.jump_if(If::less, 1, static_cast<int>(Programs::most_calls), known);
  code.jump(end);
  code.bind(known);
  constexpr int cell_bits = 2;
  code.compute(BPF_LSH, 1, cell_bits);
  code.load(Size::word, 2, thread, of(offsetof(Thread, slot)));
  code.compute(BPF_AND, 2, most_threads - 1).compute(BPF_LSH, 2, calls_bits);
  code.load_map_value(3, counts_).compute_with(BPF_ADD, 3, 1).compute_with(BPF_ADD, 3, 2);
  code.load(Size::word, 1, 3, 0).compute(BPF_ADD, 1, 1).store(Size::word, 3, 0, 1);
  write_mark_of_call(code, at, end);
  code.bind(end).exit(1);
}

/// A call without effect, by which a program marks its cycles (`latenz/mark.h`).
void Programs::write_mark_of_call(BpfAssembler& code, const Offsets& at,
                                  BpfAssembler::Label otherwise) const {
  code.load(Size::dword, 1, context, at.at("id"));
  const auto is_call = code.label();
  code.jump_if(If::equal, 1, SYS_prctl, is_call).jump(otherwise);
  const auto is_mark = code.label();
  code.bind(is_call).load(Size::dword, 1, context, at.at("args"));
  code.jump_if(If::equal, 1, mark_option, is_mark).jump(otherwise);
  code.bind(is_mark);
  find_current(code, otherwise);
  load_cpu(code, otherwise);
  tell_cpu(code);
  code.load(Size::dword, 1, context, at.at("args") + static_cast<int>(sizeof(long)));
  code.store(Size::word, stack, in_record(offsetof(Event, value)), 1);
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen)));
  code.store(Size::dword, stack, in_record(offsetof(Event, b)), 1);
  emit(code, EventKind::mark);
}

void Programs::write_mark(BpfAssembler& code, std::uint32_t value) const {
  const auto end = code.label();
  find_current(code, end);
  load_cpu(code, end);
  tell_cpu(code);
  code.store_constant(Size::word, stack, in_record(offsetof(Event, value)),
                      static_cast<int>(value));
  code.load(Size::dword, 1, cpu, of(offsetof(Cpu, stolen)));
  code.store(Size::dword, stack, in_record(offsetof(Event, b)), 1);
  emit(code, EventKind::mark);
  code.bind(end).exit(1);
}

void Programs::write_call_exit(BpfAssembler& code, const Offsets& /*at*/) {
  const auto end = code.label();
  load_current(code);
  find_thread(code, 1, end);
  code.set(1, static_cast<int>(no_call)).store(Size::dword, thread, of(offsetof(Thread, call)), 1);
  code.bind(end).exit(1);
}

void Programs::write_fault(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  code.copy(context, 1);
  find_current(code, end);
  code.set(1, static_cast<int>(no_call)).store(Size::dword, thread, of(offsetof(Thread, call)), 1);
  load_cpu(code, end);
  tell_cpu(code);
  copy_field(code, Size::dword, at.at("address"), offsetof(Event, a));
  copy_field(code, Size::dword, at.at("ip"), offsetof(Event, b));
  code.load(Size::dword, 1, context, at.at("error_code"));
  code.store(Size::word, stack, in_record(offsetof(Event, value)), 1);
  emit(code, EventKind::fault);
  code.bind(end).exit(1);
}

void Programs::write_fork(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  code.copy(context, 1);
  find_current(code, end);
  load_cpu(code, end);
  tell_cpu(code);
  copy_field(code, Size::word, at.at("child_pid"), offsetof(Event, value));
  emit(code, EventKind::fork);
  code.bind(end).exit(1);
}

void Programs::write_reclaim_begin(BpfAssembler& code, const Offsets& /*at*/) {
  write_reclaim(code, 1);
}

void Programs::write_reclaim_end(BpfAssembler& code, const Offsets& /*at*/) {
  write_reclaim(code, 0);
}

void Programs::write_reclaim(BpfAssembler& code, int begins) {
  const auto end = code.label();
  find_current(code, end);
  load_cpu(code, end);
  tell_cpu(code);
  code.store_constant(Size::word, stack, in_record(offsetof(Event, value)), begins);
  emit(code, EventKind::reclaim);
  code.bind(end).exit(1);
}

/// Of all CPUs: it changes seldom, and which ones watched threads are on changes often.
void Programs::write_frequency(BpfAssembler& code, const Offsets& at) {
  const auto end = code.label();
  code.copy(context, 1);
  clear_record(code);
  load_cpu(code, end);
  copy_field(code, Size::word, at.at("state"), offsetof(Event, value));
  code.load(Size::word, 1, context, at.at("cpu_id"));
  code.store(Size::half, stack, in_record(offsetof(Event, cpu)), 1);
  emit(code, EventKind::frequency);
  code.bind(end).exit(1);
}

void Programs::write_gone(BpfAssembler& code, const Offsets& /*at*/) {
  const auto end = code.label();
  find_current(code, end);
  load_cpu(code, end);
  tell_cpu(code);
  emit(code, EventKind::gone);
  code.bind(end).exit(1);
}

}  // namespace latenz::attach
