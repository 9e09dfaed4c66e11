/* Converts a folder of a model hub (config.json, tokenizer.json, *.safetensors) to one GGUF file, with the names, keys and
 * order of rows that other programs use. */
#ifndef WW_MODEL_CONVERT_CONVERT_H
#define WW_MODEL_CONVERT_CONVERT_H

#include <warpwave/gguf.h>
#include <warpwave/model.h>

/* ww_model_convert() without the checks of the structs. */
ww_status convert_folder(const ww_conversion *job, ww_conversion_report *report);

/* Opens a folder as the GGUF file that it would become. Converts it into a temporary file (in TMPDIR, else /tmp) that is
 * already unlinked when this returns but takes space until the GGUF is closed. Blocks. */
ww_status convert_open(const char *folder, ww_device *device, ww_gguf **gguf);

#endif
