"""The C library as ctypes sees it. Made from the headers by scripts/python-native.py; do not edit.

A pointer to a struct of the API is a POINTER, so that byref() is checked; every other pointer is an address, so that arrays are passed
without an object each. An integer or a text is given with its name, for the checks of _checked.py. Calls release the GIL.
"""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int8, c_int16, c_int32, c_int64,
                    c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)

from ._checked import struct
from ._library import function

__all__: list[str] = []  # nothing is exported: this is for the modules of this package
_UNUSED = (CFUNCTYPE, POINTER, c_bool, c_char, c_char_p, c_double, c_float, c_int8, c_int16, c_uint8, c_uint16, c_uint32, c_uint64)

# ---- warpwave/status.h ---------------------------------------------------------------------------------------------------
WW_VERSION_MAJOR = 0
WW_VERSION_MINOR = 2
WW_VERSION_PATCH = 0
WW_VERSION_TEXT = "0.2.0"
WW_OK = 0
WW_INVALID_ARGUMENT = 1
WW_DIMENSION_MISMATCH = 2
WW_OUT_OF_MEMORY = 3
WW_NO_DEVICE = 4
WW_DRIVER_ERROR = 5
WW_NOT_FOUND = 6
WW_DUPLICATE_ID = 7
WW_UNSUPPORTED = 8
WW_CORRUPT_FILE = 9
WW_IO_ERROR = 10
WW_CANCELLED = 11
WW_OUT_OF_RANGE = 12
WW_INTERNAL = 13
WW_OTHER_PROCESS = 14
WW_BUSY = 15
WW_DAMAGED = 16
WW_TIMEOUT = 17
ww_progress = CFUNCTYPE(c_int, c_int64, c_int64, c_void_p)


@struct
class ww_error_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("status", c_int),
                ("code", c_int32),
                ("backend", c_char * 16),
                ("library", c_char * 16),
                ("call", c_char * 64),
                ("name", c_char * 64)]


ww_status_name = function("", "ww_status_name", c_char_p, ("status", c_int))
ww_error_message = function("", "ww_error_message", c_char_p)
ww_error_set = function("", "ww_error_set", c_int, ("status", c_int), ("message", c_char_p))
ww_error_info_init = function("", "ww_error_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_error_detail = function("", "ww_error_detail", c_int, POINTER(ww_error_info))
ww_version = function("", "ww_version", c_char_p)
ww_cancel_create = function("", "ww_cancel_create", c_int, c_void_p)
ww_cancel_destroy = function("", "ww_cancel_destroy", None, c_void_p)
ww_cancel_ask = function("", "ww_cancel_ask", None, c_void_p)
ww_cancel_reset = function("", "ww_cancel_reset", None, c_void_p)

# ---- warpwave/files.h ----------------------------------------------------------------------------------------------------
WW_ELEMENT_UNKNOWN = -1
WW_ELEMENT_F32 = 0
WW_ELEMENT_F64 = 1
WW_ELEMENT_F16 = 2
WW_ELEMENT_I8 = 3
WW_ELEMENT_U8 = 4
WW_ELEMENT_I32 = 5
WW_ELEMENT_BF16 = 6
WW_ELEMENT_I16 = 7
WW_ELEMENT_I64 = 8
WW_ELEMENT_U16 = 9
WW_ELEMENT_U32 = 10
WW_ELEMENT_U64 = 11
WW_ELEMENT_BOOL = 12
WW_ELEMENT_F8E4M3 = 13
WW_ELEMENT_F8E5M2 = 14


@struct
class ww_matrix_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("rows", c_int64),
                ("dim", c_int64),
                ("element", c_int)]


@struct
class ww_matrix_options(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("format", c_char_p),
                ("id_column", c_char_p),
                ("streams", c_int32)]


ww_matrix_info_init = function("", "ww_matrix_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_element_name = function("", "ww_element_name", c_char_p, ("element", c_int))
ww_element_bytes = function("", "ww_element_bytes", c_int64, ("element", c_int))
ww_matrix_options_init = function("", "ww_matrix_options_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_matrix_open = function("", "ww_matrix_open", c_int, ("path", c_char_p), c_void_p)
ww_matrix_open_with = function("", "ww_matrix_open_with", c_int, ("path", c_char_p), POINTER(ww_matrix_options), c_void_p)
ww_matrix_close = function("", "ww_matrix_close", None, c_void_p)
ww_matrix_describe = function("", "ww_matrix_describe", c_int, c_void_p, POINTER(ww_matrix_info))
ww_matrix_read_f32 = function("", "ww_matrix_read_f32", c_int, c_void_p, ("first", c_int64), ("count", c_int64), c_void_p)
ww_matrix_read_i32 = function("", "ww_matrix_read_i32", c_int, c_void_p, ("first", c_int64), ("count", c_int64), c_void_p)
ww_matrix_read_elements = function("", "ww_matrix_read_elements", c_int, c_void_p, ("first", c_int64), ("count", c_int64),
                                   c_void_p)
ww_matrix_id = function("", "ww_matrix_id", c_char_p, c_void_p, ("row", c_int64))
ww_matrix_check_finite = function("", "ww_matrix_check_finite", c_int, c_void_p, ("first", c_int64), ("count", c_int64), c_void_p)
ww_matrix_view_f32 = function("", "ww_matrix_view_f32", c_void_p, c_void_p)
ww_matrix_write_f32 = function("", "ww_matrix_write_f32", c_int, ("path", c_char_p), c_void_p, ("rows", c_int64),
                               ("dim", c_int64))
ww_matrix_write_i32 = function("", "ww_matrix_write_i32", c_int, ("path", c_char_p), c_void_p, ("rows", c_int64),
                               ("dim", c_int64))

# ---- warpwave/arrays.h ---------------------------------------------------------------------------------------------------
WW_ARRAY_RANK_MAX = 16
WW_ARRAY_TYPE_TEXT = 24


@struct
class ww_array_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("name", c_char_p),
                ("element", c_int),
                ("type", c_char * WW_ARRAY_TYPE_TEXT),
                ("rank", c_int32),
                ("shape", c_int64 * WW_ARRAY_RANK_MAX),
                ("elements", c_int64),
                ("offset", c_int64),
                ("bytes", c_int64)]


@struct
class ww_array(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("name", c_char_p),
                ("element", c_int),
                ("rank", c_int32),
                ("shape", c_int64 * WW_ARRAY_RANK_MAX),
                ("data", c_void_p)]


ww_array_info_init = function("", "ww_array_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_npy_open = function("", "ww_npy_open", c_int, ("path", c_char_p), c_void_p)
ww_npy_close = function("", "ww_npy_close", None, c_void_p)
ww_npy_describe = function("", "ww_npy_describe", c_int, c_void_p, POINTER(ww_array_info))
ww_npy_read = function("", "ww_npy_read", c_int, c_void_p, ("offset", c_int64), c_void_p, ("bytes", c_size_t))
ww_safetensors_open = function("", "ww_safetensors_open", c_int, ("path", c_char_p), c_void_p)
ww_safetensors_open_stream = function("", "ww_safetensors_open_stream", c_int, ("path", c_char_p), c_void_p)
ww_safetensors_close = function("", "ww_safetensors_close", None, c_void_p)
ww_safetensors_count = function("", "ww_safetensors_count", c_int64, c_void_p)
ww_safetensors_at = function("", "ww_safetensors_at", c_int, c_void_p, ("index", c_int64), POINTER(ww_array_info))
ww_safetensors_find = function("", "ww_safetensors_find", c_int, c_void_p, ("name", c_char_p), c_void_p)
ww_safetensors_read = function("", "ww_safetensors_read", c_int, c_void_p, ("index", c_int64), ("offset", c_int64), c_void_p,
                               ("bytes", c_size_t))
ww_safetensors_map = function("", "ww_safetensors_map", c_int, c_void_p, ("index", c_int64), c_void_p)
ww_safetensors_metadata_count = function("", "ww_safetensors_metadata_count", c_int64, c_void_p)
ww_safetensors_metadata_at = function("", "ww_safetensors_metadata_at", c_int, c_void_p, ("index", c_int64), c_void_p, c_void_p)
ww_safetensors_metadata = function("", "ww_safetensors_metadata", c_int, c_void_p, ("key", c_char_p), c_void_p)
ww_array_init = function("", "ww_array_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_safetensors_write = function("", "ww_safetensors_write", c_int, ("path", c_char_p), POINTER(ww_array), ("count", c_int64),
                                c_void_p)

# ---- warpwave/arrow.h ----------------------------------------------------------------------------------------------------
WW_ARROW_PLAIN = 0
WW_ARROW_JSON = 1
ww_arrow_texts_create = function("", "ww_arrow_texts_create", c_int, c_void_p, c_void_p, ("form", c_int), c_void_p)
ww_arrow_texts_destroy = function("", "ww_arrow_texts_destroy", None, c_void_p)
ww_arrow_texts_list = function("", "ww_arrow_texts_list", c_int64, c_void_p, c_void_p)

# ---- warpwave/device.h ---------------------------------------------------------------------------------------------------


@struct
class ww_device_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("id", c_char * 32),
                ("name", c_char * 128),
                ("vendor", c_char * 32),
                ("backend", c_char * 16),
                ("arch", c_char * 32),
                ("instruction_sets", c_char * 128),
                ("kernels", c_char * 128),
                ("driver_version", c_char * 48),
                ("pci_address", c_char * 16),
                ("index", c_int32),
                ("wave_size", c_int32),
                ("compute_units", c_int32),
                ("max_threads_per_block", c_int32),
                ("shared_bytes_per_block", c_int64),
                ("memory_total_bytes", c_int64),
                ("memory_free_bytes", c_int64),
                ("memory_used_bytes", c_int64),
                ("member_count", c_int32),
                ("members", c_char * 512),
                ("passed_over", c_char * 512)]


@struct
class ww_member_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("id", c_char * 32),
                ("share", c_double),
                ("rows_capacity", c_int64),
                ("bytes", c_int64),
                ("dropped", c_int32)]


@struct
class ww_memory_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("total_bytes", c_int64),
                ("free_bytes", c_int64),
                ("ours_bytes", c_int64),
                ("pooled_bytes", c_int64),
                ("peak_bytes", c_int64)]


