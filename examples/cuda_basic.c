/* The first NVIDIA GPU: what it is, and that it answers as the CPU does. Exits with 0 if so, with 77 if there is none.
 *   cc cuda_basic.c -o cuda_basic $(pkg-config --cflags --libs warpwave) && ./cuda_basic
 */
#include "gpu_basic.h"

int main(void)
{
    return gpu_basic("cuda");
}
