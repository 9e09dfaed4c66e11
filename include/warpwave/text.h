/* Collections of text: a collection of a store together with the model that makes its vectors.
 *
 * The collection's model embeds texts, with its prefixes. The texts are kept beside payloads, and found by their vectors, by
 * their words, or by both. Documents are cut into chunks at the ends of sentences. The model's name,
 * fingerprint, pooling and prefixes are kept with the collection (store.h), which refuses another model.
 *
 * This header is not part of warpwave.h, since a library can be built without stores or models.
 *
 * Threads: any number may use a ww_text at once. For the collection itself vectors.h says what waits for what.
 */
#ifndef WARPWAVE_TEXT_H
#define WARPWAVE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/model.h>
#include <warpwave/ranking.h>
#include <warpwave/status.h>
#include <warpwave/store.h>
#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_EXPAND_MAX 100 /* chunks on either side of a hit */

typedef struct ww_text ww_text;

/* How a collection of text is opened. */
typedef struct ww_text_config {
    size_t struct_size;
    ww_model *opened;  /* an open model, which must stay open as long as the ww_text. NULL: opens `model` */
    const char *model; /* the path of the model. NULL: the path that is kept with the collection */
    ww_device *device; /* where to open the model; ignored if `opened` is given */
    int32_t create;    /* not 0: makes the collection if it does not exist, and keeps the model's new path and prefixes */
    ww_metric metric;  /* of a new collection */
    ww_vector_type type;
    const char *query_prefix;    /* put before texts to search for, "query: " for some models. NULL: the kept one, and for a
                                    new collection the model's prompt "query" */
    const char *document_prefix; /* put before texts to add. NULL: the kept one, or the model's prompt "document" */
    ww_progress progress;        /* of loading the model, in bytes; may be NULL */
    void *progress_user;
} ww_text_config;

/* Texts to add. Everything stays the caller's and is read only during the call. */
typedef struct ww_text_rows {
    size_t struct_size;
    int64_t count;
    const char *const *texts;    /* count texts of UTF-8; none is NULL */
    const char *const *ids;      /* as in ww_rows; may be NULL */
    const char *const *payloads; /* as in ww_rows; may be NULL */
    ww_progress progress;        /* of embedding, in texts; may be NULL */
    void *progress_user;
} ww_text_rows;

/* How documents are cut. A chunk has whole sentences, as many as fit into `tokens` tokens of the model, and begins with the
 * last sentences of the chunk before that fit into `overlap` tokens. A sentence that does not fit is cut between words. */
typedef struct ww_chunking {
    size_t struct_size;
    int64_t tokens;  /* maximum per chunk, 256 by default; fewer if the model cannot take that many with its special tokens */
    int64_t overlap; /* 32 by default; less than `tokens` */
} ww_chunking;

/* A chunk: the bytes start to end - 1 of its document. Chunks leave no byte out. */
typedef struct ww_chunk {
    int64_t start, end;
} ww_chunk;

/* Documents to add. The rows of a document have the ids SOURCE#0, SOURCE#1, ..., the texts of its chunks, and as payloads the
 * document's own fields and {"source": SOURCE, "chunk": number, "chunks": count, "start": byte, "end": byte}. */
typedef struct ww_documents {
    size_t struct_size;
    int64_t count;
    const char *const *texts;    /* count texts of UTF-8 */
    const char *const *sources;  /* count names of 1 to 240 bytes of UTF-8 */
    const char *const *payloads; /* count JSON objects without the fields above; a NULL entry means none; may be NULL */
    const ww_chunking *chunking; /* NULL: the default, or less if the model takes less */
    ww_progress progress;        /* of embedding, in chunks; may be NULL */
    void *progress_user;
} ww_documents;

/* What a text is compared with. */
typedef enum ww_text_mode {
    WW_TEXT_VECTOR = 0, /* the vectors */
    WW_TEXT_WORDS = 1,  /* the words of the texts */
    WW_TEXT_HYBRID = 2  /* both, fused into one list */
} ww_text_mode;

/* A search for texts. */
typedef struct ww_text_query {
    size_t struct_size;
    const char *const *texts; /* count texts of UTF-8 to search for */
    int64_t count;
    ww_text_mode mode;
    const ww_query *query; /* k, where, filter, mask, fetch and so on; its queries, their count and dim, and match are
                              ignored. NULL: k is 10, and ids, payloads and texts are fetched */
    const ww_fuse *fuse;   /* of WW_TEXT_HYBRID, as in ww_match; NULL: the default */
    int64_t candidates;    /* of each part of WW_TEXT_HYBRID, and of a diversity; 0: as ww_match and ww_collection_rank() say */
    const ww_diversity *diversity; /* as ww_collection_rank() takes it; NULL: none */
    const ww_grouping *grouping;   /* as ww_collection_rank() takes it; NULL: none */
    int32_t expand;   /* a hit that is a chunk gets this many chunks of text before and after it, without repeating what
                         they share; 0 to WW_EXPAND_MAX. Fetches texts, ids and payloads */
    ww_model *rerank; /* orders the best `reranked` hits by ww_model_rerank() and keeps k of them; expand comes after.
                         Fetches texts. NULL: none */
    int64_t reranked; /* hits of each text to rerank, at least k; 0: 100 */
} ww_text_query;

