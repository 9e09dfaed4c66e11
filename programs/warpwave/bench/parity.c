/* `warpwave bench --parity`: a line of hex for each kind of answer, which is the same on every machine and device.
 *
 * The data come from a generator of integers, so every machine computes with the same. What is chosen here must never change:
 * docs/evidence/parity.md has the lines, and owners of other cards compare theirs by eye.
 */
#include "warpwave/bench/parity.h"

#include <inttypes.h>
#include <stdio.h>
#include <warpwave/attention.h>
#include <warpwave/quant.h>
#include <warpwave/tensor.h>
#include <warpwave/tensor_rows.h>
#include <warpwave/vectors.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "warpwave/command.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

enum { ROWS = 3000, DIM = 96, QUERIES = 40, K = 10, NUMBERS = 1 << 18 };

uint64_t parity_add(uint64_t digest, const void *bytes, size_t count)
{
    const uint64_t parts[2] = {digest, checksum_bytes(bytes, count)};
    return checksum_bytes(parts, sizeof parts);
}

/* SplitMix64. */
float parity_number(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (float)((int64_t)((z ^ (z >> 31)) >> 40) - (1 << 23)) * 0x1p-23f;
}

/* The device, the numbers, and the digest so far of one kind of answer. */
typedef struct parity {
    ww_device *device;
    float *numbers; /* NUMBERS of them */
    uint64_t digest;
} parity;

/* ---- searches ------------------------------------------------------------------------------------------------------------ */

static void add_results(parity *p, const ww_results *results, int64_t queries)
{
    for (int64_t i = 0; i < queries; i++) {
        const size_t count = (size_t)ww_results_count(results, i);
        p->digest = parity_add(p->digest, ww_results_handles(results, i), count * sizeof(int64_t));
        p->digest = parity_add(p->digest, ww_results_scores(results, i), count * sizeof(float));
    }
}

/* Integers that the types of bytes hold: -100 to 99, or 0 to 199. */
static void make_vectors(const parity *p, ww_vector_type type, float *vectors)
{
    const bool bytes = type == WW_VECTOR_I8 || type == WW_VECTOR_U8;
    for (int64_t i = 0; i < (int64_t)(ROWS + QUERIES) * DIM; i++) {
        const float x = p->numbers[(i * 7 + i / NUMBERS) % NUMBERS];
        vectors[i] = bytes ? (float)((int32_t)(x * 100.0f) + (type == WW_VECTOR_U8 ? 100 : 0)) : x;
    }
}

static ww_status search(parity *p, ww_vector_type type, ww_metric metric, float *vectors)
{
    ww_collection *collection = NULL;
    ww_collection_config config = ww_collection_config_default();
    ww_rows rows = ww_rows_default();
    ww_query query = ww_query_default();
    make_vectors(p, type, vectors);
    config.name = "parity";
    config.dim = rows.dim = query.dim = DIM;
    config.metric = metric;
    config.type = type;
    rows.count = ROWS;
    rows.vectors = vectors;
    query.queries = vectors + (size_t)ROWS * DIM;
    query.k = K;
    ww_status status = ww_collection_create(p->device, &config, &collection);
    if (status == WW_OK)
        status = ww_collection_add(collection, &rows);
    for (query.query_count = 1; status == WW_OK && query.query_count <= QUERIES; query.query_count += QUERIES - 1) {
        ww_results *results = NULL;
        status = ww_collection_query(collection, &query, &results);
        if (status == WW_OK)
            add_results(p, results, query.query_count);
        ww_results_destroy(results);
    }
    ww_collection_destroy(collection);
    return status == WW_OK ? interrupt_check() : status;
}

static ww_status searches(parity *p)
{
    static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8, WW_VECTOR_U8};
    static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
    float *vectors = memory_alloc((size_t)(ROWS + QUERIES) * DIM * sizeof *vectors);
    ww_status status = vectors ? WW_OK : memory_failed("the rows", (size_t)(ROWS + QUERIES) * DIM * sizeof *vectors);
    for (size_t t = 0; status == WW_OK && t < sizeof types / sizeof *types; t++)
        for (size_t m = 0; status == WW_OK && m < sizeof metrics / sizeof *metrics; m++)
            status = search(p, types[t], metrics[m], vectors);
    memory_free(vectors);
    return status;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

/* Adds the elements of a tensor, and releases it. `status` is that of the call that made it. */
static ww_status add_tensor(parity *p, ww_status status, ww_tensor *made)
{
    if (status != WW_OK)
        return status;
    const size_t bytes = (size_t)ww_layout_elements(&made->layout) * ww_dtype_bytes(ww_tensor_dtype(made));
    void *host = memory_alloc(bytes);
    status = host ? ww_tensor_to_host(made, host) : memory_failed("a result", bytes);
    if (status == WW_OK)
        p->digest = parity_add(p->digest, host, bytes);
    memory_free(host);
    ww_tensor_release(made);
    return status;
}

