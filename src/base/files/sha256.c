/* SHA-256, a block of 64 bytes at a time. */
#include "base/files/sha256.h"

#include <stdio.h>
#include <string.h>

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void take_block(sha256 *s, const unsigned char *from)
{
    uint32_t w[64], v[8];
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)from[4 * i] << 24 | (uint32_t)from[4 * i + 1] << 16 | (uint32_t)from[4 * i + 2] << 8 | from[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(v, s->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]), majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        const uint32_t first = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) + choice + ROUND[i] + w[i];
        const uint32_t second = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) + majority;
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; i++)
        s->state[i] += v[i];
}

void sha256_begin(sha256 *s)
{
    *s = (sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(sha256 *s, const void *from, size_t bytes)
{
    const unsigned char *at = from;
    while (bytes > 0) {
        const size_t used = (size_t)(s->bytes % sizeof s->block), room = sizeof s->block - used;
        const size_t taken = bytes < room ? bytes : room;
        memcpy(s->block + used, at, taken);
        s->bytes += taken;
        at += taken;
        bytes -= taken;
        if (taken == room)
            take_block(s, s->block);
    }
}

void sha256_digest(sha256 *s, unsigned char digest[SHA256_BYTES])
{
    static const unsigned char padding[64] = {0x80};
    unsigned char length[8];
    const uint64_t bits = s->bytes * 8, used = s->bytes % 64;
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(s, padding, (size_t)(used < 56 ? 56 - used : 120 - used));
    sha256_add(s, length, sizeof length);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        digest[i] = (unsigned char)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_end(sha256 *s, char text[SHA256_TEXT])
{
    unsigned char digest[SHA256_BYTES];
    sha256_digest(s, digest);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

void sha256_hmac(const void *key, size_t key_bytes, const void *text, size_t bytes, unsigned char digest[SHA256_BYTES])
{
    unsigned char block[64] = {0}, padded[64];
    sha256 s;
    if (key_bytes > sizeof block) {
        sha256_begin(&s);
        sha256_add(&s, key, key_bytes);
        sha256_digest(&s, block);
    } else if (key_bytes > 0) {
        memcpy(block, key, key_bytes);
    }
    for (size_t i = 0; i < sizeof block; i++)
        padded[i] = block[i] ^ 0x36;
    sha256_begin(&s);
    sha256_add(&s, padded, sizeof padded);
    sha256_add(&s, text, bytes);
    sha256_digest(&s, digest);
    for (size_t i = 0; i < sizeof block; i++)
        padded[i] = block[i] ^ 0x5c;
    sha256_begin(&s);
    sha256_add(&s, padded, sizeof padded);
    sha256_add(&s, digest, SHA256_BYTES);
    sha256_digest(&s, digest);
}
