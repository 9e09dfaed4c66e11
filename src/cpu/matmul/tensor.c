/* Matrix products of tensors on the CPU: the tiles of its instruction set, the threads of its pool. */
#include "cpu/tensor/tensor.h"
#include "cpu/matmul/matmul.h"

ww_status cpu_matmul(ww_device *device, const matmul_job *job)
{
    return matmul_run(device, ((cpu_device *)device)->isa->matmul, job);
}
