/* Collections: vectors with ids and payloads, searched exactly.
 *
 * A collection lives on one device, and can move to another. A vector in it is a row, numbered from 0 in order of insertion;
 * results name rows, and rows lead back to ids and payloads. The same collection gives the same rows with the same score bits
 * on every device.
 *
 * Threads: any number may read (search, query, get, lookup, describe, iterate) at once; a call that writes waits for them and
 * they for it. A child of fork() cannot use its parent's collections: every call gives WW_OTHER_PROCESS at once, count 0, next
 * -1, and destroying one does nothing; results can be read and freed there. A call that fails leaves the collection as it was.
 * Rows and queries are memory of the host, or tensors (tensor.h): on the collection's device those stay there.
 * A progress callback runs while the collection is locked: it must not call that collection.
 */
#ifndef WARPWAVE_VECTORS_H
#define WARPWAVE_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/results.h>
#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_DIM_MAX      65536
#define WW_ID_BYTES_MAX 256                 /* not counting the final NUL */
#define WW_K_MAX        2048                /* neighbours a query can ask for */
#define WW_ROWS_MAX     INT64_C(4294967295) /* row numbers fit 32 bits beside a score in one sort key */

typedef enum ww_metric {
    WW_COSINE = 0, /* dot / (|a| |b|), 0 where a norm is 0; larger is nearer */
    WW_L2 = 1,     /* euclidean distance; smaller is nearer */
    WW_DOT = 2     /* inner product; larger is nearer */
} ww_metric;

/* The screen: 8-bit copies of the rows, with which a search finds out which rows cannot be among the nearest, and computes
 * exact scores of the others only. It changes the speed of a search, never its results. */
typedef enum ww_screen {
    WW_SCREEN_INT8 = 0, /* a byte a number and 8 bytes a row more on a GPU, 26% for 128 numbers; half as much again on a CPU */
    WW_SCREEN_NONE = 1  /* every search computes every score */
} ww_screen;

/* What a collection's rows are stored as, on the device and in a host copy. They are scored as the f32 values that they are, to
 * the same bits as an f32 collection of these values. Numbers that come as f32 are rounded to the nearest f16 or bf16, ties to
 * even; i8 and u8 take integers that they hold. Queries are f32 in any case. */
typedef enum ww_vector_type {
    WW_VECTOR_F32 = 0,
    WW_VECTOR_F16 = 1,  /* half of the memory, 11 bits of precision, up to 65504 */
    WW_VECTOR_BF16 = 2, /* half of the memory, 8 bits, the range of f32 */
    WW_VECTOR_I8 = 3,   /* a quarter; -128 to 127. Rows are their own codes: a screen takes 8 bytes a row, and no second copy */
    WW_VECTOR_U8 = 4    /* a quarter; 0 to 255; likewise */
} ww_vector_type;

/* Where the rows themselves are, where that is not the device's own memory in any case. Results are the same. */
typedef enum ww_row_place {
    WW_ROWS_DEVICE = 0,
    /* In pinned memory of the host, and only codes, norms and live bits on the device: a quarter of the bytes of f32, half of
     * f16. A search fetches the rows that the screen keeps over the bus. For f32, f16 and bf16 rows with a screen. On the CPU
     * it is the same as the other. A lost GPU does not take such rows with it. */
    WW_ROWS_HOST = 1
} ww_row_place;

typedef struct ww_collection ww_collection;
struct ww_tensor; /* tensor.h */

typedef struct ww_collection_config {
    size_t struct_size;
    const char *name; /* for messages; copied; NULL is "" */
    int32_t dim;      /* 1..WW_DIM_MAX */
    ww_metric metric;
    /* Not 0: the host keeps the vectors as well, dim floats a row that is there or has room, so that a collection whose GPU is
     * lost can move to another device. On the CPU, where they are in the host's memory anyway, it costs nothing. */
    int32_t keep_host_copy;
    ww_screen screen;
    ww_vector_type type; /* of the rows */
    ww_row_place rows;   /* where they are */
} ww_collection_config;

