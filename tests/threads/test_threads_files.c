/* Several threads read one matrix at once, and write files into one directory at once. */
#include "support/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/scratch.h"

enum { THREADS = 4, ROWS = 500, DIM = 33, ROUNDS = 20 };

typedef struct worker {
    const ww_matrix *matrix;
    char path[SCRATCH_PATH_BYTES];
    int number;
    const char *failure; /* NULL: none */
} worker;

static void *read_rows(void *argument)
{
    worker *w = argument;
    float *values = malloc(ROWS * DIM * sizeof *values);
    for (int round = 0; round < ROUNDS && !w->failure; round++) {
        const int first = (w->number * 31 + round * 17) % ROWS, count = (ROWS - first) / 2;
        if (ww_matrix_read_f32(w->matrix, first, count, values) != WW_OK)
            w->failure = "a read failed";
        for (int i = 0; i < count * DIM; i++)
            if (values[i] != (float)((first * DIM + i) % 251))
                w->failure = "a read gave another row's numbers";
        if (ww_matrix_read_f32(w->matrix, ROWS, 1, values) != WW_OUT_OF_RANGE)
            w->failure = "a row past the end was read";
    }
    free(values);
    return NULL;
}

static void *write_rows(void *argument)
{
    worker *w = argument;
    const int32_t values[2] = {w->number, w->number};
    for (int round = 0; round < ROUNDS && !w->failure; round++)
        if (ww_matrix_write_i32(w->path, values, 1, 2) != WW_OK)
            w->failure = "a write failed";
    return NULL;
}

static void run_workers(worker *workers, void *(*work)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        if (workers[i].failure)
            fail_msg("thread %d: %s", i, workers[i].failure);
}

static void many_threads_read_one_matrix(void **state)
{
    (void)state;
    static worker workers[THREADS];
    static unsigned char content[8 + ROWS * DIM];
    const uint32_t counts[2] = {ROWS, DIM};
    ww_matrix *matrix = NULL;
    memcpy(content, counts, sizeof counts);
    for (int i = 0; i < ROWS * DIM; i++)
        content[8 + i] = (unsigned char)(i % 251);
    CHECK_OK(ww_matrix_open(scratch_write("a.u8bin", content, sizeof content), &matrix));
    for (int i = 0; i < THREADS; i++)
        workers[i].matrix = matrix;
    run_workers(workers, read_rows);
    ww_matrix_close(matrix);
}

/* The last writer wins, and what stands there is always some writer's whole file. */
static void many_threads_write_one_file(void **state)
{
    (void)state;
    static worker workers[THREADS];
    ww_matrix *matrix = NULL;
    int32_t values[2];
    for (int i = 0; i < THREADS; i++)
        snprintf(workers[i].path, sizeof workers[i].path, "%s", scratch_path("a.ibin"));
    run_workers(workers, write_rows);
    CHECK_OK(ww_matrix_open(scratch_path("a.ibin"), &matrix));
    CHECK_OK(ww_matrix_read_i32(matrix, 0, 1, values));
    assert_int_equal(values[0], values[1]);
    ww_matrix_close(matrix);
    assert_int_equal(scratch_entries(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_threads_read_one_matrix, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(many_threads_write_one_file, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
