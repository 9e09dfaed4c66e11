/* Texts of PostgreSQL's types as ids and JSON. */
#include "server/cluster/values.h"

#include <stdio.h>
#include <string.h>

/* OIDs of types that every PostgreSQL has (pg_type.dat). */
enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_OID = 26,
    OID_JSON = 114,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_BPCHAR = 1042,
    OID_VARCHAR = 1043,
    OID_DATE = 1082,
    OID_TIME = 1083,
    OID_TIMESTAMP = 1114,
    OID_TIMESTAMPTZ = 1184,
    OID_NUMERIC = 1700,
    OID_UUID = 2950,
    OID_JSONB = 3802
};

json_form json_form_of(uint32_t type, bool is_enum)
{
    switch (type) {
    case OID_BOOL:
        return FORM_BOOL;
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_NUMERIC:
        return FORM_NUMBER;
    case OID_JSON:
    case OID_JSONB:
        return FORM_JSON;
    case OID_TIMESTAMP:
    case OID_TIMESTAMPTZ:
        return FORM_TIME;
    case OID_TEXT:
    case OID_VARCHAR:
    case OID_BPCHAR:
    case OID_DATE:
    case OID_TIME:
    case OID_UUID:
        return FORM_STRING;
    default:
        return is_enum ? FORM_STRING : FORM_DATABASE;
    }
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------------- */

/* 2024-01-31 12:00:00.5+00 becomes 2024-01-31T12:00:00.5+00:00; "infinity" stays. */
static void put_time(out *o, const pg_value *value)
{
    char text[64];
    size_t length = value->length < sizeof text - 4 ? value->length : sizeof text - 4;
    memcpy(text, value->bytes, length);
    char *space = memchr(text, ' ', length);
    if (space && space + 1 < text + length && space[1] >= '0' && space[1] <= '9') {
        *space = 'T';
        char *zone = memchr(space, '+', length - (size_t)(space - text));
        if (zone && zone + 3 <= text + length && (zone + 3 == text + length || zone[3] == ' ')) { /* +00, perhaps " BC" */
            memmove(zone + 6, zone + 3, length - (size_t)(zone + 3 - text));
            memcpy(zone + 3, ":00", 3);
            length += 3;
        }
    }
    out_quoted(o, text, length);
}

void value_put_json(out *o, json_form form, const pg_value *value)
{
    if (value->presence != PG_TEXT) {
        out_text(o, "null");
        return;
    }
    const char last = value->length > 0 ? value->bytes[value->length - 1] : '\0';
    switch (form) {
    case FORM_BOOL:
        out_text(o, value->length > 0 && value->bytes[0] == 't' ? "true" : "false");
        break;
    case FORM_NUMBER:
        if (last >= '0' && last <= '9')
            out_bytes(o, value->bytes, value->length);
        else /* NaN, Infinity, -Infinity */
            out_quoted(o, value->bytes, value->length);
        break;
    case FORM_JSON:
    case FORM_DATABASE:
        out_bytes(o, value->bytes, value->length);
        break;
    case FORM_TIME:
        put_time(o, value);
        break;
    case FORM_STRING:
        out_quoted(o, value->bytes, value->length);
        break;
    }
}

bool value_put_id(out *o, const pg_value *const *keys, const json_form *forms, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (keys[i]->presence != PG_TEXT)
            return false;
    if (count == 1) {
        out_bytes(o, keys[0]->bytes, keys[0]->length);
        return true;
    }
    for (int32_t i = 0; i < count; i++) {
        out_text(o, i == 0 ? "[" : ",");
        value_put_json(o, forms[i], keys[i]);
    }
    out_text(o, "]");
    return true;
}

/* ---- places in the log --------------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = c >= 'A' && c <= 'F' ? (char)(c + 'a' - 'A') : c;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to eight hexadecimal digits, of which there is at least one. */
static const char *read_half(const char *text, uint32_t *half)
{
    *half = 0;
    int count = 0;
    for (; count < 8; count++) {
        const int digit = hex_digit(text[count]);
        if (digit < 0)
            break;
        *half = *half << 4 | (uint32_t)digit;
    }
    return count > 0 ? text + count : NULL;
}

bool pg_lsn_read(const char *text, pg_lsn *lsn)
{
    uint32_t high = 0, low = 0;
    const char *at = read_half(text, &high);
    at = at && *at == '/' ? read_half(at + 1, &low) : NULL;
    *lsn = (uint64_t)high << 32 | low;
    return at && *at == '\0';
}

void pg_lsn_write(pg_lsn lsn, char text[PG_LSN_BYTES])
{
    snprintf(text, PG_LSN_BYTES, "%X/%X", (unsigned)(lsn >> 32), (unsigned)lsn);
}
