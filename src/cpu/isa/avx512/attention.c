/* The loops of attention for AVX-512: a register has the eight accumulators of two keys. */
#include "cpu/isa/avx512/vec.h"

#define ATTENTION_LOOPS attention_loops_avx512
#include "cpu/attention/attention_template.h"
