/* Prints the chips of the NVIDIA GPUs that libcuda.so.1 has, a line each: sm_90. Compiled and run by scripts/kernels/chips.sh
 * where the driver's library is there but nvidia-smi is not, as in containers. */
#include <dlfcn.h>
#include <stdio.h>

enum { MAJOR = 75, MINOR = 76 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_... */

int main(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL)
        return 1;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*count_devices)(int *) = (int (*)(int *))dlsym(library, "cuDeviceGetCount");
    int (*attribute)(int *, int, int) = (int (*)(int *, int, int))dlsym(library, "cuDeviceGetAttribute");
    int count = 0;
    if (init == NULL || count_devices == NULL || attribute == NULL || init(0) != 0 || count_devices(&count) != 0)
        return 1;
    for (int device = 0; device < count; device++) { /* a device is its index in the driver's own numbering */
        int major = 0;
        int minor = 0;
        if (attribute(&major, MAJOR, device) == 0 && attribute(&minor, MINOR, device) == 0)
            printf("sm_%d%d\n", major, minor);
    }
    return 0;
}
