// Stands in for ptx.cuh, so that layout code runs on the processor.
#include "values.h"
static thread_local Index blockIdx, threadIdx, blockDim, gridDim;
static inline int max(int a, int b) { return a > b ? a : b; }
static inline void __syncwarp() {}
static inline void let_next_start() {}
static inline void wait_for_previous() {}
