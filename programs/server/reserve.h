/* Room on the disk for deleting: a file beside the store's, which is given up when a deletion finds the disk full. */
#ifndef WW_SERVER_RESERVE_H
#define WW_SERVER_RESERVE_H

#include <stdbool.h>

#include "base/status.h"

struct server;

/* Makes the file unless it is there or the disk has too little room for it. */
void reserve_keep(const struct server *s, long long disk_free_bytes);

/* A change that frees room has ended with this status. True: it should be tried again, because there is more room now. */
bool reserve_give(const struct server *s, ww_status status);

/* Removes the file, when the server stops. */
void reserve_remove(const struct server *s);

#endif
