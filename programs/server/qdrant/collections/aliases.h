/* Aliases: other names of collections. */
#ifndef WW_SERVER_QDRANT_ALIASES_H
#define WW_SERVER_QDRANT_ALIASES_H

#include "server/request.h"

bool prepare_aliases(request *r);
void run_aliases(request *r);
void run_list_aliases(request *r); /* of the collection that the path names, or all */

#endif
