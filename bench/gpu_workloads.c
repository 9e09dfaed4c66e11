/* The workloads of docs/evidence/amd-performance.md, measured on one device, so that what was calculated can be compared.
 *   gpu_workloads DEVICE [--once] [--rows N] [KEY...]       keys as in that page; without any all of them
 * Each line: the key, and the best time of some repetitions in milliseconds. --once runs each a single time, for a profiler.
 * --rows is for a slow device: N instead of 1,000,000 rows, and matrices and tensors smaller alike.
 */
#include <ctype.h>
#include <string.h>

#include <warpwave.h>

#include "measure.h"

enum { REPETITIONS = 5, K = 10, ADDED_AT_ONCE = 50000, SORTED_ROWS = 4096 };

static ww_device *device;
static int64_t rows_count = 1000000;
static bool once;
static int asked_count, known_count; /* requested keys, and those of them that exist */
static char **asked;

typedef struct workload {
    ww_tensor x, y, z;
    ww_collection *collection;
    ww_quant *matrix;
    float *queries;
    int64_t query_count;
    int32_t dim;
    ww_math math;
    int64_t *found;
    float *scores;
} workload;

static bool wanted(const char *key)
{
    for (int i = 0; i < asked_count; i++)
        if (strcmp(asked[i], key) == 0) {
            known_count++;
            return true;
        }
    return asked_count == 0;
}

/* Returns numbers that no cache or branch predictor can guess and whose sums look normally distributed. */
static float number(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (float)((int32_t)(uint32_t)state + (int64_t)(int32_t)(uint32_t)(state >> 32)) * 4e-10f;
}

static float *numbers(int64_t count)
{
    float *made = malloc((size_t)count * sizeof *made);
    check(made != NULL ? WW_OK : WW_OUT_OF_MEMORY, "memory for numbers");
    for (int64_t i = 0; i < count; i++)
        made[i] = number();
    return made;
}

static ww_tensor tensor(ww_dtype dtype, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    ww_tensor made = {0};
    check(ww_tensor_normal(device, dtype, 2, shape, 0.0, 1.0, &made), "random numbers");
    return made;
}

static void release(workload *w)
{
    ww_tensor_release(&w->x);
    ww_tensor_release(&w->y);
    ww_tensor_release(&w->z);
    ww_collection_destroy(w->collection);
    ww_quant_destroy(w->matrix);
    free(w->queries);
    free(w->found);
    free(w->scores);
    *w = (workload){0};
}

static void measure(const char *key, workload *w, void (*work)(workload *w))
{
    double best = 1e30;
    for (int i = 0; i < (once ? 1 : REPETITIONS + 1); i++) { /* the first of several runs only loads code */
        const double begin = seconds_now();
        work(w);
        check(ww_device_synchronize(device), "waiting");
        const double took = seconds_now() - begin;
        if ((i > 0 || once) && took < best)
            best = took;
    }
    printf("%s\t%.4f\n", key, 1e3 * best);
    fflush(stdout);
    release(w);
}

/* ---- search -------------------------------------------------------------------------------------------------------------- */

static void search(workload *w)
{
    const ww_query how = {
        .struct_size = sizeof how, .queries = w->queries, .query_count = w->query_count, .dim = w->dim, .k = K};
    check(ww_collection_search(w->collection, &how, w->found, w->scores), "a search");
}

static void searches(int32_t dim, bool screen)
{
    const int64_t counts[] = {1, 1000};
    for (int c = 0; c < 2; c++) {
        char key[64];
        snprintf(key, sizeof key, "search-%lld-%d%s", (long long)counts[c], dim, screen ? "-screened" : "");
        if (!wanted(key))
            continue;
        workload w = {.dim = dim, .query_count = counts[c], .queries = numbers(counts[c] * dim)};
        ww_collection_config config = ww_collection_config_default();
        config.dim = dim;
        config.metric = WW_L2;
        config.screen = screen ? WW_SCREEN_INT8 : WW_SCREEN_NONE;
        check(ww_collection_create(device, &config, &w.collection), "a collection");
        for (int64_t done = 0; done < rows_count; done += ADDED_AT_ONCE) {
            const int64_t count = rows_count - done < ADDED_AT_ONCE ? rows_count - done : ADDED_AT_ONCE;
            float *rows = numbers(count * dim);
            const ww_rows given = {.struct_size = sizeof given, .count = count, .dim = dim, .vectors = rows};
            check(ww_collection_add(w.collection, &given), "adding rows");
            free(rows);
        }
        w.found = malloc((size_t)(counts[c] * K) * sizeof *w.found);
        w.scores = malloc((size_t)(counts[c] * K) * sizeof *w.scores);
        check(w.found != NULL && w.scores != NULL ? WW_OK : WW_OUT_OF_MEMORY, "memory for results");
        measure(key, &w, search);
    }
}

