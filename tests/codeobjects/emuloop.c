/* Dispatch loop for run_hsaco.py: executes per-instruction host functions compiled by the emulator.
 * Returns to Python at: program end, barrier, not-yet-compiled pc, memory fault, instruction budget. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "count.h"

typedef void (*fn_t)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
// akind: 0 none, 1 LDS access (address VGPR is bounds-checked), 2 global/flat atomic, 3 DPP.  For 1 and 2, inactive lanes
// borrow the first active lane's address while the host function runs (the emulator touches memory for inactive lanes too).
typedef struct {
    fn_t fn;
    uint8_t idx[6];
    uint8_t barrier, nop_bytes;
    uint64_t count;
    uint8_t akind, areg, aregs, inst_bytes;
    uint32_t off0, off1, size;
    uint8_t special, sdst, ssrc, pad;
    int32_t imm;
} entry_t;
typedef struct {
    uint64_t buf[6];
    loading_t loading;
} wave_t; // sgpr vgpr vmem lds scratch acc
enum {
    SP_GETPC = 1,
    SP_SETPC,
    SP_SWAPPC,
    SP_CALL,
    SP_SWIZZLE,
    SP_APERTURE,
    SP_MAD,
    SP_MFMA,
    SP_MAC,
    SP_STORE,
    SP_CARRY,
    SP_PERMLANEX,
    SP_HALF
}; // implemented here: the emulator lacks them
enum { R_END = 0, R_BARRIER = 1, R_COMPILE = 2, R_FAULT = 3, R_BUDGET = 4, R_BADPC = 5, R_LDS = 6 };
static __thread sigjmp_buf jb;
static __thread uint64_t fault_addr;
static void on_segv(int s, siginfo_t *si, void *u)
{
    (void)s;
    (void)u;
    fault_addr = (uint64_t)si->si_addr;
    siglongjmp(jb, 1);
}
#if defined(__aarch64__)
static uint64_t get_fp(void)
{
    uint64_t v;
    __asm__ volatile("mrs %0,fpcr" : "=r"(v));
    return v;
}
static void set_fp(uint64_t v)
{
    __asm__ volatile("msr fpcr,%0" ::"r"(v));
}
#define FTZ_BITS (1ull << 24)
#else
static uint64_t get_fp(void)
{
    uint32_t m;
    __asm__ volatile("stmxcsr %0" : "=m"(m));
    return m;
}
static void set_fp(uint64_t v)
{
    uint32_t m = (uint32_t)v;
    __asm__ volatile("ldmxcsr %0" ::"m"(m));
}
#define FTZ_BITS 0x8040ull
#endif
// v_mad_f32 of gfx90a: two roundings.
static void mad_f32(const uint32_t *in, const uint32_t *sg, uint32_t *vg, int ws)
{
    uint64_t ex = sg[126] | (ws == 64 ? (uint64_t)sg[127] << 32 : 0);
    for (int l = 0; l < ws; l++) {
        float v[3];
        for (int i = 0; i < 3; i++) {
            uint32_t src = in[1] >> 9 * i & 511, bits = src >= 256 ? vg[(src - 256) * ws + l] : sg[src];
            if (in[0] >> (8 + i) & 1)
                bits &= 0x7fffffff;
            bits ^= in[1] >> (29 + i) << 31;
            memcpy(&v[i], &bits, 4);
        }
        volatile float product = v[0] * v[1];
        float sum = product + v[2];
        if (ex >> l & 1)
            memcpy(&vg[(in[0] & 255) * ws + l], &sum, 4);
    }
}
// v_mac_f32, v_madmk_f32 and v_madak_f32 of gfx90a in their short forms: two roundings. The word behind is a literal, or the
// constant.
static void mac_f32(const uint32_t *in, const uint32_t *sg, uint32_t *vg, int ws)
{
    uint64_t ex = sg[126] | (ws == 64 ? (uint64_t)sg[127] << 32 : 0);
    uint32_t op = in[0] >> 25 & 63, src = in[0] & 511;
    for (int l = 0; l < ws; l++) {
        uint32_t x = src == 255 ? in[1] : src >= 256 ? vg[(src - 256) * ws + l] : sg[src];
        uint32_t y = vg[(in[0] >> 9 & 255) * ws + l], *to = &vg[(in[0] >> 17 & 255) * ws + l];
        uint32_t bits[3] = {x, op == 23 ? in[1] : y, op == 22 ? *to : op == 23 ? y : in[1]};
        float v[3];
        memcpy(v, bits, sizeof v);
        volatile float product = v[0] * v[1];
        float sum = product + v[2];
        if (ex >> l & 1)
            memcpy(to, &sum, 4);
    }
}
// v_mfma_i32_16x16x16i8 of gfx90a. Lane l has bytes 4*(l/16).. of row (of b: column) l%16 in, and rows 4*(l/16).. of column
// l%16 out.
static void mfma_i8(const uint32_t *in, const uint32_t *sg, uint32_t *vg, uint32_t *acc)
{
    uint32_t src[3] = {in[1] & 511, in[1] >> 9 & 511, in[1] >> 18 & 511};
    uint32_t *to = (in[0] >> 15 & 1 ? acc : vg) + (in[0] & 255) * 64, out[4][64];
    const uint32_t *a = (in[1] >> 27 & 1 ? acc : vg) + (src[0] - 256) * 64,
                   *b = (in[1] >> 28 & 1 ? acc : vg) + (src[1] - 256) * 64;
    for (int l = 0; l < 64; l++)
        for (int r = 0; r < 4; r++) {
            uint32_t sum = src[2] >= 256 ? (in[0] >> 15 & 1 ? acc : vg)[(src[2] - 256 + r) * 64 + l] : sg[src[2]];
            for (int k = 0; k < 16; k++) {
                int8_t x = (int8_t)(a[k / 4 * 16 + l / 16 * 4 + r] >> k % 4 * 8),
                       y = (int8_t)(b[k / 4 * 16 + l % 16] >> k % 4 * 8);
                sum += (uint32_t)(x * y);
            }
            out[r][l] = sum;
        }
    memcpy(to, out, sizeof out);
}
// global_store of whole dwords, which may begin at any byte; the emulator rounds the address down. `pad`: the data is in
// accumulators.
static void store_global(const entry_t *e, const uint32_t *sg, const uint32_t *vg, const uint32_t *acc, int ws)
{
    uint64_t ex = sg[126] | (ws == 64 ? (uint64_t)sg[127] << 32 : 0);
    const uint32_t *data = (e->pad ? acc : vg) + e->sdst * ws, *address = vg + e->areg * ws;
    for (int l = 0; l < ws; l++) {
        uint64_t base = e->aregs == 2 ? (uint64_t)address[ws + l] << 32 : sg[e->ssrc] | (uint64_t)sg[e->ssrc + 1] << 32;
        char *to = (char *)(base + address[l] + (int64_t)e->imm);
        if (ex >> l & 1)
            for (uint32_t d = 0; d < e->size; d++)
                memcpy(to + 4 * d, &data[d * ws + l], 4);
    }
}
// The part of a register that SDWA selects: a byte, half or all of it, with a sign or without.
static uint32_t selected(uint32_t value, uint32_t select, int sign)
{
    if (select < 4)
        return sign ? (uint32_t)(int8_t)(value >> 8 * select) : value >> 8 * select & 255;
    if (select < 6)
        return sign ? (uint32_t)(int16_t)(value >> 16 * (select - 4)) : value >> 16 * (select - 4) & 65535;
    return value;
}
// v_add_co_u32, v_sub_co_u32 and v_subrev_co_u32 of CDNA with SDWA: the emulator forgets the carry, which goes to VCC.
static void add_carry(const uint32_t *in, uint32_t *sg, uint32_t *vg, int ws)
{
    uint64_t ex = sg[126] | (ws == 64 ? (uint64_t)sg[127] << 32 : 0), carry = 0;
    uint32_t op = in[0] >> 25 & 63, src0 = in[1] & 255, src1 = in[0] >> 9 & 255;
    for (int l = 0; l < ws; l++) {
        uint32_t x = selected(in[1] >> 23 & 1 ? sg[src0] : vg[src0 * ws + l], in[1] >> 16 & 7, in[1] >> 19 & 1);
        uint32_t y = selected(in[1] >> 31 ? sg[src1] : vg[src1 * ws + l], in[1] >> 24 & 7, in[1] >> 27 & 1);
        uint32_t first = op == 27 ? y : x, second = op == 27 ? x : y, out = op == 25 ? first + second : first - second;
        if (!(ex >> l & 1))
            continue;
        carry |= (uint64_t)(op == 25 ? out < first : first < second) << l;
        vg[(in[0] >> 17 & 255) * ws + l] = out;
    }
    sg[106] = (uint32_t)carry;
    sg[107] = (uint32_t)(carry >> 32);
}
/* The lane that lane `l` takes its operand from: any of four, turned by 8 in 16 lanes, or those 16 or 8 lanes backwards. */
/* -1: none, which gives 0 */
static int dpp_lane(uint32_t control, int l)
{
    if (control > 0x110 && control < 0x120) /* rows of 16 lanes are shifted */
        return (l & 15) >= (int)(control & 15) ? l - (int)(control & 15) : -1;
    return control <= 0xff ? (l & ~3) | (int)(control >> (l & 3) * 2 & 3)
                           : l ^ (control == 0x128   ? 8
                                  : control == 0x140 ? 15
                                                     : 7);
}
static void call(const wave_t *w, const entry_t *e)
{
    e->fn(w->buf[e->idx[0]], w->buf[e->idx[1]], w->buf[e->idx[2]], w->buf[e->idx[3]], w->buf[e->idx[4]], w->buf[e->idx[5]]);
}
/* Calls the instruction with the operands of the other lanes in register areg (run_hsaco.py). */
static void call_dpp(wave_t *w, const entry_t *e, const uint32_t *sg, int ws)
{
    uint32_t *vg = (uint32_t *)w->buf[1], *spare = vg + e->areg * ws, save[64];
    const uint64_t ex = sg[126] | (ws == 64 ? (uint64_t)sg[127] << 32 : 0);
    memcpy(save, spare, (size_t)ws * 4);
    uint32_t from[64];
    memcpy(from, vg + e->aregs * ws, (size_t)ws * 4);
    for (int l = 0; l < ws; l++) {
        const int j = dpp_lane(e->off0, l);
        spare[l] = j >= 0 && ex >> j & 1 ? from[j] : 0;
    }
    call(w, e);
    memcpy(spare, save, (size_t)ws * 4);
}
static uint32_t scalar_of(const uint32_t *in, const uint32_t *sg, uint32_t operand)
{
    return operand < 128 ? sg[operand] : operand == 255 ? in[2] : operand <= 192 ? operand - 128 : 192 - operand;
}
/* Each lane reads from the other sixteen of its 32 the lane that its four bits select. A lane that has ended has no value. */
static void permlanex(const entry_t *e, const uint32_t *in, const uint32_t *sg, uint32_t *vg, int ws)
{
    const uint64_t which = scalar_of(in, sg, e->off0) | (uint64_t)scalar_of(in, sg, e->off1) << 32;
    const uint64_t ex = sg[126] | (ws == 64 ? (uint64_t)sg[127] << 32 : 0);
    uint32_t from[64];
    memcpy(from, vg + e->ssrc * ws, (size_t)ws * 4);
    for (int l = 0; l < ws; l++) {
        const int j = ((l & ~15) ^ 16) | (int)(which >> (l & 15) * 4 & 15);
        if ((ex >> l & 1) && (ex >> j & 1))
            vg[e->sdst * ws + l] = from[j];
    }
}
static void jump(uint32_t *sg, uint64_t pc)
{
    sg[256] = (uint32_t)pc;
    sg[257] = (uint32_t)(pc >> 32);
}
static void special(entry_t *e, uint32_t *sg, uint32_t *vg, uint32_t *acc, uint64_t pc, int ws)
{
    const uint32_t *in = (const uint32_t *)pc;
    if (e->special == SP_MAD)
        mad_f32(in, sg, vg, ws);
    if (e->special == SP_MAC)
        mac_f32(in, sg, vg, ws);
    if (e->special == SP_CARRY)
        add_carry(in, sg, vg, ws);
    if (e->special == SP_STORE)
        store_global(e, sg, vg, acc, ws);
    if (e->special == SP_MFMA)
        mfma_i8(in, sg, vg, acc);
    if (e->special == SP_PERMLANEX)
        permlanex(e, in, sg, vg, ws);
    uint64_t next = pc + e->inst_bytes, ret = pc + 4, src = sg[e->ssrc] | ((uint64_t)sg[e->ssrc + 1] << 32);
    if (e->special == SP_GETPC || e->special == SP_SWAPPC || e->special == SP_CALL) {
        sg[e->sdst] = (uint32_t)ret;
        sg[e->sdst + 1] = (uint32_t)(ret >> 32);
    }
    if (e->special == SP_SETPC || e->special == SP_SWAPPC)
        next = src;
    if (e->special == SP_CALL)
        next = pc + 4 + (int64_t)e->imm * 4;
    if (e->special == SP_APERTURE) {
        sg[e->sdst] = 0;
        sg[e->sdst + 1] = (uint32_t)e->imm;
    } // s_mov_b64 sdst, src_shared_base / src_private_base
    if (e->special == SP_SWIZZLE) {
        uint32_t off = (uint32_t)e->imm, out[64];
        uint64_t ex = sg[126] | (ws == 64 ? (uint64_t)sg[127] << 32 : 0);
        for (int l = 0; l < ws; l++) {
            int j;
            if (off & 0x8000)
                j = (l & ~3) | ((off >> ((l & 3) * 2)) & 3); // quad permute
            else
                j = (l & ~31) | ((((l & 31) & (off & 31)) | ((off >> 5) & 31)) ^ ((off >> 10) & 31)); // and/or/xor in 32 lanes
            out[l] = (ex >> j & 1) ? vg[e->ssrc * ws + j] : 0;
        }
        for (int l = 0; l < ws; l++)
            if (ex >> l & 1)
                vg[e->sdst * ws + l] = out[l];
    }
    jump(sg, next);
}
/* ---- the loop ------------------------------------------------------------------------------------------------------------ */

