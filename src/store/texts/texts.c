/* The texts of rows and their index of words. */
#include "store/texts/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "store/schema.h"

#define INDEX_DECLARATION "USING fts5(text, tokenize='unicode61 remove_diacritics 2')"

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

/* Is the declaration ours? SQLite rewrites the name when the table is renamed, so it may be quoted in several ways. What
 * follows the name must be exactly ours. */
static bool is_ours(const char *sql)
{
    static const char begin[] = "CREATE VIRTUAL TABLE ", end[] = INDEX_DECLARATION;
    const size_t length = sql ? strlen(sql) : 0;
    return length > sizeof begin + sizeof end && strncmp(sql, begin, sizeof begin - 1) == 0 &&
           strcmp(sql + length - (sizeof end - 1), end) == 0 && strstr(sql, "USING fts5(") == sql + length - (sizeof end - 1);
}

/* The file may come from anybody, so the table is used only if its declaration is ours. */
ww_status texts_exist(const text_tables *t, bool *exist)
{
    sqlite3_stmt *found = NULL;
    ww_status status = schema_statement(
        t->db, &found, "SELECT sql FROM \"%w\".sqlite_schema WHERE lower(name) = lower(?1 || '_fts')", t->schema);
    *exist = false;
    if (status != WW_OK)
        return status;
    sqlite3_bind_text(found, 1, t->name, -1, SQLITE_STATIC);
    const int code = sqlite3_step(found);
    *exist = code == SQLITE_ROW && is_ours((const char *)sqlite3_column_text(found, 0));
    if (code == SQLITE_ROW && !*exist)
        status =
            ww_fail(WW_CORRUPT_FILE, "collection '%s': %s_fts is not the table of texts that a store makes", t->name, t->name);
    else if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_finalize(found);
    return status;
}

ww_status texts_create(const text_tables *t)
{
    sqlite3_stmt *asked = NULL;
    ww_status status = schema_statement(t->db, &asked, "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'");
    const bool has = status == WW_OK && sqlite3_step(asked) == SQLITE_ROW;
    sqlite3_finalize(asked);
    if (status == WW_OK && !has)
        return ww_fail(WW_UNSUPPORTED, "collection '%s': texts need a SQLite with FTS5, and this one (%s) was built without it",
                       t->name, sqlite3_libversion());
    return status == WW_OK ? schema_run(t->db, "CREATE VIRTUAL TABLE \"%w\".\"%w_fts\" " INDEX_DECLARATION, t->schema, t->name)
                           : status;
}

/* Resets the index of a damaged table to that of a new one, so that FTS5 can open the table: an empty structure and the version
 * of its format. The texts stay. */
static ww_status index_reset(const text_tables *t)
{
    static const char *const STEPS[] = {
        "CREATE TABLE IF NOT EXISTS \"%w\".\"%w_fts_config\"(k PRIMARY KEY, v) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS \"%w\".\"%w_fts_data\"(id INTEGER PRIMARY KEY, block BLOB)",
        "INSERT OR REPLACE INTO \"%w\".\"%w_fts_config\" VALUES('version', 4)",
        "INSERT OR REPLACE INTO \"%w\".\"%w_fts_data\" VALUES(1, x''), (10, x'00000000000000')",
    };
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < sizeof STEPS / sizeof *STEPS; i++)
        status = schema_run(t->db, STEPS[i], t->schema, t->name);
    return status;
}

static ww_status drop(const text_tables *t)
{
    return schema_run(t->db, "DROP TABLE IF EXISTS \"%w\".\"%w_fts\"", t->schema, t->name);
}

ww_status texts_drop(const text_tables *t)
{
    ww_status status = drop(t);
    if (status != WW_CORRUPT_FILE)
        return status;
    status = index_reset(t);
    return status == WW_OK ? drop(t) : status;
}

ww_status texts_rename(const text_tables *t, const char *name)
{
    bool exist = false;
    const ww_status status = texts_exist(t, &exist);
    return status == WW_OK && exist
               ? schema_run(t->db, "ALTER TABLE \"%w\".\"%w_fts\" RENAME TO \"%w_fts\"", t->schema, t->name, name)
               : status;
}

static ww_status rebuild(const text_tables *t)
{
    return schema_run(t->db, "INSERT INTO \"%w\".\"%w_fts\"(\"%w_fts\") VALUES('rebuild')", t->schema, t->name, t->name);
}

ww_status texts_rebuild(const text_tables *t)
{
    bool exist = false;
    ww_status status = texts_exist(t, &exist);
    if (status != WW_OK || !exist)
        return status;
    status = rebuild(t);
    if (status != WW_CORRUPT_FILE)
        return status;
    status = index_reset(t);
    return status == WW_OK ? rebuild(t) : status;
}

/* FTS5 keeps the length of each indexed text in a separate table, which reveals entries without a text. Entry 1 of its data has
 * the averages and always exists. */
