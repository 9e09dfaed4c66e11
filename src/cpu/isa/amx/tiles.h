/* AMX: whether this machine has it, and its eight tiles of 16 rows of 64 bytes. */
#ifndef WW_CPU_ISA_AMX_TILES_H
#define WW_CPU_ISA_AMX_TILES_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns true if this machine has tiles and `feature`, a bit of EDX of CPUID's leaf 7. Linux enables the tile state only for
 * processes that request it; requesting it twice does no harm. */
static inline bool tiles_present(unsigned feature)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_TILE_DATA = 18, LEAF_EXTENDED_FEATURES = 7, EDX_TILE = 1 << 24 };
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __asm__ volatile("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(0), "c"(0));
    if (eax < LEAF_EXTENDED_FEATURES)
        return false;
    __asm__ volatile("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(LEAF_EXTENDED_FEATURES), "c"(0));
    return (edx & EDX_TILE) && (edx & feature) && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) == 0;
}

typedef struct tile_config {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t bytes[16]; /* bytes per row of each tile */
    uint8_t rows[16];
} tile_config;

/* Called before a thread's first tile instruction and after its last. The configuration is not on the stack, because some
 * compilers drop writes to memory that only this instruction reads. */
static inline void tiles_begin(void)
{
    static const tile_config config = {
        .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&config);
}

static inline void tiles_end(void)
{
    _tile_release();
}

#endif
