// SPDX-License-Identifier: Apache-2.0
//
// Time, in accelerator cycles. Cycle 0 is the first in which the program runs.
#ifndef HILT_TIMING_CYCLE_H
#define HILT_TIMING_CYCLE_H

#include <cstdint>

namespace vta {

using Cycle = int64_t;
constexpr Cycle kNever = Cycle{1} << 60;

}  // namespace vta

#endif
