/* Cases of quantized matrices: there and back, and products of a matrix w, quantized row by row, with the rows of x.
 *
 * qmatmul is the library's product. Two of the operations are not: mmvq_q8_1 and mmq_q8_1 name GPU kernels of other projects,
 * with bits that follow from how those add. They take the sum of the activations of a block for that of their codes, as f16,
 * and this shows in the fourth digit. Their blocks are made by the device, and only the sum is made here, in that order.
 */
#include <math.h>
#include <string.h>
#include <warpwave/quant.h>

#include "arithmetic/half.h"
#include "base/memory.h"
#include "cli/cases/cases.h"

/* The blocks that are looked into here. */
enum { BLOCK32_ELEMENTS = 32, KBLOCK_ELEMENTS = 256 };

typedef struct block_q4_0 { /* d * (code - 8) */
    uint16_t d;
    uint8_t codes[BLOCK32_ELEMENTS / 2]; /* the first half low, the second high */
} block_q4_0;

typedef struct block_q8_1 { /* d * code */
    uint16_t d, sum;
    int8_t codes[BLOCK32_ELEMENTS];
} block_q8_1;

/* ---- matrices --------------------------------------------------------------------------------------------------------------
 */

/* The type in "type" or in the case's dtype: "q4_K", or shorter, "q4k". */
static ww_status quant_type(case_run *run, ww_quant_type *type)
{
    const char *said = case_text(run, "type|qtype|quant|ggml_dtype");
    const char *name = said ? said : run->type_name;
    char spelled[] = "q4_K";
    if (name && strlen(name) == 3 && (name[0] == 'q' || name[0] == 'Q') && (name[2] == 'k' || name[2] == 'K')) {
        spelled[1] = name[1];
        return ww_quant_find(spelled, type);
    }
    return ww_quant_find(name ? name : "", type);
}

/* Rows of f32 on the host. */
typedef struct matrix {
    float *values;
    int64_t rows, cols;
} matrix;

static ww_status read_matrix(const ww_tensor *x, matrix *out)
{
    ww_tensor dense = {0};
    const int32_t rank = x->layout.rank;
    ww_status status = ww_tensor_cast(x, WW_F32, &dense);
    if (status != WW_OK)
        return status;
    const int64_t count = ww_layout_elements(&dense.layout);
    out->cols = rank > 0 ? x->layout.shape[rank - 1] : 1;
    out->rows = out->cols > 0 ? count / out->cols : 0;
    out->values = memory_alloc((size_t)count * sizeof(float));
    status = out->values ? ww_tensor_to_host(&dense, out->values)
                         : memory_failed("the rows of a case", (size_t)count * sizeof(float));
    ww_tensor_release(&dense);
    return status;
}

/* A tensor of any type, coded where it is. */
static ww_status code(ww_quant_type type, const ww_tensor *x, ww_quant **coded)
{
    ww_tensor floats = {0};
    ww_status status = ww_tensor_cast(x, WW_F32, &floats);
    if (status == WW_OK)
        status = ww_quant_from_tensor(type, &floats, coded);
    ww_tensor_release(&floats);
    return status;
}

/* The blocks of a matrix as the device makes them. The caller gives them back. */
static ww_status code_blocks(const case_run *run, ww_quant_type type, const matrix *m, void **blocks)
{
    ww_quant *coded = NULL;
    int64_t row_bytes = 0;
    ww_status status = ww_quant_from_f32(run->device, type, m->values, m->rows, m->cols, 0, &coded);
    if (status == WW_OK)
        status = ww_quant_row_bytes(type, m->cols, &row_bytes);
    if (status == WW_OK) {
        *blocks = memory_alloc((size_t)(m->rows * row_bytes));
        status =
            *blocks ? ww_quant_read_blocks(coded, 0, m->rows, *blocks) : memory_failed("blocks", (size_t)(m->rows * row_bytes));
    }
    ww_quant_destroy(coded);
    return status;
}

/* ---- there and back --------------------------------------------------------------------------------------------------------
 */

static double largest_difference(const float *a, const float *b, int64_t count)
{
    double largest = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)a[i] - (double)b[i]); /* fmax() here ends gcc 12 for ARM64 by an error of its own */
        if (!(difference <= largest))
            largest = difference;
    }
    return largest;
}

