/* Any bytes as a token, as the claims of a signed token, and as a line of the file of keys: each is refused with a message, or
 * it is a key that says what it may do. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "server/keys/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(ww_status status, access_key **read)
{
    access_key *key = *read;
    *read = NULL;
    if (status == WW_OK && (!key || key->whole == (key->grants != NULL) || (key->writes && !key->whole)))
        abort();
    for (size_t i = 0; status == WW_OK && i < key->grant_count; i++)
        if (key_grant_for(key, key->grants[i].collection) != &key->grants[i] || !key->grants[i].seen != !key->grants[i].written)
            abort();
    if (status == WW_OK)
        key_release(key);
    else if (ww_error_message()[0] == '\0')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char secrets[1][KEY_BYTES_MAX] = {"secret"};
    access_key *key = NULL;
    char *text = memory_copy_text((const char *)bytes, size);
    if (!text)
        abort();
    if (token_has_form(text))
        check(token_read(text, secrets, 1, &key), &key);
    check(key_read(text, strlen(text), "sub", &key), &key);
    check(key_read(text, strlen(text), "name", &key), &key);
    memory_free(text);
    return 0;
}
