/* Collections: vectors with ids and payloads, searched exactly.
 *
 * A collection is on one device or a group of devices, and can move to another. A vector in it is a row, numbered from 0 in
 * order of insertion; results name rows, and rows lead back to ids and payloads. The same collection gives the same rows with
 * the same score bits on every device.
 *
 * Threads: any number may read (search, query, get, lookup, describe, iterate) at once; a call that writes waits for them and
 * they wait for it. A child of fork() cannot use its parent's collections: every call returns WW_OTHER_PROCESS at once, count
 * 0, next -1, and destroying one does nothing; results can be read and freed there. A call that fails leaves the collection as
 * it was. Rows and queries are in host memory or in tensors (tensor.h); tensors on the collection's device stay there. A
 * progress callback runs while the collection is locked: it must not call that collection.
 */
#ifndef WARPWAVE_VECTORS_H
#define WARPWAVE_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/filter.h>
#include <warpwave/results.h>
#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_DIM_MAX      65536
#define WW_ID_BYTES_MAX 256                 /* not counting the final NUL */
#define WW_K_MAX        16384               /* neighbours a query can ask for; above 2048 all scores are computed and sorted */
#define WW_ROWS_MAX     INT64_C(4294967295) /* row numbers fit 32 bits beside a score in one sort key */

typedef enum ww_metric {
    WW_COSINE = 0, /* dot / (|a| |b|), 0 where a norm is 0; larger is nearer */
    WW_L2 = 1,     /* euclidean distance; smaller is nearer */
    WW_DOT = 2     /* inner product; larger is nearer */
} ww_metric;

/* The screen: 8-bit copies of the rows, with which a search excludes rows that cannot be among the nearest. It computes exact
 * scores only for the others. The screen changes the speed of a search, never its results. */
typedef enum ww_screen {
    WW_SCREEN_INT8 = 0, /* one more byte per number and 8 bytes per row, 26% for 128 numbers; half as much again on a CPU, and
                         * on a GPU if it has memory that nothing else needs */
    WW_SCREEN_NONE = 1  /* every search computes every score */
} ww_screen;

/* The type of a collection's rows, on the device and in a host copy. Scores have the same bits as those of an f32 collection
 * with these values. Numbers given as f32 are rounded to the nearest f16 or bf16, ties to even; i8 and u8 take only integers
 * in their range. Queries are always f32. */
typedef enum ww_vector_type {
    WW_VECTOR_F32 = 0,
    WW_VECTOR_F16 = 1,  /* half of the memory, 11 bits of precision, up to 65504 */
    WW_VECTOR_BF16 = 2, /* half of the memory, 8 bits, the range of f32 */
    WW_VECTOR_I8 = 3, /* a quarter; -128 to 127. Rows are their own codes: a screen takes 8 bytes per row, and no second copy */
    WW_VECTOR_U8 = 4  /* a quarter; 0 to 255. Rows are their own codes, as with i8 */
} ww_vector_type;

/* Where the rows are stored. Results are the same. */
typedef enum ww_row_place {
    WW_ROWS_DEVICE = 0, /* in the device's memory */
    /* In pinned memory of the host. The device has only codes, norms and live bits: a quarter of the bytes of f32, half of
     * f16. A search fetches the rows that the screen keeps over the bus. For f32, f16 and bf16 rows with a screen. On the CPU
     * there is no difference. Such rows survive the loss of a GPU. */
    WW_ROWS_HOST = 1
} ww_row_place;

typedef struct ww_collection ww_collection;
struct ww_tensor;        /* tensor.h */
struct ww_sparse_vector; /* sparse.h */
struct ww_sparse_query;  /* sparse.h */
struct ww_multivector;   /* multi.h */
struct ww_multi_query;   /* multi.h */

typedef struct ww_collection_config {
    size_t struct_size;
    const char *name; /* for messages; copied; NULL is "" */
    int32_t dim;      /* 1..WW_DIM_MAX */
    ww_metric metric;
    /* Not 0: the host also keeps the vectors, dim floats for each row and each free place, so that a collection whose GPU is
     * lost can move to another device. On a CPU this costs nothing. */
    int32_t keep_host_copy;
    ww_screen screen;
    ww_vector_type type; /* of the rows */
    ww_row_place rows;   /* where they are */
} ww_collection_config;

