/* warpwave-cases FILE.json [--device D]: runs every case, prints which fail and why, and always ends with "N passed, M failed".
 *
 * Exit codes: 0 all passed, 1 some failed, 2 wrong usage, 3 the file, 4 the device.
 */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cases/cases.h"
#include "cases/load.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_FILE = 3, EXIT_NO_DEVICE = 4, WHY_BYTES = 1024 };

static const case_entry *const families[] = {cases_move, cases_views,    cases_elementwise, cases_index,
                                             cases_rows, cases_products, cases_quantized,   cases_composed};

static const case_entry *find_operation(const char *name)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const case_entry *entry = families[f]; entry->name; entry++)
            if (strcmp(entry->name, name) == 0)
                return entry;
    return NULL;
}

/* An operation by its own name, or by that of its kind: "add" is the binary operation of that name. */
static const case_entry *find_by_name_or_kind(const char *name)
{
    const case_entry *entry = find_operation(name);
    const char *family = case_family_of_kind(name);
    return entry || !family ? entry : find_operation(family);
}

/* A quantized type is the type of a matrix that the operation makes; its tensors are f32. One that there is not is refused, as
 * the library refuses a type that an operation does not have. */
static ww_status type_of_case(const json_t *one, case_run *run)
{
    const json_t *given = json_object_get(one, "dtype");
    const char *name = json_string_value(given);
    const int32_t dtype = case_dtype(name);
    run->type_name = name;
    run->dtype = (ww_dtype)(dtype < 0 ? WW_F32 : dtype);
    if (dtype >= 0 || !given || json_is_null(given) || (name && (name[0] == 'q' || name[0] == 'Q')))
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "no type '%s'", name ? name : "");
}

static bool run_case(ww_device *device, const json_t *one, char *why)
{
    char op[64];
    const json_t *inputs = json_object_get(one, "inputs");
    case_lower(json_string_value(json_object_get(one, "op")), op, sizeof op);
    const case_entry *entry = find_by_name_or_kind(op);
    case_run run = {.device = device,
                    .inputs = inputs,
                    .attrs = json_object_get(inputs, "attrs"),
                    .case_attrs = json_object_get(one, "attrs"),
                    .expected = json_object_get(one, "expected"),
                    .op = op,
                    .largest_error = NAN};
    if (!entry) {
        snprintf(why, WHY_BYTES, "no operation '%s'", op);
        return false;
    }
    ww_status status = type_of_case(one, &run);
    if (status == WW_OK)
        status = entry->run(&run);
    bool agrees = case_agrees(&run, status, json_object_get(one, "tol"), why, WHY_BYTES);
    if (run.wrong_attribute) {
        snprintf(why, WHY_BYTES, "attribute '%s' is not what it should be", run.wrong_attribute);
        agrees = false;
    }
    for (int i = 0; i < run.made_count; i++)
        ww_storage_release(run.made[i]);
    memory_free(run.coded_from);
    memory_free(run.bounds);
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
        char line[2 * WHY_BYTES], plain[2 * WHY_BYTES];
        snprintf(line, sizeof line, "%s %s: %s", id ? id : "?", op ? op : "?", why);
        text_plain_copy(plain, sizeof plain, line); /* the words are the file's */
        printf("%s\n", plain);
        fflush(stdout);
    }
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 ? EXIT_FAILED : 0;
}

/* Nothing could be run: every case failed, and a file that cannot be read counts as one. */
static int none_ran(size_t failed, int code)
{
    fprintf(stderr, "warpwave-cases: %s\n", ww_error_message());
    printf("0 passed, %zu failed\n", failed);
    return code;
}

static int show_usage(FILE *to, int code)
{
    fprintf(to, "warpwave-cases FILE.json [--device NAME]\n"
                "Runs the cases of tensor operations in a file (tests/cases/README.md) on a device, and ends with N passed, M "
                "failed.\n");
    return code;
}

int main(int count, char **arguments)
{
    const char *file = NULL;
    const char *name = NULL;
    fesetenv(FE_DFL_ENV); /* undoes what a library may have changed: numbers are read and printed with rounding to nearest */
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--help") == 0)
            return show_usage(stdout, 0);
        if (strcmp(arguments[i], "--device") == 0 && i + 1 < count)
            name = arguments[++i];
        else if (strncmp(arguments[i], "--device=", 9) == 0)
            name = arguments[i] + 9;
        else if (arguments[i][0] != '-' && !file)
            file = arguments[i];
        else
            return show_usage(stderr, EXIT_USAGE);
    }
    if (!file)
        return show_usage(stderr, EXIT_USAGE);
    json_t *cases = NULL;
    ww_device *device = NULL;
    int code = 0;
    if (cases_load(file, &cases) != WW_OK)
        code = none_ran(1, EXIT_FILE);
    else if (ww_device_open(name, &device) != WW_OK)
        code = none_ran(json_array_size(cases), EXIT_NO_DEVICE);
    else
        code = run_all(device, cases);
    ww_device_close(device);
    json_decref(cases);
    return fflush(stdout) == 0 ? code : EXIT_FILE;
}
