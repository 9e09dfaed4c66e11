/* All argument structs of kernels, for gpu/launch.h and kernels.def. */
#ifndef WW_KERNELS_ARGUMENTS_H
#define WW_KERNELS_ARGUMENTS_H

#include "arithmetic/conv_integer.h"
#include "arithmetic/cumsum.h"
#include "arithmetic/resample.h"
#include "kernels/attention/attention_args.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/index.h"
#include "kernels/elementwise/random.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quant/quant.h"
#include "kernels/reduce/row_arguments.h"
#include "kernels/screen/screen_args.h"
#include "kernels/search/range_args.h"
#include "kernels/search/rows_args.h"
#include "kernels/search/search_args.h"

#endif
