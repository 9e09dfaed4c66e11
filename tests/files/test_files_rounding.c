/* Readers and writers give the same bits under every rounding mode, which programs set by fesetround(). */
#include <string.h>

#include "support/calls/rounding.h"
#include "support/scratch.h"

enum { COLUMNS = 6, ROWS = HARD_NUMBERS / COLUMNS };

/* Bytes of all that was read and written under one mode. */
static struct {
    char bytes[1 << 16];
    size_t size;
} answer, right;

static void note(const void *bytes, size_t size)
{
    assert_true(answer.size + size <= sizeof answer.bytes);
    memcpy(answer.bytes + answer.size, bytes, size);
    answer.size += size;
}

static void compare_under_all(void (*work)(void))
{
    for (int i = 0; i < ROUNDING_COUNT; i++) {
        rounding = ROUNDINGS[i];
        answer.size = 0;
        work();
        if (i == 0)
            right = answer;
        else if (answer.size != right.size || memcmp(answer.bytes, right.bytes, right.size) != 0)
            fail_msg("other bits under rounding mode %x", (unsigned)rounding);
    }
    assert_true(right.size > 0);
}

static void note_file(const char *path)
{
    size_t size;
    char *content = scratch_content(path, &size);
    note(content, size);
    free(content);
}

static void note_rows(const char *path, int64_t rows, int64_t dim)
{
    static float values[HARD_NUMBERS];
    ww_matrix *matrix = NULL;
    assert_true(rows * dim <= HARD_NUMBERS);
    CHECK_OK(ROUNDED(ww_matrix_open(path, &matrix)));
    CHECK_OK(ROUNDED(ww_matrix_read_f32(matrix, 0, rows, values)));
    note(values, (size_t)(rows * dim) * sizeof *values);
    ww_matrix_close(matrix);
}

/* ---- CSV ----------------------------------------------------------------------------------------------------------------- */

static void read_csv(void)
{
    static char csv[HARD_NUMBERS * HARD_NUMBER_BYTES];
    size_t length = 0;
    float expected[HARD_NUMBERS];
    for (int i = 0; i < HARD_NUMBERS; i++) {
        char text[HARD_NUMBER_BYTES];
        hard_number(i, text);
        expected[i] = strtof(text, NULL);
        length += (size_t)snprintf(csv + length, sizeof csv - length, "%s%c", text, i % COLUMNS == COLUMNS - 1 ? '\n' : ',');
    }
    note_rows(scratch_write("numbers.csv", csv, length), ROWS, COLUMNS);
    assert_memory_equal(answer.bytes, expected, sizeof expected);
}

static void csv_files_read_alike(void **state)
{
    (void)state;
    compare_under_all(read_csv);
}

/* ---- binary files -------------------------------------------------------------------------------------------------------- */

