/* Sparse vectors as SQL values: JSON texts {"indices": [3, 7], "values": [0.5, 1]}. */
#ifndef WW_STORE_SQLITE_SPARSE_TEXT_H
#define WW_STORE_SQLITE_SPARSE_TEXT_H

#include "base/json/json_sparse.h"
#include "store/sparse/sparse.h"
#include "store/sqlite_api.h"

/* Starts zeroed. */
typedef struct sparse_text {
    sparse_sorted sorted; /* its vector is checked and ascends; without indices there is none */
    json_sparse read;
} sparse_text;

/* Reads a text; NULL is a vector without indices. The message does not name the value. Free it, also after a failure. */
ww_status sparse_text_read(sqlite3_value *value, sparse_text *read);
void sparse_text_free(sparse_text *read);

/* The text of a vector, from sqlite3_malloc(); NULL if out of memory. */
char *sparse_text_json(const ww_sparse_vector *vector);

#endif