/* How ww_sparse_from_text() weighs a word that a text has f times, with n words in the text:
 * f (k + 1) / (f + k (1 - b + b n / average_words)). */
typedef struct ww_bm25 {
    size_t struct_size;
    double k, b;          /* 1.2 and 0.75 by default */
    double average_words; /* of the texts; 256 by default */
    int32_t query;        /* not 0: each word weighs 1 */
} ww_bm25;

/* Where ww_sparse_from_text() writes: the caller's arrays of `capacity` elements. WW_SPARSE_MAX is enough for any vector. */
typedef struct ww_sparse_room {
    int64_t capacity, count; /* count: out */
    uint32_t *indices;
    float *values;
} ww_sparse_room;

/* device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_text_config_init(void *value, size_t struct_size);
WW_API ww_status ww_text_rows_init(void *value, size_t struct_size);
WW_API ww_status ww_chunking_init(void *value, size_t struct_size);
WW_API ww_status ww_documents_init(void *value, size_t struct_size);
WW_API ww_status ww_bm25_init(void *value, size_t struct_size);
WW_API ww_status ww_text_query_init(void *value, size_t struct_size);

static inline ww_text_config ww_text_config_default(void)
{
    ww_text_config value;
    ww_text_config_init(&value, sizeof value);
    return value;
}
static inline ww_text_rows ww_text_rows_default(void)
{
    ww_text_rows value;
    ww_text_rows_init(&value, sizeof value);
    return value;
}
static inline ww_chunking ww_chunking_default(void)
{
    ww_chunking value;
    ww_chunking_init(&value, sizeof value);
    return value;
}
static inline ww_documents ww_documents_default(void)
{
    ww_documents value;
    ww_documents_init(&value, sizeof value);
    return value;
}
static inline ww_text_query ww_text_query_default(void)
{
    ww_text_query value;
    ww_text_query_init(&value, sizeof value);
    return value;
}

static inline ww_bm25 ww_bm25_default(void)
{
    ww_bm25 value;
    ww_bm25_init(&value, sizeof value);
    return value;
}

/* Opens a collection of the store with its model. Refuses a model that does not embed, one that is not the kept one, a
 * dimension that is not the model's, and a collection that has rows but no kept model. The store must stay open. Blocks. */
WW_API ww_status ww_text_open(ww_store *store, const char *collection, const ww_text_config *config, ww_text **text);

/* Closes the ww_text, its collection, and the model if ww_text_open() has opened it. Accepts NULL. */
WW_API void ww_text_close(ww_text *text);

/* Return the collection, the model and the kept record of the model; they belong to the ww_text. NULL for NULL. */
WW_API ww_collection *ww_text_collection(ww_text *text);
WW_API ww_model *ww_text_model(ww_text *text);
WW_API const ww_store_model *ww_text_kept(const ww_text *text);

/* Adds every text or none, with its vector; upsert replaces rows that have the same ids. Refuses what ww_collection_add()
 * refuses. Blocks. */
WW_API ww_status ww_text_add(ww_text *text, const ww_text_rows *rows);
WW_API ww_status ww_text_upsert(ww_text *text, const ww_text_rows *rows);

/* Adds every document or none, chunk by chunk, and returns the number of new rows in `chunks` (may be NULL); upsert replaces
 * documents with the same sources, all their chunks in one transaction. Refuses more tokens for a chunk than the model takes.
 * Blocks. */
WW_API ww_status ww_text_add_documents(ww_text *text, const ww_documents *documents, int64_t *chunks);
WW_API ww_status ww_text_upsert_documents(ww_text *text, const ww_documents *documents, int64_t *chunks);

/* Cuts `bytes` bytes of UTF-8. `count` gets the number of chunks, also if `chunks` is NULL and `capacity` 0, and if the
 * capacity is too small (WW_OUT_OF_RANGE). `how` may be NULL. Refuses a model without a tokenizer. */
WW_API ww_status ww_text_chunks(const ww_model *model, const char *document, size_t bytes, const ww_chunking *how,
                                ww_chunk *chunks, size_t capacity, size_t *count);

/* Searches for texts. The results are as those of ww_collection_query(). Blocks. */
WW_API ww_status ww_text_search(ww_text *text, const ww_text_query *query, ww_results **results);

/* Makes a text's sparse vector for BM25, whose indices ascend: a search by vectors of `query` with WW_SPARSE_IDF (sparse.h)
 * ranks rows that have such vectors. A word's index is a hash of it in lower case, as fastembed's Qdrant/bm25 makes it; words
 * are not stemmed, none is left out but those of more than 40 characters, and words with equal hashes count as one. `how` may
 * be NULL. Refuses a text that is not UTF-8, and one with more different words than the capacity (WW_OUT_OF_RANGE). Does not
 * block. */
WW_API ww_status ww_sparse_from_text(const char *text, const ww_bm25 *how, ww_sparse_room *vector);

#ifdef __cplusplus
}
#endif

#endif
