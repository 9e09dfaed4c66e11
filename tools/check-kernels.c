/* Checks compiled kernels and packs them for embedding: the second half of the build step that compiles a module for a chip.
 *
 *     check-kernels OBJECT KERNELS_DEF ALLOWED [PTXAS_REPORT CUBIN]
 *
 * OBJECT is MODULE.CHIP.hsaco or MODULE.CHIP.ptx. A kernel must not use scratch (local) memory or spill registers, except for
 * those in ALLOWED (scripts/kernels/kernels-allowed); its shared memory must fit, its waves must have the intended size, and
 * every kernel of KERNELS_DEF must exist. Writes OBJECT.txt, one line per kernel for scripts/kernels/kernel-resources.sh, and
 * OBJECT.zst. With the report of `ptxas -v`, the only source of registers and spills of PTX, and the cubin that it made, it
 * writes PTXAS_REPORT.txt and CUBIN.zst instead. This is a C program because a shell and its tools took longer to start than
 * most modules take to compile.
 */
#include <fnmatch.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { KERNELS_MAX = 256, NAME_MAX_BYTES = 128, UNKNOWN = -1, LEVEL = 15, NOTE_METADATA = 32, SECTION_NOTE = 7 };

typedef struct kernel_row {
    char name[NAME_MAX_BYTES];
    long wave, vgprs, sgprs, shared, scratch, spills, threads,
        scalars; /* scalars: scalar registers kept in lanes of vector ones */
} kernel_row;

static char module[NAME_MAX_BYTES], chip[NAME_MAX_BYTES];
static kernel_row rows[KERNELS_MAX];
static int row_count, problem_count;

static void problem(const char *kernel, const char *what)
{
    fprintf(stderr, "check-kernels: %s for %s: %s%s%s\n", module, chip, kernel, *kernel ? ": " : "", what);
    problem_count++;
}

static _Noreturn void give_up(const char *path, const char *why)
{
    fprintf(stderr, "check-kernels: %s: %s\n", path, why);
    exit(1);
}

/* Reads a whole file, followed by a NUL. */
static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        give_up(path, "cannot be read");
    const long size = ftell(file);
    char *data = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (data == NULL || fseek(file, 0, SEEK_SET) != 0 || fread(data, 1, (size_t)size, file) != (size_t)size)
        give_up(path, "cannot be read");
    fclose(file);
    data[size] = '\0';
    *bytes = (size_t)size;
    return data;
}

static kernel_row *row_new(const char *name, size_t length)
{
    if (row_count == KERNELS_MAX || length >= NAME_MAX_BYTES)
        give_up(module, "more kernels, or longer names, than check-kernels has room for");
    kernel_row *row = &rows[row_count++];
    *row = (kernel_row){.vgprs = UNKNOWN, .sgprs = UNKNOWN, .spills = UNKNOWN, .threads = UNKNOWN};
    memcpy(row->name, name, length);
    return row;
}

/* ---- AMD: a note of the ELF file, in MessagePack ------------------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *at, *end;
} reader;

typedef struct item {
    enum { ITEM_NUMBER, ITEM_TEXT, ITEM_LIST, ITEM_MAP } kind;
    uint64_t number; /* or how many items, pairs or bytes */
    const char *text;
} item;

static uint64_t big_endian(reader *r, size_t bytes)
{
    uint64_t value = 0;
    if ((size_t)(r->end - r->at) < bytes)
        give_up(module, "the notes end early");
    while (bytes-- > 0)
        value = value << 8 | *r->at++;
    return value;
}

static item read_item(reader *r)
{
    const unsigned tag = (unsigned)big_endian(r, 1);
    item it = {ITEM_NUMBER, 0, NULL};
    if (tag < 0x80)
        it.number = tag;
    else if (tag < 0x90)
        it = (item){ITEM_MAP, tag & 15, NULL};
    else if (tag < 0xa0)
        it = (item){ITEM_LIST, tag & 15, NULL};
    else if (tag < 0xc0)
        it = (item){ITEM_TEXT, tag & 31, NULL};
    else if (tag <= 0xc3)
        it.number = tag == 0xc3;
    else if (tag >= 0xcc && tag <= 0xcf)
        it.number = big_endian(r, (size_t)1 << (tag - 0xcc));
    else if (tag >= 0xd0 && tag <= 0xd3)
        it.number = big_endian(r, (size_t)1 << (tag - 0xd0));
    else if (tag >= 0xd9 && tag <= 0xdb)
        it = (item){ITEM_TEXT, big_endian(r, (size_t)1 << (tag - 0xd9)), NULL};
    else if (tag == 0xdc || tag == 0xdd)
        it = (item){ITEM_LIST, big_endian(r, tag == 0xdc ? 2 : 4), NULL};
    else if (tag == 0xde || tag == 0xdf)
        it = (item){ITEM_MAP, big_endian(r, tag == 0xde ? 2 : 4), NULL};
    else
        give_up(module, "the notes have something that code objects do not");
    if (it.kind == ITEM_TEXT) {
        if ((uint64_t)(r->end - r->at) < it.number)
            give_up(module, "the notes end early");
        it.text = (const char *)r->at;
        r->at += it.number;
    }
    return it;
}

