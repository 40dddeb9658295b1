// SPDX-License-Identifier: Apache-2.0
// Assembles BPF programs and hands them to the kernel: no compiler, no headers of the kernel's.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "file.hpp"

namespace latenz::probe {

/// As bpf(2): a descriptor, 0, or -1 with errno.
long bpf(bpf_cmd command, bpf_attr& attributes);

/// An address as `bpf_attr` takes it.
[[nodiscard]] std::uint64_t bpf_pointer(const void* address);

[[nodiscard]] bpf_insn bpf_instruction(unsigned code, unsigned destination, unsigned source = 0,
                                       int offset = 0, int constant = 0);

/// Creates a map; not open if the kernel refuses, errno tells why.
[[nodiscard]] File create_bpf_map(bpf_map_type type, std::uint32_t key_size,
                                  std::uint32_t value_size, std::uint32_t entries,
                                  std::uint32_t flags = 0);

/// A program under assembly. Registers: r0 results, r1-r5 arguments (lost in calls), r6-r9 kept,
/// r10 the top of 512 bytes of stack.
class BpfAssembler {
 public:
  /// Target of jumps, all of them forward.
  using Label = std::size_t;
  enum class Size : std::uint8_t { byte = BPF_B, half = BPF_H, word = BPF_W, dword = BPF_DW };
  enum class If : std::uint8_t {
    equal = BPF_JEQ,
    not_equal = BPF_JNE,
    less = BPF_JLT,
    any_bit = BPF_JSET,
  };

  [[nodiscard]] Label label();
  BpfAssembler& bind(Label label);

  BpfAssembler& set(unsigned to, int constant);
  BpfAssembler& copy(unsigned to, unsigned from);
  /// `operation`: BPF_ADD, BPF_SUB, BPF_LSH, BPF_AND, BPF_OR ...
  BpfAssembler& compute(unsigned operation, unsigned to, int constant);
  BpfAssembler& compute_with(unsigned operation, unsigned to, unsigned from);
  BpfAssembler& load(Size size, unsigned to, unsigned base, int offset);
  BpfAssembler& store(Size size, unsigned base, int offset, unsigned from);
  BpfAssembler& store_constant(Size size, unsigned base, int offset, int constant);
  /// Adds r`from` to 64 bits in memory, even if an interrupt comes in between.
  BpfAssembler& add_to(unsigned base, int offset, unsigned from);
  BpfAssembler& load_map(unsigned to, const File& map);
  /// The address of the only value of an array.
  BpfAssembler& load_map_value(unsigned to, const File& map);
  BpfAssembler& call(bpf_func_id helper);
  BpfAssembler& jump(Label to);
  BpfAssembler& jump_if(If condition, unsigned value, int constant, Label to);
  BpfAssembler& jump_if_same(unsigned one, unsigned other, Label to);
  BpfAssembler& jump_if_differs(unsigned one, unsigned other, Label to);
  BpfAssembler& exit(int result);

  /// Not open if the kernel refuses; `errno` tells why. `log`: takes the verifier's words, if not
  /// null.
  [[nodiscard]] File load_program(bpf_prog_type type, std::string* log = nullptr);

 private:
  BpfAssembler& append(unsigned code, unsigned destination, unsigned source = 0, int offset = 0,
                       int constant = 0);
  void patch();

  static constexpr std::size_t unbound = SIZE_MAX;
  struct Jump {
    std::size_t at;
    Label to;
  };
  std::vector<bpf_insn> code_;
  std::vector<std::size_t> labels_;
  std::vector<Jump> jumps_;
};

}  // namespace latenz::probe