ww_device_info_init = function("", "ww_device_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_memory_info_init = function("", "ww_memory_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_member_info_init = function("", "ww_member_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_devices = function("", "ww_devices", c_int, POINTER(ww_device_info), ("capacity", c_size_t), c_void_p)
ww_backend_absence = function("", "ww_backend_absence", c_char_p, ("backend", c_char_p))
ww_device_open = function("", "ww_device_open", c_int, ("name", c_char_p), c_void_p)
ww_device_close = function("", "ww_device_close", None, c_void_p)
ww_device_describe = function("", "ww_device_describe", c_int, c_void_p, POINTER(ww_device_info))
ww_device_memory = function("", "ww_device_memory", c_int, c_void_p, POINTER(ww_memory_info))
ww_device_trim = function("", "ww_device_trim", c_int, c_void_p)
ww_device_members = function("", "ww_device_members", c_int, c_void_p, POINTER(ww_member_info), ("capacity", c_size_t), c_void_p)
ww_device_drop = function("", "ww_device_drop", c_int, c_void_p, ("member", c_char_p))
ww_kernel_chip_count = function("", "ww_kernel_chip_count", c_size_t)
ww_kernel_chip = function("", "ww_kernel_chip", c_char_p, ("index", c_size_t))

# ---- warpwave/tensor.h ---------------------------------------------------------------------------------------------------
WW_RANK_MAX = 8
WW_U8 = 0
WW_U32 = 1
WW_I16 = 2
WW_I32 = 3
WW_I64 = 4
WW_BF16 = 5
WW_F16 = 6
WW_F32 = 7
WW_F64 = 8
WW_F8E4M3 = 9
WW_I8 = 10
WW_ABS = 0
WW_NEG = 1
WW_RECIP = 2
WW_SQR = 3
WW_SQRT = 4
WW_RSQRT = 5
WW_RELU = 6
WW_FLOOR = 7
WW_CEIL = 8
WW_ROUND = 9
WW_SIGN = 10
WW_EXP = 11
WW_EXPM1 = 12
WW_LOG = 13
WW_LOG1P = 14
WW_SIN = 15
WW_COS = 16
WW_TANH = 17
WW_ERF = 18
WW_SIGMOID = 19
WW_SILU = 20
WW_GELU = 21
WW_GELU_ERF = 22
WW_ADD = 0
WW_SUB = 1
WW_MUL = 2
WW_DIV = 3
WW_MAXIMUM = 4
WW_MINIMUM = 5
WW_REM = 6
WW_POW = 7
WW_ATAN2 = 8
WW_EQ = 0
WW_NE = 1
WW_LT = 2
WW_LE = 3
WW_GT = 4
WW_GE = 5
WW_MATH_CANONICAL = 0
WW_MATH_FAST = 1


@struct
class ww_layout(Structure):
    _fields_ = [("rank", c_int32),
                ("shape", c_int64 * WW_RANK_MAX),
                ("strides", c_int64 * WW_RANK_MAX),
                ("offset", c_int64)]


@struct
class ww_tensor(Structure):
    _fields_ = [("storage", c_void_p),
                ("layout", ww_layout)]


@struct
class ww_conv(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("padding", c_int64 * 2),
                ("stride", c_int64 * 2),
                ("dilation", c_int64 * 2),
                ("output_padding", c_int64 * 2),
                ("groups", c_int64),
                ("math", c_int)]


@struct
class ww_pool(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("kernel", c_int64 * 2),
                ("stride", c_int64 * 2),
                ("padding", c_int64 * 2),
                ("padding_counts", c_int32)]


ww_dtype_name = function("", "ww_dtype_name", c_char_p, ("dtype", c_int))
ww_dtype_bytes = function("", "ww_dtype_bytes", c_size_t, ("dtype", c_int))
ww_dtype_of_name = function("", "ww_dtype_of_name", c_int32, ("name", c_char_p))
ww_layout_make = function("", "ww_layout_make", None, POINTER(ww_layout), ("rank", c_int32), c_void_p)
ww_layout_elements = function("", "ww_layout_elements", c_int64, POINTER(ww_layout))
ww_storage_create = function("", "ww_storage_create", c_int, c_void_p, ("dtype", c_int), ("elements", c_int64), c_void_p)
ww_storage_from_host = function("", "ww_storage_from_host", c_int, c_void_p, ("dtype", c_int), ("elements", c_int64),
                                c_void_p, c_void_p)
ww_storage_retain = function("", "ww_storage_retain", c_void_p, c_void_p)
ww_storage_release = function("", "ww_storage_release", None, c_void_p)
ww_storage_dtype = function("", "ww_storage_dtype", c_int, c_void_p)
ww_storage_elements = function("", "ww_storage_elements", c_int64, c_void_p)
ww_storage_device = function("", "ww_storage_device", c_void_p, c_void_p)
ww_storage_to_host = function("", "ww_storage_to_host", c_int, c_void_p, c_void_p)
ww_device_synchronize = function("", "ww_device_synchronize", c_int, c_void_p)
ww_tensor_release = function("", "ww_tensor_release", None, POINTER(ww_tensor))
ww_tensor_dtype = function("", "ww_tensor_dtype", c_int, POINTER(ww_tensor))
ww_tensor_from_host = function("", "ww_tensor_from_host", c_int, c_void_p, ("dtype", c_int), ("rank", c_int32), c_void_p,
                               c_void_p, POINTER(ww_tensor))
ww_tensor_to_host = function("", "ww_tensor_to_host", c_int, POINTER(ww_tensor), c_void_p)
ww_tensor_write = function("", "ww_tensor_write", c_int, POINTER(ww_tensor), c_void_p)
ww_tensor_empty = function("", "ww_tensor_empty", c_int, c_void_p, ("dtype", c_int), ("rank", c_int32), c_void_p,
                           POINTER(ww_tensor))
ww_tensor_zeros = function("", "ww_tensor_zeros", c_int, c_void_p, ("dtype", c_int), ("rank", c_int32), c_void_p,
                           POINTER(ww_tensor))
ww_tensor_full = function("", "ww_tensor_full", c_int, c_void_p, ("dtype", c_int), ("rank", c_int32), c_void_p, c_double,
                          POINTER(ww_tensor))
ww_tensor_arange = function("", "ww_tensor_arange", c_int, c_void_p, ("dtype", c_int), c_double, c_double, c_double,
                            POINTER(ww_tensor))
ww_device_seed = function("", "ww_device_seed", c_int, c_void_p, ("seed", c_uint64))
ww_tensor_uniform = function("", "ww_tensor_uniform", c_int, c_void_p, ("dtype", c_int), ("rank", c_int32), c_void_p, c_double,
                             c_double, POINTER(ww_tensor))
ww_tensor_normal = function("", "ww_tensor_normal", c_int, c_void_p, ("dtype", c_int), ("rank", c_int32), c_void_p, c_double,
                            c_double, POINTER(ww_tensor))
ww_tensor_view = function("", "ww_tensor_view", c_int, POINTER(ww_tensor), POINTER(ww_layout), POINTER(ww_tensor))
ww_tensor_transpose = function("", "ww_tensor_transpose", c_int, POINTER(ww_tensor), ("a", c_int32), ("b", c_int32),
                               POINTER(ww_tensor))
ww_tensor_permute = function("", "ww_tensor_permute", c_int, POINTER(ww_tensor), c_void_p, POINTER(ww_tensor))
ww_tensor_narrow = function("", "ww_tensor_narrow", c_int, POINTER(ww_tensor), ("dim", c_int32), ("first", c_int64),
                            ("count", c_int64), POINTER(ww_tensor))
ww_tensor_slice = function("", "ww_tensor_slice", c_int, POINTER(ww_tensor), ("dim", c_int32), ("begin", c_int64),
                           ("end", c_int64), ("step", c_int64), POINTER(ww_tensor))
ww_tensor_select = function("", "ww_tensor_select", c_int, POINTER(ww_tensor), ("dim", c_int32), ("index", c_int64),
                            POINTER(ww_tensor))
ww_tensor_reshape = function("", "ww_tensor_reshape", c_int, POINTER(ww_tensor), ("rank", c_int32), c_void_p, POINTER(ww_tensor))
ww_tensor_broadcast_to = function("", "ww_tensor_broadcast_to", c_int, POINTER(ww_tensor), ("rank", c_int32), c_void_p,
                                  POINTER(ww_tensor))
ww_tensor_squeeze = function("", "ww_tensor_squeeze", c_int, POINTER(ww_tensor), ("dim", c_int32), POINTER(ww_tensor))
ww_tensor_unsqueeze = function("", "ww_tensor_unsqueeze", c_int, POINTER(ww_tensor), ("dim", c_int32), POINTER(ww_tensor))
ww_tensor_contiguous = function("", "ww_tensor_contiguous", c_int, POINTER(ww_tensor), POINTER(ww_tensor))
ww_tensor_copy_to = function("", "ww_tensor_copy_to", c_int, POINTER(ww_tensor), c_void_p, POINTER(ww_tensor))
ww_tensor_copy_strided = function("", "ww_tensor_copy_strided", c_int, POINTER(ww_tensor), POINTER(ww_tensor))
ww_tensor_copy2d = function("", "ww_tensor_copy2d", c_int, c_void_p, c_void_p, ("rows", c_int64), ("columns", c_int64),
                            ("from_stride", c_int64), ("to_stride", c_int64), ("from_offset", c_int64), ("to_offset", c_int64))
ww_tensor_const_set = function("", "ww_tensor_const_set", c_int, POINTER(ww_tensor), c_void_p)
ww_tensor_cat = function("", "ww_tensor_cat", c_int, POINTER(ww_tensor), ("count", c_size_t), ("dim", c_int32),
                         POINTER(ww_tensor))
ww_tensor_gather = function("", "ww_tensor_gather", c_int, POINTER(ww_tensor), POINTER(ww_tensor), ("dim", c_int32),
                            POINTER(ww_tensor))
ww_tensor_index_select = function("", "ww_tensor_index_select", c_int, POINTER(ww_tensor), POINTER(ww_tensor), ("dim", c_int32),
                                  POINTER(ww_tensor))
ww_tensor_scatter = function("", "ww_tensor_scatter", c_int, POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_tensor),
                             ("dim", c_int32))
ww_tensor_scatter_add = function("", "ww_tensor_scatter_add", c_int, POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_tensor),
                                 ("dim", c_int32))
ww_tensor_index_add = function("", "ww_tensor_index_add", c_int, POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_tensor),
                               ("dim", c_int32))
ww_unary_name = function("", "ww_unary_name", c_char_p, ("op", c_int))
ww_binary_name = function("", "ww_binary_name", c_char_p, ("op", c_int))
ww_cmp_name = function("", "ww_cmp_name", c_char_p, ("op", c_int))
ww_unary_of_name = function("", "ww_unary_of_name", c_int32, ("name", c_char_p))
ww_binary_of_name = function("", "ww_binary_of_name", c_int32, ("name", c_char_p))
ww_cmp_of_name = function("", "ww_cmp_of_name", c_int32, ("name", c_char_p))
ww_tensor_cast = function("", "ww_tensor_cast", c_int, POINTER(ww_tensor), ("dtype", c_int), POINTER(ww_tensor))
ww_tensor_unary = function("", "ww_tensor_unary", c_int, ("op", c_int), POINTER(ww_tensor), POINTER(ww_tensor))
ww_tensor_binary = function("", "ww_tensor_binary", c_int, ("op", c_int), POINTER(ww_tensor), POINTER(ww_tensor),
                            POINTER(ww_tensor))
