/* JSON web tokens (RFC 7519) as Qdrant's clients make them: BASE64URL(header).BASE64URL(claims).BASE64URL(signature), where the
 * signature is HMAC-SHA256 with the API key. Nothing of a token is read before its signature is found to be right, except the
 * header, which must name this algorithm. */
#include <string.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/strings/base64.h"
#include "server/keys/keys.h"

bool token_has_form(const char *text)
{
    const char *first = strchr(text, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    return strncmp(text, "eyJ", 3) == 0 && second && !strchr(second + 1, '.');
}

static bool is_signed(const char *token, size_t bytes, const unsigned char given[SHA256_BYTES],
                      const char (*secrets)[KEY_BYTES_MAX], size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        unsigned char digest[SHA256_BYTES], different = 0;
        sha256_hmac(secrets[i], strnlen(secrets[i], KEY_BYTES_MAX), token, bytes, digest);
        for (size_t k = 0; k < SHA256_BYTES; k++)
            different |= digest[k] ^ given[k];
        found |= different == 0;
    }
    return found;
}

/* Does the header say that this is signed with HS256? */
static bool header_is_right(const char *header, int64_t bytes)
{
    json_fault fault;
    if (bytes < 0 || !json_check(header, (size_t)bytes, &fault) || json_type_of(json_root(header)) != JSON_OBJECT)
        return false;
    const char *algorithm = json_find(json_root(header), "alg", 3), *critical = json_find(json_root(header), "crit", 4);
    return algorithm && json_type_of(algorithm) == JSON_TEXT && json_text_is(algorithm, "HS256", 5) && !critical;
}

ww_status token_read(const char *token, const char (*secrets)[KEY_BYTES_MAX], size_t count, access_key **key)
{
    const char *claims = strchr(token, '.'), *signature = claims ? strchr(claims + 1, '.') : NULL;
    const size_t length = strlen(token);
    char digest[SHA256_BYTES + 4];
    if (!signature || length > TOKEN_BYTES_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "the token is not three parts of at most %d bytes together", TOKEN_BYTES_MAX);
    char *text = memory_alloc(length + 1);
    if (!text)
        return memory_failed("a token", length);
    ww_status status = WW_OK;
    if (!header_is_right(text, base64_decode(token, (size_t)(claims - token), "-_", text)))
        status = ww_fail(WW_INVALID_ARGUMENT, "the token's header does not say \"alg\": \"HS256\", which is needed");
    else if (strlen(signature + 1) != 43 || base64_decode(signature + 1, 43, "-_", digest) != SHA256_BYTES ||
             !is_signed(token, (size_t)(signature - token), (unsigned char *)digest, secrets, count))
        status = ww_fail(WW_INVALID_ARGUMENT, "no key of the server has signed this token");
    const int64_t bytes = status == WW_OK ? base64_decode(claims + 1, (size_t)(signature - claims - 1), "-_", text) : 0;
    if (status == WW_OK)
        status = bytes < 0 ? ww_fail(WW_INVALID_ARGUMENT, "the token's claims are not base64url")
                           : key_read(text, (size_t)bytes, "sub", key);
    memory_free(text);
    return status;
}
