// SPDX-License-Identifier: Apache-2.0
//
// The C API of the twin.
#include "vta_timing.h"

#include <algorithm>
#include <new>
#include <vector>

#include "machine.h"

namespace {

bool increases(const uint64_t *offsets, uint64_t count) {
  return std::is_sorted(offsets, offsets + count + 1);
}

bool fits(const vta_timing_programs &programs) {
  if (programs.count == 0) return true;
  if (programs.instructions == nullptr || programs.instruction_offset == nullptr || programs.insn_address == nullptr ||
      programs.uops == nullptr || programs.uop_offset == nullptr || programs.uop_address == nullptr)
    return false;
  if (!increases(programs.instruction_offset, programs.count) || !increases(programs.uop_offset, programs.count))
    return false;
  for (uint64_t n = 0; n < programs.count; ++n)
    if (programs.instruction_offset[n + 1] - programs.instruction_offset[n] > UINT32_MAX) return false;
  return true;
}

vta::Image image_of(const vta_timing_programs &programs, uint64_t n) {
  const uint64_t first = programs.instruction_offset[n], first_uop = programs.uop_offset[n];
  return {programs.instructions + first * vta::kInstructionBytes,
          static_cast<uint32_t>(programs.instruction_offset[n + 1] - first),
          programs.insn_address[n],
          programs.uops + first_uop * vta::kUopBytes,
          (programs.uop_offset[n + 1] - first_uop) * vta::kUopBytes,
          programs.uop_address[n]};
}

}  // namespace

extern "C" {

uint32_t vta_timing_api_version(void) { return VTA_TIMING_API_VERSION; }

int vta_timing_predict(const vta_timing_programs *programs, const vta_memory_model *memory, vta_timing_result *results,
                       vta_timing_span *timeline) {
  if (programs == nullptr || memory == nullptr || results == nullptr || !fits(*programs)) return VTA_BAD_ARGUMENT;
  if (memory->bandwidth_numerator != 0 && memory->bandwidth_denominator == 0) return VTA_BAD_ARGUMENT;
  try {
    thread_local vta::Machine machine;
    thread_local std::vector<vta_timing_span> spans;
    for (uint64_t n = 0; n < programs->count; ++n) {
      const vta::Image image = image_of(*programs, n);
      spans.resize(std::max<size_t>(spans.size(), image.instruction_count));
      const uint64_t first = programs->instruction_offset[n] - programs->instruction_offset[0];
      results[n] = machine.run(image, *memory, timeline == nullptr ? spans.data() : timeline + first);
    }
  } catch (const std::bad_alloc &) {
    return VTA_BAD_ARGUMENT;
  }
  return 0;
}

}  // extern "C"
