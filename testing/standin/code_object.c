/* Reading an AMD code object: ELF64, a note with MessagePack metadata, and the symbols of the kernel descriptors. */
#include "standin/code_object.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

enum { EM_AMDGPU_NUMBER = 224, OSABI_AMDGPU_HSA = 64, NOTE_AMDGPU_METADATA = 32, DEPTH_MAX = 16 };

/* ---- MessagePack --------------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const unsigned char *at, *end;
    bool bad;
} reader;

typedef enum kind { KIND_NONE, KIND_INT, KIND_TEXT, KIND_LIST, KIND_MAP, KIND_OTHER } kind;

typedef struct value {
    kind kind;
    uint64_t number; /* of the integer, or how many bytes, items or pairs */
    const char *text;
} value;

static uint64_t big_endian(reader *r, int bytes)
{
    uint64_t number = 0;
    if (r->bad || r->end - r->at < bytes) {
        r->bad = true;
        return 0;
    }
    for (int i = 0; i < bytes; i++)
        number = number << 8 | *r->at++;
    return number;
}

static value text_of(reader *r, uint64_t length)
{
    const value v = {.kind = KIND_TEXT, .number = length, .text = (const char *)r->at};
    if (r->bad || length > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return (value){0};
    }
    r->at += length;
    return v;
}

/* The next value; of a list or map only its head. */
static value next(reader *r)
{
    const unsigned type = (unsigned)big_endian(r, 1);
    if (r->bad)
        return (value){0};
    if (type < 0x80 || type >= 0xe0)
        return (value){.kind = KIND_INT, .number = (uint64_t)(int64_t)(signed char)type};
    if (type < 0x90)
        return (value){.kind = KIND_MAP, .number = type & 0xf};
    if (type < 0xa0)
        return (value){.kind = KIND_LIST, .number = type & 0xf};
    if (type < 0xc0)
        return text_of(r, type & 0x1f);
    switch (type) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
        return (value){.kind = KIND_OTHER};
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        return (value){.kind = KIND_INT, .number = big_endian(r, 1 << (type - 0xcc))};
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return (value){.kind = KIND_INT, .number = big_endian(r, 1 << (type - 0xd0))};
    case 0xd9:
    case 0xda:
    case 0xdb:
        return text_of(r, big_endian(r, 1 << (type - 0xd9)));
    case 0xdc:
    case 0xdd:
        return (value){.kind = KIND_LIST, .number = big_endian(r, type == 0xdc ? 2 : 4)};
    case 0xde:
    case 0xdf:
        return (value){.kind = KIND_MAP, .number = big_endian(r, type == 0xde ? 2 : 4)};
    default:
        r->bad = true;
        return (value){0};
    }
}

/* Skips the contents of a value that next() returned. */
static void skip(reader *r, value v, int depth)
{
    if (v.kind != KIND_LIST && v.kind != KIND_MAP)
        return;
    if (depth > DEPTH_MAX)
        r->bad = true;
    const uint64_t count = v.kind == KIND_MAP ? 2 * v.number : v.number;
    for (uint64_t i = 0; i < count && !r->bad; i++)
        skip(r, next(r), depth + 1);
}

static bool is(value key, const char *text)
{
    return key.kind == KIND_TEXT && key.number == strlen(text) && memcmp(key.text, text, key.number) == 0;
}

static void copy_text(char *to, size_t capacity, value v)
{
    const size_t length = v.kind != KIND_TEXT ? 0 : v.number < capacity - 1 ? v.number : capacity - 1;
    if (length > 0)
        memcpy(to, v.text, length);
    to[length] = '\0';
}

/* ---- metadata ------------------------------------------------------------------------------------------------------------ */

/* Reads one argument: arguments that are not hidden end where the caller's do. */
static void read_argument(reader *r, code_kernel *kernel)
{
    const value map = next(r);
    uint64_t offset = 0;
    uint64_t size = 0;
    bool hidden = false;
    for (uint64_t i = 0; map.kind == KIND_MAP && i < map.number && !r->bad; i++) {
        const value key = next(r);
        const value v = next(r);
        if (is(key, ".offset"))
            offset = v.number;
        else if (is(key, ".size"))
            size = v.number;
        else if (is(key, ".value_kind"))
            hidden = v.number >= 7 && memcmp(v.text, "hidden_", 7) == 0;
        skip(r, v, 0);
    }
    if (!hidden && offset + size > kernel->explicit_bytes)
        kernel->explicit_bytes = offset + size;
}

static void read_kernel(reader *r, code_kernel *kernel)
{
    const value map = next(r);
    for (uint64_t i = 0; map.kind == KIND_MAP && i < map.number && !r->bad; i++) {
        const value key = next(r);
        const value v = next(r);
        if (is(key, ".args") && v.kind == KIND_LIST) {
            for (uint64_t a = 0; a < v.number && !r->bad; a++)
                read_argument(r, kernel);
            continue;
        }
        if (is(key, ".name"))
            copy_text(kernel->name, sizeof kernel->name, v);
        else if (is(key, ".symbol"))
            copy_text(kernel->symbol, sizeof kernel->symbol, v);
        else if (is(key, ".kernarg_segment_size"))
            kernel->kernarg_bytes = v.number;
        else if (is(key, ".wavefront_size"))
            kernel->wave_size = v.number;
        else if (is(key, ".max_flat_workgroup_size"))
            kernel->threads_max = v.number;
        else if (is(key, ".group_segment_fixed_size"))
            kernel->shared_bytes = v.number;
        else if (is(key, ".private_segment_fixed_size"))
            kernel->scratch_bytes = v.number;
        else if (is(key, ".vgpr_count"))
            kernel->registers = v.number;
        skip(r, v, 0);
    }
}