/* Rows to add. Everything stays the caller's and is read only during the call. */
typedef struct ww_rows {
    size_t struct_size;
    int64_t count;
    int32_t dim;            /* of these vectors; must be the collection's */
    const float *vectors;   /* count x dim, one row after the other */
    int64_t row_stride;     /* floats from one row to the next; 0 means dim */
    const char *const *ids; /* count texts of 1..WW_ID_BYTES_MAX bytes of UTF-8; NULL: each row's handle in decimal, which costs
                             * nothing while no row has another id. In a new collection that is the row's number; a
                             * number is never given twice, and one that the caller took as id is left out */
    const char *const *payloads; /* count JSON texts of at most 256 MiB and 1,000 brackets deep, a NULL among them is none;
                                  * NULL: no payloads */
    ww_progress progress;        /* in rows; may be NULL */
    void *progress_user;
    /* In place of `vectors`, which is NULL then: rows that are in the collection's type already, count x dim elements, with
     * row_stride in elements. `type` says what they are, and must be the collection's. NULL: there are `vectors`. */
    const void *elements;
    ww_vector_type type;
    /* In place of both, which are NULL then: a tensor (tensor.h) of shape [count, dim], or [dim] for one row, of f32 or of the
     * collection's type, with any strides. Count and dim may be 0 then, and row_stride is not looked at. One that is on the
     * collection's device is added there, without passing through the host (but f32 for i8 and u8 rows, and rows of a store,
     * which go to its file); any other is copied. Waits for what was queued on it. NULL: there is no tensor. */
    const struct ww_tensor *tensor;
    /* Of a collection in a store, else refused: count texts of UTF-8, at most 256 MiB each, that are kept with the rows and
     * found by their words (ww_query.match); a NULL among them is none. NULL: no texts. */
    const char *const *texts;
    /* Of a collection in a store, else refused: ids of rows that the same transaction removes before it writes these rows, so
     * that a crash leaves both done or neither. Ids that are not there are no error. */
    const char *const *discard_ids;
    int64_t discard_count;
} ww_rows;

/* What a search did, over all its queries; a row counts once for each query. It may differ from run to run and from device to
 * device, the results do not: they are exact in any case. */
typedef struct ww_search_stats {
    size_t struct_size;       /* set by ww_search_stats_default() */
    int64_t rows_screened;    /* tested by their codes; 0 where the device took no screen */
    int64_t rows_kept;        /* of them, not excluded by that */
    int64_t rows_scored;      /* whose exact score was computed */
    int64_t fallback_queries; /* for which some rows were not screened, because too many had been kept */
    /* A row is discarded when its score is certainly worse than a threshold. This is how much better than that threshold the
     * k-th result was in the end, the least of all queries and thresholds: 0 or more says that no discarded row could have
     * been a result. +inf if no row was discarded. A query for which it would be less is searched again without thresholds
     * of codes, and counted below. */
    float certificate;
    /* Queries that were searched again so: their k-th result was worse than a threshold, or was not there at all. That proves
     * a defect, of the memory, the device or the library; the results are right all the same. Please report it. */
    int64_t repeated_queries;
    /* Of queries with nprobe (ivf.h): lists that were read, rows in them, and bytes of their codes, or of the rows themselves
     * without a screen. Lists and rows are equal on every device. A device that cannot read lists, without codes or without
     * memory, counts the bytes of all rows, which it reads in their place. 0 for queries that were answered exactly. */
    int64_t lists_read;
    int64_t list_rows_read;
    int64_t list_bytes_read;
} ww_search_stats;

