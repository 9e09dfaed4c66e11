/* Snapshots of Qdrant's API. */
#ifndef WW_SERVER_SNAPSHOTS_SNAPSHOTS_H
#define WW_SERVER_SNAPSHOTS_SNAPSHOTS_H

#include "server/request.h"

/* Is the body of the request's route a form with a file, which goes to the disk? */
bool route_uploads(const request *r);

#endif
