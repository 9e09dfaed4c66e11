/* What tests of code objects need of the library beyond its interface. With all of its objects it makes the library that they
 * load. */
#include "gpu/search/screen.h"
#include "vectors/collection.h"

__attribute__((visibility("default"))) void codeobjects_screen(bool always, int32_t capacity);

/* Screens however few rows there are, with lists that have room for so many kept rows (0: as many as usual). */
void codeobjects_screen(bool always, int32_t capacity)
{
    search_screen_always(always);
    gpu_screen_tune(capacity, 0);
}