/* A value for a parameter of a `where`: bound to it, never pasted into the text. */
typedef enum ww_value_type {
    WW_VALUE_NULL = 0,
    WW_VALUE_INTEGER = 1,
    WW_VALUE_REAL = 2,
    WW_VALUE_TEXT = 3,
    WW_VALUE_LIST = 4 /* `text` is a JSON array; by name, and for IN alone: "payload->>'$.lang' IN :langs" */
} ww_value_type;

typedef struct ww_parameter {
    const char
        *name; /* ":lang", "@lang", "$lang" or "?1", as the text has it; NULL: the parameter with this place in the list */
    ww_value_type type;
    int64_t integer; /* the field that `type` names counts */
    double real;
    const char *text; /* NUL-terminated UTF-8 */
} ww_parameter;

/* What a query finds. */
typedef enum ww_query_mode {
    WW_QUERY_NEAREST = 0, /* the k nearest rows of each query */
    WW_QUERY_RANGE = 1    /* all rows within a bound of each query, any number of them */
} ww_query_mode;

/* What a search by words does beside, or in place of, one by vectors. */
typedef enum ww_match_mode {
    WW_MATCH_HYBRID = 0, /* both: the best of each are fused into one list */
    WW_MATCH_TEXT = 1    /* words only: the query needs no vectors, and scores are those of BM25, larger is better */
} ww_match_mode;

struct ww_fuse; /* ranking.h */

/* A search by words, of a collection in a store whose rows have texts (ww_rows.texts). A text is never read as a language of
 * queries: its words, between white space, are looked for as they are, and a row that has one of them is found. The best by
 * BM25 come first, equal ones by handle. Words past the first 1,024 are not looked for. */
typedef struct ww_match {
    size_t struct_size;
    const char *const *texts; /* one for each query, NUL-terminated UTF-8 */
    ww_match_mode mode;
    const struct ww_fuse *fuse; /* how the parts become one list; its limit is not looked at, k is. NULL: the default */
    int64_t candidates;         /* hits of each part that are fused, 0 to WW_K_MAX; 0 means 100, or k if that is more */
} ww_match;

/* A search: the one description of it, for collections in memory, in stores and over ranks. Everything stays the caller's and
 * is read only during the call. */
typedef struct ww_query {
    size_t struct_size;
    const float *queries;
    int64_t query_count;
    int64_t query_stride; /* floats from one query to the next; 0 means dim */
    /* In place of `queries`, which is NULL then, as with ww_rows: [query_count, dim] or [dim], of f32, f16, bf16, i8 or u8.
     * query_count and dim may be 0 then, and query_stride is not looked at. NULL: there are `queries`. */
    const struct ww_tensor *query_tensor;
    int32_t dim; /* of the queries; must be the collection's */
    ww_query_mode mode;
    int32_t k; /* WW_QUERY_NEAREST: 0..WW_K_MAX; 0 finds nothing, and is allowed. Otherwise 0 */
    /* WW_QUERY_RANGE, otherwise 0. l2: the radius, rows at most this far away; cosine and dot: rows with at least this score.
     */
    float bound;
    int64_t limit;        /* WW_QUERY_RANGE, otherwise 0: hits of each query at most, 0..WW_ROWS_MAX, the best; 0 only counts */
    const uint64_t *mask; /* bit r%64 of word r/64 admits row r; NULL admits all */
    int64_t mask_rows;    /* rows the mask covers, as ww_collection_info.mask_rows says; rows past it are not admitted; with
                           * a mask 0 is refused, unless the collection has no rows */
    /* Of a collection in a store (store.h), else refused: an SQL expression over id, handle and payload, as in
     * "payload->>'$.lang' = :lang". Only rows for which it is true are found, and of them the nearest. NULL: all rows. */
    const char *where;
    const ww_parameter *parameters;
    int64_t parameter_count;
    /* Conditions on the fields of payloads as JSON, {"year": {"$gt": 2000}, "lang": {"$in": ["en", "de"]}}: only rows that meet
     * them are found. In a store and in memory; beside `where` and `mask` all must hold. NULL: all rows. In SQL it is the
     * function ww_filter(payload, filter). */
    const char *filter;
    uint32_t fetch;       /* WW_FETCH_IDS and the others, added up; 0: rows and scores only */
    ww_progress progress; /* in queries; may be NULL */
    void *progress_user;
    /* Is filled in if the search succeeds; may be NULL. For a range the certificate is 0 where the screen discarded rows, since
     * it is the bound that they were discarded by. */
    ww_search_stats *stats;
    /* Of a collection with an index (ivf.h), else refused: reads the rows of this many lists, those with the nearest centroids.
     * More are read where they hold fewer than min(k, matching rows) rows; nlist or more is the exact search, and so is a mask
     * or filter that admits no more rows than nprobe lists have on average. 0: the exact search. Only for WW_QUERY_NEAREST. */
    int64_t nprobe;
    /* Of a collection in a store, else refused, and with WW_QUERY_NEAREST: finds rows by the words of their texts as well, or
     * only by those. Scores are then those of the fusion or of BM25; ww_results_parts() has the ranks and scores of each part.
     * `mask`, `where` and `filter` hold for both parts. NULL: vectors only. */
    const ww_match *match;
    /* In place of nprobe, after ww_collection_calibrate(), else refused: reads as many lists as this recall needs, more than 0
     * and at most 1. 1 is the exact search. 0: not asked for. */
    float recall;
} ww_query;

