/* Changing payloads: JSON texts in, JSON texts out. */
#ifndef WW_SERVER_QDRANT_PAYLOAD_H
#define WW_SERVER_QDRANT_PAYLOAD_H

#include "server/qdrant/values.h"

/* Writes `old` (NULL: none) with the members of `set` in place of its own; one that is null removes the key. With a key they
 * are put where it leads, "a.b", "a[0]" or "a[].b"; what is missing on the way is made, but no elements of lists. */
void payload_put_set(out *o, const char *old, const values_key *key, const char *set);

/* Writes `old` without what the key leads to. "a[]" leaves an empty list; single elements of lists stay. */
void payload_put_without(out *o, const char *old, const values_key *key);

#endif
