/* `warpwave bench --parity`: a line of hex for each kind of answer, which is the same on every machine and device. */
#ifndef WW_CLI_BENCH_PARITY_H
#define WW_CLI_BENCH_PARITY_H

#include <stdbool.h>
#include <warpwave/device.h>

/* Chained: the digest so far, and the checksum of some bytes. */
uint64_t parity_add(uint64_t digest, const void *bytes, size_t count);

/* A number of at least -1 and less than 1, a multiple of 2^-23, so it is exact everywhere. */
float parity_number(uint64_t *state);

/* The digest of the logits of a small quantized decoder, which is written to a file in the folder for temporary files, opened
 * and fed with tokens. */
ww_status parity_model(ww_device *device, uint64_t *digest);

/* Computes everything on the device, and prints the lines or a JSON object. Takes seconds. */
ww_status parity_run(const char *device_name, bool json);

#endif
