// SPDX-License-Identifier: Apache-2.0
//
// How many pairs of micro-ops of a GEMM or an ALU with immediate go together, counted without walking its loops.
#ifndef HILT_TIMING_PAIRS_H
#define HILT_TIMING_PAIRS_H

#include <cstdint>

#include "instruction.h"
#include "issue.h"
#include "uop_buffer.h"

namespace vta {

// Of a nest that has micro-ops and no fault: its pairs that may go together. Whether a pair may is the same in every
// iteration, for the loops move both micro-ops of it alike.
uint64_t pairs_of(const Nest &nest, NestKind kind, const UopBuffer &uops);

// Whether no micro-op is so soon after another of its destination that it waits, in pairs or not.
bool is_clear(const Nest &nest, const UopBuffer &uops);

}  // namespace vta

#endif
