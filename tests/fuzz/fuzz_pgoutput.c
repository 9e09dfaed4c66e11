/* Any bytes as a message of pgoutput: refused, or read into values that lie inside the message. The values are then read as
 * ids, vectors and JSON of every form; JSON of the forms that make it must be JSON. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json/json.h"
#include "base/memory.h"
#include "server/cluster/values.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void try_value(const pg_value *value)
{
    static const json_form forms[] = {FORM_STRING, FORM_BOOL, FORM_TIME};
    float vector[8];
    int32_t found = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        out o = {0};
        json_fault fault;
        value_put_json(&o, forms[i], value);
        if (!json_check(o.bytes, o.length, &fault))
            abort();
        out_free(&o);
    }
    pg_value binary = *value; /* as in a copy */
    binary.presence = value->presence == PG_TEXT ? PG_BINARY : value->presence;
    for (vector_form form = VECTOR_SINGLE; form <= VECTOR_BYTES; form++) {
        (void)value_read_vector(form, value, vector, 8, &found);
        (void)value_read_vector(form, value, NULL, 0, &found);
        (void)value_read_vector(form, &binary, vector, 8, &found);
        (void)value_read_vector(form, &binary, NULL, 0, &found);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static pg_reader reader;
    pg_message message;
    if (pgoutput_read(&reader, (const char *)bytes, size, &message) != WW_OK)
        return 0;
    for (int32_t i = 0; i < message.old_count; i++)
        try_value(&message.old_values[i]);
    for (int32_t i = 0; i < message.new_count; i++)
        try_value(&message.new_values[i]);
    return 0;
}
