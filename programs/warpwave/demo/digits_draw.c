/* Digits as pictures. Eight by eight pixels are drawn as sixteen by sixteen, smoothed in between. A character is about twice as
 * high as wide, so sixteen columns and eight lines make a square, and a half block shows two pixels of it. */
#include <stdio.h>

#include "warpwave/demo/digits.h"

enum { FINE_SIDE = 2 * DIGIT_SIDE, GRAY_FIRST = 232, GRAY_COUNT = 24 };

static const char shades[] = " .:-=+*#%@";

/* Ink, 0 to 1, at a fine pixel: three quarters of the nearest pixel and one quarter of the next, in each direction. */
static float fine_ink(const float *pixels, int row, int column)
{
    const int rows[2] = {row / 2, row / 2 + (row % 2 ? 1 : -1)};
    const int columns[2] = {column / 2, column / 2 + (column % 2 ? 1 : -1)};
    const float weights[2] = {0.75f, 0.25f};
    float ink = 0.0f;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (rows[i] >= 0 && rows[i] < DIGIT_SIDE && columns[j] >= 0 && columns[j] < DIGIT_SIDE)
                ink += weights[i] * weights[j] * pixels[rows[i] * DIGIT_SIDE + columns[j]];
    return ink / (float)DIGIT_INK_MAX;
}

static int gray(float ink)
{
    return GRAY_FIRST + (int)(ink * (float)(GRAY_COUNT - 1) + 0.5f);
}

static void draw_line(const float *pixels, int line, bool pictures)
{
    for (int column = 0; column < FINE_SIDE; column++) {
        const float upper = fine_ink(pixels, 2 * line, column), lower = fine_ink(pixels, 2 * line + 1, column);
        if (pictures)
            printf("\033[38;5;%d;48;5;%dm\u2580", gray(upper), gray(lower));
        else
            putchar(shades[(int)((upper + lower) * 0.5f * (float)(sizeof shades - 2) + 0.5f)]);
    }
    if (pictures)
        fputs("\033[0m", stdout);
}

void digits_draw(const float *const *pixels, const char *const *captions, int count, bool pictures)
{
    for (int line = 0; line < FINE_SIDE / 2; line++)
        for (int i = 0; i < count; i++) {
            draw_line(pixels[i], line, pictures);
            printf("%*s", i + 1 < count ? PICTURE_GAP : 0, "");
            if (i + 1 == count)
                putchar('\n');
        }
    for (int i = 0; i + 1 < count; i++)
        printf("%-*s", PICTURE_COLUMNS + PICTURE_GAP, captions[i]);
    printf("%s\n", captions[count - 1]);
}