/* A tensor of numbers from place `first` on. */
static ww_status take(const parity *p, ww_dtype dtype, int64_t first, const ww_layout *layout, ww_tensor *out)
{
    ww_tensor single = {0};
    ww_status status =
        ww_tensor_from_host(p->device, WW_F32, layout->rank, layout->shape, p->numbers + first % (NUMBERS / 2), &single);
    if (status == WW_OK && dtype == WW_F32) {
        *out = single;
        return WW_OK;
    }
    if (status == WW_OK)
        status = ww_tensor_cast(&single, dtype, out);
    ww_tensor_release(&single);
    return status;
}

/* Element by element: every function of one and of two numbers. */
static ww_status elements(parity *p, const ww_tensor *x, const ww_tensor *y)
{
    ww_status status = WW_OK;
    for (int op = WW_ABS; status == WW_OK && op <= WW_GELU_ERF; op++) {
        ww_tensor out = {0}, positive = {0};
        const bool wants_positive = op == WW_SQRT || op == WW_RSQRT || op == WW_LOG || op == WW_LOG1P || op == WW_RECIP;
        status = ww_tensor_affine(x, wants_positive ? 0.375 : 1.0, wants_positive ? 0.5 : 0.0, &positive);
        if (status == WW_OK)
            status = add_tensor(p, ww_tensor_unary((ww_unary)op, &positive, &out), &out);
        ww_tensor_release(&positive);
    }
    for (int op = WW_ADD; status == WW_OK && op <= WW_ATAN2; op++) {
        ww_tensor out = {0}, positive = {0};
        status = ww_tensor_affine(x, 0.375, 0.5, &positive); /* a power of a negative number is NaN */
        if (status == WW_OK)
            status = add_tensor(p, ww_tensor_binary((ww_binary)op, &positive, y, &out), &out);
        ww_tensor_release(&positive);
    }
    return status;
}

/* Along rows and columns: reductions, running sums, norms, sorting. */
static ww_status rows(parity *p, const ww_tensor *x)
{
    ww_tensor out = {0}, places = {0};
    ww_status status = WW_OK;
    for (int op = WW_REDUCE_SUM; status == WW_OK && op <= WW_REDUCE_PROD; op++)
        for (int32_t dim = 0; status == WW_OK && dim < 2; dim++)
            status = add_tensor(p, ww_tensor_reduce((ww_reduce)op, x, &dim, 1, &out), &out);
    for (int32_t dim = 0; status == WW_OK && dim < 2; dim++) {
        status = add_tensor(p, ww_tensor_cumsum(x, dim, &out), &out);
        if (status == WW_OK)
            status = add_tensor(p, ww_tensor_softmax(x, dim, &out), &out);
    }
    if (status == WW_OK)
        status = add_tensor(p, ww_tensor_layer_norm(x, NULL, NULL, 0x1p-17, &out), &out);
    if (status == WW_OK)
        status = add_tensor(p, ww_tensor_rms_norm(x, NULL, 0x1p-17, &out), &out);
    if (status == WW_OK)
        status = ww_tensor_sort(x, false, &out, &places);
    if (status == WW_OK) {
        status = add_tensor(p, WW_OK, &out);
        const ww_status other = add_tensor(p, status, &places);
        if (status != WW_OK)
            ww_tensor_release(&places);
        status = other;
    }
    return status;
}

static ww_status tensors(parity *p)
{
    static const ww_dtype types[] = {WW_F32, WW_F16, WW_BF16, WW_F64};
    const int64_t shape[] = {61, 419};
    const ww_layout layout = ww_layout_contiguous(2, shape);
    ww_status status = WW_OK;
    for (size_t t = 0; status == WW_OK && t < sizeof types / sizeof *types; t++) {
        ww_tensor x = {0}, y = {0};
        status = take(p, types[t], 0, &layout, &x);
        if (status == WW_OK)
            status = take(p, types[t], 30000, &layout, &y);
        if (status == WW_OK)
            status = elements(p, &x, &y);
        if (status == WW_OK)
            status = rows(p, &x);
        ww_tensor_release(&x);
        ww_tensor_release(&y);
        if (status == WW_OK)
            status = interrupt_check();
    }
    return status;
}

/* ---- products ------------------------------------------------------------------------------------------------------------ */

static ww_status dense_product(parity *p, ww_dtype dtype)
{
    const int64_t left[] = {67, 257}, right[] = {257, 131}, images[] = {2, 6, 19, 23}, kernels[] = {8, 6, 3, 3};
    const ww_layout layouts[] = {ww_layout_contiguous(2, left), ww_layout_contiguous(2, right), ww_layout_contiguous(4, images),
                                 ww_layout_contiguous(4, kernels)};
    const ww_conv how = ww_conv_default();
    ww_tensor in[4] = {0}, out = {0};
    ww_status status = WW_OK;
    for (int i = 0; status == WW_OK && i < 4; i++)
        status = take(p, dtype, INT64_C(1000) * i, &layouts[i], &in[i]);
    if (status == WW_OK)
        status = add_tensor(p, ww_tensor_matmul(&in[0], &in[1], WW_MATH_CANONICAL, &out), &out);
    if (status == WW_OK)
        status = add_tensor(p, ww_tensor_conv2d(&in[2], &in[3], &how, &out), &out);
    for (int i = 0; i < 4; i++)
        ww_tensor_release(&in[i]);
    return status;
}

