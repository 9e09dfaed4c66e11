/* What tests ask of the library's memory. Its counters are in base/memory.h, which tests of behaviour need not include. */
#include "support/memory.h"

#include "base/memory.h"

void fail_allocation_at(int64_t n)
{
    memory_fail_at(n);
}

int64_t blocks_held(void)
{
    return memory_blocks_held();
}
