/* A child of fork() must not use the objects of its parent, and every call says so at once; it can make its own objects.
 *
 * Threads of the parent work while it forks, again and again, so that each lock of the device is held in some child.
 */
#include "support/devices.h"
#include "support/process.h"
#include "support/standin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FORKS = 12, SECONDS = 20, DIM = 40, ROWS = 300, WORKERS = 2 };

/* The parent's objects, for the child's function, which has no argument. */
static ww_device *device;
static ww_device_info described; /* the device */
static ww_collection *collection;
static ww_tensor tensor;
static ww_quant *matrix;

static float vectors[ROWS * DIM];

static bool says(const char *text)
{
    return strstr(ww_error_message(), text) != NULL;
}

static ww_status make_collection(ww_device *on, ww_collection **out)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "forked";
    config.dim = DIM;
    config.metric = WW_L2;
    ww_status status = ww_collection_create(on, &config, out);
    ww_rows rows = ww_rows_default();
    rows.vectors = vectors;
    rows.count = ROWS;
    rows.dim = DIM;
    return status == WW_OK ? ww_collection_add(*out, &rows) : status;
}

static int64_t nearest(ww_collection *in, const float *query)
{
    int64_t row = -1;
    float score;
    ww_query search = ww_query_default();
    search.queries = query;
    search.query_count = 1;
    search.dim = DIM;
    search.k = 1;
    return ww_collection_search(in, &search, &row, &score) == WW_OK ? row : -1;
}

/* Opens the device with that name and uses it: a search, and freeing everything. */
static void work_on(const char *name)
{
    ww_device *own = NULL;
    ww_collection *found = NULL;
    EXPECT(ww_device_open(name, &own) == WW_OK);
    EXPECT(make_collection(own, &found) == WW_OK);
    EXPECT(nearest(found, vectors + 7 * DIM) == 7);
    ww_collection_destroy(found);
    ww_device_close(own);
}

static void refuse_the_parents_device(void)
{
    ww_device_info info = ww_device_info_default();
    ww_memory_info memory = ww_memory_info_default();
    EXPECT(ww_device_describe(device, &info) == WW_OTHER_PROCESS && says("opened in another process") && says("open it again"));
    EXPECT(ww_device_memory(device, &memory) == WW_OTHER_PROCESS && says("opened in another process"));
    EXPECT(ww_device_trim(device) == WW_OTHER_PROCESS && says("opened in another process"));
    EXPECT(strcmp(ww_status_name(WW_OTHER_PROCESS), "opened in another process") == 0);
    ww_device_close(device);
}

static void refuse_the_parents_tensors(void)
{
    const int64_t shape[] = {ROWS, DIM};
    float host[ROWS * DIM];
    ww_tensor out = {0};
    ww_quant *made = NULL;
    EXPECT(ww_tensor_to_host(&tensor, host) == WW_OTHER_PROCESS && says("opened in another process"));
    EXPECT(ww_tensor_unary(WW_EXP, &tensor, &out) == WW_OTHER_PROCESS && out.storage == NULL);
    EXPECT(ww_tensor_binary(WW_ADD, &tensor, &tensor, &out) == WW_OTHER_PROCESS);
    EXPECT(ww_tensor_zeros(device, WW_F32, 2, shape, &out) == WW_OTHER_PROCESS);
    EXPECT(ww_tensor_from_host(device, WW_F32, 2, shape, vectors, &out) == WW_OTHER_PROCESS && out.storage == NULL);
    EXPECT(ww_storage_to_host(tensor.storage, host) == WW_OTHER_PROCESS);
    EXPECT(ww_device_synchronize(device) == WW_OTHER_PROCESS);
    EXPECT(ww_quant_read_f32(matrix, 0, 1, host) == WW_OTHER_PROCESS && says("opened in another process"));
    EXPECT(ww_quant_get_rows(matrix, shape, 0, host) == WW_OTHER_PROCESS);
    EXPECT(ww_quant_view(matrix, 0, 1, &made) == WW_OTHER_PROCESS && made == NULL);
    EXPECT(ww_quant_matmul(matrix, &tensor, &out) == WW_OTHER_PROCESS);
    EXPECT(ww_quant_from_f32(device, WW_QUANT_Q8_0, vectors, 1, 32, 32, &made) == WW_OTHER_PROCESS && made == NULL);
    ww_tensor_release(&tensor);
    ww_quant_destroy(matrix);
}

static void refuse_the_parents_collection(void)
{
    ww_collection_info info = ww_collection_info_default();
    EXPECT(nearest(collection, vectors) == -1 && says("opened in another process"));
    EXPECT(ww_collection_describe(collection, &info) == WW_OTHER_PROCESS);
    ww_collection_destroy(collection);
}

