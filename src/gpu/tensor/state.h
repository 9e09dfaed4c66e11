/* The state of a device's tensors, between the files that keep it: tensor.c, and record.c for recorded work. */
#ifndef WW_GPU_TENSOR_STATE_H
#define WW_GPU_TENSOR_STATE_H

#include <pthread.h>

#include "gpu/blas/blas.h"
#include "gpu/tensor/tensor.h"

enum { UNUSED_MAX = 256 }; /* blocks; more than that are waited for and given to the pool */

struct gpu_tensors {
    pthread_mutex_t lock; /* over the stream and the list */
    gpu_stream *stream;
    gpu_blas *blas;   /* of that stream, made at first use */
    bool blas_absent; /* it was looked for */
    gpu_tables tables;
    bool ready_zeroed; /* the counters of blocks */
    driver_event mark;
    driver_event met; /* between our stream and another's */
    buffer unused[UNUSED_MAX];
    int32_t unused_count;
    int64_t unused_bytes;

    tensor_recording *recording; /* that is being made; by this thread, and others wait until it is: */
    pthread_t recorder;
    pthread_cond_t recorded;
    gpu_tables tables_before; /* what there was of tables when it began */
};

/* Work that was recorded, and the memory that was given back while it was: its kernels use it at every replay. */
struct tensor_recording {
    driver_graph graph;
    buffer *held;
    int32_t held_count, held_capacity;
    bool short_of_memory; /* something could not be held, so that the recording is no good */
};

/* All with the lock held. Waits while another thread records. */
void gpu_recording_wait(gpu_tensors *tensors);
/* While this thread records: memory that it gave back, if there is some of that size; and giving back. False: not so. */
bool gpu_recording_take(gpu_tensors *tensors, size_t bytes, buffer *out);
bool gpu_recording_hold(gpu_tensors *tensors, const buffer *memory);

ww_status gpu_record_begin(ww_device *base);
ww_status gpu_record_end(ww_device *base, bool keep, tensor_recording **out);
ww_status gpu_replay(ww_device *base, const tensor_recording *recording);
void gpu_recording_release(ww_device *base, tensor_recording *recording);

#endif
