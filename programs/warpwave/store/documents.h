/* Adds the documents in a folder, or one file, cut into chunks. */
#ifndef CLI_STORE_DOCUMENTS_H
#define CLI_STORE_DOCUMENTS_H

#include "warpwave/store/store.h"

/* Adds the file that --text names, or all documents in that folder and its subfolders. */
ww_status documents_add(store_call *call, ww_text *text, bool folder);

#endif
