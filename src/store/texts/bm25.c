/* BM25 as a function of FTS5, because FTS5's own takes what it counts from one table only: a collection that is spread over
 * several needs the counts of all. Where none are given it counts in its table, with the same formula, so that both give the
 * same bits; the logarithm is ours, so that every machine does. */
#include <math.h>
#include <string.h>

#include <warpwave/vectors.h>

#include "arithmetic/math/f64.h"
#include "store/texts/texts.h"

static const double K = 1.2, B = 0.75; /* as in FTS5 */
static const double IDF_MIN = 1e-6;    /* of a word that more than half of the texts have */
static const char COUNTS[] = "ww_word_counts";

/* Of one search. */
typedef struct word_weights {
    double average; /* words of a text */
    int count;
    double *idf, *frequencies;
} word_weights;

static int count_text(const Fts5ExtensionApi *api, Fts5Context *fts, void *user)
{
    (void)api;
    (void)fts;
    ++*(int64_t *)user;
    return SQLITE_OK;
}

/* Counts in the table. */
static int count_here(const Fts5ExtensionApi *api, Fts5Context *fts, int word, int64_t *found)
{
    *found = 0;
    return api->xQueryPhrase(fts, word, found, count_text);
}

static int weights_fill(const Fts5ExtensionApi *api, Fts5Context *fts, const ww_word_counts *counts, word_weights *w)
{
    sqlite3_int64 texts = counts ? counts->texts : 0, words = counts ? counts->words : 0;
    int code = counts ? SQLITE_OK : api->xRowCount(fts, &texts);
    if (code == SQLITE_OK && !counts)
        code = api->xColumnTotalSize(fts, 0, &words);
    w->average = (double)words / (double)texts;
    for (int i = 0; i < w->count && code == SQLITE_OK; i++) {
        int64_t found = 0;
        if (counts)
            found = counts->found[i];
        else
            code = count_here(api, fts, i, &found);
        const double idf = canon_log_f64(((double)texts - (double)found + 0.5) / ((double)found + 0.5));
        w->idf[i] = idf > 0.0 ? idf : IDF_MIN;
    }
    return code;
}

/* The weights of the words, computed for the first row of a search. NULL: `code` says why not. */
static word_weights *weights_of(const Fts5ExtensionApi *api, Fts5Context *fts, const ww_word_counts *counts, int *code)
{
    word_weights *w = api->xGetAuxdata(fts, 0);
    if (w)
        return w;
    const int count = api->xPhraseCount(fts);
    const size_t bytes = (size_t)count * sizeof(double);
    if (counts && counts->count != count) {
        *code = SQLITE_RANGE;
        return NULL;
    }
    w = sqlite3_malloc64(sizeof *w + 2 * bytes);
    if (!w) {
        *code = SQLITE_NOMEM;
        return NULL;
    }
    *w = (word_weights){.count = count, .idf = (double *)(w + 1), .frequencies = (double *)(w + 1) + count};
    *code = weights_fill(api, fts, counts, w);
    if (*code != SQLITE_OK) {
        sqlite3_free(w);
        return NULL;
    }
    *code = api->xSetAuxdata(fts, w, sqlite3_free); /* frees it if it fails */
    return *code == SQLITE_OK ? w : NULL;
}

/* ww_bm25(table, counts): the row's score, larger is better. */
static void score(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *context, int count, sqlite3_value **values)
{
    int code = SQLITE_OK, instances = 0, size = 0;
    double sum = 0.0;
    word_weights *w = weights_of(api, fts, count > 0 ? sqlite3_value_pointer(values[0], COUNTS) : NULL, &code);
    if (w) {
        memset(w->frequencies, 0, (size_t)w->count * sizeof *w->frequencies);
        code = api->xInstCount(fts, &instances);
    }
    for (int i = 0; i < instances && code == SQLITE_OK; i++) {
        int word = 0, column = 0, place = 0;
        code = api->xInst(fts, i, &word, &column, &place);
        if (code == SQLITE_OK)
            w->frequencies[word] += 1.0;
    }
    if (code == SQLITE_OK)
        code = api->xColumnSize(fts, 0, &size);
    for (int i = 0; w && i < w->count && code == SQLITE_OK; i++) {
        const double f = w->frequencies[i];
        sum += w->idf[i] * ((f * (K + 1.0)) / (f + K * (1.0 - B + B * (double)size / w->average)));
    }
    if (code == SQLITE_OK)
        sqlite3_result_double(context, sum);
    else if (code == SQLITE_RANGE)
        sqlite3_result_error(context, "match->counts does not have one count for each word", -1);
    else
        sqlite3_result_error_code(context, code);
}

/* ww_text_totals(table): how many texts there are, and how many words in them, as "texts words". */
static void totals(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *context, int count, sqlite3_value **values)
{
    sqlite3_int64 texts = 0, words = 0;
    (void)count;
    (void)values;
    int code = api->xRowCount(fts, &texts);
    if (code == SQLITE_OK)
        code = api->xColumnTotalSize(fts, 0, &words);
    if (code != SQLITE_OK) {
        sqlite3_result_error_code(context, code);
        return;
    }
    char *text = sqlite3_mprintf("%lld %lld", texts, words);
    sqlite3_result_text(context, text, -1, sqlite3_free);
}

int texts_register(sqlite3 *db)
{
    sqlite3_stmt *asked = NULL;
    fts5_api *api = NULL;
    int code = sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &asked, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_pointer(asked, 1, &api, "fts5_api_ptr", NULL);
        (void)sqlite3_step(asked);
        code = sqlite3_finalize(asked);
    }
    if (!api) /* without FTS5 there are no texts */
        return (code & 0xff) == SQLITE_NOMEM ? code : SQLITE_OK;
    code = api->xCreateFunction(api, "ww_bm25", NULL, score, NULL);
    return code == SQLITE_OK ? api->xCreateFunction(api, "ww_text_totals", NULL, totals, NULL) : code;
}

int texts_bind_counts(sqlite3_stmt *statement, int parameter, const ww_word_counts *counts)
{
    return sqlite3_bind_pointer(statement, parameter, (void *)(uintptr_t)counts, COUNTS, NULL);
}
