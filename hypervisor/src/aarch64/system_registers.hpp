// SPDX-License-Identifier: Apache-2.0
// System registers by name (Arm Architecture Reference Manual, D19), and barriers.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

#define LATENZ_SYSTEM_REGISTER(Name, name)                                 \
  struct Name {                                                            \
    [[gnu::always_inline]] static inline std::uint64_t read() {            \
      std::uint64_t value = 0;                                             \
      asm volatile("mrs %0, " name : "=r"(value));                         \
      return value;                                                        \
    }                                                                      \
    [[gnu::always_inline]] static inline void write(std::uint64_t value) { \
      asm volatile("msr " name ", %0" ::"r"(value) : "memory");            \
    }                                                                      \
  }

LATENZ_SYSTEM_REGISTER(CptrEl2, "cptr_el2");
LATENZ_SYSTEM_REGISTER(CnthctlEl2, "cnthctl_el2");
LATENZ_SYSTEM_REGISTER(CnthpControl, "cnthp_ctl_el2");
LATENZ_SYSTEM_REGISTER(CnthpCompare, "cnthp_cval_el2");
LATENZ_SYSTEM_REGISTER(CntpControl, "cntp_ctl_el0");
LATENZ_SYSTEM_REGISTER(CntpCompare, "cntp_cval_el0");
LATENZ_SYSTEM_REGISTER(CntpCount, "cntpct_el0");
LATENZ_SYSTEM_REGISTER(CntFrequency, "cntfrq_el0");
LATENZ_SYSTEM_REGISTER(CntvControl, "cntv_ctl_el0");
LATENZ_SYSTEM_REGISTER(CntvOffset, "cntvoff_el2");
LATENZ_SYSTEM_REGISTER(ElrEl2, "elr_el2");
LATENZ_SYSTEM_REGISTER(EsrEl2, "esr_el2");
LATENZ_SYSTEM_REGISTER(FarEl2, "far_el2");
LATENZ_SYSTEM_REGISTER(HcrEl2, "hcr_el2");
LATENZ_SYSTEM_REGISTER(HpfarEl2, "hpfar_el2");
LATENZ_SYSTEM_REGISTER(HstrEl2, "hstr_el2");
LATENZ_SYSTEM_REGISTER(MairEl2, "mair_el2");
LATENZ_SYSTEM_REGISTER(MdcrEl2, "mdcr_el2");
LATENZ_SYSTEM_REGISTER(MpidrEl1, "mpidr_el1");
LATENZ_SYSTEM_REGISTER(PmcrEl0, "pmcr_el0");
LATENZ_SYSTEM_REGISTER(SctlrEl2, "sctlr_el2");
LATENZ_SYSTEM_REGISTER(SpsrEl2, "spsr_el2");
LATENZ_SYSTEM_REGISTER(TcrEl2, "tcr_el2");
LATENZ_SYSTEM_REGISTER(TcrEl1, "tcr_el1");
LATENZ_SYSTEM_REGISTER(TpidrEl2, "tpidr_el2");
LATENZ_SYSTEM_REGISTER(Ttbr0El2, "ttbr0_el2");
LATENZ_SYSTEM_REGISTER(VmpidrEl2, "vmpidr_el2");
LATENZ_SYSTEM_REGISTER(VpidrEl2, "vpidr_el2");
LATENZ_SYSTEM_REGISTER(VtcrEl2, "vtcr_el2");
LATENZ_SYSTEM_REGISTER(VttbrEl2, "vttbr_el2");
LATENZ_SYSTEM_REGISTER(CcsidrEl1, "ccsidr_el1");
LATENZ_SYSTEM_REGISTER(ClidrEl1, "clidr_el1");
LATENZ_SYSTEM_REGISTER(CsselrEl1, "csselr_el1");
LATENZ_SYSTEM_REGISTER(IsrEl1, "isr_el1");
LATENZ_SYSTEM_REGISTER(MidrEl1, "midr_el1");
LATENZ_SYSTEM_REGISTER(VbarEl1, "vbar_el1");
LATENZ_SYSTEM_REGISTER(ElrEl1, "elr_el1");
LATENZ_SYSTEM_REGISTER(SpsrEl1, "spsr_el1");
LATENZ_SYSTEM_REGISTER(EsrEl1, "esr_el1");
LATENZ_SYSTEM_REGISTER(FarEl1, "far_el1");

