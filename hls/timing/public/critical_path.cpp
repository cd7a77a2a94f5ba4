// The C API of critical paths.
#include "critical_path.h"

#include <algorithm>
#include <new>
#include <vector>

namespace {

constexpr int kBadArgument = -2;

bool is_sound(const vta_graph &graph) {
  if (graph.segments == 0) return true;
  if (graph.sources == nullptr || graph.work == nullptr) return false;
  for (uint64_t segment = 0; segment < graph.segments; ++segment)
    for (int place = 0; place < VTA_GRAPH_SOURCES; ++place) {
      const int32_t source = graph.sources[segment * VTA_GRAPH_SOURCES + place];
      if (source < 0 || static_cast<uint64_t>(source) > segment) return false;
    }
  return true;
}

// Fills `ends` (segments + 1, machines): the end of each segment, after a row of zeros for none.
void follow(const vta_graph &graph, uint64_t kinds, uint64_t machines, const double *cycles,
            std::vector<double> &ends) {
  ends.assign((graph.segments + 1) * machines, 0.0);
  for (uint64_t segment = 0; segment < graph.segments; ++segment) {
    double *here = &ends[(segment + 1) * machines];
    const double *work = graph.work + segment * kinds;
    const int32_t *sources = graph.sources + segment * VTA_GRAPH_SOURCES;
    const double *first = &ends[sources[0] * machines];
    const double *second = &ends[sources[1] * machines];
    const double *third = &ends[sources[2] * machines];
    for (uint64_t m = 0; m < machines; ++m) here[m] = std::max(std::max(first[m], second[m]), third[m]);
    for (uint64_t kind = 0; kind < kinds; ++kind) {
      if (work[kind] == 0) continue;
      for (uint64_t m = 0; m < machines; ++m) here[m] += work[kind] * cycles[kind * machines + m];
    }
  }
}

// Adds the work on the way to segment `last` (counted from 1) to `path` (kinds).
void walk_back(const vta_graph &graph, uint64_t kinds, const std::vector<double> &ends, uint64_t last, double *path) {
  while (last != 0) {
    const double *work = graph.work + (last - 1) * kinds;
    for (uint64_t kind = 0; kind < kinds; ++kind) path[kind] += work[kind];
    const int32_t *sources = graph.sources + (last - 1) * VTA_GRAPH_SOURCES;
    last = *std::max_element(sources, sources + VTA_GRAPH_SOURCES,
                             [&](int32_t one, int32_t other) { return ends[one] < ends[other]; });
  }
}

}  // namespace

extern "C" {

int vta_graph_ends(uint64_t count, const vta_graph *graphs, uint64_t kinds, uint64_t machines, const double *cycles,
                   double *ends) {
  if (count != 0 && (graphs == nullptr || cycles == nullptr || ends == nullptr)) return kBadArgument;
  try {
    std::vector<double> each;
    for (uint64_t n = 0; n < count; ++n) {
      const vta_graph &graph = graphs[n];
      if (!is_sound(graph)) return kBadArgument;
      follow(graph, kinds, machines, cycles, each);
      for (uint64_t m = 0; m < machines; ++m) {
        double latest = 0;
        double *found = ends + (n * machines + m) * 2;
        found[0] = 0;
        for (uint64_t segment = 1; segment <= graph.segments; ++segment) {
          latest = std::max(latest, each[segment * machines + m]);
          if (segment == graph.segments / 2) found[0] = latest;
        }
        found[1] = latest;
      }
    }
  } catch (const std::bad_alloc &) {
    return kBadArgument;
  }
  return 0;
}

int vta_graph_paths(uint64_t count, const vta_graph *graphs, uint64_t kinds, const double *cycles, double *work) {
  if (count != 0 && (graphs == nullptr || cycles == nullptr || work == nullptr)) return kBadArgument;
  try {
    std::vector<double> ends;
    for (uint64_t n = 0; n < count; ++n) {
      const vta_graph &graph = graphs[n];
      if (!is_sound(graph)) return kBadArgument;
      follow(graph, kinds, 1, cycles, ends);
      const uint64_t parts[2] = {graph.segments / 2, graph.segments};
      for (int part = 0; part < 2; ++part) {
        double *path = work + (n * 2 + part) * kinds;
        std::fill(path, path + kinds, 0.0);
        const auto last = std::max_element(ends.begin(), ends.begin() + static_cast<long>(parts[part]) + 1);
        walk_back(graph, kinds, ends, static_cast<uint64_t>(last - ends.begin()), path);
      }
    }
  } catch (const std::bad_alloc &) {
    return kBadArgument;
  }
  return 0;
}

}  // extern "C"
