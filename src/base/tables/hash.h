/* The hash of the library's tables. It has a key, so that an attacker cannot choose ids or tokens that collide in one slot.
 *
 * The key is random and the same for the whole process. Nothing that a caller sees may depend on it: tables use it for lookups,
 * and never list entries in its order.
 *
 * Also FNV-1a, which has no key and is the same on every machine: it detects files, configs or queries of ranks that were mixed
 * up by mistake.
 */
#ifndef WW_BASE_HASH_H
#define WW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct hash_key {
    uint64_t seed;
    uint64_t factor; /* odd */
} hash_key;

/* Returns the key of this process. Cannot fail: without random numbers from the kernel, it is made from addresses and the
 * time. */
const hash_key *hash_process_key(void);

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_load64(const char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint64_t hash_load32(const char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Adds eight more bytes of a text to a state, which is initially `seed`. */
static inline uint64_t hash_step(const hash_key *key, uint64_t state, const char *bytes)
{
    return hash_mix(state ^ hash_load64(bytes), key->factor);
}

/* The hash of bytes[0..length), given the state after (length - 1) / 8 steps. The last eight bytes may overlap those before
 * instead of being padded, so the length is hashed, too. */
static inline uint64_t hash_end(const hash_key *key, uint64_t state, const char *bytes, size_t length)
{
    const char *end = bytes + length;
    uint64_t last = 0;
    if (length >= 8)
        last = hash_load64(end - 8);
    else if (length >= 4)
        last = hash_load32(bytes) << 32 | hash_load32(end - 4);
    else if (length > 0)
        last = (uint64_t)(unsigned char)bytes[0] << 16 | (uint64_t)(unsigned char)bytes[length / 2] << 8 |
               (uint64_t)(unsigned char)end[-1];
    const uint64_t folded = hash_mix(state ^ last, key->factor);
    return hash_mix(folded ^ length * 0xd6e8feb86659fd93u, 0xa0761d6478bd642fu ^ key->seed >> 1);
}

static inline uint64_t hash_bytes(const hash_key *key, const char *bytes, size_t length)
{
    uint64_t state = key->seed;
    for (size_t at = 0; length - at > 8; at += 8)
        state = hash_step(key, state, bytes + at);
    return hash_end(key, state, bytes, length);
}

static inline uint64_t hash_number(const hash_key *key, uint64_t number)
{
    return hash_bytes(key, (const char *)&number, sizeof number);
}

#define FNV_BEGIN UINT64_C(0xcbf29ce484222325)

/* Adds a whole word to the hash, for numbers. */
static inline uint64_t fnv_word(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x100000001b3);
}

/* Adds bytes one by one, as FNV-1a is defined. */
static inline uint64_t fnv_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = fnv_word(hash, ((const unsigned char *)bytes)[i]);
    return hash;
}

#endif
