/* Listing points: page by page, counted, and by the values of a key. */
#ifndef WW_SERVER_QDRANT_LISTING_H
#define WW_SERVER_QDRANT_LISTING_H

#include "server/request.h"

bool prepare_scroll(request *r);
void run_scroll(request *r);
bool prepare_count(request *r);
void run_count(request *r);
bool prepare_facet(request *r);
void run_facet(request *r);

#endif
