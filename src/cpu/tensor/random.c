/* Random numbers on the CPU: in blocks of the counter, so that several threads produce the same numbers as one. */
#include "base/integers.h"
#include "cpu/tensor/tensor.h"

enum { RANGE_ELEMENTS = 32 * LOOP_BLOCK };

typedef struct random_work {
    const random_job *job;
    const element_loops *loops;
} random_work;

static void random_range(void *context, int64_t begin, int64_t end)
{
    const random_work *w = context;
    const random_job *job = w->job;
    double space[LOOP_BLOCK];
    for (int64_t first = begin; first < end; first += LOOP_BLOCK) {
        const int64_t count = min_i64(end - first, LOOP_BLOCK);
        void *to = (char *)job->to + first * type_size(job->type);
        if (job->type == TYPE_F64) {
            w->loops->random_f64(job->what, space, job->seed, job->first_block + (uint64_t)(first / 2), job->a, job->b);
            w->loops->narrow_f64(job->type, to, space, count);
        } else {
            w->loops->random_f32(job->what, (float *)space, job->seed, job->first_block + (uint64_t)(first / 4), (float)job->a,
                                 (float)job->b);
            w->loops->narrow_f32(job->type, to, (float *)space, count);
        }
    }
}

ww_status cpu_random(ww_device *device, const random_job *job)
{
    random_work work = {.job = job, .loops = cpu_loops(device)};
    cpu_run_ranges(device, job->count, RANGE_ELEMENTS, random_range, &work);
    return WW_OK;
}
