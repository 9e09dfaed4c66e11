/* Changes to points: an operation is the body of an upsert, a delete and so on, read and checked before anything runs. */
#ifndef WW_SERVER_QDRANT_OPERATION_H
#define WW_SERVER_QDRANT_OPERATION_H

#include "server/qdrant/filter.h"
#include "server/qdrant/point_id.h"
#include "server/qdrant/values.h"
#include "server/qdrant/vectors/multi.h"
#include "server/qdrant/vectors/sparse.h"
#include "server/state.h"

typedef enum operation_kind {
    OPERATION_UPSERT,
    OPERATION_UPDATE_VECTORS,
    OPERATION_DELETE_VECTORS,
    OPERATION_DELETE,
    OPERATION_SET_PAYLOAD,
    OPERATION_OVERWRITE_PAYLOAD,
    OPERATION_DELETE_PAYLOAD,
    OPERATION_CLEAR_PAYLOAD
} operation_kind;

typedef enum update_mode {
    UPDATE_OR_INSERT,
    INSERT_ONLY, /* existing points are not changed */
    UPDATE_ONLY  /* points that do not exist are skipped */
} update_mode;

typedef char point_id[POINT_ID_BYTES];

/* A named vector of a point of an upsert. */
typedef struct named_vector {
    char name[128];
    int64_t point;     /* its number in the operation; they ascend */
    const entry *part; /* the collection of these vectors, once the operation runs */
    float *values;     /* NULL: a model embeds a text, or it is sparse or a multivector */
    bool is_sparse;
    ww_sparse_vector sparse;
    ww_multivector multi; /* without vectors: it is none */
    int64_t dim;
    int64_t text_offset; /* in text_vectors of the operation */
    int64_t text;        /* number of the text in the operation's documents; -1: none */
    int64_t row;         /* of one without a name: its number in the operation's `vectors`; -1: it is not there */
} named_vector;

typedef struct operation {
    operation_kind kind;
    point_id *ids; /* of the points given by id */
    int64_t count, capacity;
    float *vectors; /* count x dim of upserts */
    int64_t dim;
    named_vector *named; /* NULL: vectors have no names, and each point has one */
    int64_t named_count, named_capacity;
    float *text_vectors; /* of the texts for named vectors, once embedded */
    int64_t text_floats, text_capacity;
    const documents *documents; /* the request's texts that vectors are made of, kept with the points; NULL: none */
    int64_t *texts;             /* of each point without named vectors: the number of its text in there; -1: none */
    const char *vector_names;   /* JSON list of vectors to delete, in the request's body */
    bool bare;                  /* it makes points that lack the vector without a name */
    char **payloads;            /* of upserts; NULL: the point has none */
    point_filter filter;        /* instead of ids; without a filter there are ids */
    char *payload;              /* JSON object to set */
    values_key *keys;           /* payload keys to delete, or the one to set under; none: the top level */
    size_t key_count;
    update_mode mode;           /* of upserts */
    point_filter update_filter; /* existing points are changed only if they meet it */
    const key_grant *grant;     /* which points the key sees and may leave behind; NULL: all */
    bool *forbidden;            /* set if the operation fails because of that */
} operation;

/* Reads the body of an operation. False: the request failed. The caller frees the operation, even after a failure. */
bool operation_read(request *r, const char *object, operation_kind kind, operation *out);
void operation_free(operation *o);

/* Read a vector, and a list of ids. The caller frees the memory (memory_free()), even after a failure. `what` is their place in
 * the body, for messages. False: the request failed. */
bool point_vector_read(request *r, const char *value, const char *what, float **vector, int64_t *dim);
bool point_ids_read(request *r, const char *list, const char *what, point_id **ids, int64_t *count);

/* Runs the operation, within the transaction that the calling thread has begun. After a failure the caller rolls that back.
 * Only in a collection that is not split it is a transaction by itself. */
ww_status operation_run(entry *e, const operation *o);

/* May it run within a transaction beside others? One with a filter may not: it would not see what the others have changed. */
bool operation_can_join(const operation *o);

#endif
