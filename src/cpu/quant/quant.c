/* Quantized matrices on the CPU: rows are encoded, decoded and put into their layout in pieces of 256 KiB of floats, on all
 * cores. Products are in product.c.
 */
#include "cpu/quant/quant.h"

#include "base/integers.h"
#include "cpu/cpu.h"

enum {
    PIECE_BYTES = 256 << 10, /* of floats */
    HERE_BYTES = 32 << 10    /* takes less time than waking the workers */
};

const quant_set *quant_set_choose(const instruction_set *set)
{
    const quant_set *chosen = set->quants;
    while (chosen[1].name && chosen->present && !chosen->present())
        chosen++;
    return chosen;
}

typedef struct code_work {
    const quant_coder *coder;
    const quant_encode_job *encode; /* one of the four jobs */
    const quant_decode_job *decode;
    const quant_rows *arrange, *read;
    char *to; /* for reading */
    char *blocks;
    int64_t row_bytes, row_blocks, piece_rows;
    atomic_int_least64_t refused;
} code_work;

static void work_begin(code_work *w, const cpu_device *cpu, int32_t type, int64_t cols)
{
    w->coder = &quant_set_choose(cpu->isa)->coders[type];
    w->row_blocks = cols / block_length(type);
    w->row_bytes = w->row_blocks * block_bytes(type);
    w->piece_rows = PIECE_BYTES / (cols * (int64_t)sizeof(float));
    w->piece_rows = w->piece_rows > 0 ? w->piece_rows : 1;
}

static void run_on_pool(cpu_device *cpu, code_work *w, int64_t rows, int64_t cols, pool_work work)
{
    const int64_t pieces = divide_up_i64(rows, w->piece_rows);
    if (rows * cols * (int64_t)sizeof(float) <= HERE_BYTES)
        pool_run_here(pieces, work, w);
    else
        pool_run(cpu->pool, pieces, work, NULL, w);
}

static int64_t piece_end(const code_work *w, int64_t item, int64_t rows)
{
    return min_i64((item + 1) * w->piece_rows, rows);
}

static void encode_piece(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    code_work *w = context;
    const quant_encode_job *job = w->encode;
    for (int64_t row = item * w->piece_rows; row < piece_end(w, item, job->rows); row++) {
        const int64_t failed =
            w->coder->encode(job->from + row * job->from_stride, w->blocks + row * w->row_bytes, w->row_blocks);
        if (failed == w->row_blocks) {
            w->coder->arrange(w->blocks + row * w->row_bytes, w->row_blocks);
            continue;
        }
        const int64_t block = row * w->row_blocks + failed;
        int64_t first = atomic_load(&w->refused);
        while (block < first && !atomic_compare_exchange_weak(&w->refused, &first, block))
            continue;
        return;
    }
}

static ww_status cpu_encode(ww_device *device, const quant_encode_job *job)
{
    cpu_device *cpu = (cpu_device *)device;
    code_work w = {.encode = job, .blocks = (char *)job->to->data + job->to_offset};
    atomic_init(&w.refused, INT64_MAX);
    work_begin(&w, cpu, job->type, job->cols);
    run_on_pool(cpu, &w, job->rows, job->cols, encode_piece);
    *job->refused = atomic_load(&w.refused) == INT64_MAX ? -1 : atomic_load(&w.refused);
    return WW_OK;
}

static void decode_piece(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const code_work *w = context;
    const quant_decode_job *job = w->decode;
    for (int64_t row = item * w->piece_rows; row < piece_end(w, item, job->count); row++)
        w->coder->decode(w->blocks + (job->ids ? job->ids[row] : row) * w->row_bytes, job->to + row * job->cols, w->row_blocks);
}

static ww_status cpu_decode(ww_device *device, const quant_decode_job *job)
{
    cpu_device *cpu = (cpu_device *)device;
    code_work w = {.decode = job, .blocks = (char *)job->from->data + job->from_offset};
    work_begin(&w, cpu, job->type, job->cols);
    run_on_pool(cpu, &w, job->count, job->cols, decode_piece);
    return WW_OK;
}

static void arrange_piece(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const code_work *w = context;
    for (int64_t row = item * w->piece_rows; row < piece_end(w, item, w->arrange->rows); row++)
        w->coder->arrange(w->blocks + row * w->row_bytes, w->row_blocks);
}

static ww_status cpu_arrange(ww_device *device, const quant_rows *rows)
{
    cpu_device *cpu = (cpu_device *)device;
    code_work w = {.arrange = rows, .blocks = (char *)rows->blocks->data + rows->offset};
    work_begin(&w, cpu, rows->type, rows->cols);
    if (block_elements(rows->type) > 1)
        run_on_pool(cpu, &w, rows->rows, rows->cols, arrange_piece);
    return WW_OK;
}

