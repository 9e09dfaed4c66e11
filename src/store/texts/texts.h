/* The texts of rows, and the index that finds them by their words.
 *
 *   NAME_fts    a table of SQLite's FTS5 with one column, text, whose rowid is the row's handle. It has the texts themselves,
 * in NAME_fts_content, and the index over their words, in other tables of its own
 *
 * It is made with the first text of a collection; a collection without texts has none. The writer changes it in the transaction
 * that changes the row, so rows and index are never out of step. The index can be made again from the texts.
 */
#ifndef WW_STORE_TEXTS_TEXTS_H
#define WW_STORE_TEXTS_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/sqlite_api.h"

/* A collection's table of texts, as a connection sees it. */
typedef struct text_tables {
    sqlite3 *db;
    const char *schema;
    const char *name; /* of the collection, as its record has it */
} text_tables;

enum { TEXT_WORDS_MAX = 1024 }; /* of a search */

/* Whether it is there. WW_CORRUPT_FILE if it is not one that a store makes. In a transaction of the caller's, as all that
 * follow. */
ww_status texts_exist(const text_tables *t, bool *exist);

/* Drops it, if it is there. */
ww_status texts_drop(const text_tables *t);

/* Gives it the name that belongs to another name of the collection, if it is there. */
ww_status texts_rename(const text_tables *t, const char *name);

/* Makes the index again from the texts, if there are any. */
ww_status texts_rebuild(const text_tables *t);

/* Looks for texts that belong to no row and for texts and entries of the index that do not belong together; gives how many. */
ww_status texts_check(const text_tables *t, int64_t *faults);

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

enum { TEXT_STATEMENTS = 2 };

/* Statements of a writer, prepared when they are first used. Begins zeroed. */
typedef struct text_writer {
    sqlite3_stmt *statements[TEXT_STATEMENTS];
    bool known, exist; /* whether there is a table, if that is known */
} text_writer;

void text_writer_close(text_writer *w);
void text_writer_forget(text_writer *w); /* what is known of the table may not be true any more */
int64_t text_writer_preparations(const text_writer *w);

/* Gives a row a text in place of the one that it has; NULL: none. */
ww_status text_writer_set(text_writer *w, const text_tables *t, int64_t handle, const char *text);

/* The same for a row that has none yet. */
ww_status text_writer_insert(text_writer *w, const text_tables *t, int64_t handle, const char *text);

/* Removes all texts. */
ww_status text_writer_clear(text_writer *w, const text_tables *t);

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

/* Writes a text as an expression of FTS5: its words, between white space, each in quotes, joined by OR. Nothing in the text is
 * read as FTS5's own language. From sqlite3_malloc(); NULL without memory. "" for a text without words. */
char *texts_expression(const char *text);

/* Places that may be found: bit p%64 of word p/64 admits place p; NULL admits all. */
typedef struct text_search {
    const char *text;
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

/* Finds the rows whose texts have a word of the text, best first, equal ones by handle. */
ww_status texts_search(const text_tables *t, const text_search *search, text_hits *hits);

#endif
