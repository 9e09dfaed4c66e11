/* LZMA, decoded.
 *
 * The content is a sequence of bytes and of repetitions: of the distance used last, of one of the three before it, or of a new
 * one. Each decision is a bit whose probability was learned from those before in the same circumstances; `state` (0..11) says
 * what the last few items were, below 7 if the last was a byte.
 */
#include "base/lzma.h"

#include <string.h>

enum {
    STATES = 12,
    STATES_AFTER_BYTE = 7, /* those before */
    POSITIONS = 16,        /* of an item among 2^pb */
    LITERAL_BITS_MAX = 4,  /* lc + lp, as .xz allows */
    LITERAL_PROBABILITIES = 0x300,
    PROBABILITY_BITS = 11,
    PROBABILITY_SHIFT = 5, /* how fast it is learned */
    RANGE_BYTES = 5,       /* that begin a chunk */
    DISTANCE_SLOTS = 64,
    SLOTS_WITH_MODEL = 14, /* further bits of a distance are learned for slots below */
    DISTANCE_MODELS = 115,
    ALIGN_BITS = 4 /* the lowest bits of a far distance, learned for all */
};

typedef uint16_t probability; /* that the bit is 0, of 2^11 */

typedef struct length_model {
    probability is_longer, is_longest;
    probability low[POSITIONS][8], middle[POSITIONS][8], high[256];
} length_model;

typedef struct models {
    probability is_match[STATES][POSITIONS], is_repeated[STATES], is_older[STATES], is_third[STATES], is_fourth[STATES];
    probability is_long[STATES][POSITIONS];
    probability slots[4][DISTANCE_SLOTS], distances[DISTANCE_MODELS], align[1 << ALIGN_BITS];
    length_model match_lengths, repeated_lengths;
    probability literals[LITERAL_PROBABILITIES << LITERAL_BITS_MAX];
} models;

struct lzma_decoder {
    const uint8_t *next, *end;
    uint32_t range, code;
    bool bad; /* read past the end, or a distance before the beginning */
    bool ready;
    uint8_t *content;
    size_t written, capacity, chunk_end;
    uint32_t literal_context_bits, literal_position_mask, position_mask;
    uint32_t state;
    uint32_t distance[4]; /* the last ones, less 1 */
    models learned;
};

/* ---- bits ---------------------------------------------------------------------------------------------------------------- */

static void normalize(lzma_decoder *d)
{
    if (d->range >> 24 != 0)
        return;
    d->bad |= d->next == d->end;
    d->range <<= 8;
    d->code = d->code << 8 | (d->next < d->end ? *d->next++ : 0);
}

static uint32_t take_bit(lzma_decoder *d, probability *zero)
{
    normalize(d);
    const uint32_t bound = (d->range >> PROBABILITY_BITS) * *zero;
    if (d->code < bound) {
        d->range = bound;
        *zero = (probability)(*zero + (((1u << PROBABILITY_BITS) - *zero) >> PROBABILITY_SHIFT));
        return 0;
    }
    d->range -= bound;
    d->code -= bound;
    *zero = (probability)(*zero - (*zero >> PROBABILITY_SHIFT));
    return 1;
}

/* A number of `bits` bits, the highest first, each learned for the ones before it. */
static uint32_t take_tree(lzma_decoder *d, probability *tree, uint32_t bits)
{
    uint32_t symbol = 1;
    for (uint32_t i = 0; i < bits; i++)
        symbol = symbol << 1 | take_bit(d, &tree[symbol]);
    return symbol - (1u << bits);
}

/* The same, the lowest first; `tree` is what stands at index 1. */
static uint32_t take_tree_reversed(lzma_decoder *d, probability *tree, uint32_t bits)
{
    uint32_t symbol = 1;
    uint32_t value = 0;
    for (uint32_t i = 0; i < bits; i++) {
        const uint32_t bit = take_bit(d, &tree[symbol - 1]);
        symbol = symbol << 1 | bit;
        value |= bit << i;
    }
    return value;
}

/* Bits that are as often 0 as 1. */
static uint32_t take_plain(lzma_decoder *d, uint32_t bits)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < bits; i++) {
        normalize(d);
        d->range >>= 1;
        const uint32_t bit = d->code >= d->range;
        d->code -= bit != 0 ? d->range : 0;
        value = value << 1 | bit;
    }
    return value;
}

/* ---- items --------------------------------------------------------------------------------------------------------------- */

static void put_byte(lzma_decoder *d)
{
    const uint32_t before = d->written > 0 ? d->content[d->written - 1] : 0;
    const uint32_t context = (((uint32_t)d->written & d->literal_position_mask) << d->literal_context_bits) +
                             (before >> (8 - d->literal_context_bits));
    probability *tree = d->learned.literals + (size_t)LITERAL_PROBABILITIES * context;
    uint32_t symbol = 1;
    /* Behind a repetition it differs from what would have come next there: learned beside that, up to where it does. */
    if (d->state >= STATES_AFTER_BYTE) {
        uint32_t expected = d->content[d->written - d->distance[0] - 1];
        bool same = true;
        while (same && symbol < 0x100) {
            const uint32_t expected_bit = expected >> 7 & 1;
            expected <<= 1;
            const uint32_t bit = take_bit(d, &tree[((1 + expected_bit) << 8) + symbol]);
            symbol = symbol << 1 | bit;
            same = bit == expected_bit;
        }
    }
    while (symbol < 0x100)
        symbol = symbol << 1 | take_bit(d, &tree[symbol]);
    d->content[d->written++] = (uint8_t)symbol;
    d->state = d->state < 4 ? 0 : d->state < 10 ? d->state - 3 : d->state - 6;
}

