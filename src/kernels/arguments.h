/* The structs that kernels take, all of them: what gpu/launch.h and kernels.def need. */
#ifndef WW_KERNELS_ARGUMENTS_H
#define WW_KERNELS_ARGUMENTS_H

#include "kernels/elementwise.h"
#include "kernels/index.h"
#include "kernels/matmul.h"
#include "kernels/quant.h"
#include "kernels/random.h"
#include "kernels/resample.h"
#include "kernels/row_arguments.h"
#include "kernels/rows.h"
#include "kernels/screening.h"
#include "kernels/search.h"

#endif
