/* Values of PostgreSQL's columns as what a point has: an id, a vector, JSON.
 *
 * A value arrives as the text that its type's output function writes, with the settings of connect.c (ISO dates in UTC, all
 * digits of a float), in the stream of changes and in the copy alike: so a row has the same bytes whichever way it came. Only
 * the vectors of a copy come in their binary form (vectors.c).
 */
#ifndef WW_SERVER_CLUSTER_VALUES_H
#define WW_SERVER_CLUSTER_VALUES_H

#include "server/cluster/pgoutput.h"
#include "server/out.h"

/* How the text of a column becomes JSON. */
typedef enum json_form {
    FORM_STRING,  /* the text itself: text, uuid, date, enums, ... */
    FORM_NUMBER,  /* a number; NaN and infinities become strings, as PostgreSQL does it */
    FORM_BOOL,    /* t or f */
    FORM_JSON,    /* it is JSON already */
    FORM_TIME,    /* a timestamp, whose date and time ISO 8601 separates with T */
    FORM_DATABASE /* arrays, composite types, ranges: the database converts it (to_jsonb) */
} json_form;

/* How the text of a column becomes a vector. */
typedef enum vector_form {
    VECTOR_NONE,     /* the type cannot be one */
    VECTOR_SINGLE,   /* {1,2} of float4[] */
    VECTOR_PGVECTOR, /* [1,2] of pgvector's vector */
    VECTOR_HALF,     /* [1,2] of its halfvec */
    VECTOR_DOUBLE,   /* {1,2} of float8[]: each number is rounded twice, as a cast of the database does it */
    VECTOR_BYTES     /* \x0000803f of bytea: f32, little-endian */
} vector_form;

/* From a type's OID, its name and whether it is an enum. */
json_form json_form_of(uint32_t type, bool is_enum);
vector_form vector_form_of(uint32_t type, const char *type_name);

/* Is the binary form of such a column read, too? A copy asks for it. */
bool vector_form_is_binary(vector_form form);

/* Appends the value as JSON; null for NULL. FORM_DATABASE: the text is the database's JSON. */
void value_put_json(out *o, json_form form, const pg_value *value);

/* Appends the id of a row: the text of one column, a JSON list of several. False if one of them is NULL. */
bool value_put_id(out *o, const pg_value *const *keys, const json_form *forms, int32_t count);

typedef enum vector_fault {
    VECTOR_OK,
    VECTOR_IS_NULL,
    VECTOR_NOT_SENT, /* unchanged, and not in the log */
    VECTOR_NOT_FINITE,
    VECTOR_WRONG_DIM,
    VECTOR_UNREADABLE
} vector_fault;

/* Reads a vector of `dim` numbers. With `vector` NULL it only counts them, into `*found`. */
vector_fault value_read_vector(vector_form form, const pg_value *value, float *vector, int32_t dim, int32_t *found);

/* Appends the bytes of a bytea, in either form. False: it is none. */
bool value_put_bytes(out *o, const pg_value *value);

/* "has no vector" and so on, for the list of refused rows. */
const char *vector_fault_text(vector_fault fault);

/* Reads "16/B374D848"; false if it is none. Writes it, at most PG_LSN_BYTES with the NUL. */
enum { PG_LSN_BYTES = 18 };
bool pg_lsn_read(const char *text, pg_lsn *lsn);
void pg_lsn_write(pg_lsn lsn, char text[PG_LSN_BYTES]);

#endif
