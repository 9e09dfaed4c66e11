/* Loaded before all others by the tests of the command, as a library that changes the rounding mode when it is loaded. */
#include <fenv.h>
#include <stdlib.h>

__attribute__((constructor)) static void set_rounding(void)
{
    const char *mode = getenv("WARPWAVE_TEST_ROUNDING");
    if (mode)
        fesetround(atoi(mode));
}
