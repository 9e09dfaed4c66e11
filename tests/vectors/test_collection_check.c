/* ww_collection_check(): one bit that flips in a norm, a code, a scale, a residual, a live word, the padding or, where the host
 * has a copy, a vector is found, with its row and its kind; nothing else is, and nothing is changed. On every device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/screen.h"
#include "support/collections.h"
#include "support/devices.h"
#include "vectors/collection.h"

static ww_collection *make(ww_device *device, int32_t dim, int64_t count, ww_screen screen, bool keep_host_copy)
{
    ww_collection_config config = ww_collection_config_default();
    config.dim = dim;
    config.metric = WW_COSINE;
    config.screen = screen;
    config.keep_host_copy = keep_host_copy;
    config.name = "checked";
    ww_collection *c = NULL;
    CHECK_OK(ww_collection_create(device, &config, &c));
    test_random random = {(uint64_t)dim};
    for (int64_t done = 0; done < count; done += 203) /* several segments, none of them full */
        collection_fill(c, &random, count - done < 203 ? count - done : 203, dim, "r", done);
    const char *const some[] = {"r3", "r70"};
    CHECK_OK(ww_collection_remove(c, some, 2));
    return c;
}

/* Flips bit `bit` of byte `offset` of a buffer on the device. */
static void flip(ww_collection *c, const buffer *of, size_t offset, int bit)
{
    const backend *api = c->device->backend;
    unsigned char word[4];
    const buffer_range range = {of, offset / 4 * 4, 4};
    CHECK_OK(api->copy_out(c->device, c->stream, word, range));
    word[offset % 4] ^= (unsigned char)(1u << bit);
    CHECK_OK(api->copy_in(c->device, c->stream, range, word));
    CHECK_OK(api->stream_synchronize(c->device, c->stream));
}

static bool is_cpu(const ww_collection *c)
{
    return strcmp(c->device->backend->name, "cpu") == 0;
}

/* A byte of the codes of a row of a segment. */
static size_t code_offset(const ww_collection *c, int64_t row, test_random *random)
{
    const int32_t padded = canon_padded(c->dim), chunks = padded / CANON_LANES;
    if (is_cpu(c))
        return (size_t)row * (size_t)padded + random_below(random, (uint64_t)padded);
    const uint64_t chunk = random_below(random, (uint64_t)chunks), piece = random_below(random, 4);
    return (size_t)screen_code_at(chunks, (uint64_t)row, (int32_t)chunk, (uint32_t)piece) * 4 + random_below(random, 16);
}

static ww_damage_report check(ww_collection *c, ww_status expected)
{
    ww_damage_report report = ww_damage_report_default();
    const ww_status status = ww_collection_check(c, &report, NULL, NULL);
    if (status != expected)
        fail_msg("%s: status %d: %s", c->device->info.id, (int)status, status == WW_OK ? "" : ww_error_message());
    assert_int_equal(report.rows_checked, c->store.rows_count);
    return report;
}

/* With a bit of `row` flipped, the check reports that row and, if it is not 0, only that kind; with the bit restored,
 * nothing. */
static void check_flip(ww_collection *c, const buffer *of, size_t offset, int bit, int64_t row, uint32_t kind)
{
    flip(c, of, offset, bit);
    const ww_damage_report report = check(c, WW_DAMAGED);
    char text[64];
    snprintf(text, sizeof text, "row %lld on %s is damaged", (long long)row, c->device->info.id);
    if (report.first_row != row || report.rows_damaged != 1 || (kind != 0 && report.first_damage != kind) ||
        report.damage != report.first_damage || !strstr(ww_error_message(), text))
        fail_msg("row %lld, kind %u: row %lld of %lld, kinds %u: %s", (long long)row, kind, (long long)report.first_row,
                 (long long)report.rows_damaged, report.first_damage, ww_error_message());
    flip(c, of, offset, bit);
}

/* One bit of each kind, in rows of all segments. */
static void check_each_kind(ww_collection *c, test_random *random, bool screened)
{
    for (int64_t s = 0; s < store_segments_used(&c->store); s++) {
        const segment *part = &c->store.segments[s];
        const int64_t at = (int64_t)random_below(random, (uint64_t)part->count), row = part->first_row + at;
        const int bit = (int)random_below(random, 8);
        const size_t number = (size_t)at * 4 + random_below(random, 4);
        check_flip(c, &part->norms, number, bit, row, WW_DAMAGE_NORM);
        if (screened && part->scales.data) {
            check_flip(c, &part->scales, number, bit, row, WW_DAMAGE_SCALE);
            check_flip(c, &part->residuals, number, bit, row, WW_DAMAGE_RESIDUAL);
            if (part->codes.data) /* rows of bytes are their own */
                check_flip(c, &part->codes, code_offset(c, at, random), bit, row, WW_DAMAGE_CODES);
        }
        check_flip(c, &part->live, (size_t)at / 8, (int)(at % 8), row, WW_DAMAGE_LIVE);
    }
    check(c, WW_OK);
}

static void one_flipped_bit_of_each_kind_is_found(void **state)
{
    static const int32_t dims[] = {20, 130};
    const int64_t count = device_is_slow(*state) ? 420 : 3000;
    test_random random = {9};
    for (size_t d = 0; d < 2; d++) {
        ww_collection *c = make(*state, dims[d], count, WW_SCREEN_INT8, false);
        snapshot before = snapshot_take(c);
        const ww_damage_report report = check(c, WW_OK);
        assert_true(report.rows_damaged == 0 && report.first_row == -1 && report.damage == 0);
        check_each_kind(c, &random, true);
        check_unchanged(c, &before);
        ww_collection_destroy(c);
    }
}