/* Rows to get at once: by ids, by handles, or, with neither, all live rows in order. */
typedef struct ww_get {
    size_t struct_size;
    int64_t count;          /* entries of the list; without a list the most rows to get, WW_ROWS_MAX for all */
    const char *const *ids; /* count texts, or NULL */
    const int64_t *handles; /* count handles, or NULL */
    uint32_t fetch;         /* as in ww_query */
} ww_get;

typedef struct ww_collection_info {
    size_t struct_size;
    int32_t dim;
    ww_metric metric;
    int64_t rows_live;
    int64_t rows_removed;  /* removed or replaced, not yet reclaimed by compact */
    int64_t rows_capacity; /* rows that fit before the next segment is allocated */
    int64_t segments;
    int64_t bytes_rows;     /* on the device: padded rows, norms, masks */
    int64_t bytes_ids;      /* on the host: ids and the table that finds them */
    int64_t bytes_payloads; /* on the host */
    char device[32];
    int64_t bytes_host_copy; /* on the host: the vectors again, if that was asked for and the device is not the CPU */
    ww_screen screen;
    int64_t bytes_screen;    /* on the device: codes, scales, residuals */
    int64_t bytes_handles;   /* on the host: handles of rows that do not simply follow one another */
    int64_t mask_rows;       /* rows that a mask has to cover to speak of them all: live and removed */
    ww_vector_type type;     /* of the rows */
    ww_row_place rows;       /* as the config said */
    int64_t bytes_rows_host; /* on the host, pinned: padded rows of a collection that has them there; not in bytes_rows */
    char members[512];       /* on a group of devices: the rows that each member has, "cuda:0 750016, cpu 249984"; else empty */
} ww_collection_info;

/* What of a row can be damaged: bits of ww_damage_report. */
typedef enum ww_damage {
    WW_DAMAGE_VECTOR = 1,    /* the vector is not that of the host copy (keep_host_copy), or its padding is not zero */
    WW_DAMAGE_NORM = 2,      /* the norm is not what the vector gives; so the next three */
    WW_DAMAGE_CODES = 4,     /* of the screen */
    WW_DAMAGE_SCALE = 8,     /* of the codes */
    WW_DAMAGE_RESIDUAL = 16, /* what coding lost */
    WW_DAMAGE_LIVE = 32      /* the device marks a removed row as live, or the other way round */
} ww_damage;