/* Rows to add. Everything stays the caller's and is read only during the call. */
typedef struct ww_rows {
    size_t struct_size;
    int64_t count;
    int32_t dim;                 /* of these vectors; must be the collection's */
    const float *vectors;        /* count x dim, one row after the other */
    int64_t row_stride;          /* floats from one row to the next; 0 means dim */
    const char *const *ids;      /* count texts of 1..WW_ID_BYTES_MAX bytes of UTF-8; NULL: each row's handle in decimal, which
                                  * costs nothing while no row has an id of its own. In a new collection that is the row's
                                  * number. A number is never used twice, and one that is an id already is skipped */
    const char *const *payloads; /* count JSON texts of at most 256 MiB and 1,000 brackets deep; a NULL entry means none;
                                  * NULL: no payloads */
    ww_progress progress;        /* in rows; may be NULL */
    void *progress_user;
    /* In place of `vectors`, which is NULL then: rows of the collection's own type, count x dim elements, with row_stride
     * in elements. `type` must be the collection's. NULL: `vectors` is used. */
    const void *elements;
    ww_vector_type type;
    /* In place of both, which are NULL then: a tensor (tensor.h) of shape [count, dim], or [dim] for one row, of f32 or of the
     * collection's type, with any strides. Count and dim may be 0 then, and row_stride is ignored. A tensor on the
     * collection's device is added there, without passing through the host, except f32 for i8 and u8 rows, and rows of a
     * store, which go to its file. Any other tensor is copied. The call waits for the tensor's queued work. NULL: no tensor. */
    const struct ww_tensor *tensor;
    /* Only for a collection in a store, otherwise refused: count texts of UTF-8, at most 256 MiB each. They are kept with the
     * rows and found by their words (ww_query.match). A NULL entry means none. NULL: no texts. */
    const char *const *texts;
    /* Only for a collection in a store, otherwise refused: ids of rows that the same transaction removes before it writes these
     * rows, so that a crash leaves both done or neither. Ids that do not exist are ignored. */
    const char *const *discard_ids;
    int64_t discard_count;
    /* Only for a collection in a store, otherwise refused: count sparse vectors (sparse.h), which are kept with the rows and
     * found by ww_query.sparse. One without indices means none. NULL: no sparse vectors. */
    const struct ww_sparse_vector *sparse;
    /* Only for a collection in a store with the metric cosine or dot, otherwise refused: count multivectors (multi.h), which
     * are kept with the rows and found by ww_query.multi. One without vectors means none. NULL: no multivectors. */
    const struct ww_multivector *multi;
} ww_rows;

/* What a search did, over all its queries; a row counts once for each query. It may differ from run to run and from device to
 * device. The results do not differ: they are always exact. */
typedef struct ww_search_stats {
    size_t struct_size;       /* set by ww_search_stats_default() */
    int64_t rows_screened;    /* tested by their codes; 0 if the device used no screen */
    int64_t rows_kept;        /* of the screened rows, those not excluded */
    int64_t rows_scored;      /* whose exact score was computed */
    int64_t fallback_queries; /* for which some rows were not screened, because too many had been kept */
    /* A row is discarded when its score is certainly worse than a threshold. The certificate is how much better than that
     * threshold the k-th result is, the minimum over all queries and thresholds. 0 or more proves that no discarded row
     * could have been a result. +inf if no row was discarded. A query with a negative certificate is searched again without
     * thresholds of codes, and counted in repeated_queries. */
    float certificate;
    /* Queries that were searched again because their k-th result was worse than a threshold, or missing. That proves a defect
     * of the memory, the device or the library. The results are right nevertheless. Please report it. */
    int64_t repeated_queries;
    /* For queries with nprobe (ivf.h): lists that were read, rows in them, and bytes of their codes, or of the rows themselves
     * without a screen. Lists and rows are equal on every device. A device that cannot read lists, without codes or without
     * memory, counts the bytes of all rows, which it reads instead. 0 for queries that were answered exactly. */
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
    WW_VALUE_LIST = 4 /* `text` is a JSON array, only for IN and for a parameter with a name: "payload->>'$.lang' IN :langs" */
} ww_value_type;

typedef struct ww_parameter {
    const char *name; /* ":lang", "@lang", "$lang" or "?1", as in the text; NULL: the parameter at the same place in the list */
    ww_value_type type;
    int64_t integer; /* only the field that `type` names is used */
    double real;
    const char *text; /* NUL-terminated UTF-8 */
} ww_parameter;

/* What a query finds. */
typedef enum ww_query_mode {
    WW_QUERY_NEAREST = 0, /* the k nearest rows of each query */
    WW_QUERY_RANGE = 1    /* all rows within a bound of each query, any number of them */
} ww_query_mode;