static ww_status run_there_and_back(case_run *run)
{
    ww_tensor x;
    ww_quant_type type;
    matrix m = {0};
    float *back = NULL;
    ww_quant *coded = NULL;
    ww_tensor out = {0};
    ww_status status = quant_type(run, &type);
    if (status == WW_OK)
        status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = read_matrix(&x, &m);
    if (status == WW_OK)
        status = code(type, &x, &coded);
    if (status == WW_OK)
        status = ww_quant_dequantize(coded, 0, m.rows, WW_F32, &out);
    if (status == WW_OK)
        status = ww_tensor_reshape(&out, x.layout.rank, x.layout.shape, &out);
    if (status == WW_OK) {
        back = memory_alloc((size_t)(m.rows * m.cols) * sizeof(float));
        status = back ? ww_tensor_to_host(&out, back) : memory_failed("rows", (size_t)(m.rows * m.cols) * sizeof(float));
    }
    if (status == WW_OK) {
        const bool small = ww_quant_block_elements(type) == BLOCK32_ELEMENTS;
        run->encoder_is_free = !small || type == WW_QUANT_IQ4_NL;
        run->coded_from = small ? m.values : NULL;
        run->largest_error = largest_difference(m.values, back, m.rows * m.cols);
    }
    ww_quant_destroy(coded);
    if (run->coded_from != m.values)
        memory_free(m.values);
    memory_free(back);
    if (status != WW_OK)
        ww_tensor_release(&out);
    return case_give(run, status, &out);
}

/* ---- products --------------------------------------------------------------------------------------------------------------
 */

static ww_status give_product(case_run *run, const ww_tensor *x, int64_t rows, ww_storage *out)
{
    int64_t shape[WW_RANK_MAX];
    memcpy(shape, x->layout.shape, sizeof shape);
    shape[x->layout.rank - 1] = rows;
    return case_give_storage(run, out, x->layout.rank, shape);
}

static ww_status two_inputs(case_run *run, ww_quant_type *type, ww_tensor *x, ww_tensor *w)
{
    ww_status status = quant_type(run, type);
    if (status == WW_OK)
        status = case_input(run, CASE_X, x);
    return status == WW_OK ? case_input(run, "w|weight|rhs", w) : status;
}

/* q4_0 with the product and the sum rounded each, where the library fuses them: the two differ where a number lies halfway
 * between two codes, and cases of products know the codes of the former. */
static void code_q4_0(const float *x, block_q4_0 *block)
{
    float largest = 0.0f;
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        largest = fabsf(x[i]) > fabsf(largest) ? x[i] : largest;
    const float d = largest / -8.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
    uint8_t codes[BLOCK32_ELEMENTS];
    for (int i = 0; i < BLOCK32_ELEMENTS; i++) {
        const float scaled = x[i] * inverse;
        codes[i] = (uint8_t)fminf(scaled + 8.5f, 15.0f);
    }
    block->d = f16_from_f32(d);
    for (int i = 0; i < BLOCK32_ELEMENTS / 2; i++)
        block->codes[i] = (uint8_t)(codes[i] | codes[i + BLOCK32_ELEMENTS / 2] << 4);
}

/* The weights of a product. What the library would refuse it is asked to code, and refuses. */
static ww_status code_weights(const case_run *run, ww_quant_type type, const matrix *m, ww_quant **coded)
{
    int64_t row_bytes = 0;
    ww_status status = ww_quant_from_f32(run->device, type, m->values, m->rows, m->cols, 0, coded);
    if (status != WW_OK || type != WW_QUANT_Q4_0)
        return status;
    ww_quant_destroy(*coded);
    *coded = NULL;
    status = ww_quant_row_bytes(type, m->cols, &row_bytes);
    const int64_t blocks = m->rows * (m->cols / BLOCK32_ELEMENTS);
    block_q4_0 *made = memory_alloc((size_t)blocks * sizeof *made);
    if (!made)
        return memory_failed("blocks", (size_t)blocks * sizeof *made);
    for (int64_t b = 0; b < blocks; b++)
        code_q4_0(m->values + b * BLOCK32_ELEMENTS, &made[b]);
    if (status == WW_OK)
        status = ww_quant_load(run->device, type, made, (size_t)(m->rows * row_bytes), m->rows, m->cols, coded);
    memory_free(made);
    return status;
}

static ww_status run_qmatmul(case_run *run)
{
    ww_tensor x;
    ww_tensor w;
    ww_quant_type type;
    matrix m = {0};
    ww_quant *coded = NULL;
    ww_tensor out = {0};
    ww_status status = two_inputs(run, &type, &x, &w);
    if (status == WW_OK)
        status = read_matrix(&w, &m);
    if (status == WW_OK)
        status = code_weights(run, type, &m, &coded);
    if (status == WW_OK)
        status = ww_quant_matmul(coded, &x, &out);
    ww_quant_destroy(coded);
    memory_free(m.values);
    return case_give(run, status, &out);
}

