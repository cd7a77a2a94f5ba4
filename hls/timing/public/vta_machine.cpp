// The C API of the machine models.
#include "vta_machine.h"

#include <algorithm>
#include <new>

#include "event_machine.h"

extern "C" {

uint32_t vta_machine_api_version(void) { return VTA_MACHINE_API_VERSION; }

int vta_machine_predict(uint64_t count, const uint8_t *instructions, const uint64_t *offset,
                        const vta_machine_parameters *parameters, vta_machine_result *results,
                        vta_machine_span *timeline) {
  return vta_machine_compare(count, instructions, offset, 1, parameters, results, timeline);
}

int vta_machine_compare(uint64_t count, const uint8_t *instructions, const uint64_t *offset, uint64_t machines,
                        const vta_machine_parameters *parameters, vta_machine_result *results,
                        vta_machine_span *timeline) {
  constexpr int kBadArgument = -2;
  if (offset == nullptr || parameters == nullptr || results == nullptr) return kBadArgument;
  if (instructions == nullptr && offset[count] != 0) return kBadArgument;
  if (!std::is_sorted(offset, offset + count + 1)) return kBadArgument;
  try {
    vta::EventMachine machine;
    for (uint64_t n = 0; n < count; ++n) {
      const uint64_t length = offset[n + 1] - offset[n];
      if (length > UINT32_MAX) return kBadArgument;
      vta_machine_span *spans = timeline == nullptr ? nullptr : timeline + (offset[n] - offset[0]);
      machine.load(instructions + offset[n] * vta::kInstructionBytes, static_cast<uint32_t>(length));
      for (uint64_t m = 0; m < machines; ++m) results[n * machines + m] = machine.run(parameters[m], spans);
    }
  } catch (const std::bad_alloc &) {
    return kBadArgument;
  }
  return 0;
}

}  // extern "C"
