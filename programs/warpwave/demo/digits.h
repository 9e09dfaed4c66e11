/* The handwritten digits of data/digits.csv. They are part of the command, so `warpwave demo` works anywhere. */
#ifndef CLI_DIGITS_H
#define CLI_DIGITS_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/vectors.h>

#include "base/status.h"

enum { DIGIT_SIDE = 8, DIGIT_PIXELS = DIGIT_SIDE * DIGIT_SIDE, DIGIT_INK_MAX = 16, DIGIT_COUNT = 1797 };

typedef struct digits {
    float pixels[DIGIT_COUNT][DIGIT_PIXELS]; /* 0 is paper, 16 ink */
    int labels[DIGIT_COUNT];                 /* 0 to 9 */
} digits;

/* Reads the digits; the caller frees them with memory_free(). */
ww_status digits_read(digits **made);

/* Opens the collection of a store that `config` names, or makes it. Refuses a collection with another dimension or metric. */
#ifdef WARPWAVE_WITH_TEXT
ww_status digits_in_store(const char *path, ww_device *device, const ww_collection_config *config, ww_collection **collection);
#else
#define digits_in_store(path, device, config, collection) command_left_out("store")
#endif

/* Draws `count` digits side by side on stdout, each PICTURE_COLUMNS wide with a gap between them, and `captions` beneath. Uses
 * half blocks and grays if `pictures` is set, else characters. */
enum { PICTURE_COLUMNS = 16, PICTURE_GAP = 2 };
void digits_draw(const float *const *pixels, const char *const *captions, int count, bool pictures);

#endif