/* How a search by words combines with the search by vectors. */
typedef enum ww_match_mode {
    WW_MATCH_HYBRID = 0, /* both: the best of each are fused into one list */
    WW_MATCH_TEXT = 1    /* words only: the query needs no vectors, and scores are those of BM25, larger is better */
} ww_match_mode;

struct ww_fuse; /* ranking.h */

#define WW_MATCH_WORDS_MAX 1024 /* of a text that is searched for */

/* What a score of BM25 depends on besides the row's own text. A collection that is spread over several has the sums of theirs;
 * with these each of them gives a row the score, to the bit, that it would have in one collection with all rows. */
typedef struct ww_word_counts {
    int64_t texts;  /* of all rows */
    int64_t words;  /* in all these texts */
    int64_t count;  /* words of the text that is searched for */
    int64_t *found; /* for each of them, in its order, how many texts have it */
} ww_word_counts;

/* A search by words, of a collection in a store whose rows have texts (ww_rows.texts). The text has no query
 * syntax: the search takes its words, separated by white space, as they are, and finds every row that has one of them. The
 * best by BM25 come first, equal ones by handle. Words after the first WW_MATCH_WORDS_MAX are ignored. */
typedef struct ww_match {
    size_t struct_size;
    const char *const *texts; /* one for each query, NUL-terminated UTF-8 */
    ww_match_mode mode;
    const struct ww_fuse *fuse;   /* how the two lists, by vectors and by words, become one; k is used instead of its limit, and
                                     the query's token instead of its own. NULL: the default */
    int64_t candidates;           /* hits of each part that are fused, 0 to WW_K_MAX; 0 means 100, or k if k is larger */
    const ww_word_counts *counts; /* one for each query, from which scores are computed; NULL: the collection's own. Refused if
                                     a count is negative or there is not one for each word */
} ww_match;

/* A search, for collections in memory, in stores and over ranks. Everything stays the caller's and
 * is read only during the call. */
typedef struct ww_query {
    size_t struct_size;
    const float *queries;
    int64_t query_count;
    int64_t query_stride; /* floats from one query to the next; 0 means dim */
    /* In place of `queries`, which is NULL then, as with ww_rows: [query_count, dim] or [dim], of f32, f16, bf16, i8 or u8.
     * query_count and dim may be 0 then, and query_stride is ignored. NULL: `queries` is used. */
    const struct ww_tensor *query_tensor;
    int32_t dim; /* of the queries; must be the collection's */
    ww_query_mode mode;
    int32_t k; /* WW_QUERY_NEAREST: 0..WW_K_MAX; 0 is allowed and finds nothing. Must be 0 in other modes */
    /* Only for WW_QUERY_RANGE, otherwise 0. l2: rows within this distance; cosine and dot: rows with at least this score. */
    float bound;
    int64_t limit;        /* WW_QUERY_RANGE, otherwise 0: at most this many hits per query, the best; 0 only counts */
    const uint64_t *mask; /* bit r%64 of word r/64 admits row r; NULL admits all */
    int64_t mask_rows;    /* rows the mask covers, as ww_collection_info.mask_rows says; rows after them are not admitted.
                           * With a mask, 0 is refused unless the collection has no rows */
    /* Only for a collection in a store (store.h), otherwise refused: an SQL expression over id, handle and payload, as in
     * "payload->>'$.lang' = :lang". The search is among the rows for which it is true. NULL: all rows. */
    const char *where;
    const ww_parameter *parameters;
    int64_t parameter_count;
    /* Conditions on ids and on the fields of payloads (filter.h): only rows that meet them are found. For collections in stores
     * and in memory. If `where` or `mask` is given too, a row must meet all of them. NULL: all rows. In SQL this is the
     * function ww_filter(payload, filter), which takes a dictionary. */
    const ww_filter *filter;
    uint32_t fetch;       /* WW_FETCH_IDS and the others, added up; 0: rows and scores only */
    ww_progress progress; /* in queries; may be NULL */
    void *progress_user;
    /* Filled in if the search succeeds; may be NULL. For a range the certificate is 0 if the screen discarded rows, because
     * the threshold is the bound itself. */
    ww_search_stats *stats;
    /* Only for a collection with an index (ivf.h), otherwise refused: reads the rows of this many lists, those with the nearest
     * centroids. It reads more if these have fewer than min(k, matching rows) rows. The search is exact if nprobe is at least
     * nlist, or if a mask or filter admits no more rows than nprobe lists have on average. 0: the exact search. Only for
     * WW_QUERY_NEAREST. */
    int64_t nprobe;
    /* Only for a collection in a store and WW_QUERY_NEAREST, otherwise refused: finds rows by the words of their texts, too, or
     * only by these. Scores are then those of the fusion or of BM25; ww_results_parts() has the ranks and scores of each part.
     * `mask`, `where` and `filter` hold for both parts. NULL: vectors only. */
    const ww_match *match;
    /* In place of nprobe, after ww_collection_calibrate(), otherwise refused: reads as many lists as this recall needs, more
     * than 0 and at most 1. 1 is the exact search. 0: not used. */
    float recall;
    const ww_cancel *cancel; /* stops the search from another thread (status.h); NULL: none */
    /* Only for a collection in a store, otherwise refused: finds rows by their sparse vectors (ww_rows.sparse) instead of
     * `queries`, which are not read. Scores are dot products, larger is better, for any metric; so is the bound of a range.
     * `mask`, `where` and `filter` hold. Not with nprobe, recall or match. NULL: dense vectors. */
    const struct ww_sparse_query *sparse;
    /* The same with multivectors (ww_rows.multi). Scores are those of MaxSim (multi.h). Not with sparse. The first such search
     * copies the multivectors of all rows to the device; later ones read what was written since. */
    const struct ww_multi_query *multi;
} ww_query;

