/* Pieces of a vocabulary by their bytes, first byte first: all pieces that a text begins with are found in one walk. */
#ifndef WW_MODEL_TOKENIZER_PIECE_TREE_H
#define WW_MODEL_TOKENIZER_PIECE_TREE_H

#include "model/tokenizer/vocabulary.h"

typedef struct piece_node {
    int32_t children; /* number of the first; a node's are consecutive, sorted by byte, and end where the next node's begin */
    int32_t id;       /* of the piece that is complete here; -1: none */
} piece_node;

typedef struct piece_tree {
    piece_node *nodes;    /* by depth; one more than `count`, for the end of the last one's children */
    unsigned char *bytes; /* of each node, the one that leads to it */
    int32_t count;
    int32_t root[256]; /* the root's children by byte; 0: none */
} piece_tree;

/* Makes the tree of the pieces for which `takes` returns true. Of equal pieces the first is found. piece_tree_free() frees it,
 * even after a failure. */
ww_status piece_tree_make(piece_tree *tree, const vocabulary *v, bool (*takes)(const vocabulary *v, int32_t id));
void piece_tree_free(piece_tree *tree);

/* The node that a byte leads to from a node, 0 being the root; -1 if no piece continues with it. */
int32_t piece_tree_next(const piece_tree *tree, int32_t node, unsigned char byte);

#endif
