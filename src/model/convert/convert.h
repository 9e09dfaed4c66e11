/* Converts a folder of a model hub (config.json, tokenizer.json, *.safetensors) to one GGUF file, with the names, keys and
 * order of rows that other programs use. */
#ifndef WW_MODEL_CONVERT_CONVERT_H
#define WW_MODEL_CONVERT_CONVERT_H

#include <stdbool.h>

#include <warpwave/gguf.h>
#include <warpwave/model.h>
#include <warpwave/quant.h>

typedef struct convert_job {
    const char *folder, *out_path;
    const char *type;     /* of matrices: a name for ww_quant_find(); NULL: as in the folder */
    ww_pooling pooling;   /* of an embedder: mean, cls or last; none: as in the folder */
    ww_device *device;    /* that quantizes them */
    ww_progress progress; /* in bytes of the folder's tensors; may be NULL */
    void *progress_user;
} convert_job;

typedef struct convert_report {
    char architecture[32];
    int64_t tensors, bytes_before, bytes_after;
    int64_t other;        /* matrices whose rows are not a multiple of the type's block, which became q8_0 or f16 */
    bool pooling_assumed; /* the folder names no pooling, and the mean was taken */
} convert_report;

/* Writes the file, replacing an old one only when it is complete. Refuses, by name, an unknown architecture (the message lists
 * the known ones), an unknown tokenizer, and a tensor that has no name in GGUF or is not of floats. Blocks. */
ww_status convert_folder(const convert_job *job, convert_report *report);

/* Opens a folder as the GGUF file that it would become. Converts it into a temporary file (in TMPDIR, else /tmp) that is
 * already unlinked when this returns but takes space until the GGUF is closed. Blocks. */
ww_status convert_open(const char *folder, ww_device *device, ww_gguf **gguf);

/* Refuses an unknown type, and one that is only for activations. */
ww_status convert_check_type(const char *type);

#endif