/* Integers, which every type holds. */
static void rows_of_every_type_are_checked(void **state)
{
    enum { DIM = 24, COUNT = 300 };
    static float vectors[COUNT * DIM];
    test_random random = {11};
    for (int i = 0; i < COUNT * DIM; i++)
        vectors[i] = (float)random_below(&random, 100);
    for (int type = WW_VECTOR_F32; type <= WW_VECTOR_U8; type++) {
        ww_collection_config config = ww_collection_config_default();
        config.dim = DIM;
        config.metric = WW_L2;
        config.type = (ww_vector_type)type;
        ww_collection *c = NULL;
        CHECK_OK(ww_collection_create(*state, &config, &c));
        ww_rows rows = ww_rows_default();
        rows.count = COUNT;
        rows.dim = DIM;
        rows.vectors = vectors;
        CHECK_OK(ww_collection_add(c, &rows));
        check(c, WW_OK);
        check_each_kind(c, &random, true);
        ww_collection_destroy(c);
    }
}

static void a_collection_without_a_screen_is_checked_too(void **state)
{
    test_random random = {10};
    ww_collection *c = make(*state, 33, 300, WW_SCREEN_NONE, false);
    check(c, WW_OK);
    check_each_kind(c, &random, false);
    ww_collection_destroy(c);
}

/* What a vector should be is known from its norm and codes, or not at all; from the host's copy in any case. */
static void a_damaged_vector_is_found_by_the_data_derived_from_it(void **state)
{
    enum { DIM = 20 };
    ww_collection *c = make(*state, DIM, 300, WW_SCREEN_INT8, true);
    const segment *part = &c->store.segments[0];
    const size_t row_bytes = (size_t)canon_padded(DIM) * sizeof(float), row = 77;
    check_flip(c, &part->rows, row * row_bytes + 3, 6, (int64_t)row,
               0); /* the largest bit of an exponent: not finite, or tiny */
    check_flip(c, &part->rows, row * row_bytes + 2, 7, (int64_t)row, 0);       /* the smallest */
    check_flip(c, &part->rows, (row + 1) * row_bytes - 1, 4, (int64_t)row, 0); /* the last place: padding, or an element */
    if (c->store.keep_copy) {
        flip(c, &part->rows, row * row_bytes, 0); /* the smallest bit of all */
        const ww_damage_report report = check(c, WW_DAMAGED);
        assert_true(report.first_row == (int64_t)row && (report.first_damage & WW_DAMAGE_VECTOR) != 0);
        flip(c, &part->rows, row * row_bytes, 0);
    }
    check(c, WW_OK);
    ww_collection_destroy(c);
}

static void many_damaged_rows_are_counted(void **state)
{
    ww_collection *c = make(*state, 20, 300, WW_SCREEN_INT8, false);
    static const int64_t rows[] = {5, 6, 63, 64, 190};
    for (size_t i = 0; i < 5; i++)
        flip(c, i % 2 ? &c->store.segments[0].norms : &c->store.segments[0].scales, (size_t)rows[i] * 4, (int)i);
    const ww_damage_report report = check(c, WW_DAMAGED);
    assert_int_equal(report.rows_damaged, 5);
    assert_int_equal(report.first_row, 5);
    assert_int_equal(report.first_damage, WW_DAMAGE_SCALE);
    assert_int_equal(report.damage, WW_DAMAGE_SCALE | WW_DAMAGE_NORM);
    assert_non_null(strstr(ww_error_message(), "5 of 300 rows are (norm, scale)"));
    ww_collection_destroy(c);
}

/* After everything that changes rows they are as they should be. */
static void rows_that_were_written_moved_and_compacted_are_sound(void **state)
{
    ww_collection *c = make(*state, 40, 420, WW_SCREEN_INT8, false);
    test_random random = {3};
    test_rows rows = test_rows_make(&random, 90, 40, "r", 30);
    CHECK_OK(ww_collection_upsert(c, &rows.rows));
    check(c, WW_OK);
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    check(c, WW_OK);
    CHECK_OK(ww_collection_move(c, *state));
    check(c, WW_OK);
    CHECK_OK(ww_collection_clear(c));
    assert_int_equal(check(c, WW_OK).rows_checked, 0);
    test_rows_free(&rows);
    ww_collection_destroy(c);
}

static int stop_at_once(int64_t done, int64_t total, void *user)
{
    (void)done;
    (void)total;
    ++*(int *)user;
    return 1;
}

static void wrong_arguments_are_refused(void **state)
{
    ww_collection *c = make(*state, 20, 100, WW_SCREEN_INT8, false);
    ww_damage_report report = ww_damage_report_default();
    int calls = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_check(NULL, &report, NULL, NULL));
    CHECK_FAILS(WW_CANCELLED, ww_collection_check(c, &report, stop_at_once, &calls));
    assert_true(calls == 1 && report.rows_checked == 0);
    report.struct_size = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_check(c, &report, NULL, NULL));
    CHECK_OK(ww_collection_check(c, NULL, NULL, NULL));
    ww_collection_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_flipped_bit_of_each_kind_is_found),
        cmocka_unit_test(rows_of_every_type_are_checked),
        cmocka_unit_test(a_collection_without_a_screen_is_checked_too),
        cmocka_unit_test(a_damaged_vector_is_found_by_the_data_derived_from_it),
        cmocka_unit_test(many_damaged_rows_are_counted),
        cmocka_unit_test(rows_that_were_written_moved_and_compacted_are_sound),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("checks", tests);
}