ww_tensor_cmp = function("", "ww_tensor_cmp", c_int, ("op", c_int), POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_tensor))
ww_tensor_where = function("", "ww_tensor_where", c_int, POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_tensor),
                           POINTER(ww_tensor))
ww_tensor_affine = function("", "ww_tensor_affine", c_int, POINTER(ww_tensor), c_double, c_double, POINTER(ww_tensor))
ww_tensor_powf = function("", "ww_tensor_powf", c_int, POINTER(ww_tensor), c_double, POINTER(ww_tensor))
ww_tensor_elu = function("", "ww_tensor_elu", c_int, POINTER(ww_tensor), c_double, POINTER(ww_tensor))
ww_tensor_matmul = function("", "ww_tensor_matmul", c_int, POINTER(ww_tensor), POINTER(ww_tensor), ("math", c_int),
                            POINTER(ww_tensor))
ww_conv_init = function("", "ww_conv_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_conv_size = function("", "ww_conv_size", c_int64, ("in", c_int64), ("kernel", c_int64), ("padding", c_int64),
                        ("stride", c_int64), ("dilation", c_int64))
ww_conv_transpose_size = function("", "ww_conv_transpose_size", c_int64, ("in", c_int64), ("kernel", c_int64),
                                  ("padding", c_int64), ("stride", c_int64), ("dilation", c_int64), ("output_padding", c_int64))
ww_tensor_conv1d = function("", "ww_tensor_conv1d", c_int, POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_conv),
                            POINTER(ww_tensor))
ww_tensor_conv2d = function("", "ww_tensor_conv2d", c_int, POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_conv),
                            POINTER(ww_tensor))
ww_tensor_conv_transpose1d = function("", "ww_tensor_conv_transpose1d", c_int, POINTER(ww_tensor), POINTER(ww_tensor),
                                      POINTER(ww_conv), POINTER(ww_tensor))
ww_tensor_conv_transpose2d = function("", "ww_tensor_conv_transpose2d", c_int, POINTER(ww_tensor), POINTER(ww_tensor),
                                      POINTER(ww_conv), POINTER(ww_tensor))
ww_pool_init = function("", "ww_pool_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_tensor_avg_pool2d = function("", "ww_tensor_avg_pool2d", c_int, POINTER(ww_tensor), POINTER(ww_pool), POINTER(ww_tensor))
ww_tensor_max_pool2d = function("", "ww_tensor_max_pool2d", c_int, POINTER(ww_tensor), POINTER(ww_pool), POINTER(ww_tensor))
ww_tensor_upsample_nearest1d = function("", "ww_tensor_upsample_nearest1d", c_int, POINTER(ww_tensor), ("size", c_int64),
                                        POINTER(ww_tensor))
ww_tensor_upsample_nearest2d = function("", "ww_tensor_upsample_nearest2d", c_int, POINTER(ww_tensor), ("size_y", c_int64),
                                        ("size_x", c_int64), POINTER(ww_tensor))
ww_tensor_upsample_bilinear2d = function("", "ww_tensor_upsample_bilinear2d", c_int, POINTER(ww_tensor), ("size_y", c_int64),
                                         ("size_x", c_int64), ("align_corners", c_int32), c_void_p, POINTER(ww_tensor))

# ---- warpwave/attention.h ------------------------------------------------------------------------------------------------
WW_ATTENTION_F16 = 0
WW_ATTENTION_F32 = 1
WW_ATTENTION_Q8_0 = 2


@struct
class ww_attention(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("type", c_int),
                ("causal", c_bool),
                ("window", c_int64),
                ("first_position", c_int64),
                ("scale", c_double)]


ww_attention_init = function("", "ww_attention_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_tensor_attention = function("", "ww_tensor_attention", c_int, POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_tensor),
                               POINTER(ww_attention), POINTER(ww_tensor))

# ---- warpwave/filter.h ---------------------------------------------------------------------------------------------------
WW_FILTER_DEPTH_MAX = 32
WW_FILTER_JSON_MAX = 1048576
WW_FILTER_ALL = 0
WW_FILTER_ANY = 1
WW_FILTER_NONE = 2
WW_FILTER_SOME = 3
WW_FILTER_EXISTS = 0
WW_FILTER_EQUAL = 1
WW_FILTER_CONTAINS = 2
WW_FILTER_LESS = 3
WW_FILTER_LESS_EQUAL = 4
WW_FILTER_GREATER = 5
WW_FILTER_GREATER_EQUAL = 6
WW_FILTER_SAME = 7
WW_FILTER_OTHER = 8
WW_FILTER_ALL_WORDS = 9
WW_FILTER_ANY_WORD = 10
WW_FILTER_PHRASE = 11
WW_FILTER_PREFIX = 12
WW_FILTER_SUBSTRING = 13
WW_FILTER_WITHIN = 14
WW_FILTER_COUNT = 15
WW_FILTER_EMPTY = 16
WW_FILTER_HAS_NULL = 17
WW_FILTER_CIRCLE = 18
WW_FILTER_BOX = 19
WW_FILTER_POLYGON = 20
WW_FILTER_NULL = 0
WW_FILTER_FALSE = 1
WW_FILTER_TRUE = 2
WW_FILTER_INTEGER = 3
WW_FILTER_REAL = 4
WW_FILTER_TEXT = 5
WW_FILTER_DATE = 6


@struct
class ww_filter_value(Structure):
    _fields_ = [("type", c_int),
                ("integer", c_int64),
                ("real", c_double),
                ("text", c_void_p),
                ("text_bytes", c_size_t),
                ("bound", c_int)]


ww_filter_create = function("", "ww_filter_create", c_int, c_void_p)
ww_filter_read = function("", "ww_filter_read", c_int, ("json", c_char_p), c_void_p)
ww_filter_destroy = function("", "ww_filter_destroy", None, c_void_p)
ww_filter_add = function("", "ww_filter_add", c_int, c_void_p, ("field", c_char_p), ("test", c_int), POINTER(ww_filter_value),
                         ("count", c_int64))
ww_filter_add_ids = function("", "ww_filter_add_ids", c_int, c_void_p, c_void_p, ("count", c_int64))
ww_filter_add_filter = function("", "ww_filter_add_filter", c_int, c_void_p, c_void_p)
ww_filter_begin = function("", "ww_filter_begin", c_int, c_void_p, ("group", c_int), ("at_least", c_int64))
ww_filter_begin_element = function("", "ww_filter_begin_element", c_int, c_void_p, ("field", c_char_p))
ww_filter_end = function("", "ww_filter_end", c_int, c_void_p)
ww_filter_matches = function("", "ww_filter_matches", c_int, c_void_p, ("id", c_char_p), ("payload", c_char_p), c_void_p)
ww_filter_equal = function("", "ww_filter_equal", c_int32, c_void_p, c_void_p)
ww_filter_text = function("", "ww_filter_text", c_size_t, c_void_p, c_char_p, ("capacity", c_size_t))

# ---- warpwave/formula.h --------------------------------------------------------------------------------------------------
WW_FORMULA_DEPTH_MAX = 32
WW_FORMULA_TERMS_MAX = 4096
ww_condition_reader = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)


@struct
class ww_formula_row(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("id", c_char_p),
                ("payload", c_char_p),
                ("scores", c_void_p),
                ("score_count", c_int64)]


ww_formula_row_init = function("", "ww_formula_row_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_formula_read = function("", "ww_formula_read", c_int, ("json", c_char_p), ("defaults", c_char_p), ww_condition_reader,
                           c_void_p, c_void_p)
ww_formula_destroy = function("", "ww_formula_destroy", None, c_void_p)
ww_formula_score = function("", "ww_formula_score", c_int, c_void_p, POINTER(ww_formula_row), c_void_p)

# ---- warpwave/quant.h ----------------------------------------------------------------------------------------------------
WW_QUANT_F32 = 0
WW_QUANT_F16 = 1
WW_QUANT_Q4_0 = 2
WW_QUANT_Q4_1 = 3
WW_QUANT_Q5_0 = 6
WW_QUANT_Q5_1 = 7
WW_QUANT_Q8_0 = 8
WW_QUANT_Q8_1 = 9
WW_QUANT_Q2_K = 10
WW_QUANT_Q3_K = 11
WW_QUANT_Q4_K = 12
WW_QUANT_Q5_K = 13
WW_QUANT_Q6_K = 14
WW_QUANT_Q8_K = 15
WW_QUANT_IQ4_NL = 20
WW_QUANT_IQ4_XS = 23
WW_QUANT_BF16 = 30
WW_QUANT_MXFP4 = 39
WW_ACTIVATIONS_CODED = 0
WW_ACTIVATIONS_FLOAT = 1


@struct
class ww_quant_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("type", c_int),
                ("rows", c_int64),
                ("cols", c_int64),
                ("row_bytes", c_int64),
                ("bytes", c_int64),
                ("device", c_char * 32),
                ("finite", c_int32)]


@struct
class ww_quant_product(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("queued", c_int32),
                ("math", c_int),
                ("expert_rows", c_int64),
                ("experts", c_void_p),
                ("expert_ids", c_void_p),
                ("activations", c_int),
                ("norm_weight", c_void_p),
                ("norm_eps", c_double),
                ("up", c_void_p),
                ("accumulate", c_int32)]


