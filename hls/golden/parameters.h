// SPDX-License-Identifier: Apache-2.0
//
// The accelerator's parameters, from the macros of Accelerator.defines() (docs/architecture.md), and what follows
// from them: HARDWARE.md section 1.
#ifndef HILT_GOLDEN_PARAMETERS_H
#define HILT_GOLDEN_PARAMETERS_H

#include <cstdint>

#if !defined(VTA_LOG_INP_WIDTH) || !defined(VTA_LOG_WGT_WIDTH) || !defined(VTA_LOG_ACC_WIDTH) ||                 \
    !defined(VTA_LOG_BATCH) || !defined(VTA_LOG_BLOCK) || !defined(VTA_LOG_UOP_BUFF_SIZE) ||                      \
    !defined(VTA_LOG_INP_BUFF_SIZE) || !defined(VTA_LOG_WGT_BUFF_SIZE) || !defined(VTA_LOG_ACC_BUFF_SIZE) ||      \
    !defined(VTA_ISA_REVISION) || !defined(VTA_BUS_WIDTH) || !defined(VTA_HAZARD_INTERLOCK) ||                    \
    !defined(VTA_INSN_QUEUE_DEPTH) || !defined(VTA_TABLE) || !defined(VTA_READ_PORTS) || !defined(VTA_WINDOW) ||  \
    !defined(VTA_BANDS)
#error "compile with the macros of Accelerator.defines()"
#endif

namespace vta {

static_assert(VTA_LOG_INP_WIDTH == 3 && VTA_LOG_WGT_WIDTH == 3 && VTA_LOG_ACC_WIDTH == 5,
              "the golden model computes int8 x int8 -> int32");
static_assert(VTA_LOG_BLOCK >= 1, "the multiply pairs input channels");

enum class IsaRevision { kA = 0, kB = 1, kWide = 2 };
constexpr IsaRevision kIsa = static_cast<IsaRevision>(VTA_ISA_REVISION);
static_assert(VTA_ISA_REVISION >= 0 && VTA_ISA_REVISION <= 2);

constexpr uint32_t kBatch = 1u << VTA_LOG_BATCH;
constexpr uint32_t kBlock = 1u << VTA_LOG_BLOCK;

// Bytes of one element in memory.
constexpr uint32_t kInstructionBytes = kIsa == IsaRevision::kWide ? 32 : 16;
constexpr uint32_t kUopBytes = kIsa == IsaRevision::kWide ? 8 : 4;
constexpr uint32_t kInpBytes = kBatch * kBlock;
constexpr uint32_t kWgtBytes = kBlock * kBlock;
constexpr uint32_t kAccBytes = kBatch * kBlock * 4;
constexpr uint32_t kOutBytes = kBatch * kBlock;
constexpr uint32_t kAcc8Bytes = kBatch * kBlock;

// The table on the way to the store: whether there is one, and the elements of OUT that hold it; of one that is larger,
// the first bytes.
constexpr bool kHasTable = VTA_TABLE != 0;
constexpr uint32_t kTableBytes = 256;
constexpr uint32_t kTableElements = kOutBytes < kTableBytes ? kTableBytes / kOutBytes : 1;

// A window GEMM reads the last inputs of so many rows and columns of its iterations; a row is so long at most. An output
// has two multipliers for each.
constexpr bool kHasWindow = VTA_WINDOW != 0 && VTA_HAZARD_INTERLOCK != 0 && kBlock >= 16;
constexpr uint32_t kWindowRows = kBlock >= 32 ? 3 : 2;
constexpr uint32_t kWindowColumns = 3;
constexpr uint32_t kWindowTaps = kWindowRows * kWindowColumns;
constexpr uint32_t kWindowLine = 128;

// Whether LOADs of INP move lanes.
constexpr bool kBands = VTA_BANDS != 0;
static_assert(!kBands || kBatch == 2 || kBatch == 4, "bands are of two or four lanes");

// Elements in a buffer.
constexpr uint32_t kUopDepth = (1u << VTA_LOG_UOP_BUFF_SIZE) / kUopBytes;
constexpr uint32_t kInpDepth = (1u << VTA_LOG_INP_BUFF_SIZE) / kInpBytes;
constexpr uint32_t kWgtDepth = (1u << VTA_LOG_WGT_BUFF_SIZE) / kWgtBytes;
constexpr uint32_t kAccDepth = (1u << VTA_LOG_ACC_BUFF_SIZE) / kAccBytes;
constexpr uint32_t kOutDepth = kAccDepth;

constexpr uint32_t log2_of(uint32_t power) { return power <= 1 ? 0 : 1 + log2_of(power / 2); }
constexpr uint32_t kLogUopDepth = log2_of(kUopDepth);
constexpr uint32_t kLogInpDepth = log2_of(kInpDepth);
constexpr uint32_t kLogWgtDepth = log2_of(kWgtDepth);
constexpr uint32_t kLogAccDepth = log2_of(kAccDepth);

// The hardware's token FIFOs: 1024 deep on the public boards.
constexpr uint32_t kTokenQueueDepth = 1024;

}  // namespace vta

#endif