/* Rows to get at once: by ids, by handles, or, with neither, all live rows in order. */
typedef struct ww_get {
    size_t struct_size;
    int64_t count;           /* entries of the list; without a list the maximum number of rows to get, WW_ROWS_MAX for all */
    const char *const *ids;  /* count texts, or NULL */
    const int64_t *handles;  /* count handles, or NULL */
    uint32_t fetch;          /* as in ww_query */
    const ww_cancel *cancel; /* as in ww_query */
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
    int64_t bytes_host_copy; /* on the host: the host copy, if the config asks for it and the device is not the CPU */
    ww_screen screen;
    int64_t bytes_screen;    /* on the device: codes, scales, residuals */
    int64_t bytes_handles;   /* on the host: handles of rows that are not consecutive */
    int64_t mask_rows;       /* rows that a mask must cover: live and removed */
    ww_vector_type type;     /* of the rows */
    ww_row_place rows;       /* as the config said */
    int64_t bytes_rows_host; /* on the host, pinned: padded rows of a collection with WW_ROWS_HOST; not counted in bytes_rows */
    char members[512];       /* on a group of devices: the rows that each member has, "cuda:0 750016, cpu 249984"; else empty */
} ww_collection_info;

/* Parts of a row that can be damaged: bits of ww_damage_report. */
typedef enum ww_damage {
    WW_DAMAGE_VECTOR = 1,    /* the vector differs from the host copy (keep_host_copy), or its padding is not zero */
    WW_DAMAGE_NORM = 2,      /* the norm does not follow from the vector */
    WW_DAMAGE_CODES = 4,     /* the screen's codes do not follow from the vector */
    WW_DAMAGE_SCALE = 8,     /* the codes' scale does not follow from the vector */
    WW_DAMAGE_RESIDUAL = 16, /* the residual, what coding lost, does not follow from the vector */
    WW_DAMAGE_LIVE = 32      /* the device marks a removed row as live, or the other way round */
} ww_damage;

