/* Steps of decoding, and passes of prompts: recorded and replayed.
 *
 * A step, a token of each of some sessions and the logits behind it, is the same list of operations every time, on the same
 * memory, so it is recorded once and replayed. What changes from step to step (tokens, positions, lengths, addresses of pages)
 * is in device memory. Another number of sessions, of pages, or memory of the workspace that has moved, is another recording.
 * The first step of a shape is run as it is: that takes the workspaces of its operations, which a recording cannot. So are
 * passes of prompts: those of a long one are alike, and in a small model asking for their launches takes longer than they do.
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

/* Recordings of one kind, and how it is run as it is. */
typedef struct recordings {
    recorded_step *steps;
    int32_t count;
    ww_status (*run)(const pass *p);
} recordings;

/* The entry of a shape: the one that is there, or the one that was not used for longest, emptied. */
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

/* A failure here is none of the step: it is run as it is from then on. */
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

/* Replays it, or runs it as it is. */
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
