/* Warpwave: search vectors and compute with tensors on AMD GPUs, NVIDIA GPUs and CPUs, with the same bits on all of them.
 *
 * This is the umbrella; each subject has a header of its own under warpwave/. The headers need C99 or C++11.
 *
 * How an object ends says who owns it: ..._close() ends what was opened, ..._destroy() everything else that has one owner, and
 * ..._release() gives back one share of what several may hold. All accept NULL.
 */
#ifndef WARPWAVE_H
#define WARPWAVE_H

#include <warpwave/arrays.h>
#include <warpwave/arrow.h>
#include <warpwave/attention.h>
#include <warpwave/device.h>
#include <warpwave/files.h>
#include <warpwave/filter.h>
#include <warpwave/formula.h>
#include <warpwave/gguf.h>
#include <warpwave/hooks.h>
#include <warpwave/ivf.h>
#include <warpwave/kernel.h>
#include <warpwave/map.h>
#include <warpwave/multi.h>
#include <warpwave/plan.h>
#include <warpwave/quant.h>
#include <warpwave/ranking.h>
#include <warpwave/results.h>
#include <warpwave/selection.h>
#include <warpwave/sparse.h>
#include <warpwave/status.h>
#include <warpwave/tensor.h>
#include <warpwave/tensor_files.h>
#include <warpwave/tensor_foreign.h>
#include <warpwave/tensor_rows.h>
#include <warpwave/vectors.h>

#endif