static void read_piece(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const code_work *w = context;
    for (int64_t row = item * w->piece_rows; row < piece_end(w, item, w->read->rows); row++)
        w->coder->restore(w->blocks + row * w->row_bytes, w->to + row * w->row_bytes, w->row_blocks);
}

static ww_status cpu_read(ww_device *device, const quant_rows *rows, void *to)
{
    cpu_device *cpu = (cpu_device *)device;
    code_work w = {.read = rows, .blocks = (char *)rows->blocks->data + rows->offset, .to = to};
    work_begin(&w, cpu, rows->type, rows->cols);
    run_on_pool(cpu, &w, rows->rows, rows->cols, read_piece);
    return WW_OK;
}

/* ---- from and to tensors ------------------------------------------------------------------------------------------------- */

enum { CHUNK_ELEMENTS = 2048 }; /* whole groups of every format */

typedef struct decode_tensor_work {
    const quant_decode_tensor_job *job;
    const quant_coder *coder;
    const char *blocks;
    int64_t row_bytes, piece_rows;
} decode_tensor_work;

static int64_t id_of(const quant_decode_tensor_job *job, int64_t at)
{
    if (!job->ids)
        return at;
    return job->id_bytes == 8   ? ((const int64_t *)job->ids)[at]
           : job->id_bytes == 4 ? (int64_t)((const uint32_t *)job->ids)[at]
                                : ((const uint8_t *)job->ids)[at];
}

static void put_halves(int32_t type, const float *from, uint16_t *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (uint16_t)(type == BLOCK_F16 ? block_f16_from_f32(from[i]) : block_bf16_from_f32(from[i]));
}

/* Decodes a row, as many whole groups at a time as a few kilobytes of floats hold. */
static void decode_row(const decode_tensor_work *w, const char *row, char *to)
{
    const quant_decode_tensor_job *job = w->job;
    const int64_t elements = block_length(job->type), to_bytes = block_bytes(job->to_type);
    for (int64_t done = 0; done < job->cols; done += CHUNK_ELEMENTS) {
        const int64_t now = min_i64(job->cols - done, CHUNK_ELEMENTS);
        const char *from = row + done / elements * block_bytes(job->type);
        float decoded[CHUNK_ELEMENTS];
        if (job->to_type == BLOCK_F32) {
            w->coder->decode(from, (float *)(void *)to + done, now / elements);
            continue;
        }
        w->coder->decode(from, decoded, now / elements);
        put_halves(job->to_type, decoded, (uint16_t *)(void *)(to + done * to_bytes), now);
    }
}

static void decode_tensor_piece(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const decode_tensor_work *w = context;
    const quant_decode_tensor_job *job = w->job;
    const int64_t to_bytes = job->cols * block_bytes(job->to_type);
    for (int64_t row = item * w->piece_rows; row < min_i64((item + 1) * w->piece_rows, job->count); row++) {
        const int64_t source = id_of(job, row);
        char *to = (char *)job->to + row * to_bytes;
        if (source >= 0 && source < job->rows)
            decode_row(w, w->blocks + source * w->row_bytes, to);
        else
            memset(to, 0, (size_t)to_bytes);
    }
}

static ww_status cpu_decode_tensor(ww_device *device, const quant_decode_tensor_job *job)
{
    cpu_device *cpu = (cpu_device *)device;
    const int64_t together = PIECE_BYTES / (job->cols * (int64_t)sizeof(float));
    decode_tensor_work w = {.job = job,
                            .coder = &quant_set_choose(cpu->isa)->coders[job->type],
                            .blocks = (const char *)job->from->data + job->from_offset,
                            .row_bytes = job->cols / block_length(job->type) * block_bytes(job->type),
                            .piece_rows = together > 0 ? together : 1};
    const int64_t pieces = divide_up_i64(job->count, w.piece_rows);
    if (job->count * job->cols * (int64_t)sizeof(float) <= HERE_BYTES)
        pool_run_here(pieces, decode_tensor_piece, &w);
    else
        pool_run(cpu->pool, pieces, decode_tensor_piece, NULL, &w);
    return WW_OK;
}

const quant_backend cpu_quants = {.arrange = cpu_arrange,
                                  .read = cpu_read,
                                  .encode = cpu_encode,
                                  .decode = cpu_decode,
                                  .encode_tensor = cpu_encode,
                                  .decode_tensor = cpu_decode_tensor,
                                  .product = cpu_quant_product};