/* What ww_collection_check() found. */
typedef struct ww_damage_report {
    size_t struct_size;    /* set by ww_damage_report_default() */
    int64_t rows_checked;  /* live and removed */
    int64_t rows_damaged;  /* of them */
    int64_t first_row;     /* the first that is, -1 if none is */
    uint32_t first_damage; /* WW_DAMAGE_... of that row, added up */
    uint32_t damage;       /* of all rows */
} ww_damage_report;

/* Every default but first_row is zero; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_collection_config_init(void *value, size_t struct_size);
WW_API ww_status ww_rows_init(void *value, size_t struct_size);
WW_API ww_status ww_query_init(void *value, size_t struct_size);
WW_API ww_status ww_match_init(void *value, size_t struct_size);
WW_API ww_status ww_get_init(void *value, size_t struct_size);
WW_API ww_status ww_search_stats_init(void *value, size_t struct_size);
WW_API ww_status ww_collection_info_init(void *value, size_t struct_size);
WW_API ww_status ww_damage_report_init(void *value, size_t struct_size);

static inline ww_collection_config ww_collection_config_default(void)
{
    ww_collection_config value;
    ww_collection_config_init(&value, sizeof value);
    return value;
}
static inline ww_rows ww_rows_default(void)
{
    ww_rows value;
    ww_rows_init(&value, sizeof value);
    return value;
}
static inline ww_query ww_query_default(void)
{
    ww_query value;
    ww_query_init(&value, sizeof value);
    return value;
}
static inline ww_match ww_match_default(void)
{
    ww_match value;
    ww_match_init(&value, sizeof value);
    return value;
}
static inline ww_get ww_get_default(void)
{
    ww_get value;
    ww_get_init(&value, sizeof value);
    return value;
}
static inline ww_search_stats ww_search_stats_default(void)
{
    ww_search_stats value;
    ww_search_stats_init(&value, sizeof value);
    return value;
}
static inline ww_damage_report ww_damage_report_default(void)
{
    ww_damage_report value;
    ww_damage_report_init(&value, sizeof value);
    return value;
}
static inline ww_collection_info ww_collection_info_default(void)
{
    ww_collection_info value;
    ww_collection_info_init(&value, sizeof value);
    return value;
}

/* Takes a metric; returns "cosine", "l2", "dot", or NULL for anything else. */
WW_API const char *ww_metric_name(ww_metric metric);

/* Takes a screen; returns "int8", "none", or NULL for anything else. */
WW_API const char *ww_screen_name(ww_screen screen);

/* Takes a type of rows; returns "f32", "f16", "bf16", "i8", "u8", or NULL for anything else. */
WW_API const char *ww_vector_type_name(ww_vector_type type);

/* Takes a place of rows; returns "device", "host", or NULL for anything else. */
WW_API const char *ww_row_place_name(ww_row_place place);

/* Makes an empty collection on `device`, which it keeps open for itself; gives it in `collection`.
 * Refuses a dimension out of range, an unknown metric, screen, type or place of rows, and rows on the host where no codes would
 * be on the device: without a screen, and of bytes, which are their own codes. Does not block. */
WW_API ww_status ww_collection_create(ww_device *device, const ww_collection_config *config, ww_collection **collection);

/* Frees it and all it holds. Accepts NULL. No other thread may be using it. */
WW_API void ww_collection_destroy(ww_collection *collection);

/* Adds every row or none. Refuses values that are not finite or whose squared norm is not, or that the collection's type does
 * not hold, bad or duplicate ids, payloads that are not JSON, another dimension. Waits for readers. */
WW_API ww_status ww_collection_add(ww_collection *collection, const ww_rows *rows);

/* As add, but a row whose id is there replaces it: the old row is removed and the new one takes a new row number.
 * An id twice in one batch is refused. Waits for readers. */
WW_API ww_status ww_collection_upsert(ww_collection *collection, const ww_rows *rows);

