/* Cases of quantized matrices: there and back, and products of a matrix w, quantized row by row, with the rows of x. All of
 * them are the library's own calls.
 *
 * Other projects published the expected products. Where their encoder or their kernel makes another choice than the library,
 * the case has a bound for each element, which this file derives from the inputs (README.md).
 */
#include <math.h>
#include <string.h>
#include <warpwave/quant.h>

#include "base/memory.h"
#include "cases/cases.h"

enum { BLOCK_ELEMENTS = 32 }; /* of the formats with one scale a block */

/* ---- matrices ------------------------------------------------------------------------------------------------------------ */

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

/* Encodes a tensor of any type on its device. */
static ww_status code(ww_quant_type type, const ww_tensor *x, ww_quant **coded)
{
    ww_tensor floats = {0};
    ww_status status = ww_tensor_cast(x, WW_F32, &floats);
    if (status == WW_OK)
        status = ww_quant_from_tensor(type, &floats, coded);
    ww_tensor_release(&floats);
    return status;
}

/* ---- there and back ------------------------------------------------------------------------------------------------------ */

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
        const bool small = ww_quant_block_elements(type) == BLOCK_ELEMENTS;
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

/* ---- products ------------------------------------------------------------------------------------------------------------ */

static ww_status two_inputs(case_run *run, ww_quant_type *type, ww_tensor *x, ww_tensor *w)
{
    ww_status status = quant_type(run, type);
    if (status == WW_OK)
        status = case_input(run, CASE_X, x);
    return status == WW_OK ? case_input(run, "w|weight|rhs", w) : status;
}

/* How far the published product of a block of q4_0 weights with activations may be from the library's.
 *
 * A weight that lies halfway between two codes may become either: the library fuses the product and the sum that find its code,
 * others round each. The two codes are one step apart, which the coded activation, at most half of its own step from x,
 * multiplies.
 *
 * Kernels for q8_1 (`sums`) subtract 8 steps times the sum of the activations, rounded to f16, where the library subtracts 8
 * times the sum of their codes. The 32 codes are each at most half a step of amax / 127 off, and f16 rounds by 2^-11 of the
 * sum; 2^-10 covers the additions in another order, too. */
static double block_bound(const float *w, const float *x, bool sums)
{
    float largest = 0.0f;
    double x_largest = 0.0, x_sum = 0.0, bound = 0.0;
    for (int i = 0; i < BLOCK_ELEMENTS; i++) {
        largest = fabsf(w[i]) > fabsf(largest) ? w[i] : largest;
        x_largest = fabs((double)x[i]) > x_largest ? fabs((double)x[i]) : x_largest;
        x_sum += fabs((double)x[i]);
    }
    const double step = fabs((double)largest) / 8.0, halfway = ldexp(1.0, -18);
    for (int i = 0; step > 0.0 && i < BLOCK_ELEMENTS; i++) {
        const double place = -(double)w[i] / copysign(step, (double)largest) + 0.5;
        if (fabs(place - nearbyint(place)) < halfway)
            bound += step * (fabs((double)x[i]) + x_largest / 254.0);
    }
    return sums ? bound + 8.0 * step * (16.0 * x_largest / 127.0 + ldexp(x_sum, -10)) : bound;
}

static ww_status find_bounds(case_run *run, const ww_tensor *of_x, const ww_tensor *of_w, bool sums)
{
    matrix x = {0}, w = {0};
    ww_status status = read_matrix(of_x, &x);
    if (status == WW_OK)
        status = read_matrix(of_w, &w);
    if (status == WW_OK) {
        run->bounds = memory_alloc_zeroed((size_t)(x.rows * w.rows) + 1, sizeof *run->bounds);
        status = run->bounds ? WW_OK : memory_failed("bounds", (size_t)(x.rows * w.rows) * sizeof *run->bounds);
    }
    for (int64_t e = 0; status == WW_OK && e < x.rows * w.rows; e++)
        for (int64_t at = 0; at < x.cols; at += BLOCK_ELEMENTS)
            run->bounds[e] += block_bound(w.values + e % w.rows * w.cols + at, x.values + e / w.rows * x.cols + at, sums);
    memory_free(x.values);
    memory_free(w.values);
    return status;
}

static ww_status multiply(case_run *run, bool sums)
{
    ww_tensor x = {0};
    ww_tensor w = {0};
    ww_quant_type type = WW_QUANT_F32;
    ww_quant *coded = NULL;
    ww_tensor out = {0};
    ww_status status = two_inputs(run, &type, &x, &w);
    if (status == WW_OK)
        status = code(type, &w, &coded);
    if (status == WW_OK)
        status = ww_quant_matmul(coded, &x, &out);
    ww_quant_destroy(coded);
    status = case_give(run, status, &out);
    return status == WW_OK && type == WW_QUANT_Q4_0 ? find_bounds(run, &x, &w, sums) : status;
}

static ww_status run_qmatmul(case_run *run)
{
    return multiply(run, false);
}

/* Names of other projects' kernels, a vector's and a matrix's. */
static ww_status run_q8_1(case_run *run)
{
    return multiply(run, true);
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

/* x is [tokens, chosen, k], and each of its rows may count for all experts that were chosen for it; w is [experts, n, k]. */
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

const case_entry cases_quantized[] = {
    {"quantize_dequantize", run_there_and_back},
    {"qmatmul", run_qmatmul},
    {"dequant_mmv", run_decoded},
    {"get_rows", run_get_rows},
    {"qmatmul_experts", run_experts},
    {"indexed_moe_forward", run_experts},
    {"mmvq_q8_1", run_q8_1},
    {"mmq_q8_1", run_q8_1},
    {NULL, NULL},
};
