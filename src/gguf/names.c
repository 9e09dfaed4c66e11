/* Names in sorted runs, one for each bit of their number, the longest first: five names are a run of four and a run of one.
 *
 * Each name is searched by bisection in every run. A new name is a run of one; if there are several short runs, they are merged
 * by sorting. So with a million names, a name costs a few dozen comparisons, for any names, while chosen names could attack a
 * hash.
 */
#include "gguf/names.h"

#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "gguf/gguf.h"

static int compare_places(const void *context, int64_t a, int64_t b)
{
    const char *bytes = context;
    return strcmp(bytes + a, bytes + b);
}

static bool run_has(const gguf_names *names, int64_t first, int64_t count, const char *name)
{
    while (count > 0) {
        const int64_t middle = first + count / 2;
        const int order = strcmp(names->bytes + names->places[middle], name);
        if (order == 0)
            return true;
        first = order < 0 ? middle + 1 : first;
        count = order < 0 ? count - count / 2 - 1 : count / 2;
    }
    return false;
}

bool gguf_names_have(const gguf_names *names, const char *name)
{
    int64_t first = 0;
    for (int bit = 62; bit >= 0; bit--) {
        const int64_t run = names->count & (int64_t)1 << bit;
        if (run > 0 && run_has(names, first, run, name))
            return true;
        first += run;
    }
    return false;
}

static ww_status make_room(gguf_names *names, size_t bytes)
{
    if (names->size + bytes > names->room) {
        const size_t room = 2 * names->room + bytes + 256;
        char *larger = memory_resize(names->bytes, room);
        if (!larger)
            return memory_failed("names of a GGUF file", room);
        names->bytes = larger;
        names->room = room;
    }
    const ww_status grown =
        array_reserve(&names->places, &names->place_room, names->count + 1, sizeof *names->places, "names of a GGUF file");
    if (grown != WW_OK)
        return grown;
    return WW_OK;
}

ww_status gguf_names_take(gguf_names *names, const char *name)
{
    const size_t bytes = strlen(name) + 1;
    const ww_status status = make_room(names, bytes);
    if (status != WW_OK)
        return status;
    memcpy(names->bytes + names->size, name, bytes);
    names->places[names->count++] = (int64_t)names->size;
    names->size += bytes;
    const int64_t run = names->count & -names->count; /* the last run: the lowest bit */
    gguf_sort_numbers(names->places + names->count - run, run, compare_places, names->bytes);
    return WW_OK;
}

void gguf_names_give_back(gguf_names *names)
{
    memory_free(names->bytes);
    memory_free(names->places);
    *names = (gguf_names){0};
}