/* Gives rows that are there new vectors, payloads, texts, or all of them, by their ids: what is not given (neither vectors nor
 * elements nor a tensor; no payloads; no texts) stays. Texts need new vectors beside them. With new vectors it replaces rows as
 * upsert does. All or nothing: an id that is not there is WW_NOT_FOUND, and nothing changes. Waits for readers. */
WW_API ww_status ww_collection_update(ww_collection *collection, const ww_rows *rows);

/* Removes every id named, or none: one that is not there is WW_NOT_FOUND, one that is named twice WW_DUPLICATE_ID, and nothing
 * changes. The rows are masked at once and their memory comes back with compact. Waits for readers. */
WW_API ww_status ww_collection_remove(ww_collection *collection, const char *const *ids, int64_t count);

/* Removes those of the ids that are there, and says in `missing` (may be NULL) how many were not; an id that is named twice is
 * there once. Otherwise as remove. */
WW_API ww_status ww_collection_discard(ww_collection *collection, const char *const *ids, int64_t count, int64_t *missing);

/* Gives `count` rows new payloads: JSON texts, NULL among them for none. Vectors, rows and handles stay. All or nothing: an id
 * that is not there is WW_NOT_FOUND; of an id that is named twice the later payload stays. Waits for readers. */
WW_API ww_status ww_collection_set_payloads(ww_collection *collection, const char *const *ids, const char *const *payloads,
                                            int64_t count);

/* Forgets all rows, ids and payloads, and frees their memory. Refuses NULL. Waits for readers. */
WW_API ww_status ww_collection_clear(ww_collection *collection);

/* Reclaims removed rows: live rows keep their order and are numbered anew from 0. Needs memory for the live rows while it
 * runs. `progress` (in rows) may be NULL. Waits for readers. */
WW_API ww_status ww_collection_compact(ww_collection *collection, ww_progress progress, void *user);

/* Makes everything that the device keeps beside the vectors (norms, codes, scales, residuals) once more from the vectors as
 * they are there, compares all bits, and compares live bits and, with keep_host_copy, vectors with the host's. Searches rely on
 * these numbers and cannot notice a bit that flipped in them; this does. Returns WW_OK if all is as it was written, and
 * WW_DAMAGED with the first row and what of it is wrong in the message if not. `report`, from ww_damage_report_default(), is
 * filled in then, too; it and `progress` (in rows) may be NULL. Needs up to 32 MiB on the device. Takes about as long as adding
 * the rows and reading them back. May wait for a writer; readers go on. */
WW_API ww_status ww_collection_check(ww_collection *collection, ww_damage_report *report, ww_progress progress, void *user);

/* Makes room for `rows` live rows in all, so that adding up to there allocates no device memory. Refuses a number out of range,
 * and what cannot fit before it takes anything. Waits for readers. */
WW_API ww_status ww_collection_reserve(ww_collection *collection, int64_t rows);

/* Moves everything to `device`, which the collection keeps open for itself from then on in place of the old one: row numbers,
 * ids, payloads, removed rows, the room reserved and the bits of every answer stay. Needs memory there for all rows, and both
 * devices until it is done. A device that does not give its rows back any more, because it was lost, is left only by a
 * collection that keeps a host copy; without one that is WW_DRIVER_ERROR, and ids and payloads can still be read. Refuses
 * NULL. Waits for readers. */
WW_API ww_status ww_collection_move(ww_collection *collection, ww_device *device);

/* Returns the number of live rows, 0 for NULL. May wait for a writer. */
WW_API int64_t ww_collection_count(ww_collection *collection);

/* Describes the collection into `info`. Refuses NULL. May wait for a writer. */
WW_API ww_status ww_collection_describe(ww_collection *collection, ww_collection_info *info);

