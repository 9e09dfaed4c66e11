/* Describes the first AMD GPU and compares its answers with the CPU's. Exits with 0 if they are equal, with 77 if there is no
 * GPU.
 *   cc rocm_basic.c -o rocm_basic $(pkg-config --cflags --libs warpwave) && ./rocm_basic
 */
#include "gpu_basic.h"

int main(void)
{
    return gpu_basic("rocm");
}