// The interface and the list registers of a GICv3 (Arm IHI 0069H, 12.2 and 12.4).
LATENZ_SYSTEM_REGISTER(IccPriorityMask, "s3_0_c4_c6_0");    // ICC_PMR_EL1
LATENZ_SYSTEM_REGISTER(IccAcknowledge, "s3_0_c12_c12_0");   // ICC_IAR1_EL1
LATENZ_SYSTEM_REGISTER(IccEnd, "s3_0_c12_c12_1");           // ICC_EOIR1_EL1
LATENZ_SYSTEM_REGISTER(IccBinaryPoint, "s3_0_c12_c12_3");   // ICC_BPR1_EL1
LATENZ_SYSTEM_REGISTER(IccControl, "s3_0_c12_c12_4");       // ICC_CTLR_EL1
LATENZ_SYSTEM_REGISTER(IccEnableEl1, "s3_0_c12_c12_5");     // ICC_SRE_EL1
LATENZ_SYSTEM_REGISTER(IccEnableGroup1, "s3_0_c12_c12_7");  // ICC_IGRPEN1_EL1
LATENZ_SYSTEM_REGISTER(IccDeactivate, "s3_0_c12_c11_1");    // ICC_DIR_EL1
LATENZ_SYSTEM_REGISTER(IccEnableEl2, "s3_4_c12_c9_5");      // ICC_SRE_EL2
LATENZ_SYSTEM_REGISTER(IchActiveGroup0, "s3_4_c12_c8_0");   // ICH_AP0R0_EL2
LATENZ_SYSTEM_REGISTER(IchActiveGroup1, "s3_4_c12_c9_0");   // ICH_AP1R0_EL2
LATENZ_SYSTEM_REGISTER(IchControl, "s3_4_c12_c11_0");       // ICH_HCR_EL2
LATENZ_SYSTEM_REGISTER(IchType, "s3_4_c12_c11_1");          // ICH_VTR_EL2
LATENZ_SYSTEM_REGISTER(IchEnded, "s3_4_c12_c11_3");         // ICH_EISR_EL2
LATENZ_SYSTEM_REGISTER(IchEmpty, "s3_4_c12_c11_5");         // ICH_ELRSR_EL2
LATENZ_SYSTEM_REGISTER(IchMachineState, "s3_4_c12_c11_7");  // ICH_VMCR_EL2
LATENZ_SYSTEM_REGISTER(IchList0, "s3_4_c12_c12_0");         // ICH_LR0_EL2
LATENZ_SYSTEM_REGISTER(IchList1, "s3_4_c12_c12_1");
LATENZ_SYSTEM_REGISTER(IchList2, "s3_4_c12_c12_2");
LATENZ_SYSTEM_REGISTER(IchList3, "s3_4_c12_c12_3");

#undef LATENZ_SYSTEM_REGISTER

[[gnu::always_inline]] inline void instruction_barrier() { asm volatile("isb" ::: "memory"); }
[[gnu::always_inline]] inline void data_barrier() { asm volatile("dsb sy" ::: "memory"); }

/// Of EL1 and its guests, on this CPU: whatever was there before we came.
inline void forget_translations() {
  asm volatile("dsb sy\n tlbi alle1\n dsb sy\n isb" ::: "memory");
}

/// Of the guest whose translation is in VTTBR_EL2, on this CPU: no other runs it.
inline void forget_guest_translations() {
  asm volatile("dsb nshst\n tlbi vmalls12e1\n dsb nsh\n isb" ::: "memory");
}

/// The system counter now, not read early.
[[gnu::always_inline]] inline std::uint64_t now() {
  std::uint64_t value = 0;
  asm volatile("isb\n mrs %0, cntpct_el0" : "=r"(value)::"memory");
  return value;
}

}  // namespace latenz::hypervisor