static void skip_contents(reader *r, const item *it)
{
    if (it->kind == ITEM_LIST || it->kind == ITEM_MAP)
        for (uint64_t i = 0; i < it->number * (it->kind == ITEM_MAP ? 2 : 1); i++) {
            const item inner = read_item(r);
            skip_contents(r, &inner);
        }
}

static bool is_key(const item *it, const char *key)
{
    return it->kind == ITEM_TEXT && it->number == strlen(key) && memcmp(it->text, key, it->number) == 0;
}

static void read_kernel(reader *r)
{
    const item map = read_item(r);
    kernel_row *row = row_new("", 0);
    row->spills = 0;
    for (uint64_t i = 0; map.kind == ITEM_MAP && i < map.number; i++) {
        const item key = read_item(r);
        const item value = read_item(r);
        const struct {
            const char *key;
            long *to;
        } numbers[] = {
            {".wavefront_size", &row->wave},
            {".vgpr_count", &row->vgprs},
            {".sgpr_count", &row->sgprs},
            {".group_segment_fixed_size", &row->shared},
            {".private_segment_fixed_size", &row->scratch},
            {".vgpr_spill_count", &row->spills},
            {".sgpr_spill_count", &row->scalars},
            {".max_flat_workgroup_size", &row->threads},
        };
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            if (is_key(&key, numbers[n].key) && value.kind == ITEM_NUMBER)
                *numbers[n].to = (long)value.number;
        if (is_key(&key, ".name") && value.kind == ITEM_TEXT && value.number < NAME_MAX_BYTES)
            memcpy(row->name, value.text, value.number);
        skip_contents(r, &value);
    }
}

static void read_metadata(reader r)
{
    const item map = read_item(&r);
    for (uint64_t i = 0; map.kind == ITEM_MAP && i < map.number; i++) {
        const item key = read_item(&r);
        const bool kernels = is_key(&key, "amdhsa.kernels");
        const item value = read_item(&r);
        for (uint64_t k = 0; kernels && value.kind == ITEM_LIST && k < value.number; k++)
            read_kernel(&r);
        if (!kernels)
            skip_contents(&r, &value);
    }
}

static uint64_t little_endian(const char *data, size_t bytes, size_t at, size_t width)
{
    uint64_t value = 0;
    if (at > bytes || bytes - at < width)
        give_up(module, "not a whole ELF file");
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)(uint8_t)data[at + i] << (8 * i);
    return value;
}

static void read_code_object(const char *data, size_t bytes)
{
    if (bytes < 64 || memcmp(data, "\177ELF\2\1", 6) != 0)
        give_up(module, "not an ELF file of 64 bits");
    const size_t sections = little_endian(data, bytes, 0x28, 8), size = little_endian(data, bytes, 0x3a, 2),
                 count = little_endian(data, bytes, 0x3c, 2);
    for (size_t i = 0; i < count; i++) {
        const size_t section = sections + i * size;
        if (little_endian(data, bytes, section + 4, 4) != SECTION_NOTE)
            continue;
        size_t at = little_endian(data, bytes, section + 24, 8);
        const size_t end = at + little_endian(data, bytes, section + 32, 8);
        while (at + 12 <= end) {
            const size_t name = (little_endian(data, bytes, at, 4) + 3) & ~(size_t)3,
                         length = little_endian(data, bytes, at + 4, 4);
            const uint64_t type = little_endian(data, bytes, at + 8, 4);
            at += 12 + name;
            if (at > bytes || length > bytes - at)
                give_up(module, "the notes end early");
            if (type == NOTE_METADATA)
                read_metadata((reader){(const uint8_t *)data + at, (const uint8_t *)data + at + length});
            at += (length + 3) & ~(size_t)3;
        }
    }
}

