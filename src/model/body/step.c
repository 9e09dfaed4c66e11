/* Steps of decoding, and passes of prompts: recorded and replayed.
 *
 * A step feeds one token to each of some sessions and computes the logits after it. It is the same list of operations on the
 * same memory every time, so it is recorded once and replayed. What changes between steps (tokens, positions, lengths,
 * addresses of pages) is in device memory. Another number of sessions or pages, or a workspace that has moved, needs another
 * recording. The first step of a shape runs without recording: it allocates the workspaces of its operations, which a recording
 * cannot. Passes of prompts are recorded too: the passes of a long prompt are alike, and in a small model launching the kernels
 * takes longer than running them.
 */
#include "model/body/body.h"
#include "tensor/tensor.h"

bool decoder_is_step(const pass *p)
{
    return p->tokens == p->sequences && p->tokens <= LOGIT_ROWS;
}

static ww_status run_step(const pass *p)
{
    const ww_tensor x = rows_of(&p->model->work.pass.x, p->tokens, p->model->sizes.width);
    const ww_status status = decoder_run(p);
    return status == WW_OK ? decoder_project(p, &x) : status;
}

static bool fits(const recorded_step *s, const pass *p)
{
    return s->tokens == p->tokens && s->runs == (p->tokens > p->sequences) && s->pages_stride == p->pages_stride &&
           s->keys_max == p->keys_max && s->generation == p->model->work.generation;
}

/* Recordings of one kind, and the function that runs it without recording. */
typedef struct recordings {
    recorded_step *steps;
    int32_t count;
    ww_status (*run)(const pass *p);
} recordings;

/* Finds the entry of a shape, or empties the least recently used one for it. */
static recorded_step *find(const pass *p, const recordings *r, bool *known)
{
    workspace *w = &p->model->work;
    recorded_step *oldest = &r->steps[0];
    *known = true;
    for (int32_t i = 0; i < r->count; i++) {
        if (fits(&r->steps[i], p))
            return &r->steps[i];
        if (r->steps[i].used < oldest->used)
            oldest = &r->steps[i];
    }
    *known = false;
    if (oldest->recording)
        tensors_of(w->device)->recording_release(w->device, oldest->recording);
    *oldest = (recorded_step){.tokens = p->tokens,
                              .runs = p->tokens > p->sequences,
                              .pages_stride = p->pages_stride,
                              .keys_max = p->keys_max,
                              .generation = w->generation};
    return oldest;
}

/* A failure to record does not fail the step: from then on it runs without recording. */
static void record(const pass *p, const recordings *r, recorded_step *s)
{
    ww_device *device = p->model->device;
    const tensor_backend *table = tensors_of(device);
    if (table->record_begin(device) != WW_OK) {
        s->refused = true;
        return;
    }
    const ww_status run = r->run(p), ended = table->record_end(device, run == WW_OK, &s->recording);
    if (run != WW_OK || ended != WW_OK) {
        s->recording = NULL;
        s->refused = run != WW_CANCELLED;
    }
}

/* Replays the recording, or runs without one. */
static ww_status run_recorded(const pass *p, const recordings *r)
{
    ww_model *model = p->model;
    const tensor_backend *table = tensors_of(model->device);
    const ww_status status = body_check_cancelled(p);
    if (status != WW_OK)
        return status;
    bool known = false;
    recorded_step *s = table->record_begin ? find(p, r, &known) : NULL;
    if (s)
        s->used = ++model->work.clock;
    if (s && known && !s->recording && !s->refused)
        record(p, r, s);
    return s && s->recording ? table->replay(model->device, s->recording) : r->run(p);
}

ww_status decoder_step(const pass *p, float *logits)
{
    ww_model *model = p->model;
    const ww_tensor out = rows_of(&model->work.logits, p->tokens, model->sizes.vocabulary);
    const recordings steps = {model->work.steps, RECORDED_STEPS, run_step};
    const ww_status status = run_recorded(p, &steps);
    return status == WW_OK ? ww_tensor_to_host(&out, logits) : status;
}

ww_status decoder_pass(const pass *p)
{
    const recordings passes = {p->model->work.passes, RECORDED_PASSES, decoder_run};
    return run_recorded(p, &passes);
}
