/* Shared by the files about tensors on the CPU: the families of operations, and how work is divided among the pool. */
#ifndef WW_CPU_TENSOR_TENSOR_H
#define WW_CPU_TENSOR_TENSOR_H

#include "cpu/cpu.h"
#include "cpu/tensor/element_loops.h"
#include "device/tensor_jobs.h"

extern const tensor_backend tensors_cpu;

static inline const element_loops *cpu_loops(ww_device *device)
{
    return ((cpu_device *)device)->isa->element_loops;
}

/* Does elements [begin, end) of a job. */
typedef void (*cpu_range_work)(void *context, int64_t begin, int64_t end);

/* Runs all `count` elements in ranges of `grain`, at least 1, on the device's threads; a single range runs on the caller's.
 * Which thread does which range does not change the result. */
void cpu_run_ranges(ww_device *device, int64_t count, int64_t grain, cpu_range_work work, void *context);

/* Memory of tensors (tensor_backend). */
ww_status cpu_tensor_alloc(ww_device *device, size_t bytes, buffer *out);
void cpu_tensor_free(ww_device *device, buffer *b);

ww_status cpu_elementwise(ww_device *device, const elementwise_job *job);
/* Copies and transposes in tiles. Returns false, having done nothing, if the job is not a transposition. */
bool cpu_transpose(ww_device *device, const elementwise_job *job);
ww_status cpu_random(ww_device *device, const random_job *job);
ww_status cpu_check_ids(ww_device *device, const elementwise_job *ids, int64_t extent, int64_t *bad, int64_t *value);
ww_status cpu_gather(ww_device *device, const elementwise_job *job, const elementwise_job *ids, int64_t *bad, int64_t *value);
ww_status cpu_scatter(ww_device *device, const scatter_job *job);
ww_status cpu_reduce(ww_device *device, const reduce_job *job);
ww_status cpu_rows(ww_device *device, const rows_job *job);
ww_status cpu_softmax_columns(ww_device *device, const softmax_columns_job *job);
ww_status cpu_rope(ww_device *device, const rope_job *job);
ww_status cpu_sort(ww_device *device, const sort_job *job);
ww_status cpu_matmul(ww_device *device, const matmul_job *job);
ww_status cpu_resample(ww_device *device, const struct resample_args *args);
ww_status cpu_cumsum(ww_device *device, const struct cumsum_args *args);
ww_status cpu_conv_integer(ww_device *device, const struct conv_integer_args *args);
ww_status cpu_attention_store(ww_device *device, const attention_store_job *job);
ww_status cpu_attention(ww_device *device, const attention_job *job);

#endif
