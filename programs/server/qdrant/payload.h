/* Changing payloads: JSON texts in, JSON texts out. */
#ifndef WW_SERVER_QDRANT_PAYLOAD_H
#define WW_SERVER_QDRANT_PAYLOAD_H

#include "server/qdrant/values.h"

/* Writes `old` (NULL: none) with the members of `set` replacing its own; a null member removes the key. With a key such as
 * "a.b", "a[0]" or "a[].b" they are set there; missing objects on the way are created, but not elements of lists. */
void payload_put_set(out *o, const char *old, const values_key *key, const char *set);

/* Writes the object `old` (NULL: none) with the members of `set` replacing its own. */
void payload_put_merged(out *o, const char *old, const char *set);

/* Writes `old` without what the key leads to. "a[]" leaves an empty list; single elements of lists stay. */
void payload_put_without(out *o, const char *old, const values_key *key);

#endif