/* By one column and by 40, which other kernels compute. */
static ww_status quantized_product(parity *p, ww_quant_type type)
{
    ww_quant *matrix = NULL;
    ww_status status = ww_quant_from_f32(p->device, type, p->numbers, 96, 512, 512, &matrix);
    for (int64_t columns = 1; status == WW_OK && columns <= 40; columns += 39) {
        const int64_t shape[] = {columns, 512};
        const ww_layout layout = ww_layout_contiguous(2, shape);
        ww_tensor x = {0}, out = {0};
        status = take(p, WW_F32, 777, &layout, &x);
        if (status == WW_OK)
            status = add_tensor(p, ww_quant_matmul(matrix, &x, &out), &out);
        ww_tensor_release(&x);
    }
    ww_quant_destroy(matrix);
    return status;
}

static ww_status attend(parity *p)
{
    const int64_t queries[] = {9, 4, 64}, keys[] = {300, 2, 64};
    const ww_layout layouts[] = {ww_layout_contiguous(3, queries), ww_layout_contiguous(3, keys)};
    ww_tensor in[3] = {0}, out = {0};
    ww_status status = WW_OK;
    for (int i = 0; status == WW_OK && i < 3; i++)
        status = take(p, WW_F32, INT64_C(500) * i, &layouts[i > 0], &in[i]);
    if (status == WW_OK)
        status = add_tensor(p, ww_tensor_attention(&in[0], &in[1], &in[2], NULL, &out), &out);
    for (int i = 0; i < 3; i++)
        ww_tensor_release(&in[i]);
    return status;
}

static ww_status products(parity *p)
{
    static const ww_dtype dense[] = {WW_F32, WW_F16, WW_BF16, WW_F64};
    static const ww_quant_type coded[] = {WW_QUANT_Q4_0, WW_QUANT_Q5_1, WW_QUANT_Q8_0,   WW_QUANT_Q2_K,
                                          WW_QUANT_Q4_K, WW_QUANT_Q6_K, WW_QUANT_IQ4_NL, WW_QUANT_MXFP4};
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < sizeof dense / sizeof *dense; i++)
        status = dense_product(p, dense[i]);
    for (size_t i = 0; status == WW_OK && i < sizeof coded / sizeof *coded; i++)
        status = quantized_product(p, coded[i]);
    if (status == WW_OK)
        status = attend(p);
    return status == WW_OK ? interrupt_check() : status;
}

/* ---- all ----------------------------------------------------------------------------------------------------------------- */

#ifdef WARPWAVE_WITH_MODEL
static ww_status model(parity *p)
{
    return parity_model(p->device, &p->digest);
}
#endif

static const struct {
    const char *name;
    ww_status (*compute)(parity *p);
} kinds[] = {
    {"searches", searches},
    {"tensors", tensors},
    {"products", products},
#ifdef WARPWAVE_WITH_MODEL
    {"model", model},
#endif
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void print(const ww_device_info *info, const uint64_t *digests, bool json)
{
    char text[32];
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    if (json) {
        json_open(&w, NULL, '{');
        json_put_text(&w, "device", info->id);
        json_put_text(&w, "device_name", info->name);
        json_put_text(&w, "arch", info->arch);
        json_put_text(&w, "instruction_sets", info->instruction_sets);
    } else {
        command_print_device(stdout, info);
        printf("arch      %s%s%s\n", info->arch, info->instruction_sets[0] ? ", " : "", info->instruction_sets);
    }
    for (int i = 0; i < KINDS; i++) {
        snprintf(text, sizeof text, "%016" PRIx64, digests[i]);
        if (json)
            json_put_text(&w, kinds[i].name, text);
        else
            printf("%-9s %s\n", kinds[i].name, text);
    }
    if (json)
        json_close(&w);
    else
        printf("\nThe same lines on every machine: docs/evidence/parity.md has them.\n");
}

ww_status parity_run(const char *device_name, bool json)
{
    parity p = {0};
    uint64_t digests[KINDS] = {0}, state = 47;
    ww_device_info info = ww_device_info_default();
    p.numbers = memory_alloc(NUMBERS * sizeof *p.numbers);
    ww_status status =
        p.numbers ? command_open_device(device_name, &p.device) : memory_failed("the numbers", NUMBERS * sizeof(float));
    for (int64_t i = 0; status == WW_OK && i < NUMBERS; i++)
        p.numbers[i] = parity_number(&state);
    if (status == WW_OK)
        status = ww_device_describe(p.device, &info);
    for (int i = 0; status == WW_OK && i < KINDS; i++) {
        p.digest = 0;
        status = kinds[i].compute(&p);
        digests[i] = p.digest;
    }
    if (status == WW_OK)
        print(&info, digests, json);
    ww_device_close(p.device);
    memory_free(p.numbers);
    return status;
}
