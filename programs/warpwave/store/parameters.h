/* Parameters of a `--where`, and the rows that `--where` and `--filter` select. */
#ifndef CLI_STORE_PARAMETERS_H
#define CLI_STORE_PARAMETERS_H

#include <warpwave/selection.h>

#include "warpwave/store/store.h"

enum { PARAMETER_NAME_BYTES = 64 };

typedef struct parameters {
    ww_parameter list[TEXT_LIST_MAX];
    char names[TEXT_LIST_MAX][PARAMETER_NAME_BYTES];
    char *texts[TEXT_LIST_MAX]; /* memory of quoted values */
} parameters;

/* Reads `--param` into zeroed parameters, which point into the settings. Free them, whatever the status. */
ww_status given_parameters_read(parameters *ps, const store_settings *s);
void given_parameters_free(parameters *ps);

#endif