/* ---- quantized products -------------------------------------------------------------------------------------------------- */

static void multiply_quantized(workload *w)
{
    ww_tensor_release(&w->z);
    check(ww_quant_matmul(w->matrix, &w->x, &w->z), "a quantized product");
}

static void multiply_quantized_fast(workload *w)
{
    ww_quant_product options = ww_quant_product_default();
    options.math = WW_MATH_FAST;
    ww_tensor_release(&w->z);
    check(ww_quant_multiply(w->matrix, &w->x, &options, &w->z), "a fast quantized product");
}

static void quantized(ww_quant_type type, int64_t rows, int64_t columns)
{
    static const struct {
        int64_t columns;
        bool fast;
    } kinds[] = {{1, false}, {8, false}, {512, false}, {512, true}};
    for (int c = 0; c < 4; c++) {
        char key[64];
        snprintf(key, sizeof key, "quant-%s%s-%lld", kinds[c].fast ? "fast-" : "", ww_quant_name(type),
                 (long long)kinds[c].columns);
        for (char *letter = key; *letter != '\0'; letter++) /* the page writes q4_k, the library q4_K */
            *letter = (char)tolower((unsigned char)*letter);
        if (!wanted(key))
            continue;
        workload w = {.x = tensor(WW_F32, kinds[c].columns, columns)};
        float *weights = numbers(rows * columns);
        check(ww_quant_from_f32(device, type, weights, rows, columns, columns, &w.matrix), "quantizing");
        free(weights);
        measure(key, &w, kinds[c].fast ? multiply_quantized_fast : multiply_quantized);
    }
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

static void binary(workload *w, ww_binary how)
{
    ww_tensor_release(&w->z);
    check(ww_tensor_binary(how, &w->x, &w->y, &w->z), "a function of two");
}

static void add(workload *w)
{
    binary(w, WW_ADD);
}

static void power(workload *w)
{
    binary(w, WW_POW);
}

static void angle(workload *w)
{
    binary(w, WW_ATAN2);
}

static void unary(workload *w, ww_unary how)
{
    ww_tensor_release(&w->z);
    check(ww_tensor_unary(how, &w->x, &w->z), "a function");
}

static void exponentials(workload *w)
{
    unary(w, WW_EXP);
}

static void logarithms(workload *w)
{
    unary(w, WW_LOG);
}

static void gelu(workload *w)
{
    unary(w, WW_GELU);
}

static void softmax(workload *w)
{
    ww_tensor_release(&w->z);
    check(ww_tensor_softmax(&w->x, 1, &w->z), "softmax");
}

static ww_tensor weight_of(const workload *w)
{
    const ww_layout row = {.rank = 1, .shape = {w->x.layout.shape[1]}, .strides = {1}};
    return (ww_tensor){.storage = w->y.storage, .layout = row};
}

static void layer_norm(workload *w)
{
    const ww_tensor weight = weight_of(w);
    ww_tensor_release(&w->z);
    check(ww_tensor_layer_norm(&w->x, &weight, &weight, 1e-5, &w->z), "layer_norm");
}

static void rms_norm(workload *w)
{
    const ww_tensor weight = weight_of(w);
    ww_tensor_release(&w->z);
    check(ww_tensor_rms_norm(&w->x, &weight, 1e-5, &w->z), "rms_norm");
}

static void reduce(workload *w, ww_reduce how)
{
    const int32_t dims[] = {1};
    ww_tensor_release(&w->z);
    check(ww_tensor_reduce(how, &w->x, dims, 1, &w->z), "a reduction");
}

static void sum(workload *w)
{
    reduce(w, WW_REDUCE_SUM);
}

static void argmax(workload *w)
{
    reduce(w, WW_REDUCE_ARGMAX);
}

static void sort(workload *w)
{
    ww_tensor_release(&w->z);
    ww_tensor_release(&w->y);
    check(ww_tensor_sort(&w->x, false, &w->y, &w->z), "sort");
}

static void multiply(workload *w)
{
    ww_tensor_release(&w->z);
    check(ww_tensor_matmul(&w->x, &w->y, WW_MATH_FAST, &w->z), "a matrix product");
}

static void convolve(workload *w)
{
    ww_tensor_release(&w->z);
    ww_conv how = ww_conv_default();
    how.math = w->math;
    how.padding[0] = how.padding[1] = 1;
    check(ww_tensor_conv2d(&w->x, &w->y, &how, &w->z), "conv2d");
}

/* `short_rows`: rows of few elements; of 64 there are as many as a search has. */
static void tensors(int64_t rows, int64_t columns, int64_t short_rows)
{
    const struct {
        const char *key;
        void (*work)(workload *w);
        ww_dtype type;
        int64_t rows, columns, second_rows;
    } each[] = {{"add", add, WW_F32, rows, columns, rows},
                {"exp", exponentials, WW_F32, rows, columns, 0},
                {"exp-f16", exponentials, WW_F16, rows, columns, 0},
                {"exp-bf16", exponentials, WW_BF16, rows, columns, 0},
                {"gelu-f16", gelu, WW_F16, rows, columns, 0},
                {"gelu-bf16", gelu, WW_BF16, rows, columns, 0},
                {"log-f16", logarithms, WW_F16, rows, columns, 0},
                {"log-bf16", logarithms, WW_BF16, rows, columns, 0},
                {"pow-f16", power, WW_F16, rows, columns, rows},
                {"pow-bf16", power, WW_BF16, rows, columns, rows},
                {"atan2-f16", angle, WW_F16, rows, columns, rows},
                {"atan2-bf16", angle, WW_BF16, rows, columns, rows},
                {"softmax", softmax, WW_F32, rows, columns, 0},
                {"softmax-f16", softmax, WW_F16, rows, columns, 0},
                {"softmax-64", softmax, WW_F32, rows_count, 64, 0},
                {"softmax-f16-128", softmax, WW_F16, short_rows, 128, 0},
                {"layer_norm", layer_norm, WW_F32, rows, columns, 1},
                {"layer_norm-f16", layer_norm, WW_F16, rows, columns, 1},
                {"layer_norm-128", layer_norm, WW_F32, short_rows, 128, 1},
                {"rms_norm-bf16", rms_norm, WW_BF16, rows, columns, 1},
                {"sum", sum, WW_F32, rows, columns, 0},
                {"argmax", argmax, WW_F32, rows, columns, 0},
                {"sort", sort, WW_F32, rows < SORTED_ROWS ? rows : SORTED_ROWS, columns, 0},
                {"sort-128", sort, WW_F32, short_rows, 128, 0}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (wanted(each[i].key)) {
            workload w = {.x = tensor(each[i].type, each[i].rows, each[i].columns)};
            if (each[i].second_rows > 0)
                w.y = tensor(each[i].type, each[i].second_rows, each[i].columns);
            measure(each[i].key, &w, each[i].work);
        }
}

static void products(int64_t side)
{
    const ww_dtype types[] = {WW_F16, WW_BF16};
    for (int t = 0; t < 2; t++) {
        char key[64];
        snprintf(key, sizeof key, "matmul-%s", ww_dtype_name(types[t]));
        if (wanted(key)) {
            workload w = {.x = tensor(types[t], side, side), .y = tensor(types[t], side, side)};
            measure(key, &w, multiply);
        }
    }
}

static void convolutions(int64_t images)
{
    const int64_t values[] = {images, 64, 56, 56}, taps[] = {64, 64, 3, 3};
    const char *const keys[] = {"conv2d-canonical", "conv2d-fast"};
    for (int math = 0; math < 2; math++)
        if (wanted(keys[math])) {
            const ww_dtype dtype = math == 0 ? WW_F32 : WW_F16;
            workload w = {.math = (ww_math)math};
            check(ww_tensor_normal(device, dtype, 4, values, 0.0, 1.0, &w.x), "random numbers");
            check(ww_tensor_normal(device, dtype, 4, taps, 0.0, 1.0, &w.y), "random numbers");
            measure(keys[math], &w, convolve);
        }
}

int main(int count, char **arguments)
{
    int next = 2;
    if (count > next && strcmp(arguments[next], "--once") == 0) {
        once = true;
        next++;
    }
    if (count > next + 1 && strcmp(arguments[next], "--rows") == 0) {
        rows_count = strtoll(arguments[next + 1], NULL, 10);
        next += 2;
    }
    if (count < 2 || rows_count < 1) {
        fprintf(stderr, "usage: gpu_workloads DEVICE [--once] [--rows N] [KEY...]\n");
        return 2;
    }
    asked = arguments + next;
    asked_count = count - next;
    const bool small = rows_count < 1000000;
    check(ww_device_open(arguments[1], &device), "opening the device");
    searches(128, false);
    searches(128, true);
    searches(768, false);
    searches(768, true);
    const ww_quant_type types[] = {WW_QUANT_Q4_0, WW_QUANT_Q8_0, WW_QUANT_Q4_K, WW_QUANT_Q6_K};
    for (int t = 0; t < 4; t++)
        quantized(types[t], small ? 64 : 4096, small ? 256 : 14336);
    tensors(small ? 64 : 8192, small ? 256 : 4096, small ? 64 : 262144);
    products(small ? 64 : 4096);
    convolutions(small ? 1 : 16);
    ww_device_close(device);
    if (known_count < asked_count) {
        fprintf(stderr, "%d of the %d workloads asked for do not exist; without a name all are run\n",
                asked_count - known_count, asked_count);
        return 2;
    }
    return 0;
}