/* Decoded weights and activations as they came. */
static ww_status run_decoded(case_run *run)
{
    ww_tensor x;
    ww_tensor w;
    ww_quant_type type;
    ww_quant *coded = NULL;
    ww_tensor out = {0};
    ww_quant_product options = ww_quant_product_default();
    options.activations = WW_ACTIVATIONS_FLOAT;
    ww_status status = two_inputs(run, &type, &x, &w);
    if (status == WW_OK)
        status = code(type, &w, &coded);
    if (status == WW_OK)
        status = ww_quant_multiply(coded, &x, &options, &out);
    ww_quant_destroy(coded);
    return case_give(run, status, &out);
}

/* ---- by ids -------------------------------------------------------------------------------------------------------------- */

/* Rows of a quantized table, decoded. */
static ww_status run_get_rows(case_run *run)
{
    ww_tensor w;
    ww_tensor ids;
    ww_quant_type type;
    ww_quant *coded = NULL;
    ww_tensor out = {0};
    ww_status status = quant_type(run, &type);
    if (status == WW_OK)
        status = case_input(run, "w|x|weight|table", &w);
    if (status == WW_OK)
        status = case_ids(run, &ids);
    if (status == WW_OK)
        status = code(type, &w, &coded);
    if (status == WW_OK)
        status = ww_quant_rows(coded, &ids, WW_F32, &out);
    ww_quant_destroy(coded);
    return case_give(run, status, &out);
}

/* x as [tokens, chosen, k], whose rows may stand for all experts that were chosen for them; w is [experts, n, k]. */
static ww_status run_experts(case_run *run)
{
    ww_tensor x;
    ww_tensor w;
    ww_tensor ids;
    ww_quant_type type;
    ww_quant *coded = NULL;
    ww_tensor out = {0};
    ww_quant_product options = ww_quant_product_default();
    ww_status status = two_inputs(run, &type, &x, &w);
    if (status == WW_OK)
        status = case_ids(run, &ids);
    if (status == WW_OK && w.layout.rank != 3)
        status = ww_fail(WW_DIMENSION_MISMATCH, "w has rank %d; it is [experts, rows, columns]", (int)w.layout.rank);
    if (status == WW_OK && x.layout.rank == 3 && ids.layout.rank == 2 && x.layout.shape[1] == 1) {
        x.layout.shape[1] = ids.layout.shape[1];
        x.layout.strides[1] = 0;
    }
    bool alike = status == WW_OK && x.layout.rank == ids.layout.rank + 1;
    for (int32_t d = 0; alike && d < ids.layout.rank; d++)
        alike = x.layout.shape[d] == ids.layout.shape[d];
    if (status == WW_OK && !alike)
        status = ww_fail(WW_DIMENSION_MISMATCH, "ids have not as many experts as x has rows");
    if (status == WW_OK)
        status = code(type, &w, &coded);
    if (status == WW_OK) {
        options.expert_rows = w.layout.shape[1];
        options.expert_ids = &ids;
        status = ww_quant_multiply(coded, &x, &options, &out);
    }
    ww_quant_destroy(coded);
    return case_give(run, status, &out);
}

/* ---- sums in the order of other projects' kernels, q4_0 times q8_1 ---------------------------------------------------------
 */

enum { THREADS = 128, WAVE = 32 };