ww_quant_info_init = function("", "ww_quant_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_quant_name = function("", "ww_quant_name", c_char_p, ("type", c_int))
ww_quant_find = function("", "ww_quant_find", c_int, ("name", c_char_p), c_void_p)
ww_quant_block_elements = function("", "ww_quant_block_elements", c_int64, ("type", c_int))
ww_quant_block_bytes = function("", "ww_quant_block_bytes", c_int64, ("type", c_int))
ww_quant_row_bytes = function("", "ww_quant_row_bytes", c_int, ("type", c_int), ("cols", c_int64), c_void_p)
ww_quant_from_f32 = function("", "ww_quant_from_f32", c_int, c_void_p, ("type", c_int), c_void_p, ("rows", c_int64),
                             ("cols", c_int64), ("row_stride", c_int64), c_void_p)
ww_quant_from_tensor = function("", "ww_quant_from_tensor", c_int, ("type", c_int), POINTER(ww_tensor), c_void_p)
ww_quant_load = function("", "ww_quant_load", c_int, c_void_p, ("type", c_int), c_void_p, ("size", c_size_t), ("rows", c_int64),
                         ("cols", c_int64), c_void_p)
ww_quant_view = function("", "ww_quant_view", c_int, c_void_p, ("first", c_int64), ("count", c_int64), c_void_p)
ww_quant_destroy = function("", "ww_quant_destroy", None, c_void_p)
ww_quant_describe = function("", "ww_quant_describe", c_int, c_void_p, POINTER(ww_quant_info))
ww_quant_read_f32 = function("", "ww_quant_read_f32", c_int, c_void_p, ("first", c_int64), ("count", c_int64), c_void_p)
ww_quant_read_blocks = function("", "ww_quant_read_blocks", c_int, c_void_p, ("first", c_int64), ("count", c_int64), c_void_p)
ww_quant_get_rows = function("", "ww_quant_get_rows", c_int, c_void_p, c_void_p, ("count", c_int64), c_void_p)
ww_quant_dequantize = function("", "ww_quant_dequantize", c_int, c_void_p, ("first", c_int64), ("count", c_int64),
                               ("dtype", c_int), POINTER(ww_tensor))
ww_quant_rows = function("", "ww_quant_rows", c_int, c_void_p, POINTER(ww_tensor), ("dtype", c_int), POINTER(ww_tensor))
ww_quant_matmul = function("", "ww_quant_matmul", c_int, c_void_p, POINTER(ww_tensor), POINTER(ww_tensor))
ww_quant_matmul_experts = function("", "ww_quant_matmul_experts", c_int, c_void_p, ("expert_rows", c_int64), POINTER(ww_tensor),
                                   c_void_p, POINTER(ww_tensor))
ww_quant_product_init = function("", "ww_quant_product_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_quant_multiply = function("", "ww_quant_multiply", c_int, c_void_p, POINTER(ww_tensor), POINTER(ww_quant_product),
                             POINTER(ww_tensor))
ww_quant_multiply_coded = function("", "ww_quant_multiply_coded", c_int, c_void_p, c_void_p, POINTER(ww_quant_product),
                                   POINTER(ww_tensor))

# ---- warpwave/gguf.h -----------------------------------------------------------------------------------------------------
WW_GGUF_RANK_MAX = 4
WW_GGUF_U8 = 0
WW_GGUF_I8 = 1
WW_GGUF_U16 = 2
WW_GGUF_I16 = 3
WW_GGUF_U32 = 4
WW_GGUF_I32 = 5
WW_GGUF_F32 = 6
WW_GGUF_BOOL = 7
WW_GGUF_STRING = 8
WW_GGUF_ARRAY = 9
WW_GGUF_U64 = 10
WW_GGUF_I64 = 11
WW_GGUF_F64 = 12


@struct
class ww_gguf_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("version", c_int32),
                ("alignment", c_int32),
                ("keys", c_int64),
                ("tensors", c_int64),
                ("files", c_int64),
                ("data_bytes", c_int64)]


@struct
class ww_gguf_value(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("key", c_char_p),
                ("kind", c_int),
                ("element", c_int),
                ("count", c_int64),
                ("data", c_void_p),
                ("data_bytes", c_size_t)]


@struct
class ww_gguf_tensor(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("name", c_char_p),
                ("type", c_int32),
                ("rank", c_int32),
                ("shape", c_int64 * WW_GGUF_RANK_MAX),
                ("file", c_int32),
                ("offset", c_int64),
                ("bytes", c_int64)]


@struct
class ww_gguf_span(Structure):
    _fields_ = [("text", c_void_p),
                ("bytes", c_size_t)]


