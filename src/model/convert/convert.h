/* A folder as model hubs have it (config.json, tokenizer.json, *.safetensors) to one GGUF file, with the names, keys and order
 * of rows that other programs write and read. */
#ifndef WW_MODEL_CONVERT_CONVERT_H
#define WW_MODEL_CONVERT_CONVERT_H

#include <warpwave/gguf.h>
#include <warpwave/quant.h>

typedef struct convert_job {
    const char *folder, *out_path;
    const char *type;     /* of matrices: a name of ww_quant_find(); NULL: as they are in the folder */
    ww_device *device;    /* that codes them */
    ww_progress progress; /* in bytes of the folder's tensors; may be NULL */
    void *progress_user;
} convert_job;

typedef struct convert_report {
    char architecture[32];
    int64_t tensors, bytes_before, bytes_after;
    int64_t other; /* matrices whose rows are no multiple of the type's block: they became q8_0 or f16 */
} convert_report;

/* Writes the file; there is none, or the old one, until it is whole. Refuses by name: an architecture that is not known (the
 * message lists those that are), a tokenizer that is not, a tensor that has no name in GGUF or another type than floats.
 * Blocks. */
ww_status convert_folder(const convert_job *job, convert_report *report);

/* Opens a folder as the file that it would become: converted into a temporary file (in TMPDIR, else /tmp), which is gone when
 * this returns and takes its space until the GGUF is closed. Blocks. */
ww_status convert_open(const char *folder, ww_device *device, ww_gguf **gguf);

/* Refuses a type that is none, or that is for activations only. */
ww_status convert_check_type(const char *type);

#endif
