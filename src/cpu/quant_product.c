/* Products of quantized weights on the CPU: activations are coded once, then rows of weights are given to all cores. */
#include "base/memory.h"
#include "cpu/cpu.h"
#include "cpu/quant.h"
#include "kernels/blocks_dot.h"

enum {
    ROWS_TOGETHER = 32,     /* a core's piece of work */
    COLUMNS_TOGETHER = 64,  /* whose codes stay in the second-level cache while rows pass by */
    HERE_PRODUCTS = 1 << 16 /* done in less time than waking the workers takes */
};

typedef struct product_work {
    const quant_product_job *job;
    const instruction_set *isa;
    quant_set set;
    const char *weights;
    const float *x;
    float *y;
    char *activations; /* coded; NULL for plain types */
    char *scratch;     /* for each worker: of plain types a decoded row */
    int64_t scratch_bytes;
    int64_t weights_stride, activations_stride, blocks;
    atomic_int_least64_t refused;
} product_work;

static int64_t row_bytes(int32_t type, int64_t cols)
{
    return cols / block_length(type) * block_bytes(type);
}

static void code_column(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    product_work *w = context;
    const int32_t type = dot_activations(w->job->type);
    const int64_t blocks = w->job->cols / block_length(type);
    const int64_t failed =
        w->set.coders[type].encode(w->x + item * w->job->cols, w->activations + item * w->activations_stride, blocks);
    int64_t first = atomic_load(&w->refused);
    while (failed < blocks && item * blocks + failed < first &&
           !atomic_compare_exchange_weak(&w->refused, &first, item * blocks + failed))
        continue;
}

static void multiply_columns(const product_work *w, int64_t row, int64_t rows, int64_t column, int64_t columns, void *scratch)
{
    const quant_product_job *job = w->job;
    const int64_t first = job->first_rows ? job->first_rows[column] : 0;
    const quant_product_piece piece = {.weights = w->weights + (first + row) * w->weights_stride,
                                       .weights_stride = w->weights_stride,
                                       .rows = rows,
                                       .blocks = w->blocks,
                                       .activations = w->activations + column * w->activations_stride,
                                       .activations_stride = w->activations_stride,
                                       .columns = columns,
                                       .out = w->y + column * job->rows + row,
                                       .out_stride = job->rows};
    w->set.products[job->type](&piece, scratch);
}

static void multiply_plain(const product_work *w, int64_t row, float *decoded)
{
    const quant_product_job *job = w->job;
    int64_t there = -1;
    for (int64_t c = 0; c < job->columns; c++) {
        const int64_t source = (job->first_rows ? job->first_rows[c] : 0) + row;
        if (source != there)
            w->set.coders[job->type].decode(w->weights + source * w->weights_stride, decoded, w->blocks);
        there = source;
        w->y[c * job->rows + row] = w->isa->dot(decoded, w->x + c * job->cols, job->cols);
    }
}

static void multiply_piece(void *context, int64_t item, int32_t worker)
{
    const product_work *w = context;
    const quant_product_job *job = w->job;
    const int64_t row = item * ROWS_TOGETHER;
    const int64_t rows = job->rows - row < ROWS_TOGETHER ? job->rows - row : ROWS_TOGETHER;
    void *scratch = w->scratch + worker * w->scratch_bytes;
    if (!w->activations) {
        for (int64_t r = row; r < row + rows; r++)
            multiply_plain(w, r, scratch);
        return;
    }
    const int64_t together = job->first_rows ? 1 : COLUMNS_TOGETHER;
    for (int64_t c = 0; c < job->columns; c += together)
        multiply_columns(w, row, rows, c, job->columns - c < together ? job->columns - c : together, scratch);
}

static void run(cpu_device *cpu, bool here, int64_t items, pool_work work, product_work *w)
{
    if (here)
        pool_run_here(items, work, w);
    else
        pool_run(cpu->pool, items, work, NULL, w);
}

ww_status cpu_quant_product(ww_device *device, const quant_product_job *job)
{
    cpu_device *cpu = (cpu_device *)device;
    const int32_t activation = dot_activations(job->type);
    product_work w = {.job = job,
                      .isa = cpu->isa,
                      .set = quant_set_of(cpu),
                      .weights = (const char *)job->weights->data + job->weights_offset,
                      .x = (const float *)((const char *)job->x->data + job->x_offset),
                      .y = job->y->data,
                      .weights_stride = row_bytes(job->type, job->cols),
                      .blocks = job->cols / block_length(job->type)};
    const bool here = job->rows * job->cols <= HERE_PRODUCTS / job->columns;
    atomic_init(&w.refused, INT64_MAX);
    *job->refused = -1;
    const int64_t together = job->columns < COLUMNS_TOGETHER ? job->columns : COLUMNS_TOGETHER;
    w.scratch_bytes = activation < 0 ? job->cols * (int64_t)sizeof(float) : quant_product_scratch(together, w.blocks);
    w.scratch_bytes = (w.scratch_bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    w.activations_stride = activation < 0 ? 0 : row_bytes(activation, job->cols);
    const size_t scratch = (size_t)(pool_threads(cpu->pool) * w.scratch_bytes);
    const size_t coded = (size_t)(job->columns * w.activations_stride);
    w.scratch = memory_take_aligned(scratch);
    if (!w.scratch)
        return memory_failed("rows of a product", scratch);
    if (activation >= 0) {
        w.activations = memory_take_aligned(coded);
        if (!w.activations) {
            memory_give(w.scratch);
            return memory_failed("activations of a product", coded);
        }
        run(cpu, here, job->columns, code_column, &w);
    }
    if (atomic_load(&w.refused) != INT64_MAX)
        *job->refused = atomic_load(&w.refused);
    else
        run(cpu, here, (job->rows + ROWS_TOGETHER - 1) / ROWS_TOGETHER, multiply_piece, &w);
    memory_give(w.activations);
    memory_give(w.scratch);
    return WW_OK;
}
