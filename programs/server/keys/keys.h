/* Keys that are made by `warpwave key`, and tokens: what each may do, until when, and how much. Both say it with the same
 * claims, those of Qdrant's tokens: "access" is "r" (read everything), "m" (manage everything), or a list of
 * {"collection": "docs", "access": "r" or "rw", "payload": {"tenant": "a"}}. With a payload the key sees only points that have
 * these values, and writes no others. A key never changes, so that requests that hold it need no lock.
 */
#ifndef WW_SERVER_KEYS_H
#define WW_SERVER_KEYS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/filter.h>

#include "base/files/sha256.h"
#include "base/status.h"

enum { KEY_BYTES_MAX = 256, KEY_NAME_BYTES = 32, LIMITED_KEYS_MAX = 4096, GRANTS_MAX = 256, TOKEN_BYTES_MAX = 8192 };

/* What a key may do with a collection. */
typedef struct key_grant {
    char *collection;
    bool writes;
    ww_filter *seen;    /* the points that it sees; NULL: all */
    ww_filter *written; /* the points that it may leave behind: each of the values stands alone, not in a list; NULL: all */
} key_grant;

/* What a key may use in a second: requests, points in answers and upserts, bytes of bodies. */
typedef enum key_use { USE_REQUESTS, USE_ROWS, USE_BYTES, KEY_USES } key_use;

typedef struct access_key {
    atomic_int references;
    char name[KEY_NAME_BYTES];
    unsigned char digest[SHA256_BYTES]; /* of the key; a token has none */
    bool whole, writes;                 /* everything, and not only to read */
    key_grant *grants;
    size_t grant_count;
    int64_t begins, ends;           /* seconds since 1970; 0: no limit */
    double per_second[KEY_USES];    /* 0: no limit */
    double rest[KEY_USES], seconds; /* what is left, and when that was so; guarded by the server's lock */
} access_key;

/* Reads the claims, a JSON text. `name_claim` has the name, which may be missing. Refuses what it does not know with a
 * sentence. */
ww_status key_read(const char *claims, size_t bytes, const char *name_claim, access_key **key);
access_key *key_retain(access_key *key);
void key_release(access_key *key); /* accepts NULL */

/* What the key may do with a collection, by its own name; NULL: nothing. */
const key_grant *key_grant_for(const access_key *key, const char *collection);

/* Is this the time of the key? */
bool key_is_current(const access_key *key);

/* Takes one request from what is left. Returns 0, or the seconds after which the next one is permitted, and what is used up.
 * key_use() takes what the request has turned out to use. Called with the server's lock. */
double key_admit(access_key *key, double now, const char **used_up);
void key_charge(access_key *key, int64_t rows, int64_t bytes);

/* ---- the file of `warpwave key` ------------------------------------------------------------------------------------------ */

typedef struct key_table {
    access_key **keys;
    size_t count;
} key_table;

/* Reads a file with the claims of one key in each line, with "name" and "sha256", the digest of the key. */
ww_status key_table_read(const char *path, key_table *table);
void key_table_free(key_table *table);

/* Finds the key and retains it; NULL: there is none. Always compares with every one, so that the time says nothing. */
access_key *key_table_find(const key_table *table, const char *key);

void key_digest(const char *key, unsigned char digest[SHA256_BYTES]);

/* ---- tokens (token.c) ---------------------------------------------------------------------------------------------------- */

/* Has it the form of a JSON web token? */
bool token_has_form(const char *text);

/* Reads a token that one of `count` secrets has signed (HS256). */
ww_status token_read(const char *token, const char (*secrets)[KEY_BYTES_MAX], size_t count, access_key **key);

#endif
