/* Figures of tensors and quantized matrices on one device, for the report that a GPU's owner sends (scripts/gpu/bench-gpu.sh).
 *   gpu_figures DEVICE SIDE        SIDE: rows and columns of the largest matrices, a multiple of 256 for the K formats
 * Each line: what, the best of some repetitions, and operations or bytes a second. Exits with 1 if anything fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <warpwave.h>

enum { REPETITIONS = 5 };

static ww_device *device;
static int64_t side;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void must(ww_status status, const char *what)
{
    if (status == WW_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, ww_error_message());
    exit(1);
}

static ww_tensor numbers(ww_dtype dtype, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    ww_tensor made = {0};
    must(ww_tensor_normal(device, dtype, 2, shape, 0.0, 1.0, &made), "random numbers");
    return made;
}

/* The best time of `work`, waited for. */
static double best_of(void (*work)(void *context), void *context)
{
    double best = 1e30;
    for (int i = 0; i <= REPETITIONS; i++) { /* the first run is not counted: it loads code */
        const double begin = seconds_now();
        work(context);
        must(ww_device_synchronize(device), "waiting");
        const double took = seconds_now() - begin;
        if (i > 0 && took < best)
            best = took;
    }
    return best;
}

typedef struct product {
    ww_tensor a, b, out;
    ww_math math;
    ww_quant *matrix;
} product;

static void multiply(void *context)
{
    product *p = context;
    must(ww_tensor_matmul(&p->a, &p->b, p->math, &p->out), "a matrix product");
}

static void softmax(void *context)
{
    product *p = context;
    must(ww_tensor_softmax(&p->a, 1, &p->out), "softmax");
}

static void add(void *context)
{
    product *p = context;
    must(ww_tensor_binary(WW_ADD, &p->a, &p->b, &p->out), "an addition");
}

static void multiply_quantized(void *context)
{
    product *p = context;
    must(ww_quant_matmul(p->matrix, &p->a, &p->out), "a quantized product");
}

static void release(product *p)
{
    ww_tensor_release(&p->a);
    ww_tensor_release(&p->b);
    ww_tensor_release(&p->out);
    ww_quant_destroy(p->matrix);
}

static void tensor_figures(ww_dtype dtype)
{
    const double elements = (double)side * (double)side;
    const char *const maths[] = {"canonical", "fast"};
    for (int math = 0; math < 2; math++) {
        product p = {.a = numbers(dtype, side, side), .b = numbers(dtype, side, side), .math = (ww_math)math};
        const double took = best_of(multiply, &p);
        printf("matmul  %-5s %-9s %6lld^3       %10.3f ms  %9.2f TFLOP/s\n", ww_dtype_name(dtype), maths[math], (long long)side,
               1e3 * took, 2e-12 * elements * (double)side / took);
        release(&p);
    }
    product p = {.a = numbers(dtype, side, side), .b = numbers(dtype, side, side)};
    const double bytes = elements * (double)ww_dtype_bytes(dtype), softmaxed = best_of(softmax, &p), added = best_of(add, &p);
    printf("softmax %-5s           %6lld^2       %10.3f ms  %9.1f GB/s\n", ww_dtype_name(dtype), (long long)side,
           1e3 * softmaxed, 2e-9 * bytes / softmaxed);
    printf("add     %-5s           %6lld^2       %10.3f ms  %9.1f GB/s\n", ww_dtype_name(dtype), (long long)side, 1e3 * added,
           3e-9 * bytes / added);
    release(&p);
}

static void quant_figures(ww_quant_type type, int64_t columns)
{
    float *weights = malloc((size_t)(side * side) * sizeof *weights);
    product p = {.a = numbers(WW_F32, columns, side)};
    int64_t row_bytes = 0;
    for (int64_t i = 0; weights && i < side * side; i++)
        weights[i] = (float)(i * 2654435761u % 2001) * 1e-3f - 1.0f;
    must(ww_quant_row_bytes(type, side, &row_bytes), "the bytes of a row");
    must(weights ? ww_quant_from_f32(device, type, weights, side, side, side, &p.matrix) : WW_OUT_OF_MEMORY, "quantizing");
    free(weights);
    const double took = best_of(multiply_quantized, &p);
    printf("quant   %-5s %4lld columns %6lld^2      %10.3f ms  %9.1f GB/s of weights, %.2f TOP/s\n", ww_quant_name(type),
           (long long)columns, (long long)side, 1e3 * took, 1e-9 * (double)(side * row_bytes) / took,
           2e-12 * (double)side * (double)side * (double)columns / took);
    release(&p);
}

int main(int count, char **arguments)
{
    side = count == 3 ? strtoll(arguments[2], NULL, 10) : 0;
    if (side < 1) {
        fprintf(stderr, "usage: gpu_figures DEVICE SIDE\n");
        return 2;
    }
    must(ww_device_open(arguments[1], &device), "opening the device");
    tensor_figures(WW_F32);
    tensor_figures(WW_F16);
    const int64_t columns[] = {1, 16, 512};
    for (int i = 0; i < 3; i++) {
        quant_figures(WW_QUANT_Q8_0, columns[i]);
        quant_figures(WW_QUANT_Q4_0, columns[i]);
        if (side % 256 == 0)
            quant_figures(WW_QUANT_Q4_K, columns[i]);
    }
    ww_device_close(device);
    return 0;
}
