/* The parts of `warpwave store`: the settings, what is open, and the actions that have their own file. */
#ifndef CLI_STORE_STORE_H
#define CLI_STORE_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <warpwave/store.h>
#include <warpwave/text.h>

#include "warpwave/json.h"
#include "warpwave/options.h"
#include "warpwave/text/lines.h"

enum { MODE_VECTOR, MODE_TEXT, MODE_HYBRID }; /* in the order of --mode */

typedef struct store_settings {
    const char *device, *format, *ids, *id_column, *payloads, *vector, *payload, *queries, *where, *filter, *radius, *min_score,
        *text, *model, *query_prefix, *document_prefix, *rerank, *mmr, *group_by, *weights, *out, *color, *recall_text,
        *restored, *sparse;
    text_list id, params;
    int metric, type, synchronous, mode, fusion, modifier;
    int64_t chunk, overlap, candidates, groups, group_size, expand; /* chunk 0, overlap -1: not given */
    int64_t neighbours, steps, seed;                                /* for a map; 0, 0, -1: not given */
    int64_t nlist, sample_rows, iterations, query_count, nprobe;    /* 0: not given */
    float recall;                                                   /* parsed from recall_text */
    int64_t dim, k, limit, after;                                   /* limit and after: -1 if not given */
    bool json, quiet, yes, upsert, missing_ok, vectors, force, remake, resume, step;
} store_settings;

typedef struct store_call {
    store_settings settings;
    const char *operands[3]; /* STORE, NAME, and the action's own operand */
    ww_device *device;
    ww_store *store;
    ww_collection *collection; /* NAME, for actions on a collection */
    ww_collection_info info;   /* of the collection */
} store_call;

/* Adds rows: one from the command line, or those of a vector file with separate files of ids and payloads. */
ww_status store_add(store_call *call);
/* Embeds the texts of a file with a model and adds them; creates the collection if it does not exist. */
ww_status store_add_texts(store_call *call, int64_t *before);
/* Opens the collection with the model that made its vectors. --model may name another file of the same model. `create` creates
 * a missing collection. */
ww_status store_open_text(store_call *call, bool create, ww_text **text);
/* Creates the collection if it does not exist, and adds the rows of a file: JSON Lines with ids and payloads, or vectors. */
ww_status store_import(store_call *call);
/* Writes a collection to a file. */
ww_status store_export(store_call *call);
ww_status store_get(store_call *call);
ww_status store_remove(store_call *call);
/* Get, remove and count rows that meet conditions. */
bool selection_is_given(const store_settings *s);
ww_status store_get_selected(store_call *call);
ww_status store_remove_selected(store_call *call);
ww_status store_count(store_call *call);
ww_status store_search(store_call *call);
ww_status store_map(store_call *call);
/* Print the collections of the store; print_info also prints the file's properties. */
ww_status store_print_list(store_call *call);
ww_status store_print_info(store_call *call);
/* Build, calibrate and drop the index of the collection. */
ww_status store_build_ivf(store_call *call);
ww_status store_calibrate(store_call *call);
ww_status store_drop_ivf(store_call *call);
/* Reads the vectors of --queries; the caller frees them with memory_free(). */
ww_status store_read_queries(const store_call *call, float **queries, int64_t *count);

/* Opens the store, and the collection if `name` is not NULL, for `store search` and for `search --store`. */
ww_status store_call_open(store_call *call, const ww_store_config *config, const char *device, const char *name);
void store_call_close(store_call *call);

/* How far the import of a file has come: a note of the collection (ww_store_set_note()), from which --resume goes on. */
typedef struct import_mark {
    char key[WW_NOTE_KEY_BYTES]; /* empty: the file cannot be read again, so it has no mark */
    int64_t bytes, changed;      /* of the file: its size, and the second in which it changed */
    int64_t done;                /* rows, or lines of JSON Lines, that are in the collection */
} import_mark;

/* Names the mark of the file in operand 2. Refuses --resume for a file that cannot be read twice. */
ww_status mark_begin(const store_call *call, import_mark *mark);
/* Reads the mark of an earlier run into `done`; 0 without --resume, with a note if there is one. Refuses a file that has
 * changed since then. */
ww_status mark_read(const store_call *call, import_mark *mark);
ww_status mark_write(const store_call *call, const import_mark *mark);

/* Adds the rows of the file in operand 2 to the collection NAME; `make` creates a missing collection. */
ww_status store_add_file(store_call *call, bool make);

/* Adds rows batch by batch. */
typedef struct row_batches {
    store_call *call;
    int64_t added;
    const import_mark *mark; /* written with each batch, in one transaction; NULL: none */
} row_batches;

ww_status batches_add(row_batches *batches, const ww_rows *rows);

/* Reads a JSON array of numbers into floats from memory_alloc(). `dim` is the expected number, or 0 for any. `what` starts
 * messages. */
ww_status vector_parse(const char *text, const char *what, int32_t *dim, float **vector);

/* Reads a vector like vector_parse(), from a parsed JSON array. */
ww_status vector_of_json(const json_t *array, const char *what, int32_t *dim, float **vector);

/* Adds a hit to a report: id, handle, score if there is one, payload, and the vector if it was fetched. */
typedef struct hit_of {
    const ww_results *results;
    int64_t query, hit;
    int32_t dim; /* 0: leave the vector out */
    bool scored;
    const char *ranks[2]; /* the names of the ranks in the two lists that were fused */
} hit_of;

void hit_put(json_writer *w, const hit_of *hit);
/* Prints a hit as text, on the rest of the line. */
void hit_print(const hit_of *hit);

/* Prints the rows that were found; returns the number of missing rows, and the first of them in `first`. */
int64_t print_found(const store_call *call, const ww_results *found, int64_t *first);

#endif
