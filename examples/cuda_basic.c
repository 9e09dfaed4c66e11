/* Describes the first NVIDIA GPU and compares its answers with the CPU's. Exits with 0 if they are equal, with 77 if there is
 * no GPU.
 *   cc cuda_basic.c -o cuda_basic $(pkg-config --cflags --libs warpwave) && ./cuda_basic
 */
#include "gpu_basic.h"

int main(void)
{
    return gpu_basic("cuda");
}
