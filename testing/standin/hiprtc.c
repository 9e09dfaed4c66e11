/* A stand-in for hipRTC. It compiles nothing: it checks that it got the library's own sources with their headers, and returns
 * the embedded code of that module for another chip, with the requested chip's name written over the other's; for another
 * source it returns a file of the folder that the settings name. As at AMD, it is
 * part of libamdhip64 for ROCm 5 and 6, and a separate library for 7.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/embedded.h"
#include "standin/code_object.h"
#include "standin/standin.h"
#include "support/embedded_find.h"

#define EXPORT STANDIN_EXPORT

enum { FILE_MAX = 4 << 20 };
enum { SUCCESS = 0, INVALID_INPUT = 3, INVALID_PROGRAM = 4, COMPILATION = 6 };

typedef struct program {
    char module[64]; /* "" if the source is not one of ours */
    bool own;        /* the caller's; it has no line "#error" */
    bool headers;    /* all required headers were passed */
    char *code;
    size_t bytes;
    char log[256];
} program;

EXPORT int hiprtcVersion(int *major, int *minor);
EXPORT int hiprtcCreateProgram(void **out, const char *source, const char *name, int count, const char **texts,
                               const char **names);
EXPORT int hiprtcDestroyProgram(void **destroying);
EXPORT int hiprtcCompileProgram(void *compiling, int count, const char **options);
EXPORT int hiprtcGetProgramLogSize(void *of, size_t *bytes);
EXPORT int hiprtcGetProgramLog(void *of, char *text);
EXPORT int hiprtcGetCodeSize(void *of, size_t *bytes);
EXPORT int hiprtcGetCode(void *of, char *bytes);
EXPORT const char *hiprtcGetErrorString(int number);

int hiprtcVersion(int *major, int *minor)
{
    *major = 9;
    *minor = 0;
    return SUCCESS;
}

const char *hiprtcGetErrorString(int number)
{
    return number == COMPILATION ? "HIPRTC_ERROR_COMPILATION" : number == SUCCESS ? "HIPRTC_SUCCESS" : "HIPRTC_ERROR_OTHER";
}

int hiprtcCreateProgram(void **out, const char *source, const char *name, int count, const char **texts, const char **names)
{
    const int judged = standin_judge("hiprtcCreateProgram");
    if (judged != 0)
        return judged;
    program *made = calloc(1, sizeof *made);
    int headers = 0;
    for (const embedded_source *s = embedded_sources(); s->name != NULL; s++)
        if (strcmp(s->text, source) == 0)
            snprintf(made->module, sizeof made->module, "%.*s", (int)strcspn(strrchr(s->name, '/') + 1, "."),
                     strrchr(s->name, '/') + 1);
    for (int i = 0; i < count; i++)
        headers += strcmp(names[i], "kernels/simt/simt.h") == 0 || strcmp(names[i], "kernels/simt/simt_amd.h") == 0 ||
                   strcmp(names[i], "arithmetic/canon.h") == 0 || (strcmp(names[i], "stdint.h") == 0 && texts[i][0] != '\0');
    made->own = made->module[0] == '\0' && strstr(source, "#error") == NULL;
    made->headers = headers == 4 && name != NULL;
    standin_count_handle(+1);
    *out = made;
    return SUCCESS;
}

int hiprtcDestroyProgram(void **destroying)
{
    program *p = *destroying;
    memory_free(p->code);
    free(p);
    *destroying = NULL;
    standin_count_handle(-1);
    return SUCCESS;
}

/* Writes the chip's number to the header, and replaces the other chip's name everywhere. */
static void rename_chip(program *p, const char *from, const standin_chip *to)
{
    Elf64_Ehdr header;
    const size_t length = strlen(from);
    memcpy(&header, p->code, sizeof header);
    header.e_flags = (header.e_flags & ~0xffu) | to->elf_mach;
    memcpy(p->code, &header, sizeof header);
    for (size_t i = 0; i + length <= p->bytes; i++)
        if (memcmp(p->code + i, from, length) == 0)
            memcpy(p->code + i, to->name, length);
}

static bool take_code(program *p, const standin_chip *wanted)
{
    for (size_t i = 0; i < embedded_chip_count(); i++) {
        const standin_chip *other = standin_find_chip(embedded_chip(i));
        const embedded_kernels *code = embedded_find(p->module, embedded_chip(i));
        if (other == NULL || code == NULL || other->wave_size != wanted->wave_size ||
            strlen(other->name) != strlen(wanted->name))
            continue;
        if (embedded_unpack(code, &p->code, &p->bytes) != WW_OK)
            return false;
        rename_chip(p, other->name, wanted);
        return true;
    }
    return false;
}

/* What was compiled before for that chip. */
static bool take_file(program *p, const standin_chip *wanted)
{
    char path[640];
    snprintf(path, sizeof path, "%s/scale.%s.hsaco", standin_set.compiled, wanted->name);
    FILE *file = standin_set.compiled[0] != '\0' ? fopen(path, "rb") : NULL;
    if (file == NULL)
        return false;
    p->code = memory_alloc(FILE_MAX);
    p->bytes = p->code != NULL ? fread(p->code, 1, FILE_MAX, file) : 0;
    fclose(file);
    return p->bytes > 0;
}

int hiprtcCompileProgram(void *compiling, int count, const char **options)
{
    const int judged = standin_judge("hiprtcCompileProgram");
    program *p = compiling;
    const standin_chip *chip = NULL;
    bool no_contraction = false;
    for (int i = 0; i < count; i++) {
        if (strncmp(options[i], "--offload-arch=", 15) == 0)
            chip = standin_find_chip(options[i] + 15);
        no_contraction |= strcmp(options[i], "-ffp-contract=off") == 0;
    }
    const bool good = judged == 0 && p->headers && no_contraction && chip != NULL;
    if (good && p->own && take_file(p, chip)) {
        snprintf(p->log, sizeof p->log, "input:1:1: warning: the stand-in compiled this earlier");
        return SUCCESS;
    }
    if (good && p->module[0] != '\0' && take_code(p, chip))
        return SUCCESS;
    snprintf(p->log, sizeof p->log, "input:1:1: error: the stand-in does not compile this\n1 error generated");
    return judged != 0 ? judged : COMPILATION;
}

int hiprtcGetProgramLogSize(void *of, size_t *bytes)
{
    *bytes = strlen(((program *)of)->log) + 1;
    return SUCCESS;
}

int hiprtcGetProgramLog(void *of, char *text)
{
    memcpy(text, ((program *)of)->log, strlen(((program *)of)->log) + 1);
    return SUCCESS;
}

int hiprtcGetCodeSize(void *of, size_t *bytes)
{
    const int judged = standin_judge("hiprtcGetCodeSize");
    *bytes = ((program *)of)->bytes;
    return judged != 0 ? judged : *bytes > 0 ? SUCCESS : INVALID_PROGRAM;
}

int hiprtcGetCode(void *of, char *bytes)
{
    const int judged = standin_judge("hiprtcGetCode");
    const program *p = of;
    if (judged == 0 && p->code != NULL)
        memcpy(bytes, p->code, p->bytes);
    return judged != 0 ? judged : p->code != NULL ? SUCCESS : INVALID_PROGRAM;
}
