/* Digests of replicas, as other nodes have written them: what was read is written and read again alike, and is compared. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/cluster/digests.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The bytes are the texts of two replicas, separated by a newline. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static char text[1 << 16], written[DIGESTS_TEXT_BYTES];
    replica_digests list[2] = {{.name = "a"}, {.name = "b"}}, again = {.count = 0};
    pg_lsn at = 0;
    if (size >= sizeof text)
        return 0;
    memcpy(text, bytes, size);
    text[size] = '\0';
    char *second = strchr(text, '\n');
    if (second)
        *second++ = '\0';
    digests_read(text, &list[0]);
    digests_read(second ? second : text, &list[1]);
    digests_write(&list[0], written);
    digests_read(written, &again);
    if (again.count != list[0].count || memcmp(again.list, list[0].list, (size_t)again.count * sizeof *again.list) != 0)
        abort();
    const digest_verdict first = digests_compare(list, 2, 0, &at), other = digests_compare(list, 2, 1, &at);
    if (list[0].count == 1 && list[1].count == 1 && first == other && first != DIGESTS_AGREE) /* one leaves, and one only */
        abort();
    return 0;
}
