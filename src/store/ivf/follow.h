/* Keeps the index of a mirror in step with the tables of the file. */
#ifndef WW_STORE_IVF_FOLLOW_H
#define WW_STORE_IVF_FOLLOW_H

#include "store/ivf/tables.h"

/* What the index of a mirror has to catch up with: the last write that it has, and how many vectors were added since, starting
 * at this place. */
typedef struct ivf_behind {
    bool loaded; /* false: everything is new */
    int64_t sequence;
    int64_t first_place;
    int64_t rows_added;
} ivf_behind;

/* Creates, updates or drops the index of the mirror, as the tables say. The caller holds the mirror's lock for writing. A
 * damaged index is not a failure: the mirror then has none. */
ww_status ivf_follow(const ivf_tables *t, mirror *m, const ivf_behind *behind);

/* Reads what the tables say about the index; leaves `bytes` unchanged. */
ww_status ivf_info_read(const ivf_tables *t, ww_ivf_info *info);

/* Checks the tables and calls `tell` for each fault. A failed read also counts as a fault if the file causes it. */
typedef void (*ivf_fault)(void *user, const char *reason);
ww_status ivf_check(const ivf_tables *t, ivf_fault tell, void *user);

#endif