ww_status texts_check(const text_tables *t, int64_t *faults)
{
    sqlite3_stmt *s = NULL;
    bool exist = false;
    ww_status status = texts_exist(t, &exist);
    *faults = 0;
    if (status != WW_OK || !exist)
        return status;
    status = schema_statement(
        t->db, &s,
        "SELECT (SELECT count(*) FROM \"%w\".\"%w_fts_content\" WHERE id NOT IN (SELECT handle FROM \"%w\".\"%w_rows\")) + "
        "(SELECT count(*) FROM \"%w\".\"%w_fts_content\" WHERE id NOT IN (SELECT id FROM \"%w\".\"%w_fts_docsize\")) + "
        "(SELECT count(*) FROM \"%w\".\"%w_fts_docsize\" WHERE id NOT IN (SELECT id FROM \"%w\".\"%w_fts_content\")) + "
        "(SELECT count(*) = 0 FROM \"%w\".\"%w_fts_data\" WHERE id = 1)",
        t->schema, t->name, t->schema, t->name, t->schema, t->name, t->schema, t->name, t->schema, t->name, t->schema, t->name,
        t->schema, t->name);
    if (status != WW_OK)
        return status;
    const int code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *faults = sqlite3_column_int64(s, 0);
    else
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_finalize(s);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

typedef enum text_statement { INSERT_TEXT, DELETE_TEXT } text_statement;

/* Each takes the database and the collection, in this order, once. */
static const char *const TEXTS[TEXT_STATEMENTS] = {
    [INSERT_TEXT] = "INSERT INTO \"%w\".\"%w_fts\"(rowid, text) VALUES(?1, ?2)",
    [DELETE_TEXT] = "DELETE FROM \"%w\".\"%w_fts\" WHERE rowid = ?1",
};

void text_writer_close(text_writer *w)
{
    for (int i = 0; i < TEXT_STATEMENTS; i++)
        sqlite3_finalize(w->statements[i]);
    *w = (text_writer){0};
}

void text_writer_forget(text_writer *w)
{
    w->known = false;
}

int64_t text_writer_preparations(const text_writer *w)
{
    int64_t count = 0;
    for (int i = 0; i < TEXT_STATEMENTS; i++)
        count += sqlite_preparations(w->statements[i]);
    return count;
}

static ww_status ready(text_writer *w, const text_tables *t, text_statement which)
{
    return w->statements[which] ? WW_OK : schema_statement(t->db, &w->statements[which], TEXTS[which], t->schema, t->name);
}

static ww_status run(text_writer *w, const text_tables *t, text_statement which, int64_t handle, const char *text)
{
    const ww_status status = ready(w, t, which);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[which];
    sqlite3_bind_int64(s, 1, handle);
    if (text)
        sqlite3_bind_text64(s, 2, text, strlen(text), SQLITE_STATIC, SQLITE_UTF8);
    return schema_step(s);
}

static ww_status table_known(text_writer *w, const text_tables *t)
{
    if (w->known)
        return WW_OK;
    const ww_status status = texts_exist(t, &w->exist);
    w->known = status == WW_OK;
    return status;
}

ww_status text_writer_insert(text_writer *w, const text_tables *t, int64_t handle, const char *text)
{
    ww_status status = text ? table_known(w, t) : WW_OK;
    if (status != WW_OK || !text)
        return status;
    if (!w->exist) {
        status = texts_create(t);
        w->exist = w->known = status == WW_OK;
    }
    return status == WW_OK ? run(w, t, INSERT_TEXT, handle, text) : status;
}

ww_status text_writer_set(text_writer *w, const text_tables *t, int64_t handle, const char *text)
{
    ww_status status = table_known(w, t);
    if (status == WW_OK && w->exist)
        status = run(w, t, DELETE_TEXT, handle, NULL);
    return status == WW_OK ? text_writer_insert(w, t, handle, text) : status;
}

ww_status text_writer_clear(text_writer *w, const text_tables *t)
{
    const ww_status status = table_known(w, t);
    return status == WW_OK && w->exist ? schema_run(t->db, "DELETE FROM \"%w\".\"%w_fts\"", t->schema, t->name) : status;
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

static const char WHITE[] = " \t\n\v\f\r";

char *texts_expression(const char *text)
{
    sqlite3_str *expression = sqlite3_str_new(NULL);
    int words = 0;
    for (text += strspn(text, WHITE); *text && words < WW_MATCH_WORDS_MAX; text += strspn(text, WHITE), words++) {
        const size_t length = strcspn(text, WHITE);
        sqlite3_str_appendall(expression, words > 0 ? " OR \"" : "\"");
        for (size_t i = 0; i < length; i++)
            sqlite3_str_append(expression, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
        sqlite3_str_append(expression, "\"", 1);
        text += length;
    }
    const int code = sqlite3_str_errcode(expression);
    char *made = sqlite3_str_finish(expression);
    return made || code != SQLITE_OK ? made : sqlite3_mprintf("");
}

static bool is_admitted(const text_search *s, int64_t place)
{
    return !s->admitted || (place >= 0 && place < s->admitted_places && s->admitted[place / 64] >> (place % 64) & 1);
}

static ww_status collect(const text_tables *t, sqlite3_stmt *found, const text_search *search, text_hits *hits)
{
    int code = SQLITE_DONE;
    while (hits->count < search->limit && (code = sqlite3_step(found)) == SQLITE_ROW) {
        const int64_t place = sqlite3_column_int64(found, 1);
        if (!is_admitted(search, place))
            continue;
        hits->handles[hits->count] = sqlite3_column_int64(found, 0);
        hits->places[hits->count] = place;
        hits->scores[hits->count++] = (float)sqlite3_column_double(found, 2);
    }
    return code == SQLITE_ROW || code == SQLITE_DONE ? WW_OK : sqlite_failed(t->db, code, t->name);
}

ww_status texts_search(const text_tables *t, const text_search *search, text_hits *hits)
{
    sqlite3_stmt *found = NULL;
    hits->count = 0;
    char *expression = texts_expression(search->text);
    if (!expression)
        return ww_fail(WW_OUT_OF_MEMORY, "no memory for the words of a search");
    ww_status status = WW_OK;
    if (expression[0] && search->limit > 0)
        status = schema_statement(t->db, &found,
                                  "SELECT f.rowid, r.place, ww_bm25(f.\"%w_fts\", ?2) AS score FROM \"%w\".\"%w_fts\" AS f "
                                  "CROSS JOIN \"%w\".\"%w_rows\" AS r ON r.handle = f.rowid WHERE f.\"%w_fts\" MATCH ?1 "
                                  "ORDER BY score DESC, f.rowid",
                                  t->name, t->schema, t->name, t->schema, t->name, t->name);
    if (status == WW_OK && found) {
        sqlite3_bind_text(found, 1, expression, -1, SQLITE_STATIC);
        (void)texts_bind_counts(found, 2, search->counts);
        status = collect(t, found, search, hits);
    }
    sqlite3_finalize(found);
    sqlite3_free(expression);
    return status;
}

/* ---- counting ------------------------------------------------------------------------------------------------------------ */

/* Reads what the only row of a statement has in its only column; 0 and "" if there is no row. */
static ww_status read_row(const text_tables *t, sqlite3_stmt *s, int64_t *number, int64_t *second)
{
    const int code = sqlite3_step(s);
    const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    const char *space = text ? strchr(text, ' ') : NULL;
    *number = text ? strtoll(text, NULL, 10) : 0;
    if (second)
        *second = space ? strtoll(space, NULL, 10) : 0;
    return code == SQLITE_ROW || code == SQLITE_DONE ? WW_OK : sqlite_failed(t->db, code, t->name);
}

/* Counts the texts with a word. */
static ww_status count_word(const text_tables *t, sqlite3_stmt *s, const char *text, size_t length, int64_t *found)
{
    char *word = sqlite3_mprintf("%.*s", (int)length, text), *expression = word ? texts_expression(word) : NULL;
    sqlite3_free(word);
    if (!expression)
        return ww_fail(WW_OUT_OF_MEMORY, "no memory for the words of a search");
    sqlite3_bind_text(s, 1, expression, -1, sqlite3_free);
    const ww_status status = read_row(t, s, found, NULL);
    sqlite3_reset(s);
    return status;
}

/* Counts for each word of the text; without a statement there are none. */
static ww_status count_words(const text_tables *t, sqlite3_stmt *s, const char *text, ww_word_counts *counts)
{
    const int64_t room = counts->count;
    ww_status status = WW_OK;
    counts->count = 0;
    for (text += strspn(text, WHITE); *text && counts->count < WW_MATCH_WORDS_MAX; text += strspn(text, WHITE)) {
        const size_t length = strcspn(text, WHITE);
        if (counts->count == room)
            return ww_fail(WW_OUT_OF_RANGE, "there is room for the counts of %lld words; the text has more", (long long)room);
        int64_t *found = &counts->found[counts->count++];
        *found = 0;
        if (s)
            status = count_word(t, s, text, length, found);
        if (status != WW_OK)
            return status;
        text += length;
    }
    return WW_OK;
}

ww_status texts_count(const text_tables *t, const char *text, ww_word_counts *counts)
{
    sqlite3_stmt *sizes = NULL, *words = NULL;
    counts->texts = counts->words = 0;
    if (!t)
        return count_words(NULL, NULL, text, counts);
    ww_status status = schema_statement(t->db, &sizes, "SELECT ww_text_totals(\"%w_fts\") FROM \"%w\".\"%w_fts\" LIMIT 1",
                                        t->name, t->schema, t->name);
    if (status == WW_OK)
        status = read_row(t, sizes, &counts->texts, &counts->words);
    sqlite3_finalize(sizes);
    if (status == WW_OK)
        status = schema_statement(t->db, &words, "SELECT count(*) FROM \"%w\".\"%w_fts\" AS f WHERE f.\"%w_fts\" MATCH ?1",
                                  t->schema, t->name, t->name);
    if (status == WW_OK)
        status = count_words(t, words, text, counts);
    sqlite3_finalize(words);
    return status;
}
