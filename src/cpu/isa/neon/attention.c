/* The loops of attention for NEON. */
#include "cpu/isa/neon/vec.h"

#define ATTENTION_LOOPS attention_loops_neon
#include "cpu/attention/attention_template.h"
