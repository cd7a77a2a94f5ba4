/* Critical paths of dependence graphs: segments of work that wait for others, on machines that differ in their costs.
 *
 * A program's instructions form segments (hilt.tune.model_guided.dataflow). A segment begins once the one before in
 * its stage and the senders of its tokens have ended. Part of the library of vta_machine.h, with its rules.
 */
#ifndef HILT_VTA_CRITICAL_PATH_H
#define HILT_VTA_CRITICAL_PATH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VTA_GRAPH_SOURCES = 3 };

/* One program. Segment i is written i + 1, so that 0 stands for none. */
typedef struct vta_graph {
  uint64_t segments;
  const int32_t *sources; /* (segments, VTA_GRAPH_SOURCES): each from 0 to the segment's own position */
  const double *work;     /* (segments, kinds): amounts of each kind of work */
} vta_graph;

/* ends (count, machines, 2): when the first half of each graph's segments and when all have ended, in cycles.
 * `cycles` (kinds, machines) are the costs of a unit of work. Returns 0, or -2 for a null array, a source that does
 * not lie before its segment, or too little memory. */
int vta_graph_ends(uint64_t count, const vta_graph *graphs, uint64_t kinds, uint64_t machines, const double *cycles,
                   double *ends);

/* work (count, 2, kinds): the amounts on the critical path to each of those two ends, on one machine with the costs
 * `cycles` (kinds). Returns the same. */
int vta_graph_paths(uint64_t count, const vta_graph *graphs, uint64_t kinds, const double *cycles, double *work);

#ifdef __cplusplus
}
#endif
#endif
