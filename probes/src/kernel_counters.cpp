// SPDX-License-Identifier: Apache-2.0
#include "kernel_counters.hpp"

#include <linux/bpf.h>
#include <sys/mman.h>

#include "bpf_program.hpp"

namespace latenz::probe {
namespace {

constexpr unsigned most_cpus = 1024;
constexpr unsigned line_bits = 7;
static_assert(sizeof(CpuCounters) == 1U << line_bits);

struct Event {
  std::size_t kind;
  const char* name;  ///< of the raw tracepoint
};
constexpr std::size_t interrupts = 0;
constexpr std::size_t context_switches = 4;
constexpr std::array events{Event{interrupts, "irq_handler_entry"},
                            Event{1, "local_timer_entry"},
                            Event{2, "reschedule_entry"},
                            Event{2, "call_function_entry"},
                            Event{2, "call_function_single_entry"},
                            Event{2, "ipi_entry"},
                            Event{3, "softirq_entry"},
                            Event{context_switches, "sched_switch"},
                            Event{5, "nmi_handler"},
                            Event{6, "page_fault_user"},
                            Event{6, "page_fault_kernel"}};

constexpr unsigned load_immediate = BPF_LD | BPF_DW;     // | BPF_IMM, which is 0
constexpr unsigned add_immediate = BPF_ALU64 | BPF_ADD;  // | BPF_K, which is 0

/// Assembles one program. Registers: r6 the event's arguments, r7 this CPU's `CpuCounters`.
class Program {
 public:
  explicit Program(int map) {
    append(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1);
    call(BPF_FUNC_get_smp_processor_id);
    append(BPF_JMP | BPF_JLT | BPF_K, 0, 0, 2, most_cpus);
    append(BPF_ALU64 | BPF_MOV | BPF_K, 0);
    append(BPF_JMP | BPF_EXIT, 0);
    append(BPF_ALU64 | BPF_LSH | BPF_K, 0, 0, 0, line_bits);
    append(load_immediate, 7, BPF_PSEUDO_MAP_VALUE, 0, map);
    append(0, 0);  // upper half of the 64-bit constant: offset 0 in the map's value
    append(BPF_ALU64 | BPF_ADD | BPF_X, 7, 0);
  }

  /// Adds one to a count; atomic, since an interrupt may count into the same cell in between.
  Program& count(std::size_t kind) {
    append(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 1);
    append(BPF_STX | BPF_ATOMIC | BPF_DW, 7, 1, field(kind * sizeof(std::uint64_t)), BPF_ADD);
    return *this;
  }

  Program& keep_interrupt_number() {
    append(BPF_LDX | BPF_DW | BPF_MEM, 1, 6, 0);
    append(BPF_STX | BPF_DW | BPF_MEM, 7, 1, field(offsetof(CpuCounters, last_interrupt)));
    return *this;
  }

  /// At a context switch the current task is still the one that leaves the CPU.
  Program& keep_task() {
    call(BPF_FUNC_get_current_pid_tgid);
    append(BPF_STX | BPF_DW | BPF_MEM, 7, 0, field(offsetof(CpuCounters, last_task)));
    append(BPF_ALU64 | BPF_MOV | BPF_X, 1, 7);
    append(add_immediate, 1, 0, 0, field(offsetof(CpuCounters, last_command)));
    append(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, sizeof(CpuCounters::last_command));
    call(BPF_FUNC_get_current_comm);
    return *this;
  }

  /// Ends the program and hands it to the kernel.
  File load() {
    append(BPF_ALU64 | BPF_MOV | BPF_K, 0);
    append(BPF_JMP | BPF_EXIT, 0);
    bpf_attr attributes{};
    attributes.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
    attributes.insns = bpf_pointer(code_.data());
    attributes.insn_cnt = static_cast<std::uint32_t>(code_.size());
    attributes.license = bpf_pointer("Apache-2.0");
    return File(static_cast<int>(bpf(BPF_PROG_LOAD, attributes)));
  }

 private:
  static constexpr int field(std::size_t offset) { return static_cast<int>(offset); }

  void append(unsigned code, unsigned destination, unsigned source = 0, int offset = 0,
              int constant = 0) {
    code_.push_back(bpf_instruction(code, destination, source, offset, constant));
  }

  void call(bpf_func_id helper) { append(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }

  std::vector<bpf_insn> code_;
};

}  // namespace

KernelCounters::~KernelCounters() {
  if (cpus_ != nullptr) {
    munmap(cpus_, most_cpus * sizeof(CpuCounters));
  }
}

bool KernelCounters::map_memory() {
  map_ = create_bpf_map(BPF_MAP_TYPE_ARRAY, sizeof(std::uint32_t), most_cpus * sizeof(CpuCounters),
                        1, BPF_F_MMAPABLE);
  if (!map_.is_open()) {
    return false;
  }
  void* memory = mmap(nullptr, most_cpus * sizeof(CpuCounters), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, map_.descriptor(), 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  cpus_ = static_cast<CpuCounters*>(memory);
  return true;
}

bool KernelCounters::attach_program(std::size_t kind, std::string_view event) {
  Program program(map_.descriptor());
  program.count(kind);
  if (kind == interrupts) {
    program.keep_interrupt_number();
  } else if (kind == context_switches) {
    program.keep_task();
  }
  const File loaded = program.load();
  if (!loaded.is_open()) {
    return false;
  }
  bpf_attr attributes{};
  attributes.raw_tracepoint.name = bpf_pointer(event.data());
  attributes.raw_tracepoint.prog_fd = static_cast<std::uint32_t>(loaded.descriptor());
  File link(static_cast<int>(bpf(BPF_RAW_TRACEPOINT_OPEN, attributes)));
  if (!link.is_open()) {
    return false;
  }
  links_.push_back(std::move(link));
  return true;
}

bool KernelCounters::attach() {
  if (!map_memory()) {
    return false;
  }
  for (const Event& event : events) {
    counted_[event.kind] = attach_program(event.kind, event.name) || counted_[event.kind];
  }
  if (counted_[context_switches] && counted_[interrupts]) {
    return true;
  }
  links_.clear();
  munmap(cpus_, most_cpus * sizeof(CpuCounters));
  cpus_ = nullptr;
  return false;
}

}  // namespace latenz::probe
