/* What changes points: one operation is one body of upsert, delete, set payload and so on, read and checked before anything
 * runs. */
#ifndef WW_SERVER_QDRANT_OPERATION_H
#define WW_SERVER_QDRANT_OPERATION_H

#include "server/state.h"
#include "vectors/filter/point_id.h"

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

typedef char point_id[POINT_ID_BYTES];

/* A vector with a name, of a point of an upsert. */
typedef struct named_vector {
    char name[128];
    int64_t point; /* its number in the operation */
    float *values;
    int64_t dim;
} named_vector;

typedef struct operation {
    operation_kind kind;
    point_id *ids; /* of points that are named */
    int64_t count, capacity;
    float *vectors; /* count x dim of upserts */
    int64_t dim;
    named_vector *named; /* in place of `vectors`; NULL: vectors have no names */
    int64_t named_count, named_capacity;
    const char *vector_names; /* JSON list of vectors to delete, in the request's body */
    char **payloads;          /* of upserts, a NULL among them is none */
    char *filter;             /* in place of ids; NULL: there are ids */
    char *payload;            /* JSON object to set */
    const char *keys;         /* JSON list of keys to delete, in the request's body */
    const char *set_key;      /* JSON text: where in the payload to set; NULL: at the top */
} operation;

/* Reads the body of an operation. False: the request failed. The operation is to be freed in either case. */
bool operation_read(request *r, const char *object, operation_kind kind, operation *out);
void operation_free(operation *o);

/* Reads a list of numbers into `vector`, if that is not NULL; returns how many there are, -1 if it is something else. */
int64_t point_vector_read(const char *list, float *vector);

/* Carries it out. */
ww_status operation_run(entry *e, const operation *o);

#endif