/* Finds the k nearest live rows of each query, or all within a bound, and copies what `fetch` names of them while no writer can
 * change it: ids, payloads and vectors are those of the rows that were found, at that moment, whatever writers do before they
 * are read. Gives a results object in `results`, which the caller frees with ww_results_destroy(); how many hits each query has
 * stands there, and ww_results_total() says how many rows are within a bound, whatever the limit. Hits come best first, equal
 * scores by smallest row; a score is never -0. A range takes memory for as many hits as are found: give a limit where that may
 * be too much. Refuses queries that are not finite, a bound that is NaN, a negative one for l2, and what belongs to
 * another mode. May wait for a writer. */
WW_API ww_status ww_collection_query(ww_collection *collection, const ww_query *query, ww_results **results);

/* The same without an object, for loops that want no allocation: finds the k nearest live rows of each query. `rows` and
 * `scores` take query_count x k entries; where fewer than k rows are admitted the rest is row -1 with the worst score (l2:
 * +inf, else -inf). Refuses WW_QUERY_RANGE and a `fetch`. May wait for a writer. The rows are those of the moment of the
 * search. If another thread may compact, clear or replace rows, do not look them up afterwards: the number may be another row's
 * by then, and nothing can tell. ww_collection_query() is for that. */
WW_API ww_status ww_collection_search(ww_collection *collection, const ww_query *query, int64_t *rows, float *scores);

/* Gets a snapshot of many rows as results: one query whose hits are the entries of the list, in its order, with score 0.
 * An entry that is not there is row -1, handle -1, and has no id, payload or vector; that is not an error. Refuses both lists
 * at once. May wait for a writer. */
WW_API ww_status ww_collection_get(ww_collection *collection, const ww_get *get, ww_results **results);

/* Finds a live row by its id. WW_NOT_FOUND if there is none. */
WW_API ww_status ww_collection_find(ww_collection *collection, const char *id, int64_t *row);

/* A handle names a row for good: it is given with the first row of an id, stays with it when upsert replaces the vector, when
 * compact renumbers rows and when the collection moves, and is never given again. Gives the handle of a live row, and the row
 * of a handle; WW_NOT_FOUND if there is none, or not any more. */
WW_API ww_status ww_collection_handle(ww_collection *collection, int64_t row, int64_t *handle);
WW_API ww_status ww_collection_find_handle(ww_collection *collection, int64_t handle, int64_t *row);

/* Gives back the vector of a live row, `dim` floats: bit for bit as it came, or as it was rounded to the collection's type. A
 * row that is not there, or not any more, is WW_NOT_FOUND, here and below. */
WW_API ww_status ww_collection_vector(ww_collection *collection, int64_t row, float *vector);

/* The same in the collection's type: `dim` elements. */
WW_API ww_status ww_collection_elements(ww_collection *collection, int64_t row, void *elements);

/* Copy the id or the payload of a live row into `text`, NUL-terminated. `length` (may be NULL) is set to the text's bytes
 * without the NUL, also when `capacity` is too small, which is WW_OUT_OF_RANGE; with capacity 0 only the length is asked for.
 * A row without a payload has the empty text, length 0. */
WW_API ww_status ww_collection_id(ww_collection *collection, int64_t row, char *text, size_t capacity, size_t *length);
WW_API ww_status ww_collection_payload(ww_collection *collection, int64_t row, char *text, size_t capacity, size_t *length);

/* Returns the first live row after `row` (-1 to begin), or -1 at the end: the way to visit all rows in order. Beside writers
 * it visits rows that were added meanwhile, those that an upsert replaced a second time, and none that were removed; compact
 * and clear number rows anew, after which rows may be left out or visited again. ww_collection_get() without a list gives the
 * handles of all rows as a snapshot, and then, with lists of these handles, the rest. */
WW_API int64_t ww_collection_next(ww_collection *collection, int64_t row);

/* The canonical score of two vectors on the CPU: the bits that every device computes. Refuses values that are not finite. */
WW_API ww_status ww_score(ww_metric metric, const float *a, const float *b, int32_t dim, float *score);

#ifdef __cplusplus
}
#endif

#endif
