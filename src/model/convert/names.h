/* Names of tensors in the folders of model hubs and in GGUF files, by architecture. */
#ifndef WW_MODEL_CONVERT_NAMES_H
#define WW_MODEL_CONVERT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

enum { GGUF_NAME_BYTES = 64, CLASSES_MAX = 5 };

/* A name in the folder and the one in GGUF, without ".weight" or ".bias"; an empty pair ends a list. A star in the folder's
 * name stands for the number of an expert: the experts become one tensor. */
typedef struct name_pair {
    const char *from, *to;
    const char *second; /* even rows belong to `to`, odd rows to this; NULL: all belong to `to` */
    bool whole;         /* the names are complete; the folder's has no ending */
    bool coded;         /* it ends with "_blocks": mxfp4 codes, with their scales in a tensor that ends with "_scales" */
} name_pair;

typedef struct architecture_names {
    const char *name;                 /* in GGUF: "llama" */
    const char *classes[CLASSES_MAX]; /* config.json's "architectures" */
    const char *prefix, *layers;      /* optional prefix of names, and prefix of a layer's number */
    const name_pair *once, *each;     /* tensors that a model has once, and those of a layer */
    const name_pair *more;            /* of either, tried first; may be NULL */
    const char *activation;           /* config.json's, if it has one */
    bool encoder;
    bool
        permutes; /* rows of Q and K are reordered in pairs, because rope rotates neighbours in GGUF and halves in the folder */
    bool norms_one;     /* the folder stores norms minus 1 */
    bool ranks;         /* it has a ranking head */
    bool dense;         /* layers after the pooling are in subfolders: 2_Dense, 3_Dense */
    bool skips_padding; /* learned positions begin after the padding token's id: the rows before are not written */
    bool lookup;        /* it has only an embedding, whose shape is in no config.json */
    bool nested;        /* the text model may be part of a vision model, whose other parts are not written */
} architecture_names;

/* Finds the architecture of a class, or NULL; all of them, ended by one without a name. */
const architecture_names *names_find(const char *class);
extern const architecture_names ARCHITECTURES[];

typedef struct tensor_name {
    char name[GGUF_NAME_BYTES];
    char second[GGUF_NAME_BYTES]; /* of the odd rows; empty: all rows belong to `name` */
    int64_t expert;               /* the expert of the matrix; -1: not a single expert's */
    bool skip;                    /* not written: computed positions, an unused pooler */
    bool query, key;              /* of attention, whose rows may have to be permuted */
    bool norm;
    bool coded; /* codes of mxfp4 without their scales */
} tensor_name;

/* Finds a tensor's name in GGUF. Refuses an unknown tensor. */
ww_status names_map(const architecture_names *architecture, const char *name, tensor_name *out);

#endif
