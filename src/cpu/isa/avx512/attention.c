/* The loops of attention for AVX-512: eight accumulators are half a register, so the vectors are AVX2's, of which there are
 * twice as many. */
#include "cpu/isa/avx2/vec.h"

#define ATTENTION_LOOPS attention_loops_avx512
#include "cpu/attention/attention_template.h"
