/* The first AMD GPU: what it is, and that it answers as the CPU does. Exits with 0 if so, with 77 if there is none.
 *   cc rocm_basic.c -o rocm_basic $(pkg-config --cflags --libs warpwave) && ./rocm_basic
 */
#include "gpu_basic.h"

int main(void)
{
    return gpu_basic("rocm");
}
