/* Only for builds with the memory sanitizer: Jansson was compiled without it, so the sanitizer does not notice when Jansson
 * initialises memory. With allocations that are already zeroed, there are no false reports. */
#include <jansson.h>
#include <stdlib.h>

static void *alloc_zeroed(size_t bytes)
{
    return calloc(1, bytes);
}

__attribute__((constructor)) static void give_zeroed_memory(void)
{
    json_set_alloc_funcs(alloc_zeroed, free);
}