static uint32_t take_length(lzma_decoder *d, length_model *model, uint32_t position)
{
    if (take_bit(d, &model->is_longer) == 0)
        return 2 + take_tree(d, model->low[position], 3);
    if (take_bit(d, &model->is_longest) == 0)
        return 10 + take_tree(d, model->middle[position], 3);
    return 18 + take_tree(d, model->high, 8);
}

static uint32_t take_distance(lzma_decoder *d, uint32_t length)
{
    const uint32_t slot = take_tree(d, d->learned.slots[length < 5 ? length - 2 : 3], 6);
    if (slot < 4)
        return slot;
    const uint32_t bits = slot / 2 - 1;
    const uint32_t base = (2 | (slot & 1)) << bits;
    if (slot < SLOTS_WITH_MODEL) /* the models of a slot lie at its distances less its number, and begin at index 1 there */
        return base + take_tree_reversed(d, d->learned.distances + (base - slot + 1), bits);
    const uint32_t high = take_plain(d, bits - ALIGN_BITS) << ALIGN_BITS;
    return base + high + take_tree_reversed(d, d->learned.align + 1, ALIGN_BITS);
}

/* One of the last four distances becomes the last; gives the length. */
static uint32_t take_repeated(lzma_decoder *d, uint32_t position)
{
    models *m = &d->learned;
    uint32_t which = 0;
    if (take_bit(d, &m->is_older[d->state]) == 0) {
        if (take_bit(d, &m->is_long[d->state][position]) == 0) {
            d->state = d->state < STATES_AFTER_BYTE ? 9 : 11;
            return 1;
        }
    } else if (take_bit(d, &m->is_third[d->state]) == 0) {
        which = 1;
    } else {
        which = 2 + take_bit(d, &m->is_fourth[d->state]);
    }
    const uint32_t distance = d->distance[which];
    for (; which > 0; which--)
        d->distance[which] = d->distance[which - 1];
    d->distance[0] = distance;
    d->state = d->state < STATES_AFTER_BYTE ? 8 : 11;
    return take_length(d, &m->repeated_lengths, position);
}

static uint32_t take_new(lzma_decoder *d, uint32_t position)
{
    const uint32_t length = take_length(d, &d->learned.match_lengths, position);
    d->state = d->state < STATES_AFTER_BYTE ? 7 : 10;
    memmove(d->distance + 1, d->distance, 3 * sizeof d->distance[0]);
    d->distance[0] = take_distance(d, length);
    return length;
}

/* The bytes may be among those that are written here. */
static void repeat(lzma_decoder *d, uint32_t length)
{
    if (d->distance[0] >= d->written || length > d->chunk_end - d->written) {
        d->bad = true;
        return;
    }
    uint8_t *to = d->content + d->written;
    const uint8_t *from = to - d->distance[0] - 1;
    for (uint32_t i = 0; i < length; i++)
        to[i] = from[i];
    d->written += length;
}

/* ---- chunks -------------------------------------------------------------------------------------------------------------- */

size_t lzma_decoder_bytes(void)
{
    return sizeof(lzma_decoder);
}

void lzma_begin(lzma_decoder *d, uint8_t *content, size_t capacity)
{
    memset(d, 0, sizeof *d);
    d->content = content;
    d->capacity = capacity;
}

void lzma_reset(lzma_decoder *d)
{
    probability *all = (probability *)&d->learned;
    for (size_t i = 0; i < sizeof d->learned / sizeof *all; i++)
        all[i] = 1u << (PROBABILITY_BITS - 1);
    d->state = 0;
    memset(d->distance, 0, sizeof d->distance);
}

bool lzma_set_properties(lzma_decoder *d, uint8_t properties)
{
    const uint32_t context_bits = properties % 9;
    const uint32_t literal_bits = properties / 9 % 5;
    const uint32_t position_bits = properties / 45;
    d->ready = position_bits <= 4 && context_bits + literal_bits <= LITERAL_BITS_MAX;
    if (!d->ready)
        return false;
    d->literal_context_bits = context_bits;
    d->literal_position_mask = (1u << literal_bits) - 1;
    d->position_mask = (1u << position_bits) - 1;
    lzma_reset(d);
    return true;
}

bool lzma_copy(lzma_decoder *d, const uint8_t *plain, size_t bytes)
{
    if (bytes > d->capacity - d->written)
        return false;
    memcpy(d->content + d->written, plain, bytes);
    d->written += bytes;
    return true;
}

bool lzma_decode(lzma_decoder *d, const uint8_t *packed, size_t packed_bytes, size_t bytes)
{
    if (!d->ready || packed_bytes < RANGE_BYTES || packed[0] != 0 || bytes > d->capacity - d->written)
        return false;
    d->next = packed + RANGE_BYTES;
    d->end = packed + packed_bytes;
    d->range = UINT32_MAX;
    d->code = (uint32_t)packed[1] << 24 | (uint32_t)packed[2] << 16 | (uint32_t)packed[3] << 8 | packed[4];
    d->chunk_end = d->written + bytes;
    while (d->written < d->chunk_end && !d->bad) {
        const uint32_t position = (uint32_t)d->written & d->position_mask;
        if (take_bit(d, &d->learned.is_match[d->state][position]) == 0) {
            if (d->state >= STATES_AFTER_BYTE && d->distance[0] >= d->written)
                d->bad = true;
            else
                put_byte(d);
        } else {
            const bool repeated = take_bit(d, &d->learned.is_repeated[d->state]) != 0;
            repeat(d, repeated ? take_repeated(d, position) : take_new(d, position));
        }
    }
    normalize(d);
    return !d->bad && d->code == 0 && d->next == d->end;
}
