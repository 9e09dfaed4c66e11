/* Checksums of rows: a flipped bit is always found, and the digest of a collection says whether two have the same rows. */
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "store/store_support.h"
#include "support/devices.h"
#include "support/scratch.h"

enum { ROWS = 60, DIM = WORK_DIM, LISTS = 4, TEXT_BYTES = 64, FLIPS = 1000, RANGES = 8 * ROWS };

static ww_device *cpu;
static char *path;

static int setup(void **state)
{
    work_synchronous = WW_SYNCHRONOUS_OFF;
    scratch_setup(state);
    path = strdup(scratch_path("checksums.db"));
    return ww_device_open("cpu", &cpu) == WW_OK ? 0 : -1;
}

static int teardown(void **state)
{
    ww_device_close(cpu);
    free(path);
    return scratch_teardown(state);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static struct {
    float vectors[ROWS * DIM];
    char ids[ROWS][TEXT_BYTES], payloads[ROWS][TEXT_BYTES], texts[ROWS][TEXT_BYTES];
    const char *id_list[ROWS], *payload_list[ROWS], *text_list[ROWS];
} made;

/* Rows first to first + count - 1 of the same 60. */
static ww_rows some_rows(int64_t first, int64_t count)
{
    test_random random = {21};
    random_normals(&random, made.vectors, ROWS * DIM);
    for (int i = 0; i < ROWS; i++) {
        snprintf(made.ids[i], TEXT_BYTES, "identity-of-row-%d", i);
        snprintf(made.payloads[i], TEXT_BYTES, "{\"number\": %d, \"of\": \"payload\"}", i * 1000003);
        snprintf(made.texts[i], TEXT_BYTES, "the words of text %d are its own", i * 7919);
        made.id_list[i] = made.ids[i];
        made.payload_list[i] = i % 5 ? made.payloads[i] : NULL;
        made.text_list[i] = i % 3 ? made.texts[i] : NULL;
    }
    ww_rows rows = ww_rows_default();
    rows.count = count, rows.dim = DIM, rows.vectors = made.vectors + first * DIM;
    rows.ids = made.id_list + first, rows.payloads = made.payload_list + first, rows.texts = made.text_list + first;
    return rows;
}

static uint64_t digest_of(ww_collection *collection)
{
    uint64_t digest = 0;
    CHECK_OK(ww_collection_digest(collection, &digest));
    return digest;
}

static void build_index(ww_collection *collection)
{
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = LISTS, config.iterations = 2;
    CHECK_OK(ww_collection_build_ivf(collection, &config));
}

/* A closed store with all rows, and an index. */
static void make(bool indexed)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(work_open(path, cpu, &store, &collection));
    const ww_rows rows = some_rows(0, ROWS);
    CHECK_OK(ww_collection_add(collection, &rows));
    if (indexed)
        build_index(collection);
    work_close(store, collection);
}

static void edit(const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

static int64_t ask(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *asked = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &asked, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(asked), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(asked, 0);
    sqlite3_finalize(asked);
    sqlite3_close(db);
    return number;
}

/* ---- flipped bits -------------------------------------------------------------------------------------------------------- */

/* Where in the file the values are that a checksum covers. */
static struct {
    size_t at[RANGES], bytes[RANGES];
    int count;
} ranges;

static void find_value(const char *file, size_t size, const void *value, size_t bytes)
{
    const char *from = file, *found;
    while ((found = memmem(from, size - (size_t)(from - file), value, bytes)) != NULL && ranges.count < RANGES) {
        ranges.at[ranges.count] = (size_t)(found - file);
        ranges.bytes[ranges.count++] = bytes;
        from = found + bytes;
    }
}

static void find_values(const char *file, size_t size)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *asked = NULL;
    ranges.count = 0;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT vector FROM work_vectors UNION ALL SELECT payload FROM work_rows WHERE payload "
                                        "IS NOT NULL UNION ALL SELECT id FROM work_rows UNION ALL SELECT c0 FROM "
                                        "work_fts_content UNION ALL SELECT centroid FROM work_ivf_centroids",
                                        -1, &asked, NULL),
                     SQLITE_OK);
    int values = 0;
    for (; sqlite3_step(asked) == SQLITE_ROW; values++)
        find_value(file, size, sqlite3_column_blob(asked, 0), (size_t)sqlite3_column_bytes(asked, 0));
    sqlite3_finalize(asked);
    sqlite3_close(db);
    assert_int_equal(values, ROWS + ROWS * 4 / 5 + ROWS + ROWS * 2 / 3 + LISTS);
    assert_true(ranges.count >= values); /* an id is in the index over ids, too */
}

