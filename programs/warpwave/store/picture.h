/* Points in the plane as a picture: SVG, or a PNG with a palette. */
#ifndef CLI_STORE_PICTURE_H
#define CLI_STORE_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/files/output.h"

enum { PICTURE_CLASSES = 12, PICTURE_LABEL_BYTES = 64 };

/* Points of one class share a colour; class 0 is for points of no other class. */
typedef struct picture_class {
    char label[PICTURE_LABEL_BYTES];
    int64_t count;
} picture_class;

typedef struct picture {
    const float *points; /* x and y per point */
    int64_t count;
    const uint8_t *classes; /* class per point; NULL: all points are class 1 */
    picture_class legend[PICTURE_CLASSES];
    const char *title; /* of the legend; NULL: no legend */
    bool ordered;      /* classes from 1 on are ordered, and get a colour scale */
} picture;

/* The colour of a class as 0xrrggbb. */
uint32_t picture_colour(const picture *p, int which);

ww_status picture_write_svg(const picture *p, output *to);
ww_status picture_write_png(const picture *p, output *to);

#endif
