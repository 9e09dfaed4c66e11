/* What tensors are called in the folders of model hubs and in GGUF files, by architecture. */
#ifndef WW_MODEL_CONVERT_NAMES_H
#define WW_MODEL_CONVERT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

enum { GGUF_NAME_BYTES = 64, CLASSES_MAX = 5 };

/* A name in the folder and the one in GGUF, without ".weight" or ".bias"; a list is ended by one without names. A star in the
 * folder's name is the number of an expert: the experts become one tensor. */
typedef struct name_pair {
    const char *from, *to;
    const char *second; /* rows take turns: even ones belong to `to`, odd ones to this; NULL: all belong to `to` */
    bool whole;         /* the names are whole; the folder's has no ending */
    bool coded;         /* it ends with "_blocks": codes of mxfp4, whose scales are a tensor that ends with "_scales" */
} name_pair;

typedef struct architecture_names {
    const char *name;                 /* in GGUF: "llama" */
    const char *classes[CLASSES_MAX]; /* config.json's "architectures" */
    const char *prefix, *layers;      /* what names may begin with, and what stands before the number of a layer */
    const name_pair *once, *each;     /* tensors that a model has once, and those of a layer */
    const name_pair *more;            /* of either, looked at first; may be NULL */
    const char *activation;           /* config.json's, where it says one */
    bool encoder;
    bool permutes;      /* rows of Q and K are put in pairs: rope turns neighbours there and halves here */
    bool norms_one;     /* norms are kept less 1 */
    bool ranks;         /* it has a head that ranks */
    bool dense;         /* layers behind the pooling lie in folders of their own: 2_Dense, 3_Dense */
    bool skips_padding; /* learned positions begin behind the number of the padding token: rows before are not written */
    bool nested;        /* the model of text may be part of one that sees, whose other parts are not written */
} architecture_names;

/* The one that a class belongs to, or NULL; all of them, ended by one without a name. */
const architecture_names *names_find(const char *class);
extern const architecture_names ARCHITECTURES[];

typedef struct tensor_name {
    char name[GGUF_NAME_BYTES];
    char second[GGUF_NAME_BYTES]; /* of the odd rows; empty: all rows belong to `name` */
    int64_t expert;               /* whose matrix it is; -1: not one of many */
    bool skip;                    /* it is not written: positions that are computed, a pooler that is not used */
    bool query, key;              /* of attention, whose rows may have to be permuted */
    bool norm;
    bool coded; /* codes of mxfp4 without their scales */
} tensor_name;

/* A tensor's name in GGUF. Refuses one that is not known. */
ww_status names_map(const architecture_names *architecture, const char *name, tensor_name *out);

#endif
