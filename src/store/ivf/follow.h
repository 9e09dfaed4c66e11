/* The index of a mirror follows the tables of the file. */
#ifndef WW_STORE_IVF_FOLLOW_H
#define WW_STORE_IVF_FOLLOW_H

#include "store/ivf/tables.h"

/* What happened to the rows of a mirror before its index follows: until which write the mirror was read, and how many vectors
 * have come since, from this place on. */
typedef struct ivf_behind {
    bool loaded; /* else everything is new */
    int64_t sequence;
    int64_t first_place;
    int64_t rows_added;
} ivf_behind;

/* Brings the index of the mirror to what the tables say: makes it, updates it or drops it. With the mirror's lock for writing.
 * A damaged index is left out, which is no failure: the mirror has none then. */
ww_status ivf_follow(const ivf_tables *t, mirror *m, const ivf_behind *behind);

/* What the tables say of the index; `bytes` stays. */
ww_status ivf_info_read(const ivf_tables *t, ww_ivf_info *info);

/* Checks the tables and calls `tell` for each fault. A failure to read is a fault, too, if the file causes it. */
typedef void (*ivf_fault)(void *user, const char *reason);
ww_status ivf_check(const ivf_tables *t, ivf_fault tell, void *user);

#endif
