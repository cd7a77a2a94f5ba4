/* Machine models of accelerators whose RTL hilt does not have: the public HLS bitstreams and the Chisel design.
 *
 * Programs in, cycles out, no data. Unlike the twin (../vta_timing.h) this is no exact copy of a design: it has the
 * structure of a family of designs, and parameters that measurements on boards have given (docs/silicon.md).
 *
 * One shared library for each parameter set (hilt.simulator.build, form "machine"). No function throws, exits or
 * prints; calls may run on several threads at once.
 */
#ifndef HILT_VTA_MACHINE_H
#define HILT_VTA_MACHINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VTA_MACHINE_API_VERSION 1u

/* Costs in accelerator cycles, fractions included: a fit sees the mean of many. */
typedef struct vta_machine_parameters {
  double instruction;         /* each instruction in its stage */
  double fetch;               /* each instruction in fetch */
  double load_start;          /* each LOAD that moves something, before its first row */
  double load_row;            /* each row of a LOAD */
  double store_start;         /* each STORE that moves something */
  double store_row;           /* each row of a STORE */
  double rows_overlap;        /* 0: a row's cost and its beats add up; 1: the larger of the two counts */
  double hit_bytes;           /* bytes a cycle from the level-2 cache */
  double miss_bytes;          /* bytes a cycle from memory */
  double store_bytes;         /* bytes a cycle of a STORE */
  double store_allocates;     /* 1: a STORE takes lines of the cache; 0: it goes past */
  double cache_bytes;         /* size of that cache; 0: every access is a miss */
  double pad_element;         /* each padding element that a LOAD writes */
  double gemm_iteration;      /* each (outer, inner) iteration of a GEMM */
  double gemm_micro_op;       /* each micro-op of an iteration */
  double reset_iteration;     /* each (outer, inner) iteration of a resetting GEMM */
  double alu_iteration;       /* each (outer, inner) iteration of an ALU instruction */
  double alu_micro_op;        /* each micro-op of an iteration */
} vta_machine_parameters;

enum vta_machine_status {
  VTA_MACHINE_DONE = 0,  /* FINISH is executed */
  VTA_MACHINE_NEVER = 1, /* it is not: a token or FINISH is missing */
};

typedef struct vta_machine_result {
  int32_t status; /* enum vta_machine_status */
  uint32_t instructions;
  double cycles;
  double load_busy, compute_busy, store_busy;
  double gemm_cycles, alu_cycles; /* parts of compute_busy */
  double read_bytes, missed_bytes; /* of LOADs; a miss is an expectation, so not whole */
  double rows;                    /* of LOADs */
} vta_machine_result;

/* One instruction in its stage: busy in the cycles [start, end). */
typedef struct vta_machine_span {
  double start, end;
  uint32_t stage; /* 1 load, 2 compute, 3 store */
  uint32_t reserved;
} vta_machine_span;

uint32_t vta_machine_api_version(void);

/* `count` programs, one after another: program n has the instructions [offset[n], offset[n + 1]). Addresses of one
 * memory type count from any base. `timeline` is null or has a place for every instruction of every program.
 * Returns 0, or -2 for a null array, offsets that decrease, or too little memory. */
int vta_machine_predict(uint64_t count, const uint8_t *instructions, const uint64_t *offset,
                        const vta_machine_parameters *parameters, vta_machine_result *results,
                        vta_machine_span *timeline);

/* The same programs on `machines` parameter sets: results[n * machines + m] is program n on machine m. A program is
 * decoded once, and its cache followed once for machines in a row that have the same cache. `timeline` keeps the last
 * machine's. */
int vta_machine_compare(uint64_t count, const uint8_t *instructions, const uint64_t *offset, uint64_t machines,
                        const vta_machine_parameters *parameters, vta_machine_result *results,
                        vta_machine_span *timeline);

#ifdef __cplusplus
}
#endif
#endif
