// SPDX-License-Identifier: Apache-2.0
#include "bpf_program.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace latenz::probe {
namespace {

constexpr std::size_t log_bytes = 1U << 20U;
constexpr const char* license = "Apache-2.0";

constexpr unsigned with_register = BPF_X;
constexpr unsigned constant_form = BPF_K;

}  // namespace

long bpf(bpf_cmd command, bpf_attr& attributes) {
  return syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

std::uint64_t bpf_pointer(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

bpf_insn bpf_instruction(unsigned code, unsigned destination, unsigned source, int offset,
                         int constant) {
  bpf_insn made{};
  made.code = static_cast<std::uint8_t>(code);
  made.dst_reg = destination & 0xFU;
  made.src_reg = source & 0xFU;
  made.off = static_cast<std::int16_t>(offset);
  made.imm = constant;
  return made;
}

File create_bpf_map(bpf_map_type type, std::uint32_t key_size, std::uint32_t value_size,
                    std::uint32_t entries, std::uint32_t flags) {
  bpf_attr attributes{};
  attributes.map_type = type;
  attributes.key_size = key_size;
  attributes.value_size = value_size;
  attributes.max_entries = entries;
  attributes.map_flags = flags;
  return File(static_cast<int>(bpf(BPF_MAP_CREATE, attributes)));
}

BpfAssembler::Label BpfAssembler::label() {
  labels_.push_back(unbound);
  return labels_.size() - 1;
}

BpfAssembler& BpfAssembler::bind(Label label) {
  labels_[label] = code_.size();
  return *this;
}

BpfAssembler& BpfAssembler::set(unsigned to, int constant) {
  return append(BPF_ALU64 | BPF_MOV | constant_form, to, 0, 0, constant);
}

BpfAssembler& BpfAssembler::copy(unsigned to, unsigned from) {
  return append(BPF_ALU64 | BPF_MOV | with_register, to, from);
}

BpfAssembler& BpfAssembler::compute(unsigned operation, unsigned to, int constant) {
  return append(BPF_ALU64 | operation | constant_form, to, 0, 0, constant);
}

BpfAssembler& BpfAssembler::compute_with(unsigned operation, unsigned to, unsigned from) {
  return append(BPF_ALU64 | operation | with_register, to, from);
}

BpfAssembler& BpfAssembler::load(Size size, unsigned to, unsigned base, int offset) {
  return append(BPF_LDX | BPF_MEM | static_cast<unsigned>(size), to, base, offset);
}

BpfAssembler& BpfAssembler::store(Size size, unsigned base, int offset, unsigned from) {
  return append(BPF_STX | BPF_MEM | static_cast<unsigned>(size), base, from, offset);
}

BpfAssembler& BpfAssembler::store_constant(Size size, unsigned base, int offset, int constant) {
  return append(BPF_ST | BPF_MEM | static_cast<unsigned>(size), base, 0, offset, constant);
}

BpfAssembler& BpfAssembler::add_to(unsigned base, int offset, unsigned from) {
  return append(BPF_STX | BPF_ATOMIC | BPF_DW, base, from, offset, BPF_ADD);
}

BpfAssembler& BpfAssembler::load_map(unsigned to, const File& map) {
  // NOLINTNEXTLINE(misc-redundant-expression): class and mode are named, and both are 0
  append(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map.descriptor());
  return append(0, 0);
}

BpfAssembler& BpfAssembler::load_map_value(unsigned to, const File& map) {
  // NOLINTNEXTLINE(misc-redundant-expression): class and mode are named, and both are 0
  append(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_VALUE, 0, map.descriptor());
  return append(0, 0);  // upper half of the 64-bit constant: offset 0 in the value
}

BpfAssembler& BpfAssembler::call(bpf_func_id helper) {
  return append(BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

BpfAssembler& BpfAssembler::jump(Label to) {
  jumps_.push_back({code_.size(), to});
  return append(BPF_JMP | BPF_JA, 0);
}

BpfAssembler& BpfAssembler::jump_if(If condition, unsigned value, int constant, Label to) {
  jumps_.push_back({code_.size(), to});
  return append(BPF_JMP | static_cast<unsigned>(condition) | constant_form, value, 0, 0, constant);
}

BpfAssembler& BpfAssembler::jump_if_same(unsigned one, unsigned other, Label to) {
  jumps_.push_back({code_.size(), to});
  return append(BPF_JMP | BPF_JEQ | with_register, one, other);
}

BpfAssembler& BpfAssembler::jump_if_differs(unsigned one, unsigned other, Label to) {
  jumps_.push_back({code_.size(), to});
  return append(BPF_JMP | BPF_JNE | with_register, one, other);
}

BpfAssembler& BpfAssembler::exit(int result) {
  set(0, result);
  return append(BPF_JMP | BPF_EXIT, 0);
}

File BpfAssembler::load_program(bpf_prog_type type, std::string* log) {
  patch();
  bpf_attr attributes{};
  attributes.prog_type = type;
  attributes.insns = bpf_pointer(code_.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(code_.size());
  attributes.license = bpf_pointer(license);
  if (log != nullptr) {
    log->assign(log_bytes, '\0');
    attributes.log_buf = bpf_pointer(log->data());
    attributes.log_size = log_bytes;
    attributes.log_level = 1;
  }
  File loaded(static_cast<int>(bpf(BPF_PROG_LOAD, attributes)));
  if (log != nullptr) log->resize(std::strlen(log->c_str()));
  return loaded;
}

BpfAssembler& BpfAssembler::append(unsigned code, unsigned destination, unsigned source, int offset,
                                   int constant) {
  code_.push_back(bpf_instruction(code, destination, source, offset, constant));
  return *this;
}

void BpfAssembler::patch() {
  for (const Jump& jump : jumps_) {
    code_[jump.at].off = static_cast<std::int16_t>(labels_[jump.to] - jump.at - 1);
  }
}

}  // namespace latenz::probe
