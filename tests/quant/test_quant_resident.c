/* Data stays on the device: over a driver that counts what crosses the bus, coding, decoding, looking rows up and products of
 * tensors copy nothing but the answer whether all could be coded, 8 bytes, where someone waits for it.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "emulated/emulated.h"
#include "gpu/backend.h"
#include "support/calls/quant.h"
#include "support/check.h"

enum { ROWS = 64, COLS = 512, N = 6, MANY = 40, ANSWER_BYTES = 8 };

static gpu_driver counting;
static atomic_size_t bytes_in, bytes_out;

static int copy_in(driver_stream stream, void *to, const void *from, size_t bytes)
{
    atomic_fetch_add(&bytes_in, bytes);
    return emulated_driver.copy_in(stream, to, from, bytes);
}

static int copy_out(driver_stream stream, void *to, const void *from, size_t bytes)
{
    atomic_fetch_add(&bytes_out, bytes);
    return emulated_driver.copy_out(stream, to, from, bytes);
}

typedef struct subject {
    ww_device *device;
    ww_quant *matrix;
    ww_tensor w, few, many, ids;
} subject;

static ww_tensor tensor_of(ww_device *device, int64_t n)
{
    const int64_t shape[2] = {n, COLS};
    float *x = quant_normals((uint64_t)n, n * COLS);
    ww_tensor t = {0};
    CHECK_OK(ww_tensor_from_host(device, WW_F32, 2, shape, x, &t));
    free(x);
    return t;
}

static void subject_make(int32_t index, subject *s)
{
    static const int64_t n = N;
    static const uint32_t ids[N] = {3, 0, 1, 1, 2, 3};
    counting = emulated_driver;
    counting.copy_in = copy_in;
    counting.copy_out = copy_out;
    CHECK_OK(gpu_open(&backend_emulator, &counting, index, &s->device));
    s->w = tensor_of(s->device, ROWS);
    s->few = tensor_of(s->device, N);
    s->many = tensor_of(s->device, MANY);
    CHECK_OK(ww_tensor_from_host(s->device, WW_U32, 1, &n, ids, &s->ids));
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q4_K, &s->w, &s->matrix));
    CHECK_OK(ww_device_synchronize(s->device));
}

static void subject_end(subject *s)
{
    ww_quant_destroy(s->matrix);
    ww_tensor_release(&s->ids);
    ww_tensor_release(&s->many);
    ww_tensor_release(&s->few);
    ww_tensor_release(&s->w);
    ww_device_close(s->device);
}

static void begin(void)
{
    atomic_store(&bytes_in, 0);
    atomic_store(&bytes_out, 0);
}

static void check_crossed(const subject *s, const char *what, size_t in, size_t out)
{
    CHECK_OK(ww_device_synchronize(s->device));
    if (atomic_load(&bytes_in) != in || atomic_load(&bytes_out) != out)
        fail_msg("%s: %zu bytes to the device and %zu back, not %zu and %zu", what, atomic_load(&bytes_in),
                 atomic_load(&bytes_out), in, out);
}

static void coding_and_decoding(const subject *s)
{
    ww_tensor halves = {0}, rows = {0}, looked = {0};
    ww_quant *made;
    CHECK_OK(ww_tensor_cast(&s->w, WW_F16, &halves));
    begin();
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q4_0, &s->w, &made));
    check_crossed(s, "coding f32", 0, ANSWER_BYTES);
    ww_quant_destroy(made);
    begin();
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q6_K, &halves, &made));
    check_crossed(s, "coding f16", 0, ANSWER_BYTES);
    ww_quant_destroy(made);
    begin();
    CHECK_OK(ww_quant_dequantize(s->matrix, 3, 20, WW_BF16, &rows));
    CHECK_OK(ww_quant_rows(s->matrix, &s->ids, WW_F16, &looked));
    check_crossed(s, "decoding", 0, 0);
    ww_tensor_release(&looked);
    ww_tensor_release(&rows);
    ww_tensor_release(&halves);
}

static void multiply(const subject *s, const ww_tensor *x, const ww_quant_product *options, const char *what)
{
    ww_tensor out = {0};
    begin();
    CHECK_OK(ww_quant_multiply(s->matrix, x, options, &out));
    check_crossed(s, what, 0, options->queued || options->activations == WW_ACTIVATIONS_FLOAT ? 0 : ANSWER_BYTES);
    ww_tensor_release(&out);
}

static void products(const subject *s)
{
    ww_quant_product options = ww_quant_product_default();
    for (options.queued = 0; options.queued < 2; options.queued++) {
        options.activations = WW_ACTIVATIONS_CODED;
        options.expert_ids = NULL;
        multiply(s, &s->few, &options, "few columns");
        multiply(s, &s->many, &options, "many columns");
        options.expert_ids = &s->ids;
        options.expert_rows = ROWS / 4;
        multiply(s, &s->few, &options, "experts");
        options.activations = WW_ACTIVATIONS_FLOAT;
        multiply(s, &s->few, &options, "experts, decoded");
    }
}

static void coded_activations(const subject *s)
{
    ww_quant *coded;
    ww_tensor out = {0};
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q8_K, &s->many, &coded));
    begin();
    CHECK_OK(ww_quant_multiply_coded(s->matrix, coded, NULL, &out));
    check_crossed(s, "coded activations", 0, 0);
    ww_tensor_release(&out);
    ww_quant_destroy(coded);
}

static void nothing_crosses_the_bus(void **state)
{
    (void)state;
    for (int32_t index = 0; index < 2; index++) {
        subject s = {0};
        subject_make(index, &s);
        coding_and_decoding(&s);
        products(&s);
        coded_activations(&s);
        subject_end(&s);
    }
}

/* The count counts. */
static void experts_of_the_host_do_cross_it(void **state)
{
    (void)state;
    static const int64_t experts[N] = {3, 0, 1, 1, 2, 3};
    subject s = {0};
    ww_tensor out = {0};
    ww_quant_product options = ww_quant_product_default();
    options.experts = experts;
    options.expert_rows = ROWS / 4;
    options.queued = 1;
    subject_make(0, &s);
    begin();
    CHECK_OK(ww_quant_multiply(s.matrix, &s.few, &options, &out));
    CHECK_OK(ww_device_synchronize(s.device));
    assert_true(atomic_load(&bytes_in) > 0);
    ww_tensor_release(&out);
    subject_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_crosses_the_bus),
        cmocka_unit_test(experts_of_the_host_do_cross_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
