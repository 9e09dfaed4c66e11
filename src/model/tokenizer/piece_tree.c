/* The tree of pieces, built level by level: the pieces below a node are sorted by their next byte, which makes its children. */
#include "model/tokenizer/piece_tree.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/tokenizer/byte_children.h"

enum { FEW = 16 }; /* pieces that are sorted faster without counting bytes */

/* Pieces below a node: order[from..to). */
typedef struct piece_range {
    int32_t from, to;
} piece_range;

typedef struct tree_builder {
    piece_tree *tree;
    const vocabulary *v;
    int32_t *order, *sorted; /* ids; and room to sort them */
    int32_t count;
    piece_range *ranges; /* by node */
} tree_builder;

static unsigned byte_at(const tree_builder *b, int32_t id, size_t depth)
{
    return (unsigned char)b->v->pieces[id].text[depth];
}

/* Sorts the pieces of a range by the byte at `depth`, which all of them have; equal ones stay in order. */
static void sort_range(const tree_builder *b, piece_range range, size_t depth)
{
    int32_t *ids = b->order;
    if (range.to - range.from <= FEW) {
        for (int32_t i = range.from + 1; i < range.to; i++) {
            const int32_t id = ids[i];
            int32_t at = i;
            for (; at > range.from && byte_at(b, ids[at - 1], depth) > byte_at(b, id, depth); at--)
                ids[at] = ids[at - 1];
            ids[at] = id;
        }
        return;
    }
    int32_t places[257] = {0};
    for (int32_t i = range.from; i < range.to; i++)
        places[byte_at(b, ids[i], depth) + 1]++;
    for (int byte = 0; byte < 256; byte++)
        places[byte + 1] += places[byte];
    for (int32_t i = range.from; i < range.to; i++)
        b->sorted[places[byte_at(b, ids[i], depth)]++] = ids[i];
    memcpy(ids + range.from, b->sorted, (size_t)(range.to - range.from) * sizeof *ids);
}

/* Moves the pieces that end at `depth` to the front of a range, and takes the first of them. Returns the start of the
 * others. */
static int32_t take_ends(const tree_builder *b, int32_t node, size_t depth)
{
    const piece_range range = b->ranges[node];
    int32_t ends = 0, others = 0;
    b->tree->nodes[node].id = -1;
    for (int32_t i = range.from; i < range.to; i++) {
        const int32_t id = b->order[i];
        if (b->v->pieces[id].bytes > depth)
            b->sorted[others++] = id;
        else if (ends++ == 0)
            b->tree->nodes[node].id = id;
    }
    if (others > 0)
        memcpy(b->order + range.from + ends, b->sorted, (size_t)others * sizeof *b->sorted);
    return range.from + ends;
}

static void add_children(const tree_builder *b, int32_t node, size_t depth)
{
    piece_tree *tree = b->tree;
    const piece_range rest = {take_ends(b, node, depth), b->ranges[node].to};
    tree->nodes[node].children = tree->count;
    sort_range(b, rest, depth);
    for (int32_t i = rest.from; i < rest.to;) {
        const unsigned byte = byte_at(b, b->order[i], depth);
        const int32_t child = tree->count++;
        piece_range *own = &b->ranges[child];
        *own = (piece_range){i, i};
        while (own->to < rest.to && byte_at(b, b->order[own->to], depth) == byte)
            own->to++;
        tree->bytes[child] = (unsigned char)byte;
        if (node == 0)
            tree->root[byte] = child;
        i = own->to;
    }
    tree->nodes[node + 1].children = tree->count;
}

static void build(const tree_builder *b)
{
    b->ranges[0] = (piece_range){0, b->count};
    b->tree->count = 1;
    size_t depth = 0;
    for (int32_t node = 0, level_end = 1; node < b->tree->count; node++) {
        if (node == level_end) {
            level_end = b->tree->count;
            depth++;
        }
        add_children(b, node, depth);
    }
}

ww_status piece_tree_make(piece_tree *tree, const vocabulary *v, bool (*takes)(const vocabulary *v, int32_t id))
{
    tree_builder b = {.tree = tree, .v = v};
    size_t nodes = 1; /* at most: a byte each, and the root */
    *tree = (piece_tree){0};
    b.order = memory_alloc((size_t)v->count * sizeof *b.order);
    b.sorted = memory_alloc((size_t)v->count * sizeof *b.sorted);
    for (int32_t id = 0; id < v->count && b.order; id++)
        if (v->pieces[id].bytes > 0 && takes(v, id)) {
            b.order[b.count++] = id;
            nodes += v->pieces[id].bytes;
        }
    ww_status status = b.order && b.sorted ? WW_OK : memory_failed("vocabulary", (size_t)v->count * sizeof *b.order);
    if (status == WW_OK && nodes >= INT32_MAX)
        status = ww_fail(WW_UNSUPPORTED, "pieces of %zu bytes; the maximum is %d", nodes, INT32_MAX);
    if (status == WW_OK) {
        tree->nodes = memory_alloc_zeroed(nodes + 1, sizeof *tree->nodes);
        tree->bytes = memory_alloc(nodes);
        b.ranges = memory_alloc(nodes * sizeof *b.ranges);
        if (tree->nodes && tree->bytes && b.ranges)
            build(&b);
        else
            status = memory_failed("vocabulary", nodes * (sizeof *tree->nodes + sizeof *b.ranges + 1));
    }
    memory_free(b.ranges);
    memory_free(b.sorted);
    memory_free(b.order);
    return status;
}

void piece_tree_free(piece_tree *tree)
{
    memory_free(tree->nodes);
    memory_free(tree->bytes);
    *tree = (piece_tree){0};
}

int32_t piece_tree_next(const piece_tree *tree, int32_t node, unsigned char byte)
{
    if (node == 0)
        return tree->root[byte] > 0 ? tree->root[byte] : -1;
    return child_with_byte(tree->bytes, tree->nodes[node].children, tree->nodes[node + 1].children, byte);
}
