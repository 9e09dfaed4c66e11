/* The loops of attention for AVX2. */
#include "cpu/isa/avx2/vec.h"

#define ATTENTION_LOOPS attention_loops_avx2
#include "cpu/attention/attention_template.h"