/* acc[0] + acc[16], ... folded by halves. */
static float fold(float acc[WAVE])
{
    for (int half = WAVE / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            acc[j] += acc[j + half];
    return acc[0];
}

static int32_t code_product(const block_q4_0 *w, const int8_t *a, int first, int count)
{
    int32_t sum = 0;
    for (int i = first; i < first + count; i++)
        sum += (w->codes[i] & 15) * a[i] + (w->codes[i] >> 4) * a[i + 16];
    return sum;
}

/* sum of products of codes times da - part of 8 times the sum of activations; the caller multiplies by d and adds */
static float part_product(const block_q4_0 *w, const block_q8_1 *a, uint16_t sum, int first, int count)
{
    const float eight = (float)count / 2.0f * f32_from_f16(sum);
    return fmaf((float)code_product(w, a->codes, first, count), f32_from_f16(a->d), -eight);
}

/* A vector's kernel: half blocks dealt to 128 threads, which are four waves. */
static float sum_of_vector(const block_q4_0 *w, const block_q8_1 *a, const uint16_t *sums, int64_t blocks)
{
    float acc[THREADS] = {0};
    for (int64_t part = 0; part < 2 * blocks; part++) {
        const int64_t b = part / 2;
        float *sum = &acc[part % THREADS];
        *sum = fmaf(f32_from_f16(w[b].d), part_product(&w[b], &a[b], sums[b], 8 * (int)(part % 2), 8), *sum);
    }
    for (int lane = 0; lane < WAVE; lane++)
        for (int wave = 1; wave < THREADS / WAVE; wave++)
            acc[lane] += acc[wave * WAVE + lane];
    return fold(acc);
}

/* A matrix's kernel: block by block. */
static float sum_of_matrix(const block_q4_0 *w, const block_q8_1 *a, const uint16_t *sums, int64_t blocks)
{
    float acc = 0.0f;
    for (int64_t b = 0; b < blocks; b++)
        acc = fmaf(f32_from_f16(w[b].d), part_product(&w[b], &a[b], sums[b], 0, 16), acc);
    return acc;
}

typedef float (*sum_function)(const block_q4_0 *w, const block_q8_1 *a, const uint16_t *sums, int64_t blocks);

static void sum_activations(const matrix *x, uint16_t *sums)
{
    for (int64_t b = 0; b < x->rows * x->cols / BLOCK32_ELEMENTS; b++) {
        float acc[WAVE];
        memcpy(acc, x->values + b * BLOCK32_ELEMENTS, sizeof acc);
        sums[b] = f16_from_f32(fold(acc));
    }
}

static ww_status multiply_blocks(const case_run *run, const matrix *x, const matrix *w, sum_function sum, float *results)
{
    void *weights = NULL, *activations = NULL;
    const int64_t blocks = x->cols / BLOCK32_ELEMENTS;
    uint16_t *sums = memory_alloc((size_t)(x->rows * blocks) * sizeof *sums);
    ww_status status = sums ? code_blocks(run, WW_QUANT_Q4_0, w, &weights) : memory_failed("sums", (size_t)(x->rows * blocks));
    if (status == WW_OK)
        status = code_blocks(run, WW_QUANT_Q8_1, x, &activations);
    if (status == WW_OK) {
        const block_q4_0 *of_w = weights;
        const block_q8_1 *of_x = activations;
        sum_activations(x, sums);
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < w->rows; j++)
                results[i * w->rows + j] = sum(of_w + j * blocks, of_x + i * blocks, sums + i * blocks, blocks);
    }
    memory_free(sums);
    memory_free(weights);
    memory_free(activations);
    return status;
}

/* Of other types than q4_0 no case knows the order: they get the library's. */
static ww_status run_in_order(case_run *run, sum_function sum)
{
    ww_tensor x;
    ww_tensor w;
    ww_quant_type type;
    matrix of_x = {0};
    matrix of_w = {0};
    ww_storage *out = NULL;
    float *results = NULL;
    ww_status status = quant_type(run, &type);
    if (status == WW_OK && type != WW_QUANT_Q4_0)
        return run_qmatmul(run);
    if (status == WW_OK)
        status = two_inputs(run, &type, &x, &w);
    if (status == WW_OK)
        status = read_matrix(&x, &of_x);
    if (status == WW_OK)
        status = read_matrix(&w, &of_w);
    if (status == WW_OK && (of_x.cols != of_w.cols || x.layout.rank < 1))
        status = ww_fail(WW_DIMENSION_MISMATCH, "x has rows of %lld, w of %lld", (long long)of_x.cols, (long long)of_w.cols);
    if (status == WW_OK) {
        results = memory_alloc((size_t)(of_x.rows * of_w.rows) * sizeof *results);
        status = results ? multiply_blocks(run, &of_x, &of_w, sum, results) : memory_failed("results", (size_t)of_x.rows);
    }
    if (status == WW_OK)
        status = ww_storage_from_host(run->device, WW_F32, of_x.rows * of_w.rows, results, &out);
    memory_free(results);
    memory_free(of_x.values);
    memory_free(of_w.values);
    return status == WW_OK ? give_product(run, &x, of_w.rows, out) : status;
}

static ww_status run_mmvq(case_run *run)
{
    return run_in_order(run, sum_of_vector);
}

static ww_status run_mmq(case_run *run)
{
    return run_in_order(run, sum_of_matrix);
}

const case_entry cases_quantized[] = {
    {"quantize_dequantize", run_there_and_back},
    {"qmatmul", run_qmatmul},
    {"dequant_mmv", run_decoded},
    {"get_rows", run_get_rows},
    {"qmatmul_experts", run_experts},
    {"indexed_moe_forward", run_experts},
    {"mmvq_q8_1", run_mmvq},
    {"mmq_q8_1", run_mmq},
    {NULL, NULL},
};