static void child_of_a_busy_parent(void)
{
    ww_device *again = NULL;
    refuse_the_parents_tensors();
    refuse_the_parents_collection();
    refuse_the_parents_device();
    work_on("cpu");
    if (strcmp(described.backend, "cpu") != 0) {
        EXPECT(ww_device_open(described.id, &again) == WW_OTHER_PROCESS && again == NULL);
        EXPECT(says(described.backend) && says("started in another process"));
        EXPECT(strstr(ww_backend_absence(described.backend), "started in another process") != NULL);
        size_t count = 0;
        EXPECT(ww_devices(NULL, 0, &count) == WW_OK && count >= 1);
    }
}

static atomic_bool ending;

static void *work_until_told(void *unused)
{
    while (!atomic_load(&ending)) {
        if (nearest(collection, vectors + 3 * DIM) != 3)
            return &ending;
        ww_memory_info memory = ww_memory_info_default();
        ww_tensor out = {0};
        if (ww_tensor_unary(WW_EXP, &tensor, &out) != WW_OK)
            return &ending;
        ww_tensor_release(&out);
        if (ww_device_memory(device, &memory) != WW_OK || ww_device_trim(device) != WW_OK)
            return &ending;
    }
    return unused;
}

static void a_child_of_a_parent_at_work_is_refused_at_once(void **state)
{
    pthread_t threads[WORKERS];
    if (TEST_INSTRUMENTED) { /* libasan keeps no lock free across fork(), and its malloc waits for ever in a child */
        printf("SKIP: the address sanitizer's allocator does not survive a fork beside threads that allocate\n");
        skip();
    }
    device = *state;
    described = ww_device_info_default();
    CHECK_OK(ww_device_describe(device, &described));
    const int64_t shape[] = {ROWS, DIM};
    CHECK_OK(make_collection(device, &collection));
    CHECK_OK(ww_tensor_from_host(device, WW_F32, 2, shape, vectors, &tensor));
    CHECK_OK(ww_quant_from_f32(device, WW_QUANT_Q8_0, vectors, 4, 32, 32, &matrix));
    atomic_store(&ending, false);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_until_told, NULL), 0);
    for (int i = 0; i < FORKS; i++)
        in_a_process(child_of_a_busy_parent, SECONDS);
    atomic_store(&ending, true);
    for (int i = 0; i < WORKERS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(nearest(collection, vectors + 5 * DIM), 5); /* the parent never noticed */
    ww_collection_destroy(collection);
    ww_tensor_release(&tensor);
    ww_quant_destroy(matrix);
}

/* ---- a parent that has used no GPU --------------------------------------------------------------------------------------- */

static void grandchild(void)
{
    ww_device *again = NULL;
    EXPECT(ww_device_open("emulator:64", &again) == WW_OTHER_PROCESS && says("started in another process"));
    work_on("cpu");
}

static void child_of_an_idle_parent(void)
{
    work_on("cpu");
    work_on("emulator:32");
    if (getenv("WARPWAVE_HIP_LIBRARY") != NULL)
        work_on("rocm:0");
    in_a_process(grandchild, SECONDS);
}

static void a_child_opens_a_gpu_that_its_parent_never_used(void **state)
{
    (void)state;
    in_a_process(child_of_an_idle_parent, SECONDS);
    in_a_process(child_of_an_idle_parent, SECONDS); /* and a second child, too */
}

/* If the parent has a GPU, "auto" does not fall back to the CPU by itself. */
static void open_auto(void)
{
    ww_device *again = NULL;
    unsetenv("WARPWAVE_DEVICE");
    EXPECT(ww_device_open("auto", &again) == WW_OTHER_PROCESS && says("started in another process"));
}

static void use_a_gpu_and_fork(void)
{
    standin rocm;
    if (!standin_open(6, "", &rocm))
        _exit(PROCESS_SKIPPED);
    work_on("rocm:0");
    in_a_process(open_auto, SECONDS);
}

static void auto_in_a_child_does_not_fall_back_unasked(void **state)
{
    (void)state;
    in_a_process(use_a_gpu_and_fork, SECONDS);
}

int main(void)
{
    for (int i = 0; i < ROWS * DIM; i++)
        vectors[i] = (float)((i * 7919 + i / DIM * 104729) % 2003) / 97.0f;
    const struct CMUnitTest before[] = {
        cmocka_unit_test(a_child_opens_a_gpu_that_its_parent_never_used),
        cmocka_unit_test(auto_in_a_child_does_not_fall_back_unasked),
    };
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_of_a_parent_at_work_is_refused_at_once)};
    const int failed = cmocka_run_group_tests_name("fork before any device", before, NULL, NULL);
    return failed + RUN_ON_EVERY_DEVICE("fork", tests);
}
