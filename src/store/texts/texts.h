/* The texts of rows, and the index that finds them by their words.
 *
 *   NAME_fts    a table of SQLite's FTS5 with one column, text, whose rowid is the row's handle. It has the texts themselves,
 * in NAME_fts_content, and the index over their words, in other tables of its own
 *
 * The first text of a collection creates it; a collection without texts has none. The writer changes it in the transaction that
 * changes the row, so rows and index are never out of step. The index can be made again from the texts.
 */
#ifndef WW_STORE_TEXTS_TEXTS_H
#define WW_STORE_TEXTS_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/vectors.h>

#include "store/sqlite_api.h"

/* A collection's table of texts, as a connection sees it. */
typedef struct text_tables {
    sqlite3 *db;
    const char *schema;
    const char *name; /* of the collection, as in its record */
} text_tables;

/* Does the table exist? WW_CORRUPT_FILE if a table of that name is not a store's. This and all functions below run in the
 * caller's transaction. */
ww_status texts_exist(const text_tables *t, bool *exist);

/* Makes the table. WW_UNSUPPORTED if this SQLite has no FTS5. */
ww_status texts_create(const text_tables *t);

/* Drops the table if it exists. */
ww_status texts_drop(const text_tables *t);

/* Renames the table, if it exists, with its collection. */
ww_status texts_rename(const text_tables *t, const char *name);

/* Makes the index again from the texts, if there are any. */
ww_status texts_rebuild(const text_tables *t);

/* Counts texts that belong to no row, texts that are not in the index, and index entries without a text. */
ww_status texts_check(const text_tables *t, int64_t *faults);

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

enum { TEXT_STATEMENTS = 2 };

/* Statements of a writer, prepared when they are first used. Starts zeroed. */
typedef struct text_writer {
    sqlite3_stmt *statements[TEXT_STATEMENTS];
    bool known, exist; /* exist: whether there is a table, if known */
} text_writer;

void text_writer_close(text_writer *w);
void text_writer_forget(text_writer *w); /* what is known about the table may have changed */
int64_t text_writer_preparations(const text_writer *w);

/* Replaces the text of a row; NULL: none. */
ww_status text_writer_set(text_writer *w, const text_tables *t, int64_t handle, const char *text);

/* The same for a row that has none yet. */
ww_status text_writer_insert(text_writer *w, const text_tables *t, int64_t handle, const char *text);

/* Removes all texts. */
ww_status text_writer_clear(text_writer *w, const text_tables *t);

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

/* Turns a text into an FTS5 expression: its words, separated by white space, each in quotes, joined by OR. Nothing in the text
 * is read as FTS5 syntax. From sqlite3_malloc(); NULL if out of memory; "" for a text without words. */
char *texts_expression(const char *text);

/* Counts the texts, their words, and the texts with each word of a search, as ww_collection_count_words() says. NULL: there are
 * no texts. */
ww_status texts_count(const text_tables *t, const char *text, ww_word_counts *counts);

/* Makes the functions by which texts are searched and counted known to a connection. Returns SQLite's code. */
int texts_register(sqlite3 *db);

/* Gives a statement the counts for ww_bm25(); NULL: those of the table. */
int texts_bind_counts(sqlite3_stmt *statement, int parameter, const ww_word_counts *counts);

/* Places that may be found: bit p%64 of word p/64 admits place p; NULL admits all. */
typedef struct text_search {
    const char *text;
    const ww_word_counts *counts; /* for the scores; NULL: those of the table */
    const uint64_t *admitted;
    int64_t admitted_places;
    int64_t limit;
} text_search;

/* What was found, at most `limit` of each, in the caller's arrays. Scores are BM25's, larger is better. */
typedef struct text_hits {
    int64_t *handles, *places;
    float *scores;
    int64_t count;
} text_hits;

/* Finds the rows whose texts contain a word of the search, best first, ties by handle. */
ww_status texts_search(const text_tables *t, const text_search *search, text_hits *hits);

#endif
