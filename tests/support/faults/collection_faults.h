/* Operations on a collection with an index or a map when memory or the driver fails. A failure at each allocation and each
 * driver call must leave everything unchanged and leak nothing, and the operation must work afterwards.
 */
#ifndef TESTS_SUPPORT_FAULTS_COLLECTION_FAULTS_H
#define TESTS_SUPPORT_FAULTS_COLLECTION_FAULTS_H

#include <stdbool.h>

#include <warpwave/vectors.h>

typedef struct faulty_operation {
    ww_status (*work)(ww_collection *collection); /* NULL ends a list */
    bool is_free;                                 /* it may take no memory and call no driver */
} faulty_operation;

typedef struct collection_faults {
    const faulty_operation *operations;
    ww_collection *(*make)(ww_device *device); /* the collection before an operation */
    void (*check_unchanged)(ww_collection *c); /* checks that everything besides the rows is as make() left it */
    void (*check_whole)(ww_collection *c);     /* after every operation; may be NULL */
} collection_faults;

void fail_every_allocation(const collection_faults *faults, ww_device *device);

/* On an emulated device, alternating waves of 32 and of 64. */
void fail_every_driver_call(const collection_faults *faults);

#endif
