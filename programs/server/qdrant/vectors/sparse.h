/* Sparse vectors of Qdrant's API: {"indices": [3, 7], "values": [0.5, 1]}. A sparse vector has a name, and a collection of its
 * own in the store, like any vector with a name; its rows have sparse vectors, and dense ones of one number that mean nothing.
 * A note, "sparse/COLLECTION/VECTOR", has what the collection was made with. */
#ifndef WW_SERVER_QDRANT_VECTORS_SPARSE_H
#define WW_SERVER_QDRANT_VECTORS_SPARSE_H

#include <warpwave/sparse.h>

#include "server/state.h"

/* Is the value a sparse vector? */
bool is_sparse(const char *value);

/* Reads one, whose memory sparse_value_free() frees, even after a failure. `what` is its place in the body, for messages.
 * False: the request failed. */
bool sparse_value_read(request *r, const char *value, const char *what, ww_sparse_vector *vector);
void sparse_value_free(ww_sparse_vector *vector);

/* The same for a document, {"text": "red fox", "model": "Qdrant/bm25"}, with the weights of BM25. */
bool sparse_document_read(request *r, const char *document, const char *what, ww_sparse_vector *vector);

/* Makes the vector of a query of words. Copies a vector. */
ww_status sparse_of_words(const char *text, ww_sparse_vector *vector);
ww_status sparse_value_copy(const ww_sparse_vector *from, ww_sparse_vector *to);

/* Writes {"indices": [...], "values": [...]} of a hit. */
void put_sparse(out *o, const ww_results *results, int64_t query, int64_t hit);

/* Checks the settings of a sparse vector: {"modifier": "idf", ...}. */
bool sparse_check_settings(request *r, const char *settings);

/* Notes the settings of a vector, JSON in a body; NULL removes the note. Removes those of a collection. Marks the sparse
 * vectors of an entry that is opened. Writes ,"sparse_vectors":{...} if there are any. */
ww_status sparse_note(server *s, const char *collection, const char *vector, const char *settings);
ww_status sparse_forget(server *s, const char *collection);
ww_status sparse_mark(server *s, entry *e);
void sparse_describe(server *s, out *o, const entry *e);

#endif
