/* Recorded steps: a step of several operations, such as a model's step for a token, is recorded once and replayed a hundred
 * times, each time with other contents of memory, and has the bits of a step that is not recorded. Operations that cannot be
 * recorded are refused, and failures leave nothing behind.
 */
#include <stdlib.h>
#include <string.h>

#include <warpwave/quant.h>
#include <warpwave/tensor_rows.h>

#include "emulated/emulated.h"
#include "emulated/parts.h"
#include "gpu/backend.h"
#include "support/attention.h"
#include "support/devices.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"
#include "tensor/tensor.h"

/* So wide that several thread blocks encode its factors, and wait for each other's codes. */
enum { HEADS = 3, SIZE = 32, WIDTH = 1152, ROW = (HEADS + 2) * SIZE, REPLAYS = 100, CONTEXT = 300 };

/* A layer: norm, one product for q, k and v, the cache, attention, a product back, the sum. */
typedef struct layer_step {
    ww_device *device;
    const tensor_backend *tensors;
    ww_quant *in, *back;
    ww_tensor x, weight, qkv, attended, y; /* y is the result */
    buffer pages, table, numbers;          /* numbers: sequence, position, length */
    ww_quant_product queued;
} layer_step;

/* [1, count], all of this value; `flat`: [count]. */
static ww_tensor filled(ww_device *device, int64_t count, double value, bool flat)
{
    ww_tensor made = {0};
    const int64_t shape[] = {1, count};
    CHECK_OK(ww_tensor_full(device, WW_F32, flat ? 1 : 2, flat ? shape + 1 : shape, value, &made));
    return made;
}

static ww_quant *matrix(ww_device *device, ww_quant_type type, int64_t rows, int64_t cols)
{
    test_random random = {.state = (uint64_t)rows};
    float *values = malloc(sizeof *values * (size_t)(rows * cols));
    ww_quant *made = NULL;
    for (int64_t i = 0; i < rows * cols; i++)
        values[i] = 0.1f * random_uniform(&random);
    CHECK_OK(ww_quant_from_f32(device, type, values, rows, cols, cols, &made));
    free(values);
    return made;
}

