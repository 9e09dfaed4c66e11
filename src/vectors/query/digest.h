/* The digest of a collection in memory. */
#ifndef WW_VECTORS_DIGEST_H
#define WW_VECTORS_DIGEST_H

#include "vectors/collection.h"

/* ww_collection_digest(); reads all rows. */
ww_status memory_digest(ww_collection *c, uint64_t *digest);

#endif
