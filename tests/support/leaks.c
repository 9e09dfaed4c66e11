/* Where looking for leaks takes seconds (tests/CMakeLists.txt says when), only the programs that it chooses do so, by
 * ASAN_OPTIONS. */
#ifdef TEST_LEAK_CHECK_IS_SLOW
#include <sanitizer/asan_interface.h>

const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif
