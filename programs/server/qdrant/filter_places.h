/* Reading of filters: what its files share. */
#ifndef WW_SERVER_QDRANT_FILTER_PLACES_H
#define WW_SERVER_QDRANT_FILTER_PLACES_H

#include "server/qdrant/filter.h"

typedef struct filter_reader {
    ww_filter *out;
    const entry *entry; /* NULL: conditions on named vectors are only checked */
    filter_facts facts; /* of what was read so far */
    char *field;        /* of the condition that is being read */
    char place[256];    /* "must.0.match", for messages */
} filter_reader;

/* Fails with a message that names the place. */
__attribute__((format(printf, 3, 4))) ww_status filter_refuse(const filter_reader *r, ww_status status, const char *format,
                                                              ...);

/* Returns the value of a key, or NULL if it is missing or null. */
const char *filter_given(const char *object, const char *key);

/* Reads the numbers of "geo_radius", "geo_bounding_box" or "geo_polygon" into `list` (memory_free(), also after a failure). */
ww_status filter_read_places(filter_reader *r, const char *value, ww_filter_test test, ww_filter_value **list, int64_t *count);

#endif