/* ---- NVIDIA: the text itself, and what the assembler says of it ---------------------------------------------------------- */

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end != NULL ? end + 1 : NULL;
}

/* The number after `before` in the line, or `missing`. */
static long number_after(const char *line, const char *before, long missing)
{
    const char *end = next_line(line);
    const char *found = strstr(line, before);
    return found != NULL && (end == NULL || found < end) ? strtol(found + strlen(before), NULL, 10) : missing;
}

static void read_ptx(const char *text)
{
    static const char entry[] = ".visible .entry ";
    kernel_row *row = NULL;
    for (const char *line = text; line != NULL; line = next_line(line)) {
        if (strncmp(line, entry, sizeof entry - 1) == 0) {
            const char *name = line + sizeof entry - 1;
            row = row_new(name, strcspn(name, "( \n"));
            row->wave = 32;
        } else if (row != NULL && strncmp(line, ".maxntid", 8) == 0) {
            row->threads = strtol(line + 8, NULL, 10);
        } else if (row != NULL && (*line == '\t' || *line == ' ')) {
            const char *word = line + strspn(line, " \t");
            if (strncmp(word, ".shared", 7) == 0)
                row->shared += number_after(word, "[", 0);
            else if (strncmp(word, ".local", 6) == 0)
                row->scratch += number_after(word, "[", 0);
        } else if (*line == '}') {
            row = NULL;
        }
    }
}

static void read_ptxas(const char *text)
{
    kernel_row *row = NULL;
    for (const char *line = text; line != NULL; line = next_line(line)) {
        const char *end = next_line(line);
        const char *entry = strstr(line, "entry function '");
        if (entry != NULL && (end == NULL || entry < end)) {
            const char *name = entry + 16;
            row = NULL;
            for (int i = 0; i < row_count; i++)
                if (strlen(rows[i].name) == strcspn(name, "'\n") && strncmp(rows[i].name, name, strlen(rows[i].name)) == 0)
                    row = &rows[i];
        }
        if (row == NULL)
            continue;
        row->spills = number_after(line, "bytes stack frame, ", row->spills);
        row->vgprs = number_after(line, "Used ", row->vgprs);
    }
}

/* ---- what is allowed ----------------------------------------------------------------------------------------------------- */

/* The most scratch, vector and scalar registers that the kernel may spill on this chip: the first line whose patterns fit. */
static void allowance(const char *allowed, const char *kernel, long max[3])
{
    max[0] = max[1] = max[2] = 0;
    for (const char *line = allowed; line != NULL; line = next_line(line)) {
        char kernels[NAME_MAX_BYTES];
        char chips[NAME_MAX_BYTES];
        long numbers[3];
        if (*line != '#' &&
            sscanf(line, "%127s %127s %ld %ld %ld", kernels, chips, &numbers[0], &numbers[1], &numbers[2]) == 5 &&
            fnmatch(kernels, kernel, 0) == 0 && fnmatch(chips, chip, 0) == 0) {
            memcpy(max, numbers, sizeof numbers);
            return;
        }
    }
}

static void check_row(const kernel_row *row, const char *allowed)
{
    /* Shared memory that every chip has for one block; CUDA gives static arrays 48 KiB of it at most. */
    const bool amd = strncmp(chip, "gfx", 3) == 0;
    const long wave = strncmp(chip, "gfx9", 4) == 0 ? 64 : 32, shared_limit = amd ? 65536 : 49152;
    const long spills = row->spills == UNKNOWN ? 0 : row->spills;
    long max[3];
    char what[256];
    if (row->wave != wave) {
        snprintf(what, sizeof what, "waves of %ld, not %ld", row->wave, wave);
        problem(row->name, what);
    }
    if (row->shared > shared_limit) {
        snprintf(what, sizeof what, "%ld bytes of shared memory, more than %ld", row->shared, shared_limit);
        problem(row->name, what);
    }
    allowance(allowed, row->name, max);
    if (row->scratch > max[0] || spills > max[1] || row->scalars > max[2]) {
        snprintf(what, sizeof what,
                 "%ld bytes of scratch, %ld spilled, %ld scalars set aside; scripts/kernels/kernels-allowed has %ld, %ld, %ld",
                 row->scratch, spills, row->scalars, max[0], max[1], max[2]);
        problem(row->name, what);
    }
}

