/* One seed's world: a simulated disk that outlives processes, a clock, and a plan of what is run and how it is
 * disturbed. A process - heap, scheduler, job - lives until it finishes, fails, is cancelled or crashes; then the power
 * may go, and the next one starts at another parallelism. In the end the committed output is checked. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct world_options {
    bool verbose;
    bool no_checkpoints; /* one undisturbed life without a checkpoint directory */
    int batch_rows;      /* 0: the seed chooses among 1, 7, 4096 */
    int fault_point;     /* -1: the seed chooses */
} world_options;

/* true: everything held. false: *why says what did not (static storage). */
bool world_run(uint64_t seed, const world_options *o, const char **why);

#endif