static void flip(size_t at, uint64_t bit)
{
    unsigned char byte;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(file, &byte, 1, (off_t)at), 1);
    byte ^= (unsigned char)(1u << bit);
    assert_int_equal(pwrite(file, &byte, 1, (off_t)at), 1);
    close(file);
}

/* Everything that can be read: all rows, and the answers to two queries, one of them by the index. NULL: it was refused. */
typedef struct reading {
    ww_results *all, *exact, *probed;
} reading;

static void reading_free(reading *r)
{
    ww_results_destroy(r->all);
    ww_results_destroy(r->exact);
    ww_results_destroy(r->probed);
}

static reading read_all(ww_status *status)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    reading r = {0};
    const float query_vector[DIM] = {0.5f, -0.25f};
    ww_get get = ww_get_default();
    ww_query query = ww_query_default();
    get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_TEXTS | WW_FETCH_VECTORS;
    query.queries = query_vector, query.query_count = 1, query.dim = DIM, query.k = ROWS, query.fetch = get.fetch;
    *status = work_open(path, cpu, &store, &collection);
    if (*status == WW_OK)
        *status = ww_collection_get(collection, &get, &r.all);
    if (*status == WW_OK)
        *status = ww_collection_query(collection, &query, &r.exact);
    query.nprobe = 1;
    if (*status == WW_OK)
        *status = ww_collection_query(collection, &query, &r.probed);
    work_close(store, collection);
    return r;
}

static bool texts_same(const ww_results *a, const ww_results *b)
{
    for (int64_t i = 0; i < ww_results_count(a, 0); i++)
        if (!texts_equal(ww_results_text(a, 0, i), ww_results_text(b, 0, i)))
            return false;
    return true;
}

static bool readings_equal(const reading *a, const reading *b)
{
    return results_equal(a->all, b->all, DIM) && results_equal(a->exact, b->exact, DIM) &&
           results_equal(a->probed, b->probed, DIM) && texts_same(a->all, b->all);
}

static ww_status check_store(void)
{
    ww_store *store = NULL;
    ww_store_config how = ww_store_config_default();
    how.read_only = 1;
    ww_status status = ww_store_open(path, cpu, &how, &store);
    if (status == WW_OK)
        status = ww_store_check(store, NULL, NULL);
    ww_store_close(store);
    return status;
}

static void every_flipped_bit_is_found_and_none_changes_an_answer(void **state)
{
    (void)state;
    make(true);
    size_t size = 0;
    char *file = scratch_content(path, &size);
    find_values(file, size);
    ww_status status;
    reading sound = read_all(&status);
    CHECK_OK(status);
    CHECK_OK(check_store());
    test_random random = {22};
    int missed = 0, changed = 0, refused = 0;
    for (int i = 0; i < FLIPS; i++) {
        const size_t which = random_below(&random, (uint64_t)ranges.count);
        const size_t at = ranges.at[which] + random_below(&random, ranges.bytes[which]);
        const uint64_t bit = random_below(&random, 8);
        flip(at, bit);
        missed += check_store() != WW_CORRUPT_FILE;
        reading r = read_all(&status);
        refused += status != WW_OK;
        changed += status == WW_OK && !readings_equal(&r, &sound);
        reading_free(&r);
        flip(at, bit);
    }
    print_message("%d flips: %d not found by a check, %d refused when read, %d changed an answer\n", (int)FLIPS, missed,
                  refused, changed);
    assert_int_equal(missed, 0);
    assert_int_equal(changed, 0);
    assert_true(refused > FLIPS / 2); /* the index over ids is not read */
    CHECK_OK(check_store());
    reading_free(&sound);
    free(file);
}

