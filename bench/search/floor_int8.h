/* Measures how fast this machine multiplies bytes in registers, with the instruction that the library's screen uses.
 *
 * Part of floor.c, which is compiled for this machine: an instruction that the compiler does not enable here is one that the
 * machine does not have. WARPWAVE_ISA chooses among the others as in the library.
 */
#ifndef WW_BENCH_FLOOR_INT8_H
#define WW_BENCH_FLOOR_INT8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* One step of `work` makes `products` products of two bytes and adds them up. */
typedef struct int8_way {
    const char *set;  /* the library's instruction set */
    const char *name; /* of the instruction */
    double products;
    size_t steps; /* enough for about ten milliseconds */
    bool (*present)(void);
    double (*work)(size_t steps);
} int8_way;

static bool int8_present(void)
{
    return true;
}

/* Independent sums hide the latency of the instruction: five cycles with two of them in each on x86, three with four on Arm.
 * The compiler cannot know the operands, so it removes none. */
#define INT8_SUMS 12
#define INT8_LOOP(type, zero, keep, operation)                                                                                 \
    type sums[INT8_SUMS], a = (zero), b = (zero);                                                                              \
    for (int j = 0; j < INT8_SUMS; j++)                                                                                        \
        sums[j] = (zero);                                                                                                      \
    for (size_t i = 0; i < steps; i++)                                                                                         \
        _Pragma("GCC unroll 12") for (int j = 0; j < INT8_SUMS; j++)                                                           \
        {                                                                                                                      \
            __asm__ volatile("" : keep(a), keep(b));                                                                           \
            sums[j] = (operation);                                                                                             \
        }                                                                                                                      \
    for (int j = 1; j < INT8_SUMS; j++)                                                                                        \
        sums[0] += sums[j];                                                                                                    \
    return (double)sums[0][0];

#if defined(__AMX_INT8__)
/* The process has to ask the system for the tiles; 18 is their data. */
static bool int8_amx_present(void)
{
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

static double int8_amx(size_t steps)
{
    static const struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1, .bytes = {64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&config);
    for (size_t i = 0; i < steps; i++) {
        _tile_dpbssd(0, 4, 5);
        _tile_dpbssd(1, 4, 5);
        _tile_dpbssd(2, 4, 5);
        _tile_dpbssd(3, 4, 5);
    }
    _tile_release();
    return 0.0;
}
#endif

#if defined(__AVX512VNNI__)
static double int8_avx512_vnni(size_t steps)
{
    INT8_LOOP(__m512i, _mm512_setzero_si512(), "+v", _mm512_dpbusd_epi32(sums[j], a, b))
}
#endif

#if defined(__AVXVNNI__)
static double int8_avx_vnni(size_t steps)
{
    INT8_LOOP(__m256i, _mm256_setzero_si256(), "+x", _mm256_dpbusd_avx_epi32(sums[j], a, b))
}
#endif

#if defined(__AVX2__)
static double int8_avx2(size_t steps)
{
    INT8_LOOP(__m256i, _mm256_setzero_si256(), "+x", _mm256_add_epi32(sums[j], _mm256_madd_epi16(a, b)))
}
#endif

#if defined(__ARM_FEATURE_MATMUL_INT8)
static double int8_i8mm(size_t steps)
{
    INT8_LOOP(int32x4_t, vdupq_n_s32(0), "+w", vmmlaq_s32(sums[j], vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b)))
}
#endif

#if defined(__ARM_FEATURE_DOTPROD)
static double int8_dotprod(size_t steps)
{
    INT8_LOOP(int32x4_t, vdupq_n_s32(0), "+w", vdotq_s32(sums[j], vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b)))
}
#endif

static const int8_way int8_ways[] = {
#if defined(__AMX_INT8__)
    {"amx", "AMX", 4 * 16 * 16 * 64, 1000000, int8_amx_present, int8_amx},
#endif
#if defined(__AVX512VNNI__)
    {"avx512", "AVX-512 VNNI", INT8_SUMS * 64, 10000000, int8_present, int8_avx512_vnni},
#endif
#if defined(__AVXVNNI__)
    {"avx2", "AVX-VNNI", INT8_SUMS * 32, 10000000, int8_present, int8_avx_vnni},
#endif
#if defined(__AVX2__)
    {"avx2", "AVX2", INT8_SUMS * 16, 10000000, int8_present, int8_avx2},
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
    {"neon", "SMMLA", INT8_SUMS * 32, 10000000, int8_present, int8_i8mm},
#endif
#if defined(__ARM_FEATURE_DOTPROD)
    {"neon", "SDOT", INT8_SUMS * 16, 10000000, int8_present, int8_dotprod},
#endif
    {NULL, NULL, 0, 0, int8_present, NULL},
};

/* Returns the way that the library uses; one without a name if there is none. */
static const int8_way *int8_way_here(void)
{
    const char *asked = getenv("WARPWAVE_ISA");
    const int8_way *way = int8_ways;
    while (way->name && !(way->present() && (!asked || !*asked || strcmp(asked, way->set) == 0)))
        way++;
    return way;
}

#endif
