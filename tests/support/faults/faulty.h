/* A device whose calls fail on request: the real backend behind a table that counts calls. */
#ifndef TESTS_FAULTY_H
#define TESTS_FAULTY_H

#include <stdbool.h>

#include "support/check.h"

typedef struct fault_plan {
    long first;      /* the call that fails first, counting from 1; 0: none */
    long count;      /* how many fail from there on */
    bool after_work; /* the call does its work, then says it failed, as a lost connection would */
    long calls;      /* made so far */
} fault_plan;

extern fault_plan faults;

/* Puts the counting table in front of an open device's backend, and takes it away. One device at a time. */
void faulty_attach(ww_device *device);
void faulty_detach(ww_device *device);

#endif
