/* Any bytes as a sparse vector and a block of a store's file, with checksums that agree, as somebody who wrote the file on
 * purpose would have them: both are refused, or are sound, and a search of the block stays within its rows. And as the JSON
 * text of a vector.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/json/json_sparse.h"
#include "base/memory.h"
#include "store/sparse/sparse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { HEAD_BYTES = 20 };

static sqlite3_stmt *prepared(const char *sql)
{
    static sqlite3 *db;
    sqlite3_stmt *s = NULL;
    if (!db && (sqlite_host_ready() != WW_OK || sqlite3_open(":memory:", &db) != SQLITE_OK))
        abort();
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        abort();
    return s;
}

static void check_vector(const sparse_tables *t, const uint8_t *bytes, size_t size)
{
    sqlite3_stmt *s = prepared("SELECT ?1, ?2, ?3");
    sparse_buffer space = {0};
    ww_sparse_vector v;
    sqlite3_bind_int64(s, 1, 7);
    sqlite3_bind_blob64(s, 2, bytes, size, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, (int64_t)(checksum_bytes(bytes, size) ^ checksum_mark(7, 3)));
    if (sqlite3_step(s) != SQLITE_ROW)
        abort();
    if (sparse_column(t, (sparse_cell){s, 0, 3}, &space, &v) == WW_OK)
        for (int64_t i = 1; i < v.count; i++)
            if (v.indices[i - 1] >= v.indices[i])
                abort();
    sqlite3_finalize(s);
    memory_free(space.words);
}

typedef struct loaded {
    sparse_entries entries;
} loaded;

static ww_status load(void *user, int64_t term, int64_t block, sparse_entries *entries)
{
    (void)term;
    (void)block;
    *entries = ((const loaded *)user)->entries;
    return WW_OK;
}

static void search(const sparse_head *head, const uint32_t *words)
{
    loaded user = {sparse_entries_of(head, words)};
    const sparse_term terms[2] = {{1.0f, &head->block, 1}, {-2.0f, &head->block, 1}};
    sparse_search s = {.terms = terms, .term_count = 2, .load = load, .user = &user, .limit = 5};
    key_list list = {0};
    if (sparse_search_run(&s, &list) != WW_OK)
        abort();
    key_list_finish(&list, 5);
    if (list.count == 0)
        abort();
    key_list_free(&list);
}

static void check_block(const sparse_tables *t, const uint8_t *bytes, size_t size)
{
    static uint32_t words[2 * SPARSE_BLOCK];
    uint32_t fields[HEAD_BYTES / sizeof(uint32_t)];
    sparse_head head = {.key = sparse_key(5, 1), .sum = checksum_bytes(bytes + HEAD_BYTES, size - HEAD_BYTES)}, read;
    memcpy(fields, bytes, HEAD_BYTES);
    head.block = (sparse_block){.first = fields[0], .last = fields[1], .count = (int32_t)(fields[2] % (SPARSE_BLOCK + 2))};
    memcpy(&head.block.low, &fields[3], sizeof head.block.low);
    memcpy(&head.block.high, &fields[4], sizeof head.block.high);
    sqlite3_stmt *s = prepared("SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9");
    sqlite3_bind_int64(s, 1, head.key);
    sqlite3_bind_int64(s, 2, head.block.first);
    sqlite3_bind_int64(s, 3, head.block.last);
    sqlite3_bind_int64(s, 4, head.block.count);
    sqlite3_bind_double(s, 5, (double)head.block.low);
    sqlite3_bind_double(s, 6, (double)head.block.high);
    sqlite3_bind_int64(s, 7, (int64_t)head.sum);
    sqlite3_bind_int64(s, 8, (int64_t)sparse_head_checksum(&head));
    sqlite3_bind_blob64(s, 9, bytes + HEAD_BYTES, size - HEAD_BYTES, SQLITE_STATIC);
    if (sqlite3_step(s) != SQLITE_ROW)
        abort();
    if (sparse_head_column(t, s, NULL, &read) == WW_OK && sparse_data_column(t, s, SPARSE_HEAD_COUNT, &read, words) == WW_OK)
        search(&read, words);
    sqlite3_finalize(s);
}

static void check_text(const uint8_t *bytes, size_t size)
{
    char *text = memory_copy_text((const char *)bytes, size);
    json_sparse read;
    if (!text)
        abort();
    if (json_sparse_read_text(text, WW_SPARSE_MAX, &read) == WW_OK) {
        const ww_sparse_vector vector = {read.count, read.indices, read.values};
        sparse_sorted sorted;
        if (sparse_sort("row", 0, &vector, &sorted) == WW_OK)
            sparse_sorted_free(&sorted);
    }
    json_sparse_free(&read);
    memory_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const sparse_tables t = {NULL, "main", "docs"};
    check_vector(&t, bytes, size);
    check_text(bytes, size);
    if (size >= HEAD_BYTES)
        check_block(&t, bytes, size);
    return 0;
}