ww_gguf_info_init = function("", "ww_gguf_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_gguf_value_init = function("", "ww_gguf_value_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_gguf_tensor_init = function("", "ww_gguf_tensor_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_gguf_kind_name = function("", "ww_gguf_kind_name", c_char_p, ("kind", c_int))
ww_gguf_type_name = function("", "ww_gguf_type_name", c_char_p, ("type", c_int32))
ww_gguf_open = function("", "ww_gguf_open", c_int, ("path", c_char_p), c_void_p)
ww_gguf_open_stream = function("", "ww_gguf_open_stream", c_int, ("path", c_char_p), c_void_p)
ww_gguf_file_path = function("", "ww_gguf_file_path", c_int, c_void_p, ("file", c_int64), c_char_p, ("capacity", c_size_t))
ww_gguf_close = function("", "ww_gguf_close", None, c_void_p)
ww_gguf_describe = function("", "ww_gguf_describe", c_int, c_void_p, POINTER(ww_gguf_info))
ww_gguf_value_at = function("", "ww_gguf_value_at", c_int, c_void_p, ("index", c_int64), POINTER(ww_gguf_value))
ww_gguf_tensor_at = function("", "ww_gguf_tensor_at", c_int, c_void_p, ("index", c_int64), POINTER(ww_gguf_tensor))
ww_gguf_find_value = function("", "ww_gguf_find_value", c_int, c_void_p, ("key", c_char_p), c_void_p)
ww_gguf_find_tensor = function("", "ww_gguf_find_tensor", c_int, c_void_p, ("name", c_char_p), c_void_p)
ww_gguf_u64 = function("", "ww_gguf_u64", c_int, c_void_p, ("key", c_char_p), c_void_p)
ww_gguf_i64 = function("", "ww_gguf_i64", c_int, c_void_p, ("key", c_char_p), c_void_p)
ww_gguf_f64 = function("", "ww_gguf_f64", c_int, c_void_p, ("key", c_char_p), c_void_p)
ww_gguf_bool = function("", "ww_gguf_bool", c_int, c_void_p, ("key", c_char_p), c_void_p)
ww_gguf_text = function("", "ww_gguf_text", c_int, c_void_p, ("key", c_char_p), c_void_p, c_void_p)
ww_gguf_i64s = function("", "ww_gguf_i64s", c_int, c_void_p, ("key", c_char_p), c_void_p, ("capacity", c_int64), c_void_p)
ww_gguf_f64s = function("", "ww_gguf_f64s", c_int, c_void_p, ("key", c_char_p), c_void_p, ("capacity", c_int64), c_void_p)
ww_gguf_texts = function("", "ww_gguf_texts", c_int, c_void_p, ("key", c_char_p), POINTER(ww_gguf_span), ("capacity", c_int64),
                         c_void_p)
ww_gguf_view = function("", "ww_gguf_view", c_void_p, c_void_p, ("index", c_int64))
ww_gguf_read = function("", "ww_gguf_read", c_int, c_void_p, ("index", c_int64), ("offset", c_int64), c_void_p,
                        ("bytes", c_size_t))
ww_gguf_load = function("", "ww_gguf_load", c_int, c_void_p, ("index", c_int64), c_void_p, ww_progress, c_void_p, c_void_p)
ww_gguf_load_joined = function("", "ww_gguf_load_joined", c_int, c_void_p, c_void_p, ("count", c_int64), c_void_p, ww_progress,
                               c_void_p, c_void_p)
ww_gguf_load_all = function("", "ww_gguf_load_all", c_int, c_void_p, c_void_p, ww_progress, c_void_p, c_void_p)
ww_gguf_writer_create = function("", "ww_gguf_writer_create", c_int, c_void_p)
ww_gguf_writer_value = function("", "ww_gguf_writer_value", c_int, c_void_p, POINTER(ww_gguf_value))
ww_gguf_writer_u32 = function("", "ww_gguf_writer_u32", c_int, c_void_p, ("key", c_char_p), ("value", c_uint32))
ww_gguf_writer_string = function("", "ww_gguf_writer_string", c_int, c_void_p, ("key", c_char_p), ("text", c_char_p))
ww_gguf_writer_tensor = function("", "ww_gguf_writer_tensor", c_int, c_void_p, POINTER(ww_gguf_tensor))
ww_gguf_writer_open = function("", "ww_gguf_writer_open", c_int, c_void_p, ("path", c_char_p))
ww_gguf_writer_data = function("", "ww_gguf_writer_data", c_int, c_void_p, c_void_p, ("size", c_size_t))
ww_gguf_writer_finish = function("", "ww_gguf_writer_finish", c_int, c_void_p)
ww_gguf_writer_destroy = function("", "ww_gguf_writer_destroy", None, c_void_p)

# ---- warpwave/results.h --------------------------------------------------------------------------------------------------
WW_FETCH_IDS = 1
WW_FETCH_PAYLOADS = 2
WW_FETCH_VECTORS = 4
WW_FETCH_TEXTS = 8
WW_FETCH_SPARSE = 16
WW_FETCH_MULTI = 32


@struct
class ww_hit_parts(Structure):
    _fields_ = [("ranks", c_int64 * 2),
                ("scores", c_float * 2)]


@struct
class ww_results_columns(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("query_count", c_int64),
                ("hit_count", c_int64),
                ("starts", c_void_p),
                ("rows", c_void_p),
                ("handles", c_void_p),
                ("scores", c_void_p),
                ("totals", c_void_p),
                ("ids", c_void_p),
                ("payloads", c_void_p),
                ("text", c_void_p),
                ("text_bytes", c_int64),
                ("vectors", c_void_p),
                ("dim", c_int32),
                ("proven", c_void_p),
                ("texts", c_void_p),
                ("parts", c_void_p)]


ww_results_destroy = function("", "ww_results_destroy", None, c_void_p)
ww_results_query_count = function("", "ww_results_query_count", c_int64, c_void_p)
ww_results_count = function("", "ww_results_count", c_int64, c_void_p, ("query", c_int64))
ww_results_total = function("", "ww_results_total", c_int64, c_void_p, ("query", c_int64))
ww_results_proven = function("", "ww_results_proven", c_int64, c_void_p, ("query", c_int64))
ww_results_rows = function("", "ww_results_rows", c_void_p, c_void_p, ("query", c_int64))
ww_results_handles = function("", "ww_results_handles", c_void_p, c_void_p, ("query", c_int64))
ww_results_scores = function("", "ww_results_scores", c_void_p, c_void_p, ("query", c_int64))
ww_results_id = function("", "ww_results_id", c_char_p, c_void_p, ("query", c_int64), ("hit", c_int64))
ww_results_payload = function("", "ww_results_payload", c_char_p, c_void_p, ("query", c_int64), ("hit", c_int64))
ww_results_text = function("", "ww_results_text", c_char_p, c_void_p, ("query", c_int64), ("hit", c_int64))
ww_results_vector = function("", "ww_results_vector", c_void_p, c_void_p, ("query", c_int64), ("hit", c_int64))
ww_results_sparse = function("", "ww_results_sparse", c_int, c_void_p, ("query", c_int64), ("hit", c_int64), c_void_p)
ww_results_multi = function("", "ww_results_multi", c_int, c_void_p, ("query", c_int64), ("hit", c_int64), c_void_p)
ww_results_parts = function("", "ww_results_parts", c_void_p, c_void_p, ("query", c_int64))
ww_results_columns_init = function("", "ww_results_columns_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_results_describe = function("", "ww_results_describe", c_int, c_void_p, POINTER(ww_results_columns))

# ---- warpwave/vectors.h --------------------------------------------------------------------------------------------------
WW_DIM_MAX = 65536
WW_ID_BYTES_MAX = 256
WW_K_MAX = 16384
WW_ROWS_MAX = 4294967295
WW_MATCH_WORDS_MAX = 1024
WW_COSINE = 0
WW_L2 = 1
WW_DOT = 2
WW_SCREEN_INT8 = 0
WW_SCREEN_NONE = 1
WW_VECTOR_F32 = 0
WW_VECTOR_F16 = 1
WW_VECTOR_BF16 = 2
WW_VECTOR_I8 = 3
WW_VECTOR_U8 = 4
WW_ROWS_DEVICE = 0
WW_ROWS_HOST = 1
WW_VALUE_NULL = 0
WW_VALUE_INTEGER = 1
WW_VALUE_REAL = 2
WW_VALUE_TEXT = 3
WW_VALUE_LIST = 4
WW_QUERY_NEAREST = 0
WW_QUERY_RANGE = 1
WW_MATCH_HYBRID = 0
WW_MATCH_TEXT = 1
WW_DAMAGE_VECTOR = 1
WW_DAMAGE_NORM = 2
WW_DAMAGE_CODES = 4
WW_DAMAGE_SCALE = 8
WW_DAMAGE_RESIDUAL = 16
WW_DAMAGE_LIVE = 32


@struct
class ww_collection_config(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("name", c_char_p),
                ("dim", c_int32),
                ("metric", c_int),
                ("keep_host_copy", c_int32),
                ("screen", c_int),
                ("type", c_int),
                ("rows", c_int)]


@struct
class ww_rows(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("count", c_int64),
                ("dim", c_int32),
                ("vectors", c_void_p),
                ("row_stride", c_int64),
                ("ids", c_void_p),
                ("payloads", c_void_p),
                ("progress", ww_progress),
                ("progress_user", c_void_p),
                ("elements", c_void_p),
                ("type", c_int),
                ("tensor", c_void_p),
                ("texts", c_void_p),
                ("discard_ids", c_void_p),
                ("discard_count", c_int64),
                ("sparse", c_void_p),
                ("multi", c_void_p)]


@struct
class ww_search_stats(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("rows_screened", c_int64),
                ("rows_kept", c_int64),
                ("rows_scored", c_int64),
                ("fallback_queries", c_int64),
                ("certificate", c_float),
                ("repeated_queries", c_int64),
                ("lists_read", c_int64),
                ("list_rows_read", c_int64),
                ("list_bytes_read", c_int64)]


@struct
class ww_parameter(Structure):
    _fields_ = [("name", c_char_p),
                ("type", c_int),
                ("integer", c_int64),
                ("real", c_double),
                ("text", c_char_p)]


@struct
class ww_word_counts(Structure):
    _fields_ = [("texts", c_int64),
                ("words", c_int64),
                ("count", c_int64),
                ("found", c_void_p)]


@struct
class ww_match(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("texts", c_void_p),
                ("mode", c_int),
                ("fuse", c_void_p),
                ("candidates", c_int64),
                ("counts", c_void_p)]


@struct
class ww_query(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("queries", c_void_p),
                ("query_count", c_int64),
                ("query_stride", c_int64),
                ("query_tensor", c_void_p),
                ("dim", c_int32),
                ("mode", c_int),
                ("k", c_int32),
                ("bound", c_float),
                ("limit", c_int64),
                ("mask", c_void_p),
                ("mask_rows", c_int64),
                ("where", c_char_p),
                ("parameters", c_void_p),
                ("parameter_count", c_int64),
                ("filter", c_void_p),
                ("fetch", c_uint32),
                ("progress", ww_progress),
                ("progress_user", c_void_p),
                ("stats", c_void_p),
                ("nprobe", c_int64),
                ("match", c_void_p),
                ("recall", c_float),
                ("cancel", c_void_p),
                ("sparse", c_void_p),
                ("multi", c_void_p)]


@struct
class ww_get(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("count", c_int64),
                ("ids", c_void_p),
                ("handles", c_void_p),
                ("fetch", c_uint32),
                ("cancel", c_void_p)]


@struct
class ww_collection_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("dim", c_int32),
                ("metric", c_int),
                ("rows_live", c_int64),
                ("rows_removed", c_int64),
                ("rows_capacity", c_int64),
                ("segments", c_int64),
                ("bytes_rows", c_int64),
                ("bytes_ids", c_int64),
                ("bytes_payloads", c_int64),
                ("device", c_char * 32),
                ("bytes_host_copy", c_int64),
                ("screen", c_int),
                ("bytes_screen", c_int64),
                ("bytes_handles", c_int64),
                ("mask_rows", c_int64),
                ("type", c_int),
                ("rows", c_int),
                ("bytes_rows_host", c_int64),
                ("members", c_char * 512)]


@struct
class ww_damage_report(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("rows_checked", c_int64),
                ("rows_damaged", c_int64),
                ("first_row", c_int64),
                ("first_damage", c_uint32),
                ("damage", c_uint32)]


ww_collection_config_init = function("", "ww_collection_config_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_rows_init = function("", "ww_rows_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_query_init = function("", "ww_query_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_match_init = function("", "ww_match_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_get_init = function("", "ww_get_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_search_stats_init = function("", "ww_search_stats_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_collection_info_init = function("", "ww_collection_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_damage_report_init = function("", "ww_damage_report_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_metric_name = function("", "ww_metric_name", c_char_p, ("metric", c_int))
ww_screen_name = function("", "ww_screen_name", c_char_p, ("screen", c_int))
ww_vector_type_name = function("", "ww_vector_type_name", c_char_p, ("type", c_int))
ww_row_place_name = function("", "ww_row_place_name", c_char_p, ("place", c_int))
ww_collection_create = function("", "ww_collection_create", c_int, c_void_p, POINTER(ww_collection_config), c_void_p)
ww_collection_destroy = function("", "ww_collection_destroy", None, c_void_p)
ww_collection_add = function("", "ww_collection_add", c_int, c_void_p, POINTER(ww_rows))
ww_collection_upsert = function("", "ww_collection_upsert", c_int, c_void_p, POINTER(ww_rows))
ww_collection_update = function("", "ww_collection_update", c_int, c_void_p, POINTER(ww_rows))
ww_collection_remove = function("", "ww_collection_remove", c_int, c_void_p, c_void_p, ("count", c_int64))
ww_collection_discard = function("", "ww_collection_discard", c_int, c_void_p, c_void_p, ("count", c_int64), c_void_p)
ww_collection_set_payloads = function("", "ww_collection_set_payloads", c_int, c_void_p, c_void_p, c_void_p, ("count", c_int64))
ww_collection_clear = function("", "ww_collection_clear", c_int, c_void_p)
ww_collection_compact = function("", "ww_collection_compact", c_int, c_void_p, ww_progress, c_void_p)
ww_collection_check = function("", "ww_collection_check", c_int, c_void_p, POINTER(ww_damage_report), ww_progress, c_void_p)
ww_collection_reserve = function("", "ww_collection_reserve", c_int, c_void_p, ("rows", c_int64))
ww_collection_move = function("", "ww_collection_move", c_int, c_void_p, c_void_p)
ww_collection_count = function("", "ww_collection_count", c_int64, c_void_p)
ww_collection_digest = function("", "ww_collection_digest", c_int, c_void_p, c_void_p)
ww_collection_count_words = function("", "ww_collection_count_words", c_int, c_void_p, ("text", c_char_p),
                                     POINTER(ww_word_counts))
ww_collection_describe = function("", "ww_collection_describe", c_int, c_void_p, POINTER(ww_collection_info))
ww_collection_query = function("", "ww_collection_query", c_int, c_void_p, POINTER(ww_query), c_void_p)
ww_collection_search = function("", "ww_collection_search", c_int, c_void_p, POINTER(ww_query), c_void_p, c_void_p)
ww_collection_get = function("", "ww_collection_get", c_int, c_void_p, POINTER(ww_get), c_void_p)
ww_collection_find = function("", "ww_collection_find", c_int, c_void_p, ("id", c_char_p), c_void_p)
ww_collection_handle = function("", "ww_collection_handle", c_int, c_void_p, ("row", c_int64), c_void_p)
ww_collection_find_handle = function("", "ww_collection_find_handle", c_int, c_void_p, ("handle", c_int64), c_void_p)
ww_collection_vector = function("", "ww_collection_vector", c_int, c_void_p, ("row", c_int64), c_void_p)
ww_collection_elements = function("", "ww_collection_elements", c_int, c_void_p, ("row", c_int64), c_void_p)
ww_collection_id = function("", "ww_collection_id", c_int, c_void_p, ("row", c_int64), c_char_p, ("capacity", c_size_t), c_void_p)
ww_collection_payload = function("", "ww_collection_payload", c_int, c_void_p, ("row", c_int64), c_char_p, ("capacity", c_size_t),
                                 c_void_p)
ww_collection_next = function("", "ww_collection_next", c_int64, c_void_p, ("row", c_int64))
ww_score = function("", "ww_score", c_int, ("metric", c_int), c_void_p, c_void_p, ("dim", c_int32), c_void_p)

# ---- warpwave/ivf.h ------------------------------------------------------------------------------------------------------
WW_IVF_LISTS_MAX = 1048576


@struct
class ww_ivf_config(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("nlist", c_int64),
                ("sample_rows", c_int64),
                ("iterations", c_int32),
                ("seed", c_uint64),
                ("progress", ww_progress),
                ("progress_user", c_void_p)]


@struct
class ww_ivf_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("nlist", c_int64),
                ("rows", c_int64),
                ("rows_largest", c_int64),
                ("rows_mean", c_double),
                ("loss", c_double),
                ("bytes", c_int64),
                ("rows_trained", c_int64),
                ("rows_added", c_int64),
                ("lists_split", c_int64),
                ("calibration_queries", c_int64),
                ("calibration_k", c_int32),
                ("calibration_rows_added", c_int64),
                ("calibration_rows_removed", c_int64),
                ("calibration_time", c_int64)]


@struct
class ww_calibrate_config(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("queries", c_void_p),
                ("query_count", c_int64),
                ("query_stride", c_int64),
                ("k", c_int32),
                ("seed", c_uint64),
                ("progress", ww_progress),
                ("progress_user", c_void_p),
                ("recall", c_float)]


ww_ivf_config_init = function("", "ww_ivf_config_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_ivf_info_init = function("", "ww_ivf_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_calibrate_config_init = function("", "ww_calibrate_config_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_collection_build_ivf = function("", "ww_collection_build_ivf", c_int, c_void_p, POINTER(ww_ivf_config))
ww_collection_calibrate = function("", "ww_collection_calibrate", c_int, c_void_p, POINTER(ww_calibrate_config))
ww_collection_drop_ivf = function("", "ww_collection_drop_ivf", c_int, c_void_p)
ww_collection_describe_ivf = function("", "ww_collection_describe_ivf", c_int, c_void_p, POINTER(ww_ivf_info))

# ---- warpwave/map.h ------------------------------------------------------------------------------------------------------
WW_MAP_NEIGHBOURS_MAX = 256
WW_MAP_STEPS_MAX = 1000000
WW_MAP_KEPT = 0
WW_MAP_GROWN = 1
WW_MAP_MADE = 2


@struct
class ww_map_config(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("neighbours", c_int32),
                ("steps", c_int32),
                ("seed", c_int64),
                ("remake", c_int32),
                ("nprobe", c_int64),
                ("progress", ww_progress),
                ("progress_user", c_void_p)]


@struct
class ww_map_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("rows", c_int64),
                ("rows_placed", c_int64),
                ("neighbours", c_int32),
                ("steps", c_int32),
                ("seed", c_int64),
                ("origin", c_int),
                ("kept", c_int32)]


ww_map_config_init = function("", "ww_map_config_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_map_info_init = function("", "ww_map_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_map_origin_name = function("", "ww_map_origin_name", c_char_p, ("origin", c_int))
ww_collection_map = function("", "ww_collection_map", c_int, c_void_p, POINTER(ww_map_config), c_void_p)
ww_collection_drop_map = function("", "ww_collection_drop_map", c_int, c_void_p)
ww_map_destroy = function("", "ww_map_destroy", None, c_void_p)
ww_map_count = function("", "ww_map_count", c_int64, c_void_p)
ww_map_handles = function("", "ww_map_handles", c_void_p, c_void_p)
ww_map_points = function("", "ww_map_points", c_void_p, c_void_p)
ww_map_describe = function("", "ww_map_describe", c_int, c_void_p, POINTER(ww_map_info))

# ---- warpwave/model.h ----------------------------------------------------------------------------------------------------
WW_MODEL_ENCODER = 0
WW_MODEL_DECODER = 1
WW_POOLING_NONE = 0
WW_POOLING_MEAN = 1
WW_POOLING_CLS = 2
WW_POOLING_LAST = 3
WW_POOLING_RANK = 4
WW_TOKENS_PLAIN = 1
WW_TOKENS_NO_ADD = 2
WW_GRAMMAR_GBNF = 0
WW_GRAMMAR_JSON_SCHEMA = 1
WW_GENERATION_LENGTH = 0
WW_GENERATION_EOS = 1
WW_GENERATION_CONTEXT = 2
WW_GENERATION_STOPPED = 3
ww_text_callback = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)


@struct
class ww_model_options(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("activations", c_int),
                ("cache", c_int),
                ("context", c_int64),
                ("progress", ww_progress),
                ("progress_user", c_void_p),
                ("chat_template", c_char_p),
                ("pooling", c_int),
                ("copy_weights", c_int32)]


@struct
class ww_model_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("kind", c_int),
                ("architecture", c_char * 32),
                ("name", c_char * 128),
                ("licence", c_char * 64),
                ("tokenizer", c_char * 32),
                ("device", c_char * 32),
                ("fingerprint", c_char * 40),
                ("parameters", c_int64),
                ("weight_bytes", c_int64),
                ("cache_bytes", c_int64),
                ("vocabulary", c_int64),
                ("context", c_int64),
                ("layers", c_int32),
                ("width", c_int32),
                ("hidden", c_int32),
                ("heads", c_int32),
                ("key_heads", c_int32),
                ("head_size", c_int32),
                ("window", c_int32),
                ("pooling", c_int),
                ("bos", c_int32),
                ("eos", c_int32),
                ("has_chat", c_int32),
                ("embeds", c_int32),
                ("reranks", c_int32),
                ("prompts", c_char * 128),
                ("default_prompt", c_char * 64),
                ("pooling_assumed", c_int32),
                ("texts_cut", c_int64),
                ("mapped_bytes", c_int64)]


@struct
class ww_chat_message(Structure):
    _fields_ = [("role", c_char_p),
                ("text", c_char_p)]


@struct
class ww_embedding(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("prompt", c_char_p),
                ("progress", ww_progress),
                ("progress_user", c_void_p),
                ("cut", c_void_p)]


@struct
class ww_sampling(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("temperature", c_double),
                ("top_k", c_int32),
                ("top_p", c_double),
                ("min_p", c_double),
                ("repetition_penalty", c_double),
                ("repetition_window", c_int32),
                ("seed", c_uint64),
                ("grammar", c_void_p),
                ("frequency_penalty", c_double),
                ("presence_penalty", c_double),
                ("bias_tokens", c_void_p),
                ("biases", c_void_p),
                ("bias_count", c_int64)]


@struct
class ww_generation(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("tokens", c_int64),
                ("sampling", c_void_p),
                ("text", ww_text_callback),
                ("user", c_void_p),
                ("ignore_eos", c_int32)]


@struct
class ww_conversion(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("folder", c_char_p),
                ("out_path", c_char_p),
                ("name", c_char_p),
                ("type", c_char_p),
                ("pooling", c_int),
                ("device", c_void_p),
                ("progress", ww_progress),
                ("progress_user", c_void_p)]


@struct
class ww_conversion_report(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("architecture", c_char * 32),
                ("tensors", c_int64),
                ("bytes_before", c_int64),
                ("bytes_after", c_int64),
                ("other", c_int64),
                ("pooling_assumed", c_int32)]


ww_model_options_init = function("model", "ww_model_options_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_model_info_init = function("model", "ww_model_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_model_open = function("model", "ww_model_open", c_int, ("path", c_char_p), c_void_p, POINTER(ww_model_options), c_void_p)
ww_model_close = function("model", "ww_model_close", None, c_void_p)
ww_model_describe = function("model", "ww_model_describe", c_int, c_void_p, POINTER(ww_model_info))
ww_model_tokenize = function("model", "ww_model_tokenize", c_int, c_void_p, c_char_p, ("bytes", c_size_t), ("flags", c_uint32),
                             c_void_p, ("capacity", c_size_t), c_void_p)
ww_model_detokenize = function("model", "ww_model_detokenize", c_int, c_void_p, c_void_p, ("count", c_size_t), c_char_p,
                               ("capacity", c_size_t), c_void_p)
ww_tokenizer_create = function("model", "ww_tokenizer_create", c_int, c_void_p, c_void_p)
ww_tokenizer_destroy = function("model", "ww_tokenizer_destroy", None, c_void_p)
ww_model_tokenizer = function("model", "ww_model_tokenizer", c_void_p, c_void_p)
ww_tokenizer_encode = function("model", "ww_tokenizer_encode", c_int, c_void_p, c_char_p, ("bytes", c_size_t),
                               ("flags", c_uint32), c_void_p, ("capacity", c_size_t), c_void_p)
ww_tokenizer_piece = function("model", "ww_tokenizer_piece", c_int, c_void_p, ("token", c_int32), c_void_p, c_void_p)
ww_tokenizer_is_special = function("model", "ww_tokenizer_is_special", c_int32, c_void_p, ("token", c_int32))
ww_model_token_ends = function("model", "ww_model_token_ends", c_int32, c_void_p, ("token", c_int32))
ww_model_chat = function("model", "ww_model_chat", c_int, c_void_p, POINTER(ww_chat_message), ("count", c_size_t), c_char_p,
                         ("capacity", c_size_t), c_void_p)
ww_model_chat_tokens = function("model", "ww_model_chat_tokens", c_int, c_void_p, POINTER(ww_chat_message), ("count", c_size_t),
                                ("flags", c_uint32), c_void_p, ("capacity", c_size_t), c_void_p)
ww_model_chat_json_tokens = function("model", "ww_model_chat_json_tokens", c_int, c_void_p, ("json", c_char_p),
                                     ("behind", c_char_p), c_void_p, ("capacity", c_size_t), c_void_p)
ww_model_chat_template = function("model", "ww_model_chat_template", c_char_p, c_void_p)
ww_embedding_init = function("model", "ww_embedding_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_model_embed = function("model", "ww_model_embed", c_int, c_void_p, c_void_p, c_void_p, ("count", c_size_t),
                          POINTER(ww_embedding), c_void_p)
ww_model_prompt = function("model", "ww_model_prompt", c_int, c_void_p, ("name", c_char_p), c_void_p)
ww_model_embed_tokens = function("model", "ww_model_embed_tokens", c_int, c_void_p, c_void_p, c_void_p, ("count", c_size_t),
                                 c_void_p)
ww_embeddings_shorten = function("model", "ww_embeddings_shorten", c_int, c_void_p, ("count", c_size_t), ("width", c_int32),
                                 ("dimensions", c_int32))
ww_model_rerank = function("model", "ww_model_rerank", c_int, c_void_p, ("query", c_char_p), c_void_p, c_void_p,
                           ("count", c_size_t), c_void_p, ww_progress, c_void_p)
ww_session_create = function("model", "ww_session_create", c_int, c_void_p, c_void_p)
ww_session_destroy = function("model", "ww_session_destroy", None, c_void_p)
ww_session_length = function("model", "ww_session_length", c_size_t, c_void_p)
ww_session_tokens = function("model", "ww_session_tokens", c_int, c_void_p, ("first", c_size_t), c_void_p, ("capacity", c_size_t))
ww_session_feed = function("model", "ww_session_feed", c_int, c_void_p, c_void_p, ("count", c_size_t))
ww_sessions_feed = function("model", "ww_sessions_feed", c_int, c_void_p, c_void_p, c_void_p, ("count", c_size_t))
ww_session_logits = function("model", "ww_session_logits", c_int, c_void_p, c_void_p)
ww_session_truncate = function("model", "ww_session_truncate", c_int, c_void_p, ("length", c_size_t))
ww_session_fork = function("model", "ww_session_fork", c_int, c_void_p, c_void_p)
ww_session_save = function("model", "ww_session_save", c_int, c_void_p, ("path", c_char_p))
ww_session_load = function("model", "ww_session_load", c_int, c_void_p, ("path", c_char_p), c_void_p)
ww_session_cancel = function("model", "ww_session_cancel", None, c_void_p)
ww_grammar_create = function("model", "ww_grammar_create", c_int, c_void_p, ("kind", c_int), c_char_p, ("bytes", c_size_t),
                             c_void_p)
ww_grammar_destroy = function("model", "ww_grammar_destroy", None, c_void_p)
ww_grammar_accept = function("model", "ww_grammar_accept", c_int, c_void_p, ("token", c_int32))
ww_sampling_init = function("model", "ww_sampling_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_session_sample = function("model", "ww_session_sample", c_int, c_void_p, POINTER(ww_sampling), c_void_p)
ww_generation_init = function("model", "ww_generation_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_session_generate = function("model", "ww_session_generate", c_int, c_void_p, POINTER(ww_generation), c_void_p)
ww_conversion_init = function("model", "ww_conversion_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_conversion_report_init = function("model", "ww_conversion_report_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_model_convert = function("model", "ww_model_convert", c_int, POINTER(ww_conversion), POINTER(ww_conversion_report))

# ---- warpwave/multi.h ----------------------------------------------------------------------------------------------------
WW_MULTI_MAX = 1024


@struct
class ww_multivector(Structure):
    _fields_ = [("count", c_int32),
                ("dim", c_int32),
                ("vectors", c_void_p)]


@struct
class ww_multi_query(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("vectors", c_void_p)]


ww_multi_query_init = function("", "ww_multi_query_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_multi_create = function("", "ww_multi_create", c_int, c_void_p, ("dim", c_int32), ("metric", c_int), c_void_p)
ww_multi_destroy = function("", "ww_multi_destroy", None, c_void_p)
ww_multi_add = function("", "ww_multi_add", c_int, c_void_p, POINTER(ww_multivector), ("count", c_int64))
ww_multi_remove = function("", "ww_multi_remove", c_int, c_void_p, ("row", c_int64))
ww_multi_count = function("", "ww_multi_count", c_int64, c_void_p)
ww_multi_search = function("", "ww_multi_search", c_int, c_void_p, POINTER(ww_query), c_void_p)
ww_multi_score = function("", "ww_multi_score", c_int, ("metric", c_int), POINTER(ww_multivector), POINTER(ww_multivector),
                          c_void_p)

# ---- warpwave/ranking.h --------------------------------------------------------------------------------------------------
WW_DIVERSITY_MAX = 2048
WW_FUSION_RANKS = 0
WW_FUSION_SCORES = 1
WW_FUSION_SCALED_RANKS = 2
WW_FUSION_DISTRIBUTIONS = 3


@struct
class ww_fuse(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("fusion", c_int),
                ("constant", c_double),
                ("weights", c_void_p),
                ("limit", c_int64),
                ("by_id", c_bool),
                ("cancel", c_void_p)]


@struct
class ww_picked_hit(Structure):
    _fields_ = [("results", c_void_p),
                ("query", c_int64),
                ("hit", c_int64),
                ("score", c_float)]


@struct
class ww_diversity(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("metric", c_int),
                ("lambda", c_double),
                ("limit", c_int64),
                ("queries", c_void_p),
                ("similarity", c_uint32)]


@struct
class ww_grouping(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("field", c_char_p),
                ("groups", c_int64),
                ("size", c_int64)]


ww_fuse_init = function("", "ww_fuse_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_diversity_init = function("", "ww_diversity_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_grouping_init = function("", "ww_grouping_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_results_fuse = function("", "ww_results_fuse", c_int, c_void_p, ("list_count", c_int64), POINTER(ww_fuse), c_void_p)
ww_results_pick = function("", "ww_results_pick", c_int, POINTER(ww_picked_hit), ("count", c_int64), c_void_p)
ww_results_diversify = function("", "ww_results_diversify", c_int, c_void_p, POINTER(ww_diversity), c_void_p)
ww_results_group = function("", "ww_results_group", c_int, c_void_p, POINTER(ww_grouping), c_void_p)
ww_results_rerank = function("", "ww_results_rerank", c_int, c_void_p, c_void_p, ("limit", c_int64), c_void_p)
ww_collection_rank = function("", "ww_collection_rank", c_int, c_void_p, POINTER(ww_query), POINTER(ww_diversity),
                              POINTER(ww_grouping), ("candidates", c_int64), c_void_p)

# ---- warpwave/plan.h -----------------------------------------------------------------------------------------------------
WW_PLAN_STAGES_MAX = 8192


@struct
class ww_stage_report(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("rows_in", c_int64),
                ("rows_found", c_int64),
                ("rows_worse", c_int64),
                ("rows_excluded", c_int64),
                ("rows_skipped", c_int64),
                ("rows_gone", c_int64),
                ("hits", c_int64),
                ("seconds", c_double),
                ("rows_screened", c_int64),
                ("rows_kept", c_int64),
                ("rows_scored", c_int64),
                ("lists_read", c_int64),
                ("list_bytes_read", c_int64),
                ("certificate", c_float)]


@struct
class ww_order(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("field", c_char_p),
                ("descending", c_bool)]


@struct
class ww_finder(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("find", c_void_p),
                ("user", c_void_p),
                ("filter", c_void_p),
                ("smaller_is_better", c_bool),
                ("in_order", c_bool)]


@struct
class ww_stage(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("collection", c_void_p),
                ("inputs", c_void_p),
                ("input_count", c_int64),
                ("query", c_void_p),
                ("fuse", c_void_p),
                ("diversity", c_void_p),
                ("grouping", c_void_p),
                ("order", c_void_p),
                ("formula", c_void_p),
                ("finder", c_void_p),
                ("limit", c_int64),
                ("offset", c_int64),
                ("has_threshold", c_bool),
                ("threshold", c_double),
                ("exclude", c_void_p),
                ("exclude_count", c_int64),
                ("report", c_void_p)]


@struct
class ww_plan(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("stages", c_void_p),
                ("stage_count", c_int64),
                ("question_count", c_int64),
                ("fetch", c_uint32),
                ("collection", c_void_p),
                ("ties_by_id", c_bool),
                ("cancel", c_void_p)]


ww_stage_report_init = function("", "ww_stage_report_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_order_init = function("", "ww_order_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_finder_init = function("", "ww_finder_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_stage_init = function("", "ww_stage_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_plan_init = function("", "ww_plan_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_plan_run = function("", "ww_plan_run", c_int, POINTER(ww_plan), c_void_p)
ww_stage_name = function("", "ww_stage_name", c_char_p, POINTER(ww_stage))
ww_plan_explain = function("", "ww_plan_explain", c_size_t, POINTER(ww_plan), c_char_p, ("capacity", c_size_t))

# ---- warpwave/selection.h ------------------------------------------------------------------------------------------------
WW_PAYLOAD_SET = 0
WW_PAYLOAD_MERGE = 1


@struct
class ww_selection(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("filter", c_void_p),
                ("where", c_char_p),
                ("parameters", c_void_p),
                ("parameter_count", c_int64),
                ("first_handle", c_int64),
                ("limit", c_int64),
                ("cancel", c_void_p)]


ww_selection_init = function("", "ww_selection_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_collection_select = function("", "ww_collection_select", c_int, c_void_p, POINTER(ww_selection), ("fetch", c_uint32), c_void_p)
ww_collection_select_count = function("", "ww_collection_select_count", c_int, c_void_p, POINTER(ww_selection), c_void_p)
ww_cursor_create = function("", "ww_cursor_create", c_int, c_void_p, POINTER(ww_selection), ("fetch", c_uint32), c_void_p)
ww_cursor_next = function("", "ww_cursor_next", c_int, c_void_p, ("count", c_int64), c_void_p)
ww_cursor_destroy = function("", "ww_cursor_destroy", None, c_void_p)
ww_collection_select_remove = function("", "ww_collection_select_remove", c_int, c_void_p, POINTER(ww_selection), c_void_p)
ww_collection_select_payload = function("", "ww_collection_select_payload", c_int, c_void_p, POINTER(ww_selection),
                                        ("payload", c_char_p), ("change", c_int), c_void_p)
ww_collection_merge_payloads = function("", "ww_collection_merge_payloads", c_int, c_void_p, c_void_p, c_void_p,
                                        ("count", c_int64))

# ---- warpwave/sparse.h ---------------------------------------------------------------------------------------------------
WW_SPARSE_MAX = 65536
WW_SPARSE_PLAIN = 0
WW_SPARSE_IDF = 1


@struct
class ww_sparse_vector(Structure):
    _fields_ = [("count", c_int64),
                ("indices", c_void_p),
                ("values", c_void_p)]


@struct
class ww_sparse_query(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("vectors", c_void_p),
                ("modifier", c_int)]


ww_sparse_query_init = function("", "ww_sparse_query_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_sparse_create = function("", "ww_sparse_create", c_int, c_void_p)
ww_sparse_destroy = function("", "ww_sparse_destroy", None, c_void_p)
ww_sparse_add = function("", "ww_sparse_add", c_int, c_void_p, POINTER(ww_sparse_vector), ("count", c_int64))
ww_sparse_remove = function("", "ww_sparse_remove", c_int, c_void_p, ("row", c_int64))
ww_sparse_count = function("", "ww_sparse_count", c_int64, c_void_p)
ww_sparse_search = function("", "ww_sparse_search", c_int, c_void_p, POINTER(ww_query), c_void_p)
ww_sparse_score = function("", "ww_sparse_score", c_int, POINTER(ww_sparse_vector), POINTER(ww_sparse_vector), c_void_p, c_void_p)

# ---- warpwave/store.h ----------------------------------------------------------------------------------------------------
WW_STORE_FORMAT = 4
WW_SYNCHRONOUS_FULL = 0
WW_SYNCHRONOUS_NORMAL = 1
WW_SYNCHRONOUS_OFF = 2


@struct
class ww_store_config(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("synchronous", c_int),
                ("busy_ms", c_int32),
                ("page_bytes", c_int32),
                ("filter_ms", c_int32),
                ("must_exist", c_int32),
                ("read_only", c_int32),
                ("loading", ww_progress),
                ("loading_user", c_void_p),
                ("rows", c_int),
                ("exclusive", c_int32),
                ("memory_bytes", c_int64)]


@struct
class ww_store_info(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("format", c_int64),
                ("collections", c_int64),
                ("page_bytes", c_int64),
                ("bytes_file", c_int64),
                ("bytes_wal", c_int64),
                ("bytes_unused", c_int64),
                ("sqlite_version", c_char * 32),
                ("bytes_memory", c_int64)]


@struct
class ww_store_model(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("name", c_char * 128),
                ("fingerprint", c_char * 72),
                ("path", c_char * 1024),
                ("pooling", c_char * 16),
                ("query_prefix", c_char * 256),
                ("document_prefix", c_char * 256)]


@struct
class ww_store_copy(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("names", c_void_p),
                ("to", c_void_p),
                ("count", c_int64),
                ("note_key", c_char_p),
                ("note", c_void_p),
                ("progress", ww_progress),
                ("user", c_void_p)]


ww_store_copy_init = function("store", "ww_store_copy_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_store_config_init = function("store", "ww_store_config_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_store_info_init = function("store", "ww_store_info_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_store_model_init = function("store", "ww_store_model_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_synchronous_name = function("store", "ww_synchronous_name", c_char_p, ("level", c_int))
ww_store_open = function("store", "ww_store_open", c_int, ("path", c_char_p), c_void_p, POINTER(ww_store_config), c_void_p)
ww_store_close = function("store", "ww_store_close", None, c_void_p)
ww_store_create = function("store", "ww_store_create", c_int, c_void_p, POINTER(ww_collection_config), c_void_p)
ww_store_collection = function("store", "ww_store_collection", c_int, c_void_p, ("name", c_char_p), c_void_p)
ww_store_drop = function("store", "ww_store_drop", c_int, c_void_p, ("name", c_char_p))
ww_store_rename = function("store", "ww_store_rename", c_int, c_void_p, ("name", c_char_p), ("to", c_char_p))
ww_store_list = function("store", "ww_store_list", c_int, c_void_p, c_void_p)
ww_store_begin = function("store", "ww_store_begin", c_int, c_void_p)
ww_store_commit = function("store", "ww_store_commit", c_int, c_void_p)
ww_store_rollback = function("store", "ww_store_rollback", c_int, c_void_p)
ww_store_index = function("store", "ww_store_index", c_int, c_void_p, ("collection", c_char_p), ("path", c_char_p))
ww_store_set_model = function("store", "ww_store_set_model", c_int, c_void_p, ("collection", c_char_p), POINTER(ww_store_model))
ww_store_get_model = function("store", "ww_store_get_model", c_int, c_void_p, ("collection", c_char_p), POINTER(ww_store_model))
ww_store_set_note = function("store", "ww_store_set_note", c_int, c_void_p, ("collection", c_char_p), ("key", c_char_p),
                             ("text", c_char_p))
ww_store_get_note = function("store", "ww_store_get_note", c_int, c_void_p, ("collection", c_char_p), ("key", c_char_p), c_char_p)
ww_store_backup = function("store", "ww_store_backup", c_int, c_void_p, ("path", c_char_p), ww_progress, c_void_p)
ww_store_backup_collections = function("store", "ww_store_backup_collections", c_int, c_void_p, ("path", c_char_p),
                                       POINTER(ww_store_copy))
ww_store_restore = function("store", "ww_store_restore", c_int, c_void_p, ("path", c_char_p), POINTER(ww_store_copy))
ww_store_upgrade = function("store", "ww_store_upgrade", c_int, c_void_p, ww_progress, c_void_p)
ww_store_shrink = function("store", "ww_store_shrink", c_int, c_void_p, ("collection", c_char_p), ("bytes", c_int64), c_void_p)
ww_store_check = function("store", "ww_store_check", c_int, c_void_p, ww_progress, c_void_p)
ww_store_describe = function("store", "ww_store_describe", c_int, c_void_p, POINTER(ww_store_info))

# ---- warpwave/tensor_files.h ---------------------------------------------------------------------------------------------
ww_tensor_load_npy = function("", "ww_tensor_load_npy", c_int, c_void_p, ("path", c_char_p), POINTER(ww_tensor))
ww_tensor_load_safetensors = function("", "ww_tensor_load_safetensors", c_int, c_void_p, ("path", c_char_p), ("name", c_char_p),
                                      POINTER(ww_tensor))
ww_safetensors_load = function("", "ww_safetensors_load", c_int, c_void_p, ("index", c_int64), c_void_p, POINTER(ww_tensor))
ww_safetensors_load_all = function("", "ww_safetensors_load_all", c_int, c_void_p, c_void_p, POINTER(ww_tensor))

# ---- warpwave/tensor_foreign.h -------------------------------------------------------------------------------------------
WW_STREAM_NONE = -1


@struct
class ww_foreign(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("data", c_void_p),
                ("dtype", c_int),
                ("layout", ww_layout),
                ("read_only", c_int32),
                ("stream", c_void_p),
                ("release", c_void_p),
                ("owner", c_void_p)]


ww_device_stream = function("", "ww_device_stream", c_int, c_void_p, c_void_p)
ww_device_wait_stream = function("", "ww_device_wait_stream", c_int, c_void_p, c_void_p)
ww_device_signal_stream = function("", "ww_device_signal_stream", c_int, c_void_p, c_void_p)
ww_foreign_init = function("", "ww_foreign_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_tensor_wrap = function("", "ww_tensor_wrap", c_int, c_void_p, POINTER(ww_foreign), POINTER(ww_tensor))
ww_tensor_data = function("", "ww_tensor_data", c_int, POINTER(ww_tensor), c_void_p)
ww_tensor_to_dlpack = function("", "ww_tensor_to_dlpack", c_int, POINTER(ww_tensor), c_void_p, c_void_p)
ww_tensor_to_dlpack_unversioned = function("", "ww_tensor_to_dlpack_unversioned", c_int, POINTER(ww_tensor), c_void_p, c_void_p)
ww_tensor_from_dlpack = function("", "ww_tensor_from_dlpack", c_int, c_void_p, c_void_p, c_void_p, POINTER(ww_tensor))
ww_tensor_from_dlpack_unversioned = function("", "ww_tensor_from_dlpack_unversioned", c_int, c_void_p, c_void_p, c_void_p,
                                             POINTER(ww_tensor))
ww_dlpack_capsules = function("", "ww_dlpack_capsules", c_int, c_void_p, c_void_p)
ww_dlpack_capsule_destroy = function("", "ww_dlpack_capsule_destroy", None, c_void_p)

# ---- warpwave/tensor_rows.h ----------------------------------------------------------------------------------------------
WW_REDUCE_SUM = 0
WW_REDUCE_MIN = 1
WW_REDUCE_MAX = 2
WW_REDUCE_ARGMIN = 3
WW_REDUCE_ARGMAX = 4
WW_REDUCE_MEAN = 5
WW_REDUCE_PROD = 6
ww_reduce_name = function("", "ww_reduce_name", c_char_p, ("op", c_int))
ww_reduce_of_name = function("", "ww_reduce_of_name", c_int32, ("name", c_char_p))
ww_tensor_reduce = function("", "ww_tensor_reduce", c_int, ("op", c_int), POINTER(ww_tensor), c_void_p, ("count", c_int32),
                            POINTER(ww_tensor))
ww_tensor_cumsum = function("", "ww_tensor_cumsum", c_int, POINTER(ww_tensor), ("dim", c_int32), POINTER(ww_tensor))
ww_tensor_softmax = function("", "ww_tensor_softmax", c_int, POINTER(ww_tensor), ("dim", c_int32), POINTER(ww_tensor))
ww_tensor_layer_norm = function("", "ww_tensor_layer_norm", c_int, POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_tensor),
                                c_double, POINTER(ww_tensor))
ww_tensor_rms_norm = function("", "ww_tensor_rms_norm", c_int, POINTER(ww_tensor), POINTER(ww_tensor), c_double,
                              POINTER(ww_tensor))
ww_tensor_rope = function("", "ww_tensor_rope", c_int, POINTER(ww_tensor), POINTER(ww_tensor), POINTER(ww_tensor), c_bool,
                          POINTER(ww_tensor))
ww_tensor_sort = function("", "ww_tensor_sort", c_int, POINTER(ww_tensor), c_bool, POINTER(ww_tensor), POINTER(ww_tensor))
ww_tensor_top_k = function("", "ww_tensor_top_k", c_int, POINTER(ww_tensor), ("k", c_int64), c_bool, POINTER(ww_tensor),
                           POINTER(ww_tensor))

# ---- warpwave/text.h -----------------------------------------------------------------------------------------------------
WW_EXPAND_MAX = 100
WW_TEXT_VECTOR = 0
WW_TEXT_WORDS = 1
WW_TEXT_HYBRID = 2


@struct
class ww_text_config(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("opened", c_void_p),
                ("model", c_char_p),
                ("device", c_void_p),
                ("create", c_int32),
                ("metric", c_int),
                ("type", c_int),
                ("query_prefix", c_char_p),
                ("document_prefix", c_char_p),
                ("progress", ww_progress),
                ("progress_user", c_void_p)]


@struct
class ww_text_rows(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("count", c_int64),
                ("texts", c_void_p),
                ("ids", c_void_p),
                ("payloads", c_void_p),
                ("progress", ww_progress),
                ("progress_user", c_void_p)]


@struct
class ww_chunking(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("tokens", c_int64),
                ("overlap", c_int64)]


@struct
class ww_chunk(Structure):
    _fields_ = [("start", c_int64),
                ("end", c_int64)]


@struct
class ww_documents(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("count", c_int64),
                ("texts", c_void_p),
                ("sources", c_void_p),
                ("payloads", c_void_p),
                ("chunking", c_void_p),
                ("progress", ww_progress),
                ("progress_user", c_void_p)]


@struct
class ww_text_query(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("texts", c_void_p),
                ("count", c_int64),
                ("mode", c_int),
                ("query", c_void_p),
                ("fuse", c_void_p),
                ("candidates", c_int64),
                ("diversity", c_void_p),
                ("grouping", c_void_p),
                ("expand", c_int32),
                ("rerank", c_void_p),
                ("reranked", c_int64)]


@struct
class ww_bm25(Structure):
    _fields_ = [("struct_size", c_size_t),
                ("k", c_double),
                ("b", c_double),
                ("average_words", c_double),
                ("query", c_int32)]


@struct
class ww_sparse_room(Structure):
    _fields_ = [("capacity", c_int64),
                ("count", c_int64),
                ("indices", c_void_p),
                ("values", c_void_p)]


ww_text_config_init = function("text", "ww_text_config_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_text_rows_init = function("text", "ww_text_rows_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_chunking_init = function("text", "ww_chunking_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_documents_init = function("text", "ww_documents_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_bm25_init = function("text", "ww_bm25_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_text_query_init = function("text", "ww_text_query_init", c_int, c_void_p, ("struct_size", c_size_t))
ww_text_open = function("text", "ww_text_open", c_int, c_void_p, ("collection", c_char_p), POINTER(ww_text_config), c_void_p)
ww_text_close = function("text", "ww_text_close", None, c_void_p)
ww_text_collection = function("text", "ww_text_collection", c_void_p, c_void_p)
ww_text_model = function("text", "ww_text_model", c_void_p, c_void_p)
ww_text_kept = function("text", "ww_text_kept", c_void_p, c_void_p)
ww_text_add = function("text", "ww_text_add", c_int, c_void_p, POINTER(ww_text_rows))
ww_text_upsert = function("text", "ww_text_upsert", c_int, c_void_p, POINTER(ww_text_rows))
ww_text_add_documents = function("text", "ww_text_add_documents", c_int, c_void_p, POINTER(ww_documents), c_void_p)
ww_text_upsert_documents = function("text", "ww_text_upsert_documents", c_int, c_void_p, POINTER(ww_documents), c_void_p)
ww_text_chunks = function("text", "ww_text_chunks", c_int, c_void_p, c_char_p, ("bytes", c_size_t), POINTER(ww_chunking),
                          POINTER(ww_chunk), ("capacity", c_size_t), c_void_p)
ww_text_search = function("text", "ww_text_search", c_int, c_void_p, POINTER(ww_text_query), c_void_p)
ww_sparse_from_text = function("text", "ww_sparse_from_text", c_int, ("text", c_char_p), POINTER(ww_bm25),
                               POINTER(ww_sparse_room))