/* An .npy file of `count` doubles or halves in rows of COLUMNS. */
static const char *write_npy(const char *name, const char *type, const void *data, size_t bytes)
{
    char file[128 + HARD_NUMBERS * sizeof(double)];
    memset(file, ' ', 128);
    memcpy(file, "\x93NUMPY\x01\0\x76\0", 10);
    const int length =
        snprintf(file + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", type, ROWS, COLUMNS);
    file[10 + length] = ' ';
    file[127] = '\n';
    memcpy(file + 128, data, bytes);
    return scratch_write(name, file, 128 + bytes);
}

static void read_binary(void)
{
    double doubles[HARD_NUMBERS];
    uint16_t halves[HARD_NUMBERS];
    int32_t integers[HARD_NUMBERS];
    char fvecs[ROWS][sizeof(int32_t) + COLUMNS * sizeof(float)];
    for (int i = 0; i < HARD_NUMBERS; i++) {
        char text[HARD_NUMBER_BYTES];
        hard_number(i, text);
        doubles[i] = strtod(text, NULL);
        halves[i] = (uint16_t)(i * 131 % 0x7c00);
        integers[i] = 16777217 + i;
        const float single = (float)doubles[i];
        const int32_t dim = COLUMNS;
        memcpy(fvecs[i / COLUMNS], &dim, sizeof dim);
        memcpy(fvecs[i / COLUMNS] + sizeof dim + (size_t)(i % COLUMNS) * sizeof single, &single, sizeof single);
    }
    note_rows(write_npy("doubles.npy", "<f8", doubles, sizeof doubles), ROWS, COLUMNS);
    note_rows(write_npy("halves.npy", "<f2", halves, sizeof halves), ROWS, COLUMNS);
    note_rows(write_npy("integers.npy", "<i4", integers, sizeof integers), ROWS, COLUMNS);
    note_rows(scratch_write("rows.fvecs", fvecs, sizeof fvecs), ROWS, COLUMNS);
}

static void binary_files_read_alike(void **state)
{
    (void)state;
    compare_under_all(read_binary);
}

/* ---- writers ------------------------------------------------------------------------------------------------------------- */

static void write_files(void)
{
    static const char *const names[] = {"out.npy", "out.fbin"};
    float values[HARD_NUMBERS];
    for (int i = 0; i < HARD_NUMBERS; i++) {
        char text[HARD_NUMBER_BYTES];
        hard_number(i, text);
        values[i] = strtof(text, NULL);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_OK(ROUNDED(ww_matrix_write_f32(scratch_path(names[i]), values, ROWS, COLUMNS)));
        note_file(scratch_path(names[i]));
    }
    ww_array array = ww_array_default();
    array.name = "numbers", array.rank = 2, array.shape[0] = ROWS, array.shape[1] = COLUMNS, array.data = values;
    CHECK_OK(ROUNDED(ww_safetensors_write(scratch_path("out.safetensors"), &array, 1, NULL)));
    note_file(scratch_path("out.safetensors"));
}

static void files_are_written_alike(void **state)
{
    (void)state;
    compare_under_all(write_files);
}

/* ---- GGUF: numbers of the metadata, and what a message prints of them -----------------------------------------------------
 */

static void read_gguf(void)
{
    ww_gguf_writer *writer = NULL;
    ww_gguf *gguf = NULL;
    ww_gguf_value value = ww_gguf_value_default();
    double read = 0.0;
    uint64_t whole = 0;
    CHECK_OK(ROUNDED(ww_gguf_writer_create(&writer)));
    const double number = 0.1;
    value.key = "number", value.kind = value.element = WW_GGUF_F64;
    value.count = 1, value.data = &number, value.data_bytes = sizeof number;
    CHECK_OK(ROUNDED(ww_gguf_writer_value(writer, &value)));
    CHECK_OK(ROUNDED(ww_gguf_writer_open(writer, scratch_path("out.gguf"))));
    CHECK_OK(ROUNDED(ww_gguf_writer_finish(writer)));
    ww_gguf_writer_destroy(writer);
    note_file(scratch_path("out.gguf"));
    CHECK_OK(ROUNDED(ww_gguf_open(scratch_path("out.gguf"), &gguf)));
    CHECK_OK(ROUNDED(ww_gguf_f64(gguf, "number", &read)));
    note(&read, sizeof read);
    assert_true(ROUNDED(ww_gguf_u64(gguf, "number", &whole)) != WW_OK);
    note(ww_error_message(), strlen(ww_error_message()));
    ww_gguf_close(gguf);
}

static void numbers_of_gguf_files_read_and_print_alike(void **state)
{
    (void)state;
    compare_under_all(read_gguf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_files_read_alike),
        cmocka_unit_test(binary_files_read_alike),
        cmocka_unit_test(files_are_written_alike),
        cmocka_unit_test(numbers_of_gguf_files_read_and_print_alike),
    };
    return cmocka_run_group_tests_name("numbers of files under every rounding mode", tests, scratch_setup, scratch_teardown);
}