/* Every KERNEL_ENTRY(module, name, ...) of this module has a row. */
static void check_complete(const char *definitions)
{
    for (const char *line = definitions; line != NULL; line = next_line(line)) {
        char its_module[NAME_MAX_BYTES];
        char name[NAME_MAX_BYTES];
        bool found = false;
        if (sscanf(line, "KERNEL_ENTRY( %127[a-z0-9_] , %127[a-z0-9_] ,", its_module, name) != 2 ||
            strcmp(its_module, module) != 0)
            continue;
        for (int i = 0; i < row_count; i++)
            found |= strcmp(rows[i].name, name) == 0;
        if (!found)
            problem(name, "in kernels.def, but not in the code object");
    }
}

/* ---- what is written ----------------------------------------------------------------------------------------------------- */

static void write_file(const char *beside, const char *extension, const void *data, size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", beside, extension);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
        give_up(path, "cannot be written");
}

static void print_number(char *text, size_t room, long number)
{
    snprintf(text + strlen(text), room - strlen(text), number == UNKNOWN ? " -" : " %ld", number);
}

/* Lines of: kernel chip wave vgpr sgpr shared scratch spills threads scalars. */
static void write_rows(const char *beside)
{
    static char text[KERNELS_MAX * 256];
    for (int i = 0; i < row_count; i++) {
        const kernel_row *row = &rows[i];
        const long numbers[] = {row->wave,    row->vgprs,  row->sgprs,   row->shared,
                                row->scratch, row->spills, row->threads, row->scalars};
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %s", row->name, chip);
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            print_number(text, sizeof text, numbers[n]);
        snprintf(text + strlen(text), sizeof text - strlen(text), "\n");
    }
    write_file(beside, ".txt", text, strlen(text));
}

/* A fifth of the size. One thread, so that the same object gives the same bytes. */
static void write_packed(const char *object, const char *data, size_t bytes)
{
    const size_t room = ZSTD_compressBound(bytes);
    char *packed = malloc(room);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (packed == NULL || context == NULL)
        give_up(object, "no memory to pack it");
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    const size_t packed_bytes = ZSTD_compress2(context, packed, room, data, bytes);
    if (ZSTD_isError(packed_bytes))
        give_up(object, ZSTD_getErrorName(packed_bytes));
    write_file(object, ".zst", packed, packed_bytes);
    ZSTD_freeCCtx(context);
    free(packed);
}

/* "DIR/MODULE.CHIP.hsaco": which module, which chip, and whether it is an AMD code object. */
static bool read_name(const char *path)
{
    const char *name = strrchr(path, '/');
    const char *kind = strrchr(path, '.');
    name = name != NULL ? name + 1 : path;
    const char *dot = strchr(name, '.');
    const bool amd = kind != NULL && strcmp(kind, ".hsaco") == 0;
    if (dot == NULL || kind == NULL || dot == kind || (!amd && strcmp(kind, ".ptx") != 0))
        give_up(path, "is neither MODULE.CHIP.hsaco nor MODULE.CHIP.ptx");
    snprintf(module, sizeof module, "%.*s", (int)(dot - name), name);
    snprintf(chip, sizeof chip, "%.*s", (int)(kind - dot - 1), dot + 1);
    return amd;
}

int main(int count, char **arguments)
{
    if (count != 4 && count != 6)
        give_up("usage", "check-kernels OBJECT KERNELS_DEF ALLOWED [PTXAS_REPORT CUBIN]");
    const char *object = arguments[1];
    const char *report = count == 6 ? arguments[4] : NULL;
    size_t bytes = 0;
    size_t ignored = 0;
    const bool amd = read_name(object);
    char *data = read_file(object, &bytes);
    char *definitions = read_file(arguments[2], &ignored);
    char *allowed = read_file(arguments[3], &ignored);
    if (amd)
        read_code_object(data, bytes);
    else
        read_ptx(data);
    if (report != NULL) {
        char *said = read_file(report, &ignored);
        read_ptxas(said);
        free(said);
    }
    for (int i = 0; i < row_count; i++)
        check_row(&rows[i], allowed);
    check_complete(definitions);
    if (problem_count == 0) {
        write_rows(report != NULL ? report : object);
        if (report == NULL) {
            write_packed(object, data, bytes);
        } else {
            char *cubin = read_file(arguments[5], &bytes);
            write_packed(arguments[5], cubin, bytes);
            free(cubin);
        }
    }
    free(allowed);
    free(definitions);
    free(data);
    return problem_count == 0 ? 0 : 1;
}
