/* The page for browsers: its static files, and its requests beyond Qdrant's and OpenAI's APIs. There ids of any kind and
 * handles are texts, because JavaScript's JSON has no 64-bit integers. */
#ifndef WW_SERVER_UI_H
#define WW_SERVER_UI_H

#include "server/route.h"
#include "server/state.h"

/* A file of programs/server/page, embedded by cmake/ServerCommand.cmake. The list ends with a name that is NULL. */
typedef struct page_file {
    const char *name;
    const char *bytes, *end;
} page_file;

extern const page_file page_files[];

/* ---- files.c: answers with the page itself, and with its files */
bool page_root(request *r);

/* ---- backup.c: a copy of the store */
void run_backup(request *r);
/* One copy of the store is made at a time, if there is room for it. False: the request failed. */
bool copy_begin(request *r);
void copy_end(request *r);

/* ---- overview.c: the server, its models, and all collections with their figures */
void run_overview(request *r);

/* ---- rows.c: rows by position, handle or id; new payloads; removal */
bool prepare_rows(request *r);
void run_rows(request *r);
bool prepare_row_payload(request *r);
void run_row_payload(request *r);
bool prepare_rows_delete(request *r);
void run_rows_delete(request *r);

/* ---- fields.c: the keys that payloads have */
void run_fields(request *r);

/* ---- map.c, colours.c: the map of a collection */
void run_map(request *r);
void run_map_remake(request *r);
void run_map_state(request *r);
void run_map_points(request *r);
bool prepare_colours(request *r);
void run_colours(request *r);

#endif