static void a_damaged_row_can_be_written_again_or_removed(void **state)
{
    (void)state;
    static const char *const damages[] = {"UPDATE work_rows SET payload = '{}' WHERE handle = 7",
                                          "UPDATE work_rows SET checksum = checksum + 1 WHERE handle = 7",
                                          "UPDATE work_vectors SET checksum = 5 WHERE place = 7",
                                          "UPDATE work_vectors SET vector = zeroblob(32) WHERE place = 7"};
    for (size_t i = 0; i < 2 * sizeof damages / sizeof *damages; i++) {
        ww_store *store = NULL;
        ww_collection *collection = NULL;
        make(false);
        edit(damages[i / 2]);
        assert_int_equal(check_store(), WW_CORRUPT_FILE);
        CHECK_OK(work_open(path, cpu, &store, &collection));
        const ww_rows rows = some_rows(7, 1);
        if (i % 2)
            CHECK_OK(ww_collection_remove(collection, rows.ids, 1));
        CHECK_OK(ww_collection_upsert(collection, &rows));
        CHECK_OK(ww_collection_compact(collection, NULL, NULL)); /* makes the digest anew */
        const uint64_t digest = digest_of(collection);
        CHECK_OK(ww_store_check(store, NULL, NULL));
        work_close(store, collection);
        unlink(path);
        make(false);
        CHECK_OK(work_open(path, cpu, &store, &collection));
        assert_true(digest_of(collection) == digest);
        work_close(store, collection);
        unlink(path);
    }
}

static void a_change_of_a_part_does_not_cover_damage_of_the_rest(void **state)
{
    (void)state;
    make(false);
    edit("UPDATE work_rows SET id = 'somebody-else' WHERE handle = 7");
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(work_open(path, cpu, &store, &collection));
    const char *id = "somebody-else", *payload = "{}";
    CHECK_FAILS(WW_CORRUPT_FILE, ww_collection_set_payloads(collection, &id, &payload, 1));
    assert_non_null(strstr(ww_error_message(), "handle 7"));
    work_close(store, collection);
}

/* ---- digests ------------------------------------------------------------------------------------------------------------- */

static void the_digest_does_not_depend_on_the_order_or_the_way_of_the_writes(void **state)
{
    (void)state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    make(false);
    CHECK_OK(work_open(path, cpu, &store, &collection));
    const uint64_t digest = digest_of(collection);
    assert_true(digest != 0);
    CHECK_OK(ww_collection_clear(collection));
    assert_true(digest_of(collection) == 0);
    for (int64_t i = ROWS - 1; i >= 0; i--) {
        ww_rows row = some_rows(i, 1);
        CHECK_OK(ww_collection_add(collection, &row));
        if (i % 4 == 0) {
            CHECK_OK(ww_collection_remove(collection, row.ids, 1));
            row = some_rows(i, 1);
            CHECK_OK(ww_collection_add(collection, &row));
        }
    }
    assert_true(digest_of(collection) == digest);
    const char *id = made.id_list[3], *payload = "{\"other\": 1}";
    CHECK_OK(ww_collection_set_payloads(collection, &id, &payload, 1));
    assert_true(digest_of(collection) != digest);
    CHECK_OK(ww_collection_set_payloads(collection, &id, &made.payload_list[3], 1));
    assert_true(digest_of(collection) == digest);
    const ww_rows all = some_rows(0, ROWS);
    CHECK_OK(ww_collection_upsert(collection, &all));
    CHECK_OK(ww_collection_update(collection, &all));
    assert_true(digest_of(collection) == digest);
    build_index(collection);
    CHECK_OK(ww_collection_compact(collection, NULL, NULL));
    assert_true(digest_of(collection) == digest);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    work_close(store, collection);
}

