/* How the points of a collection lie in the store. There are three ways:
 *   plain     "docs" has the points, each with its vector: no vector has a name, and no point lacks one
 *   named     "docs" has the ids and payloads, and "docs/image" the vectors with the name "image"
 *   split     a note says so: with `unnamed`, "docs" has the vectors without a name and "docs/" the ids and payloads of all
 *             points; otherwise "docs" has those, and there is no vector without a name
 * In a named or split collection every part has copies of the payloads of its points, so that filters work there. */
#ifndef WW_SERVER_LAYOUT_H
#define WW_SERVER_LAYOUT_H

#include "server/state.h"

typedef struct layout {
    bool split, unnamed;
} layout;

/* Reads the note; without one both are false. */
ww_status layout_read(server *s, const char *collection, layout *found);

/* Notes that a collection is split, or that it is not. */
ww_status layout_note(server *s, const char *collection, layout how);

/* Vectors with Manhattan distance, and multivectors, have a note each: the store's collections do not say so. The first call
 * writes or removes one, the second removes those of a collection, the third marks the vectors of an entry that is opened. */
typedef enum vector_kind { KIND_MANHATTAN, KIND_MULTI, KIND_COUNT } vector_kind;
ww_status layout_note_kind(server *s, vector_kind kind, const char *collection, const char *vector, bool is);
ww_status layout_forget_kinds(server *s, const char *collection);
ww_status layout_mark_kinds(server *s, entry *e);

/* The name of the collection with all points, where vectors without a name have a collection of their own: "docs/". */
enum { LAYOUT_NAME_BYTES = 300 };
void layout_points_name(const char *collection, char name[LAYOUT_NAME_BYTES]);

/* The configuration of a collection that has ids and payloads, but no vectors that mean anything. */
ww_collection_config layout_points_config(const char *name);

/* Splits the plain collection of a change, so that points can lack the vector and vectors with names can be added. r->entry is
 * the new one; other requests look for theirs again. For the thread that runs the collection's changes. */
ww_status layout_split(request *r);

/* Looks for collections that another server has split, and those with other vectors than before: requests look for theirs
 * again. */
void layout_look(server *s);

/* Is the request's entry out of date, because its collection was dropped, or because it or another server has split it? */
bool layout_is_old(request *r);

#endif
