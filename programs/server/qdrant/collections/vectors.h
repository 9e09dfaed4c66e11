/* The vectors of a collection: their sizes, distances and names. */
#ifndef WW_SERVER_VECTORS_H
#define WW_SERVER_VECTORS_H

#include "server/qdrant/collections/layout.h"

enum { VECTORS_MAX = 64, VECTOR_NAME_MAX = 118 };

/* What `vectors` of a body asks for: the collections of the store that have to be there. */
typedef struct vectors_plan {
    ww_collection_config config;                 /* of the collection with the name itself */
    ww_collection_config parts[VECTORS_MAX + 1]; /* of vectors with names, and of all points if they are apart */
    char names[VECTORS_MAX + 1][256];            /* of those collections */
    size_t part_count;
    const char *parts_sparse[VECTORS_MAX + 1]; /* the settings of a sparse vector, in the body; NULL: it is dense */
    bool kinds[KIND_COUNT], parts_kinds[VECTORS_MAX + 1][KIND_COUNT]; /* what the store's collections do not say */
    layout layout;
} vectors_plan;

/* Reads {"size": 4, "distance": "Dot"}, {"image": {...}, ...} or nothing, and sparse vectors, {"words": {...}, ...} or nothing.
 * False: the request failed. */
bool vectors_plan_read(request *r, const char *vectors, const char *sparse, vectors_plan *p);

/* Refuses those that a cluster cannot keep. False: the request failed. */
bool vectors_permitted(request *r, const vectors_plan *p);

/* What the rows of a vector's collection have (cluster/sql_writer.h). `sparse`: its settings; NULL: it is dense. */
const char *vectors_row_kind(const char *sparse, const bool kinds[KIND_COUNT]);

/* Notes what the collections of the store do not say, before they are made. */
ww_status vectors_note(server *s, const vectors_plan *p);

/* Writes them as above, with what the note of the settings keeps of each (JSON; NULL: nothing). */
void vectors_describe(out *o, const entry *e, const char *kept);

/* Adding a vector to a collection that exists, and removing it. */
bool prepare_add_vector(request *r);
void run_add_vector(request *r);
void run_remove_vector(request *r);

#endif
