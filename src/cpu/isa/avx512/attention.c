/* The loops of attention for AVX-512: eight accumulators are half a register, so this uses AVX2's vectors, with twice as many
 * registers. */
#include "cpu/isa/avx2/vec.h"

#define ATTENTION_LOOPS attention_loops_avx512
#include "cpu/attention/attention_template.h"