/* What ww_collection_check() found. */
typedef struct ww_damage_report {
    size_t struct_size;    /* set by ww_damage_report_default() */
    int64_t rows_checked;  /* live and removed */
    int64_t rows_damaged;  /* of them */
    int64_t first_row;     /* the first damaged row, or -1 */
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

/* Makes an empty collection on `device`, which it keeps open, and returns it in `collection`.
 * Refuses a dimension out of range, an unknown metric, screen, type or place of rows, and WW_ROWS_HOST if the device would have
 * no codes: without a screen, and for i8 and u8 rows, which are their own codes. Does not block. */
WW_API ww_status ww_collection_create(ww_device *device, const ww_collection_config *config, ww_collection **collection);

/* Frees the collection and everything in it. Accepts NULL. No other thread may be using it. */
WW_API void ww_collection_destroy(ww_collection *collection);

/* Adds every row or none. Refuses values that are not finite or whose squared norm is not, or that the collection's type does
 * not hold, bad or duplicate ids, payloads that are not JSON, another dimension. Waits for readers. */
WW_API ww_status ww_collection_add(ww_collection *collection, const ww_rows *rows);

/* As add, but a row with an existing id replaces the old row, which is removed; the new row gets a new row number.
 * Refuses an id that appears twice in one batch. Waits for readers. */
WW_API ww_status ww_collection_upsert(ww_collection *collection, const ww_rows *rows);

/* Gives existing rows, by their ids, new vectors, payloads, texts, or all of them. What is not given stays as it is. New texts,
 * sparse vectors and multivectors need new vectors. With new vectors it replaces rows as upsert does. All or nothing: an id
 * that does not exist is WW_NOT_FOUND, and nothing changes. Waits for readers. */
WW_API ww_status ww_collection_update(ww_collection *collection, const ww_rows *rows);

/* Removes the rows with these ids, all or none: an id that does not exist is WW_NOT_FOUND, an id that appears twice is
 * WW_DUPLICATE_ID, and nothing changes. The rows are masked at once; compact frees their memory. Waits for readers. */
WW_API ww_status ww_collection_remove(ww_collection *collection, const char *const *ids, int64_t count);

/* Removes the rows with these ids, and returns in `missing` (may be NULL) how many ids did not exist; an id that appears twice
 * exists once. Otherwise as remove. */
WW_API ww_status ww_collection_discard(ww_collection *collection, const char *const *ids, int64_t count, int64_t *missing);

/* Gives `count` rows new payloads: JSON texts; a NULL entry means none. Vectors, rows and handles stay. All or nothing: an id
 * that does not exist is WW_NOT_FOUND. If an id appears twice, the later payload counts. Waits for readers. */
WW_API ww_status ww_collection_set_payloads(ww_collection *collection, const char *const *ids, const char *const *payloads,
                                            int64_t count);

/* Removes all rows, ids and payloads, and frees their memory. Refuses NULL. Waits for readers. */
WW_API ww_status ww_collection_clear(ww_collection *collection);

/* Reclaims removed rows: live rows keep their order and are numbered anew from 0. Needs memory for the live rows while it
 * runs. `progress` (in rows) may be NULL. Waits for readers. */
WW_API ww_status ww_collection_compact(ww_collection *collection, ww_progress progress, void *user);

/* Computes everything that the device derived from the vectors (norms, codes, scales, residuals) again, and compares all bits.
 * It also compares live bits and, with keep_host_copy, vectors with the host's. Searches rely on these numbers and cannot
 * notice a flipped bit in them; this call does. Returns WW_OK if nothing has changed, and otherwise WW_DAMAGED with the first
 * damaged row and its damage in the message. It fills in `report`, from ww_damage_report_default(), in both cases; `report` and
 * `progress` (in rows) may be NULL. Needs up to 32 MiB on the device. Takes about as long as adding
 * the rows and reading them back. May wait for a writer; readers go on. */
WW_API ww_status ww_collection_check(ww_collection *collection, ww_damage_report *report, ww_progress progress, void *user);

/* Makes room for `rows` live rows in total, so that adding up to that number allocates no device memory. Refuses a number out
 * of range, and one that cannot fit, before it allocates anything. Waits for readers. */
WW_API ww_status ww_collection_reserve(ww_collection *collection, int64_t rows);

/* Moves everything to `device`, which the collection keeps open from then on in place of the old one. Row numbers, ids,
 * payloads, removed rows, reserved room and the bits of every answer stay. Needs memory there for all rows, and both devices
 * until it is done. A collection can leave a lost device only if it keeps a host copy; otherwise this is WW_DRIVER_ERROR, and
 * ids and payloads can still be read. Refuses NULL. Waits for readers. */
WW_API ww_status ww_collection_move(ww_collection *collection, ww_device *device);

/* Returns the number of live rows, 0 for NULL. May wait for a writer. */
WW_API int64_t ww_collection_count(ww_collection *collection);

/* Returns in `digest` a number by which two collections are compared: the sum, modulo 2^64, of a checksum of each row's id,
 * vector (its bits), sparse vector, multivector, payload and text. It does not depend on the order of the rows, on their
 * handles, or on where they are kept. Equal rows have equal digests; collections that differ have equal ones only by an
 * accident of 1 in 2^64, not against an attacker. A store keeps it up to date with every write. In memory all rows are read.
 * Refuses NULL, and a collection of a store that an earlier version wrote and no one has written to or upgraded since
 * (WW_UNSUPPORTED). May wait for a writer. */
WW_API ww_status ww_collection_digest(ww_collection *collection, uint64_t *digest);

/* Counts what the scores of a search by words depend on. counts->found is the caller's array of counts->count elements, room
 * for the words of the text; `count` becomes their number. Refuses a collection in memory, a text that is not UTF-8, and one
 * with more words than there is room for; WW_MATCH_WORDS_MAX is always enough. */
WW_API ww_status ww_collection_count_words(ww_collection *collection, const char *text, ww_word_counts *counts);

/* Describes the collection into `info`. Refuses NULL. May wait for a writer. */
WW_API ww_status ww_collection_describe(ww_collection *collection, ww_collection_info *info);

/* Finds the k nearest live rows of each query, or all within a bound, and copies what `fetch` names (ids, payloads, vectors,
 * texts). The results are a snapshot: later writes do not change them. The caller frees them with ww_results_destroy().
 * ww_results_count() returns how many hits a query has, ww_results_total() how many rows are within a bound, for any limit.
 * Hits come best first, equal scores by smallest row; a score is never -0. A range needs memory for all hits found: give a
 * limit if that may be too much. Refuses queries that are not finite, a bound that is NaN, a negative one for l2, and fields of
 * another mode. May wait for a writer. */
WW_API ww_status ww_collection_query(ww_collection *collection, const ww_query *query, ww_results **results);

/* The same without a results object, for loops that should not allocate: finds the k nearest live rows of each query. `rows`
 * and `scores` take query_count x k entries; if fewer than k rows are admitted, the rest is row -1 with the worst score (l2:
 * +inf, otherwise -inf). Refuses WW_QUERY_RANGE and a `fetch`. May wait for a writer. Row numbers are valid at the time of the
 * search: if another thread may compact, clear or replace rows, the number may mean another row afterwards. Use
 * ww_collection_query() then. */
WW_API ww_status ww_collection_search(ww_collection *collection, const ww_query *query, int64_t *rows, float *scores);

/* Gets a snapshot of many rows as results: one query whose hits are the entries of the list, in its order, with score 0.
 * An entry that does not exist is row -1, handle -1, and has no id, payload or vector; that is not an error. Refuses both lists
 * at once. May wait for a writer. */
WW_API ww_status ww_collection_get(ww_collection *collection, const ww_get *get, ww_results **results);

/* Finds a live row by its id. WW_NOT_FOUND if there is none. */
WW_API ww_status ww_collection_find(ww_collection *collection, const char *id, int64_t *row);

/* A handle names a row permanently: the first row of an id gets it, and it stays the same when upsert replaces the vector, when
 * compact renumbers rows and when the collection moves. It is never used again. Return the handle of a live row, and the row of
 * a handle; WW_NOT_FOUND if it does not exist or was removed. */
WW_API ww_status ww_collection_handle(ww_collection *collection, int64_t row, int64_t *handle);
WW_API ww_status ww_collection_find_handle(ww_collection *collection, int64_t handle, int64_t *row);

/* Returns the vector of a live row, `dim` floats: bit for bit as it was added, or rounded to the collection's type. A row that
 * does not exist or was removed is WW_NOT_FOUND; this holds for the following functions, too. */
WW_API ww_status ww_collection_vector(ww_collection *collection, int64_t row, float *vector);

/* The same in the collection's type: `dim` elements. */
WW_API ww_status ww_collection_elements(ww_collection *collection, int64_t row, void *elements);

/* Copy the id or the payload of a live row into `text`, NUL-terminated. `length` (may be NULL) is set to the number of bytes
 * without the NUL, even if `capacity` is too small, which is WW_OUT_OF_RANGE; capacity 0 asks only for the length. A row
 * without a payload has the empty text, length 0. */
WW_API ww_status ww_collection_id(ww_collection *collection, int64_t row, char *text, size_t capacity, size_t *length);
WW_API ww_status ww_collection_payload(ww_collection *collection, int64_t row, char *text, size_t capacity, size_t *length);

/* Returns the first live row after `row` (-1 to begin), or -1 at the end, to visit all rows in order. If other threads write
 * meanwhile, it visits rows that were added, visits rows that an upsert replaced a second time, and skips rows that were
 * removed. After compact and clear, which renumber rows, it may skip rows or visit them again. A cursor (selection.h) visits
 * a snapshot. */
WW_API int64_t ww_collection_next(ww_collection *collection, int64_t row);

/* The canonical score of two vectors on the CPU: the bits that every device computes. Refuses values that are not finite. */
WW_API ww_status ww_score(ww_metric metric, const float *a, const float *b, int32_t dim, float *score);

#ifdef __cplusplus
}
#endif

#endif