static void rows_that_exchange_their_vectors_have_another_digest(void **state)
{
    (void)state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    make(false);
    CHECK_OK(work_open(path, cpu, &store, &collection));
    const uint64_t digest = digest_of(collection);
    ww_rows rows = some_rows(0, 2);
    for (int i = 0; i < DIM; i++) {
        const float first = made.vectors[i];
        made.vectors[i] = made.vectors[DIM + i];
        made.vectors[DIM + i] = first;
    }
    CHECK_OK(ww_collection_update(collection, &rows));
    assert_true(digest_of(collection) != digest);
    work_close(store, collection);
}

static void a_collection_in_memory_has_the_digest_of_one_in_a_store(void **state)
{
    (void)state;
    static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        ww_store *store = NULL;
        ww_collection *both[2] = {NULL, NULL};
        ww_collection_config config = ww_collection_config_default();
        ww_store_config how = ww_store_config_default();
        how.synchronous = WW_SYNCHRONOUS_OFF;
        config.name = "both", config.dim = DIM, config.type = types[i];
        CHECK_OK(ww_store_open(path, cpu, &how, &store));
        CHECK_OK(ww_store_create(store, &config, &both[0]));
        CHECK_OK(ww_collection_create(cpu, &config, &both[1]));
        ww_rows rows = some_rows(0, ROWS);
        rows.texts = NULL; /* a collection in memory has none */
        ww_rows more = rows;
        more.ids = NULL, more.payloads = NULL;
        for (int k = 0; k < 2; k++) {
            CHECK_OK(ww_collection_add(both[k], &rows));
            CHECK_OK(ww_collection_add(both[k], &more));
            CHECK_OK(ww_collection_remove(both[k], rows.ids + 5, 3));
        }
        assert_true(digest_of(both[0]) == digest_of(both[1]));
        CHECK_OK(ww_collection_remove(both[1], rows.ids, 1));
        assert_true(digest_of(both[0]) != digest_of(both[1]));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_digest(both[0], NULL));
        ww_collection_destroy(both[0]);
        ww_collection_destroy(both[1]);
        ww_store_close(store);
        unlink(path);
    }
}

/* ---- earlier versions ---------------------------------------------------------------------------------------------------- */

/* Makes of the file what an earlier version would have written. */
static void make_old(bool indexed)
{
    make(indexed);
    edit(WORK_MADE_OLD);
    if (indexed)
        edit("ALTER TABLE work_ivf_centroids DROP COLUMN checksum; ALTER TABLE work_ivf DROP COLUMN calibration_rows;"
             "ALTER TABLE work_ivf DROP COLUMN calibration_time");
}

static void an_older_store_is_read_as_it_is_and_upgraded_by_the_first_write(void **state)
{
    (void)state;
    make(false);
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ww_results *new = NULL, *old = NULL;
    ww_get get = ww_get_default();
    get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_TEXTS | WW_FETCH_VECTORS;
    CHECK_OK(work_open(path, cpu, &store, &collection));
    CHECK_OK(ww_collection_get(collection, &get, &new));
    uint64_t digest = digest_of(collection), found = 0;
    work_close(store, collection);
    unlink(path);
    make_old(false);
    CHECK_OK(work_open(path, cpu, &store, &collection));
    CHECK_FAILS(WW_UNSUPPORTED, ww_collection_digest(collection, &found));
    CHECK_OK(ww_collection_get(collection, &get, &old));
    assert_true(results_equal(new, old, DIM) && texts_same(new, old));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    assert_int_equal(ask("SELECT format FROM warpwave_collections"), 1); /* reading changes nothing */
    const ww_rows rows = some_rows(9, 1);
    CHECK_OK(ww_collection_upsert(collection, &rows));
    assert_true(digest_of(collection) == digest);
    assert_int_equal(ask("SELECT format FROM warpwave_collections"), 3);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    work_close(store, collection);
    edit("UPDATE work_vectors SET vector = zeroblob(32) WHERE place = 30");
    assert_int_equal(check_store(), WW_CORRUPT_FILE);
    ww_results_destroy(new);
    ww_results_destroy(old);
}