static const char *read_metadata(reader r, code_object *out)
{
    const value map = next(&r);
    for (uint64_t i = 0; map.kind == KIND_MAP && i < map.number && !r.bad; i++) {
        const value key = next(&r);
        const value v = next(&r);
        if (is(key, "amdhsa.kernels") && v.kind == KIND_LIST) {
            for (uint64_t k = 0; k < v.number && !r.bad; k++) {
                if (out->count == CODE_KERNELS_MAX)
                    return "more kernels than the stand-in has room for";
                read_kernel(&r, &out->kernels[out->count++]);
            }
            continue;
        }
        if (is(key, "amdhsa.target"))
            copy_text(out->target, sizeof out->target, v);
        skip(&r, v, 0);
    }
    return r.bad || out->count == 0 ? "its metadata cannot be read" : NULL;
}

/* ---- ELF ----------------------------------------------------------------------------------------------------------------- */

static const Elf64_Ehdr *header_of(const void *image)
{
    const Elf64_Ehdr *header = image;
    const bool good = memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
                      header->e_machine == EM_AMDGPU_NUMBER && header->e_ident[EI_OSABI] == OSABI_AMDGPU_HSA &&
                      header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shoff % 8 == 0;
    return good ? header : NULL;
}

size_t code_object_bytes(const void *image)
{
    const Elf64_Ehdr *header = header_of(image);
    return header != NULL ? header->e_shoff + (size_t)header->e_shnum * sizeof(Elf64_Shdr) : 0;
}

static bool lies_inside(const Elf64_Shdr *section, size_t bytes)
{
    return section->sh_offset <= bytes && section->sh_size <= bytes - section->sh_offset;
}

static const char *read_notes(const char *image, const Elf64_Shdr *section, code_object *out)
{
    const char *at = image + section->sh_offset;
    const char *end = at + section->sh_size;
    while (end - at >= (ptrdiff_t)sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, at, sizeof note);
        const uint64_t name = ((uint64_t)note.n_namesz + 3) / 4 * 4;
        const uint64_t content = ((uint64_t)note.n_descsz + 3) / 4 * 4;
        if (name + content > (uint64_t)(end - at) - sizeof note)
            return "a note is longer than its section";
        const unsigned char *begin = (const unsigned char *)at + sizeof note + name;
        if (note.n_type == NOTE_AMDGPU_METADATA)
            return read_metadata((reader){.at = begin, .end = begin + note.n_descsz}, out);
        at += sizeof note + name + content;
    }
    return "it has no metadata";
}

static bool has_symbol(const char *image, const Elf64_Shdr *sections, const Elf64_Shdr *table, size_t bytes, const char *name)
{
    const Elf64_Shdr *texts = &sections[table->sh_link];
    if (!lies_inside(texts, bytes))
        return false;
    for (size_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, image + table->sh_offset + i * sizeof symbol, sizeof symbol);
        const size_t room = symbol.st_name < texts->sh_size ? texts->sh_size - symbol.st_name : 0;
        if (symbol.st_shndx != SHN_UNDEF && strnlen(image + texts->sh_offset + symbol.st_name, room) == strlen(name) &&
            strcmp(image + texts->sh_offset + symbol.st_name, name) == 0)
            return true;
    }
    return false;
}

/* A kernel that the metadata lists must have its descriptor among the symbols, where a loader looks for it. */
static const char *check_symbols(const char *image, const Elf64_Shdr *sections, const Elf64_Shdr *table, size_t bytes,
                                 const code_object *code)
{
    for (int i = 0; i < code->count; i++)
        if (!has_symbol(image, sections, table, bytes, code->kernels[i].symbol))
            return "a kernel's descriptor is not among its symbols";
    return NULL;
}

const char *code_object_read(const void *image, code_object *out)
{
    const Elf64_Ehdr *header = header_of(image);
    memset(out, 0, sizeof *out);
    if (header == NULL)
        return "it is no ELF file for AMD GPUs";
    const size_t bytes = code_object_bytes(image);
    const Elf64_Shdr *sections = (const Elf64_Shdr *)((const char *)image + header->e_shoff);
    out->elf_mach = header->e_flags & 0xff;
    out->version = header->e_ident[EI_ABIVERSION] + 2;
    const char *wrong = "it has no notes";
    for (int i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_NOTE && lies_inside(&sections[i], bytes))
            wrong = read_notes(image, &sections[i], out);
    for (int i = 0; i < header->e_shnum && wrong == NULL; i++)
        if (sections[i].sh_type == SHT_DYNSYM && lies_inside(&sections[i], bytes) && sections[i].sh_link < header->e_shnum)
            wrong = check_symbols(image, sections, &sections[i], bytes, out);
    return wrong;
}