enum { GO_ON = -1 }; // instead of a reason to return to Python
typedef struct {
    wave_t *w;
    entry_t *tab;
    uint64_t base, n, *budget, *out_addr;
    int ws;
    uint32_t lds_bytes;
} run_t;
// The first active lane whose address is outside of LDS, or -1.
static int lane_outside(const run_t *r, const entry_t *e, const uint32_t *vg, uint64_t ex)
{
    for (int l = 0; l < r->ws; l++)
        if ((ex >> l & 1) && ((uint64_t)(uint32_t)(vg[l] + e->off0) + e->size > r->lds_bytes ||
                              (uint64_t)(uint32_t)(vg[l] + e->off1) + e->size > r->lds_bytes))
            return l;
    return -1;
}
// Calls an instruction that touches memory; inactive lanes borrow the first active lane's address meanwhile.
static int call_with_addresses(const run_t *r, const entry_t *e, uint32_t *sg, uint64_t pc)
{
    uint32_t *vg = (uint32_t *)r->w->buf[1] + (uint64_t)e->areg * r->ws, save[2][64];
    const uint64_t ex = sg[126] | (r->ws == 64 ? (uint64_t)sg[127] << 32 : 0);
    if (!ex) {
        jump(sg, pc + e->inst_bytes);
        return GO_ON;
    }
    const int first = __builtin_ctzll(ex), bad = e->akind == 1 ? lane_outside(r, e, vg, ex) : -1;
    if (bad >= 0) {
        *r->out_addr = (uint64_t)bad << 32 | vg[bad];
        return R_LDS;
    }
    for (int a = 0; a < e->aregs; a++) {
        memcpy(save[a], vg + a * r->ws, (size_t)r->ws * 4);
        for (int l = 0; l < r->ws; l++)
            if (!(ex >> l & 1))
                vg[a * r->ws + l] = vg[a * r->ws + first];
    }
    call(r->w, e);
    for (int a = 0; a < e->aregs; a++)
        for (int l = 0; l < r->ws; l++)
            if (!(ex >> l & 1))
                vg[a * r->ws + l] = save[a][l];
    return GO_ON;
}
// ds_load_*_d16: a byte or two bytes of LDS go to one half of a register, whose other half stays (the emulator sets it to 0,
// and writes the upper form to the lower half). `size` bytes, with a sign if `imm`; `pad`: to the upper half.
static int load_half(const run_t *r, const entry_t *e, uint32_t *sg, uint64_t pc)
{
    uint32_t *vg = (uint32_t *)r->w->buf[1], *to = vg + (uint64_t)e->sdst * r->ws, *at = vg + (uint64_t)e->areg * r->ws;
    const uint64_t ex = sg[126] | (r->ws == 64 ? (uint64_t)sg[127] << 32 : 0);
    const int bad = lane_outside(r, e, at, ex);
    if (bad >= 0) {
        *r->out_addr = (uint64_t)bad << 32 | at[bad];
        return R_LDS;
    }
    for (int l = 0; l < r->ws; l++) {
        uint16_t value = 0;
        if (!(ex >> l & 1))
            continue;
        memcpy(&value, (const char *)r->w->buf[3] + at[l] + e->off0, e->size);
        if (e->size == 1 && e->imm)
            value = (uint16_t)(int8_t)value;
        to[l] = e->pad ? (to[l] & 0xffff) | (uint32_t)value << 16 : (to[l] & 0xffff0000) | value;
    }
    jump(sg, pc + e->inst_bytes);
    return GO_ON;
}
// Executes one instruction.
static int step(const run_t *r)
{
    wave_t *w = r->w;
    uint32_t *sg = (uint32_t *)w->buf[0];
    const uint64_t pc = sg[256] | ((uint64_t)sg[257] << 32), i = (pc - r->base) >> 2;
    if (pc == ~0ull)
        return R_END;
    if (i >= r->n)
        return R_BADPC;
    entry_t *e = &r->tab[i];
    if (!e->fn && !e->nop_bytes && !e->special)
        return R_COMPILE;
    if (*r->budget == 0)
        return R_BUDGET;
    --*r->budget;
    e->count++;
    if (w->loading.counter)
        count_instruction(&w->loading, i, sg, (uint32_t *)w->buf[1], r->ws);
    int rc = GO_ON;
    if (e->nop_bytes)
        jump(sg, pc + e->nop_bytes);
    else if (e->special == SP_HALF)
        rc = load_half(r, e, sg, pc);
    else if (e->special)
        special(e, sg, (uint32_t *)w->buf[1], (uint32_t *)w->buf[5], pc, r->ws);
    else if (e->akind == 3)
        call_dpp(w, e, sg, r->ws);
    else if (e->akind)
        rc = call_with_addresses(r, e, sg, pc);
    else
        call(w, e);
    return rc == GO_ON && e->barrier ? R_BARRIER : rc;
}
int emu_run(wave_t *w, entry_t *tab, uint64_t base, uint64_t n, uint64_t *budget, int ftz, uint64_t *out_addr, int ws,
            uint32_t lds_bytes)
{
    const run_t r = {w, tab, base, n, budget, out_addr, ws, lds_bytes};
    struct sigaction sa, o1, o2;
    volatile int rc;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_segv;
    sa.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &sa, &o1);
    sigaction(SIGBUS, &sa, &o2);
    uint64_t fp = get_fp();
    set_fp(ftz ? fp | FTZ_BITS : fp & ~FTZ_BITS);
    if (sigsetjmp(jb, 1)) {
        rc = R_FAULT;
        *out_addr = fault_addr;
    } else
        do
            rc = step(&r);
        while (rc == GO_ON);
    set_fp(fp);
    sigaction(SIGSEGV, &o1, 0);
    sigaction(SIGBUS, &o2, 0);
    return rc;
}
