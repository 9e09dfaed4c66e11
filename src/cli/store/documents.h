/* Documents of a folder, or one file, cut into chunks. */
#ifndef CLI_STORE_DOCUMENTS_H
#define CLI_STORE_DOCUMENTS_H

#include "cli/store/store.h"

/* Adds the documents in the folder that --text names, with those in its folders, or the one file. */
ww_status documents_add(store_call *call, ww_text *text, bool folder);

#endif
