/* Converting a folder to a GGUF file: what the files of the converter share. */
#ifndef WW_MODEL_CONVERT_CONVERSION_H
#define WW_MODEL_CONVERT_CONVERSION_H

#include "model/convert/convert.h"
#include "model/convert/folder.h"
#include "model/convert/keys.h"

/* A tensor of the folder. */
typedef struct tensor_source {
    int64_t file, index; /* file -1: not found yet */
} tensor_source;

/* One tensor of the file to be written. */
typedef struct converted {
    tensor_source one;      /* where its rows are; the first expert's if there are several */
    tensor_source *experts; /* one for each expert; NULL: there is only `one` */
    tensor_source scales;   /* of codes of mxfp4 */
    int64_t expert_count;   /* 1 if experts are not separate tensors */
    ww_gguf_tensor tensor;
    ww_quant_type from;
    int64_t rows, cols; /* as read, all experts together; a vector has one column */
    int64_t every,
        first;     /* row i is row first + every * i of the source: first 0 and every 1, unless two tensors share a source */
    int64_t heads; /* number of heads whose rows are reordered in pairs; 0: rows are not reordered */
    int64_t skipped_rows; /* leading rows that are not written */
    bool adds_one;        /* to every number: the folder stores the norm minus 1 */
    char name[GGUF_NAME_BYTES];
} converted;

/* Factors of rope's frequencies, which config.json has or implies. */
enum { ROPE_TENSORS = 2 };

typedef struct rope_tensor {
    const char *name; /* NULL: there is none */
    float *values;
    int64_t count;
} rope_tensor;

typedef struct conversion {
    const ww_conversion *job;
    const architecture_names *architecture;
    folder_tensors folder; /* the dense layers after the pooling follow the model's own files */
    json_t *config;
    ww_gguf_writer *out;
    ww_quant_type type;
    bool keeps_type;
    converted *tensors;
    int64_t count;
    rope_tensor rope[ROPE_TENSORS];
    int64_t done_bytes;
    ww_conversion_report report;
} conversion;

/* Finds every tensor of the file in the folder, and declares it to the writer. Refuses tensors without a name or place in
 * GGUF. */
ww_status tensors_list(conversion *c);
void tensors_free(conversion *c);

/* The shape of the embedding of tokens: the width first. */
const int64_t *tensors_embedding(const conversion *c);

/* Is it a matrix of weights, which gets the requested type? */
bool tensor_is_coded(const ww_gguf_tensor *t);

/* Reads a tensor's rows, converts them, and writes them. */
ww_status tensor_write(conversion *c, const converted *t);

/* Make and declare the tensors of rope's factors, if there are any; write them after all others. */
ww_status rope_tensors_declare(conversion *c);
ww_status rope_tensors_write(const conversion *c);
void rope_tensors_free(conversion *c);

#endif
