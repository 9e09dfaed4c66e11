/* warpwave-cases FILE.json [--device D]: runs every case, says which fail and why, and ends with "N passed, M failed".
 *
 * Exit codes: 0 all passed, 1 some failed, 2 misuse, 3 the file, 4 the device.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cases/cases.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_FILE = 3, EXIT_NO_DEVICE = 4, WHY_BYTES = 1024 };

static const case_entry *const families[] = {cases_move, cases_elementwise, cases_index,
                                             cases_rows, cases_products,    cases_quantized};

static const case_entry *find_operation(const char *name)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const case_entry *entry = families[f]; entry->name; entry++)
            if (name && strcmp(entry->name, name) == 0)
                return entry;
    return NULL;
}

/* A quantized type is the type of a matrix that the operation makes; its tensors are f32. */
static bool type_of_case(const json_t *one, case_run *run)
{
    const json_t *given = json_object_get(one, "dtype");
    const char *name = json_string_value(given);
    const int32_t dtype = ww_dtype_of_name(name);
    run->type_name = name;
    run->dtype = (ww_dtype)(dtype < 0 ? WW_F32 : dtype);
    return dtype >= 0 || !given || (name && (name[0] == 'q' || name[0] == 'Q'));
}

static bool run_case(ww_device *device, const json_t *one, char *why)
{
    const char *op = json_string_value(json_object_get(one, "op"));
    const case_entry *entry = find_operation(op);
    const json_t *inputs = json_object_get(one, "inputs");
    case_run run = {.device = device,
                    .inputs = inputs,
                    .attrs = json_object_get(inputs, "attrs"),
                    .expected = json_object_get(one, "expected"),
                    .largest_error = NAN};
    if (json_object_size(run.attrs) == 0)
        run.attrs = json_object_get(one, "attrs");
    if (!entry || !op) {
        snprintf(why, WHY_BYTES, "no operation '%s'", op ? op : "");
        return false;
    }
    if (!type_of_case(one, &run)) {
        snprintf(why, WHY_BYTES, "no type '%s'", run.type_name ? run.type_name : "");
        return false;
    }
    const ww_status status = entry->run(&run);
    const bool agrees = case_agrees(&run, status, json_object_get(one, "tol"), why, WHY_BYTES);
    for (int i = 0; i < run.made_count; i++)
        ww_storage_destroy(run.made[i]);
    return agrees;
}

static int run_all(ww_device *device, const json_t *cases)
{
    size_t index;
    json_t *one;
    long passed = 0;
    long failed = 0;
    json_array_foreach(cases, index, one)
    {
        char why[WHY_BYTES] = "";
        if (run_case(device, one, why)) {
            passed++;
            continue;
        }
        failed++;
        const char *id = json_string_value(json_object_get(one, "id"));
        const char *op = json_string_value(json_object_get(one, "op"));
        printf("%s %s: %s\n", id ? id : "?", op ? op : "?", why);
    }
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 ? EXIT_FAILED : 0;
}

static int misused(void)
{
    fprintf(stderr, "warpwave-cases FILE.json [--device NAME]\n");
    return EXIT_USAGE;
}

int main(int count, char **arguments)
{
    const char *file = NULL;
    const char *name = NULL;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--device") == 0 && i + 1 < count)
            name = arguments[++i];
        else if (strncmp(arguments[i], "--device=", 9) == 0)
            name = arguments[i] + 9;
        else if (arguments[i][0] != '-' && !file)
            file = arguments[i];
        else
            return misused();
    }
    if (!file)
        return misused();
    json_error_t error;
    json_t *cases = json_load_file(file, JSON_ALLOW_NUL, &error);
    if (!cases || (!json_is_array(cases) && !json_is_array(json_object_get(cases, "cases")))) {
        fprintf(stderr, "warpwave-cases: %s: %s\n", file, cases ? "not a list of cases" : error.text);
        json_decref(cases);
        return EXIT_FILE;
    }
    ww_device *device = NULL;
    int code = EXIT_NO_DEVICE;
    if (ww_device_open(name, &device) == WW_OK)
        code = run_all(device, json_is_array(cases) ? cases : json_object_get(cases, "cases"));
    else
        fprintf(stderr, "warpwave-cases: %s\n", ww_error_message());
    ww_device_close(device);
    json_decref(cases);
    return fflush(stdout) == 0 ? code : EXIT_FILE;
}
