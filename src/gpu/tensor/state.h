/* The state of a device's tensors, shared by tensor.c and by record.c, which records work. */
#ifndef WW_GPU_TENSOR_STATE_H
#define WW_GPU_TENSOR_STATE_H

#include <pthread.h>

#include "gpu/blas/blas.h"
#include "gpu/tensor/tensor.h"

enum { UNUSED_MAX = 256 }; /* blocks; if there are more, the stream is waited for and they go to the pool */

struct gpu_tensors {
    pthread_mutex_t lock; /* protects the stream and the list */
    gpu_stream *stream;
    gpu_blas *blas;   /* of that stream, made at first use */
    bool blas_absent; /* the library was not found */
    gpu_tables tables;
    bool ready_zeroed; /* the counters are set to 0 */
    driver_event mark;
    driver_event met; /* orders our stream and another one */
    buffer unused[UNUSED_MAX];
    int32_t unused_count;
    int64_t unused_bytes;

    tensor_recording *recording; /* being made by one thread; the others wait */
    pthread_t recorder;
    pthread_cond_t recorded;
    gpu_tables tables_before; /* the tables that existed when it began */
};

/* Recorded work, and the memory that was freed during the recording, which its kernels use at every replay. */
struct tensor_recording {
    driver_graph graph;
    buffer *held;
    int32_t held_count, held_capacity;
    bool short_of_memory; /* no memory to hold something; the recording is invalid */
};

/* The functions below need the lock. Waits while another thread records. */
void gpu_recording_wait(gpu_tensors *tensors);
/* While this thread records: reuses freed memory of that size, or holds memory that is freed. Return false if that does not
 * apply. */
bool gpu_recording_take(gpu_tensors *tensors, size_t bytes, buffer *out);
bool gpu_recording_hold(gpu_tensors *tensors, const buffer *memory);

ww_status gpu_record_begin(ww_device *base);
ww_status gpu_record_end(ww_device *base, bool keep, tensor_recording **out);
ww_status gpu_replay(ww_device *base, const tensor_recording *recording);
void gpu_recording_release(ww_device *base, tensor_recording *recording);

#endif