static void an_upgrade_covers_the_index_and_its_missing_columns(void **state)
{
    (void)state;
    make(true);
    ww_status status;
    reading before = read_all(&status);
    CHECK_OK(status);
    unlink(path);
    make_old(true);
    reading old = read_all(&status);
    assert_int_equal(status, WW_CORRUPT_FILE); /* the query that needs the index */
    assert_non_null(strstr(ww_error_message(), "earlier version"));
    assert_true(results_equal(before.exact, old.exact, DIM));
    ww_store *store = NULL;
    CHECK_OK(ww_store_open(path, cpu, NULL, &store));
    CHECK_OK(ww_store_upgrade(store, NULL, NULL));
    CHECK_OK(ww_store_upgrade(store, NULL, NULL)); /* does nothing */
    ww_store_close(store);
    assert_int_equal(ask("SELECT format FROM warpwave_collections"), 4);
    CHECK_OK(check_store());
    reading after = read_all(&status);
    CHECK_OK(status);
    assert_true(readings_equal(&before, &after));
    edit("UPDATE work_ivf_centroids SET centroid = zeroblob(32) WHERE list = 1");
    assert_int_equal(check_store(), WW_CORRUPT_FILE);
    assert_non_null(strstr(ww_error_message(), "centroid of list 1"));
    reading_free(&before);
    reading_free(&old);
    reading_free(&after);
}

static int cancel(int64_t done, int64_t total, void *user)
{
    (void)user;
    return done > 0 && total == ROWS;
}

static void a_cancelled_or_refused_upgrade_changes_nothing(void **state)
{
    (void)state;
    make_old(false);
    ww_store *store = NULL;
    ww_store_config how = ww_store_config_default();
    CHECK_OK(ww_store_open(path, cpu, NULL, &store));
    CHECK_FAILS(WW_CANCELLED, ww_store_upgrade(store, cancel, NULL));
    ww_store_close(store);
    assert_int_equal(ask("SELECT format FROM warpwave_collections"), 1);
    assert_int_equal(ask("SELECT count(*) FROM pragma_table_info('work_rows') WHERE name LIKE '%checksum'"), 0);
    how.read_only = 1;
    CHECK_OK(ww_store_open(path, cpu, &how, &store));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_upgrade(store, NULL, NULL));
    ww_store_close(store);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_upgrade(NULL, NULL, NULL));
    edit("DELETE FROM work_rows WHERE handle = 7");
    CHECK_OK(ww_store_open(path, cpu, NULL, &store));
    CHECK_FAILS(WW_CORRUPT_FILE, ww_store_upgrade(store, NULL, NULL));
    ww_store_close(store);
    assert_int_equal(ask("SELECT format FROM warpwave_collections"), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(every_flipped_bit_is_found_and_none_changes_an_answer),
                                       TEST(a_damaged_row_can_be_written_again_or_removed),
                                       TEST(a_change_of_a_part_does_not_cover_damage_of_the_rest),
                                       TEST(the_digest_does_not_depend_on_the_order_or_the_way_of_the_writes),
                                       TEST(rows_that_exchange_their_vectors_have_another_digest),
                                       TEST(a_collection_in_memory_has_the_digest_of_one_in_a_store),
                                       TEST(an_older_store_is_read_as_it_is_and_upgraded_by_the_first_write),
                                       TEST(an_upgrade_covers_the_index_and_its_missing_columns),
                                       TEST(a_cancelled_or_refused_upgrade_changes_nothing)};
    return cmocka_run_group_tests_name("store: checksums", tests, NULL, NULL);
}
