/* In a build with the memory sanitizer alone: Jansson was compiled without it, so that nobody has seen it fill in what it
 * allocates. From zeroed memory it can take what it likes. */
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