static layer_step step_make(ww_device *device)
{
    layer_step s = {.device = device, .tensors = device->backend->tensors, .queued = ww_quant_product_default()};
    const int32_t pages = (CONTEXT + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK;
    const int64_t page = attention_layer_bytes(ATTENTION_F16, 1, SIZE);
    uint64_t table[2];
    s.queued.queued = 1;
    s.in = matrix(device, WW_QUANT_Q8_0, ROW, WIDTH);
    s.back = matrix(device, WW_QUANT_Q4_0, WIDTH, HEADS * SIZE);
    s.x = filled(device, WIDTH, 0.0, false);
    s.weight = filled(device, WIDTH, 1.25, true);
    s.qkv = filled(device, ROW, 0.0, false);
    s.attended = filled(device, HEADS * SIZE, 0.0, false);
    s.y = filled(device, WIDTH, 0.0, false);
    s.pages = buffer_of(device, NULL, (size_t)(pages * page));
    CHECK_OK(s.tensors->zero(device, &s.pages));
    for (int32_t i = 0; i < pages; i++)
        table[i] = (uint64_t)(uintptr_t)((char *)s.pages.data + i * page);
    s.table = buffer_of(device, table, sizeof table);
    s.numbers = buffer_of(device, NULL, 3 * sizeof(int32_t));
    return s;
}

static void step_free(layer_step *s)
{
    ww_tensor *all[] = {&s->x, &s->weight, &s->qkv, &s->attended, &s->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ww_tensor_release(all[i]);
    s->tensors->release(s->device, &s->pages);
    s->tensors->release(s->device, &s->table);
    s->tensors->release(s->device, &s->numbers);
    ww_quant_destroy(s->in);
    ww_quant_destroy(s->back);
}

/* Writes the inputs of a token. */
static ww_status step_feed(const layer_step *s, int32_t position)
{
    test_random random = {.state = (uint64_t)position + 1000};
    const int32_t numbers[3] = {0, position, position + 1};
    float x[WIDTH];
    random_normals(&random, x, WIDTH);
    const ww_status status = s->tensors->write(s->device, &s->numbers, numbers);
    const buffer to = dense_bytes(&s->x);
    return status == WW_OK ? s->tensors->write(s->device, &to, x) : status;
}

static ww_status step_attention(const layer_step *s)
{
    const int32_t *numbers = s->numbers.data;
    float *qkv = operand_of(&s->qkv).data;
    const attention_batch batch = {.tokens = 1,
                                   .sequences = numbers,
                                   .positions = numbers + 1,
                                   .lengths = numbers + 2,
                                   .pages = s->table.data,
                                   .pages_stride = 2,
                                   .layer = {.type = ATTENTION_F16, .kv_heads = 1, .head_size = SIZE}};
    const attention_store_job store = {.batch = batch,
                                       .heads = HEADS,
                                       .k = qkv + HEADS * SIZE,
                                       .v = qkv + (HEADS + 1) * SIZE,
                                       .k_stride = ROW,
                                       .v_stride = ROW};
    const attention_job attend = {.batch = batch,
                                  .heads = HEADS,
                                  .q = qkv,
                                  .q_stride = ROW,
                                  .mask = {.causal = 1},
                                  .scale = 0.2f,
                                  .keys_max = CONTEXT,
                                  .out = operand_of(&s->attended).data};
    const ww_status status = s->tensors->attention_store(s->device, &store);
    return status == WW_OK ? s->tensors->attention(s->device, &attend) : status;
}

/* Does the step. It allocates and frees memory for the norm and for the product back. */
static ww_status step_run(const layer_step *s)
{
    ww_tensor normed = {0}, back = {0}, qkv = s->qkv, y = s->y;
    ww_status status = ww_tensor_rms_norm(&s->x, &s->weight, 1e-5, &normed);
    if (status == WW_OK)
        status = ww_quant_multiply(s->in, &normed, &s->queued, &qkv);
    if (status == WW_OK)
        status = step_attention(s);
    if (status == WW_OK)
        status = ww_quant_multiply(s->back, &s->attended, &s->queued, &back);
    if (status == WW_OK)
        status = ww_tensor_binary(WW_ADD, &s->x, &back, &y);
    ww_tensor_release(&normed);
    ww_tensor_release(&back);
    return status;
}

static void step_read(const layer_step *s, float *y)
{
    CHECK_OK(ww_tensor_to_host(&s->y, y));
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------
 */

static void replays_have_the_bits_of_the_step(void **state)
{
    layer_step direct = step_make(*state), recorded = step_make(*state);
    tensor_recording *recording = NULL;
    float expected[WIDTH], got[WIDTH];
    const bool records = recorded.tensors->record_begin != NULL;
    assert_true(records || (*(ww_device **)state)->backend->on_host); /* a CPU works at once, without recording */
    for (int32_t position = 0; position < REPLAYS + 1; position++) {
        const int32_t jump = position < 60 ? position : position + 150; /* into the next chunk */
        CHECK_OK(step_feed(&direct, jump));
        CHECK_OK(step_run(&direct));
        CHECK_OK(step_feed(&recorded, jump));
        if (recording)
            CHECK_OK(recorded.tensors->replay(*state, recording));
        else
            CHECK_OK(step_run(&recorded));
        if (records && !recording) {
            CHECK_OK(recorded.tensors->record_begin(*state));
            CHECK_OK(step_run(&recorded));
            CHECK_OK(recorded.tensors->record_end(*state, true, &recording));
        }
        step_read(&direct, expected);
        step_read(&recorded, got);
        if (memcmp(expected, got, sizeof got) != 0)
            fail_msg("position %d: %.9g, not %.9g", jump, (double)got[0], (double)expected[0]);
    }
    if (records)
        recorded.tensors->recording_release(*state, recording);
    step_free(&recorded);
    step_free(&direct);
}

/* Between two replays others use the same workspaces, larger ones too, which then move; and memory that the step used. */
static void other_work_between_replays_changes_nothing(void **state)
{
    layer_step s = step_make(*state);
    tensor_recording *recording = NULL;
    float first[WIDTH], again[WIDTH];
    if (s.tensors->record_begin) {
        test_random random = {.state = 8};
        const attention_shape shape = {.heads = 8, .kv_heads = 1, .head_size = 64, .sequences = 1, .lengths = {600}};
        attention_scene scene = scene_make(*state, &random, &shape);
        attention_tokens tokens = tokens_make(&scene, &random, 2);
        ww_tensor kept[8] = {0};
        CHECK_OK(step_feed(&s, 260)); /* two chunks, of which the first has nothing but zeros */
        CHECK_OK(step_run(&s));
        CHECK_OK(s.tensors->record_begin(*state));
        CHECK_OK(step_run(&s));
        CHECK_OK(s.tensors->record_end(*state, true, &recording));
        CHECK_OK(s.tensors->replay(*state, recording));
        step_read(&s, first);
        scene_fill(&scene, &random, 600);
        tokens.positions[0] = tokens.positions[1] = 599;
        tokens_send(&scene, &tokens);
        const attention_job job = scene_job(&scene, &tokens, (attention_mask){0});
        CHECK_OK(s.tensors->attention(*state, &job)); /* a larger workspace */
        for (int32_t i = 0; i < 8; i++) {
            kept[i] = filled(*state, i % 2 ? WIDTH : ROW, 7.0, false);
        }
        CHECK_OK(s.tensors->replay(*state, recording));
        step_read(&s, again);
        assert_memory_equal(first, again, sizeof again);
        for (int32_t i = 0; i < 8; i++) { /* which the replay has not written to */
            float values[WIDTH];
            CHECK_OK(ww_tensor_to_host(&kept[i], values));
            for (int32_t e = 0; e < (i % 2 ? WIDTH : ROW); e++)
                assert_true(values[e] == 7.0f);
            ww_tensor_release(&kept[i]);
        }
        s.tensors->recording_release(*state, recording);
        tokens_free(&scene, &tokens);
        scene_free(&scene);
    }
    step_free(&s);
}

static void operations_that_wait_are_refused_and_the_device_continues(void **state)
{
    layer_step s = step_make(*state);
    tensor_recording *recording = NULL;
    float y[WIDTH];
    if (s.tensors->record_begin) {
        CHECK_OK(step_feed(&s, 0));
        CHECK_OK(step_run(&s));
        CHECK_OK(s.tensors->record_begin(*state));
        assert_int_equal(s.tensors->record_begin(*state), WW_INVALID_ARGUMENT);
        assert_int_equal(ww_tensor_to_host(&s.y, y), WW_UNSUPPORTED);
        assert_non_null(strstr(ww_error_message(), "cannot be recorded"));
        assert_int_equal(step_feed(&s, 1), WW_UNSUPPORTED);
        assert_int_equal(ww_device_synchronize(*state), WW_UNSUPPORTED);
        CHECK_OK(s.tensors->record_end(*state, false, &recording));
        assert_null(recording);
        assert_int_equal(s.tensors->record_end(*state, true, &recording), WW_INVALID_ARGUMENT);
        CHECK_OK(step_run(&s));
        step_read(&s, y);
    }
    step_free(&s);
}

/* ---- failures
 * ---------------------------------------------------------------------------------------------------------------- */

static void check_nothing_left(int64_t n)
{
    emulated_counts counts;
    emulated_count(&counts);
    if (counts.contexts || counts.blocks || counts.streams || counts.events || counts.modules || counts.graphs)
        fail_msg("failure %lld: left in the driver: %d contexts, %d blocks, %d streams, %d events, %d modules, %d graphs",
                 (long long)n, (int)counts.contexts, (int)counts.blocks, (int)counts.streams, (int)counts.events,
                 (int)counts.modules, (int)counts.graphs);
}

/* Records and replays; whatever fails, the recording is ended. */
static ww_status record_and_replay(const layer_step *s)
{
    tensor_recording *recording = NULL;
    ww_status status = s->tensors->record_begin(s->device);
    if (status != WW_OK)
        return status;
    status = step_run(s);
    const ww_status ended = s->tensors->record_end(s->device, status == WW_OK, &recording);
    status = status == WW_OK ? ended : status;
    if (status == WW_OK)
        status = s->tensors->replay(s->device, recording);
    s->tensors->recording_release(s->device, recording);
    return status;
}

/* The functions that only recording calls; which of them were made to fail. */
static const char *const recording_calls[] = {"capture_begin", "capture_end", "graph_launch", "graph_destroy"};
static bool made_to_fail[4];

/* Whether the driver's call number n was there to fail. */
static bool fails_at_call(int64_t n, int number, bool goes_on)
{
    ww_device *device = NULL;
    float expected[WIDTH], y[WIDTH];
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, (int32_t)(n % 2), &device));
    layer_step s = step_make(device);
    CHECK_OK(step_feed(&s, 0));
    CHECK_OK(step_run(&s));
    step_read(&s, expected);
    faulty_arm(&emulated_driver, n, number, NULL);
    const ww_status status = record_and_replay(&s);
    const bool failed = faulty_victim() != NULL;
    for (int i = 0; i < 4; i++)
        made_to_fail[i] |= failed && strcmp(faulty_victim(), recording_calls[i]) == 0;
    assert_true(status == WW_OK || failed);
    if (goes_on) { /* the same works after it */
        faulty_arm(&emulated_driver, 0, 0, NULL);
        CHECK_OK(record_and_replay(&s));
        step_read(&s, y);
        assert_memory_equal(y, expected, sizeof y);
    }
    step_free(&s);
    ww_device_close(device);
    check_nothing_left(n);
    return failed;
}

static void every_driver_call_may_fail(void **state)
{
    (void)state;
    static const int numbers[] = {EMULATED_OUT_OF_MEMORY, EMULATED_LAUNCH_FAILED};
    for (int loses = 0; loses < 2; loses++) {
        int64_t n = 1;
        while (fails_at_call(n++, numbers[loses], !loses))
            assert_true(n < 200);
        assert_true(n > 8); /* begin, fill, the launches, end, launch of the graph */
    }
    for (int i = 0; i < 4; i++)
        if (!made_to_fail[i])
            fail_msg("%s was never made to fail", recording_calls[i]);
}

static void every_allocation_may_fail(void **state)
{
    layer_step s = step_make(*state);
    if (s.tensors->record_begin) {
        CHECK_OK(step_feed(&s, 0));
        CHECK_OK(step_run(&s));
        const int64_t blocks = blocks_held();
        ww_status status = WW_OUT_OF_MEMORY;
        int64_t n = 0;
        while (status != WW_OK) {
            fail_allocation_at(++n);
            status = record_and_replay(&s);
            fail_allocation_at(0);
            assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
            assert_int_equal(blocks_held(), blocks);
            assert_true(n < 50);
        }
        assert_true(n > 2); /* the recording, and its list */
    }
    step_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_have_the_bits_of_the_step),
        cmocka_unit_test(other_work_between_replays_changes_nothing),
        cmocka_unit_test(operations_that_wait_are_refused_and_the_device_continues),
        cmocka_unit_test(every_allocation_may_fail),
    };
    const struct CMUnitTest others[] = {cmocka_unit_test(every_driver_call_may_fail)};
    const bool again = getenv("WARPWAVE_HIP_LIBRARY") != NULL; /* on the stand-in, after the emulated driver */
    return RUN_ON_EVERY_DEVICE("recorded steps", tests) + (again ? 0 : cmocka_run_group_tests(others, NULL, NULL));
}
