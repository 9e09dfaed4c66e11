/* What a pass over the layers needs beside weights and cache: the batch on the device, and the tensors between the operations.
 * Made once, as large as the largest pass so far; a pass of one token allocates nothing.
 */
#ifndef WW_MODEL_WORKSPACE_H
#define WW_MODEL_WORKSPACE_H

#include <stdbool.h>

#include <warpwave/tensor.h>

struct ww_model;

enum {
    PASS_TOKENS = 512, /* of one pass at most; more tokens are several */
    LOGIT_ROWS = 64    /* of logits that are computed together */
};

/* Numbers of the batch: in memory of the host, as the device has them. */
typedef struct upload {
    ww_tensor tensor; /* of rank 1 */
    void *host;
    int64_t capacity, used; /* elements; `used` are alike on both sides, 0: nobody knows */
} upload;

typedef struct rope_table {
    ww_tensor cosines, sines; /* positions x pairs */
    int64_t positions;
} rope_table;

/* f32, as many rows as a pass has tokens; those that an architecture does not need are empty. */
typedef struct pass_tensors {
    ww_tensor x;        /* the residual stream */
    ww_tensor normed;   /* x behind a norm */
    ww_tensor q, k, v;  /* of all heads; where one product makes all three, they are in q, row by row */
    ww_tensor q_normed; /* by head, where the architecture does that; keys then follow in k_normed */
    ww_tensor k_normed;
    ww_tensor attended;
    ww_tensor gate, up; /* of the feed-forward network; where one product makes both, they are in gate */
    ww_tensor y;        /* what is added to x next */
    /* Of a mixture of experts: logits of all; the largest, as logits and as shares, and whose they are; rows for each that is
     * used, of the width, and what their biases are. */
    ww_tensor routed, chosen, shares, chosen_ids, spread, beside;
} pass_tensors;

/* A step or a pass that was recorded, or was run and could be, for batches of one shape. */
typedef struct recorded_step {
    int64_t tokens, pages_stride;
    bool runs; /* tokens stand beside others of their sequence */
    int32_t keys_max;
    uint64_t generation;                /* of the workspace whose memory it uses */
    struct tensor_recording *recording; /* NULL: not yet */
    bool refused;                       /* it cannot be recorded */
    uint64_t used;                      /* when */
} recorded_step;

enum { RECORDED_STEPS = 8, RECORDED_PASSES = 4 };

typedef struct workspace {
    ww_device *device;
    uint64_t generation, clock;                                   /* the first counts whenever memory of it moves */
    recorded_step steps[RECORDED_STEPS], passes[RECORDED_PASSES]; /* the latter of prompts, without logits */
    int64_t tokens;                                               /* room for this many */
    pass_tensors pass;
    ww_tensor logits; /* LOGIT_ROWS x vocabulary */
    upload ids, positions, sequences, lengths, pages, rows, types, scales;
    rope_table rope[2]; /* of layers without and with a window */
} workspace;

/* Room for a pass of `tokens`. */
ww_status workspace_reserve(struct ww_model *model, int64_t tokens);

/* Tables of rope for positions below `positions`. */
ww_status workspace_rope(struct ww_model *model, int64_t positions);

/* Copies `count` elements to the device, unless they are there. */
ww_status upload_write(workspace *w, upload *to, ww_dtype dtype, const void *from, int64_t count);

/* Forgets what was recorded. */
void workspace_forget_steps(workspace *w);

void workspace_free(workspace *w);

/* The first rows of a tensor of the workspace, as [rows, cols]; nothing is retained. */
static inline ww_tensor rows_of(const ww_tensor *x, int64_t rows, int64_t cols)
{
    const int64_t shape[2] = {rows, cols};
    return (ww_tensor){.storage = x->storage, .layout = ww_layout_contiguous(2, shape)};
}

/* `count` columns from column `first` on, of rows that are `cols` long. */
static inline ww_tensor columns_of(const ww_tensor *x, int64_t rows, int64_t cols, int64_t first, int64_t count)
{
    ww_tensor part = rows_of(x, rows, count);
    part.layout.strides[0] = cols;
    part.layout.offset = first;
    return part;
}

/* The first elements of an upload. */
static inline ww_tensor list_of(const upload *u, int64_t count)
{
    return (ww_tensor){.storage = u->tensor.storage, .layout = ww_layout_contiguous(1, &count)};
}

#endif
