// The C library's declarations, a module for each header. Made from the headers by scripts/python-native.py; do not edit.
use super::{initialized, Opaque};
use super::{c_char, c_int, c_void};

mod status {
    use super::*;
    pub type ww_status = c_int;
    pub const WW_VERSION_MAJOR: i64 = 0;
    pub const WW_VERSION_MINOR: i64 = 2;
    pub const WW_VERSION_PATCH: i64 = 0;
    pub const WW_VERSION_TEXT: &str = "0.2.0";
    pub const WW_OK: ww_status = 0;
    pub const WW_INVALID_ARGUMENT: ww_status = 1;
    pub const WW_DIMENSION_MISMATCH: ww_status = 2;
    pub const WW_OUT_OF_MEMORY: ww_status = 3;
    pub const WW_NO_DEVICE: ww_status = 4;
    pub const WW_DRIVER_ERROR: ww_status = 5;
    pub const WW_NOT_FOUND: ww_status = 6;
    pub const WW_DUPLICATE_ID: ww_status = 7;
    pub const WW_UNSUPPORTED: ww_status = 8;
    pub const WW_CORRUPT_FILE: ww_status = 9;
    pub const WW_IO_ERROR: ww_status = 10;
    pub const WW_CANCELLED: ww_status = 11;
    pub const WW_OUT_OF_RANGE: ww_status = 12;
    pub const WW_INTERNAL: ww_status = 13;
    pub const WW_OTHER_PROCESS: ww_status = 14;
    pub const WW_BUSY: ww_status = 15;
    pub const WW_DAMAGED: ww_status = 16;
    pub const WW_TIMEOUT: ww_status = 17;
    #[repr(C)]
    pub struct ww_cancel {
        _opaque: Opaque,
    }
    pub type ww_progress = Option<unsafe extern "C" fn(done: i64, total: i64, user: *mut c_void) -> c_int>;
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_error_info {
        pub struct_size: usize,
        pub status: ww_status,
        pub code: i32,
        pub backend: [c_char; 16],
        pub library: [c_char; 16],
        pub call: [c_char; 64],
        pub name: [c_char; 64],
    }
    impl Default for ww_error_info {
        fn default() -> Self {
            initialized(ww_error_info_init)
        }
    }
    extern "C" {
        pub fn ww_status_name(status: ww_status) -> *const c_char;
        pub fn ww_error_message() -> *const c_char;
        pub fn ww_error_set(status: ww_status, message: *const c_char) -> ww_status;
        pub fn ww_error_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_error_detail(info: *mut ww_error_info) -> ww_status;
        pub fn ww_version() -> *const c_char;
        pub fn ww_cancel_create(cancel: *mut *mut ww_cancel) -> ww_status;
        pub fn ww_cancel_destroy(cancel: *mut ww_cancel);
        pub fn ww_cancel_ask(cancel: *mut ww_cancel);
        pub fn ww_cancel_reset(cancel: *mut ww_cancel);
    }
}
pub use status::*;

mod files {
    use super::*;
    pub type ww_element = c_int;
    pub const WW_ELEMENT_UNKNOWN: ww_element = -1;
    pub const WW_ELEMENT_F32: ww_element = 0;
    pub const WW_ELEMENT_F64: ww_element = 1;
    pub const WW_ELEMENT_F16: ww_element = 2;
    pub const WW_ELEMENT_I8: ww_element = 3;
    pub const WW_ELEMENT_U8: ww_element = 4;
    pub const WW_ELEMENT_I32: ww_element = 5;
    pub const WW_ELEMENT_BF16: ww_element = 6;
    pub const WW_ELEMENT_I16: ww_element = 7;
    pub const WW_ELEMENT_I64: ww_element = 8;
    pub const WW_ELEMENT_U16: ww_element = 9;
    pub const WW_ELEMENT_U32: ww_element = 10;
    pub const WW_ELEMENT_U64: ww_element = 11;
    pub const WW_ELEMENT_BOOL: ww_element = 12;
    pub const WW_ELEMENT_F8E4M3: ww_element = 13;
    pub const WW_ELEMENT_F8E5M2: ww_element = 14;
    #[repr(C)]
    pub struct ww_matrix {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_matrix_info {
        pub struct_size: usize,
        pub rows: i64,
        pub dim: i64,
        pub element: ww_element,
    }
    impl Default for ww_matrix_info {
        fn default() -> Self {
            initialized(ww_matrix_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_matrix_options {
        pub struct_size: usize,
        pub format: *const c_char,
        pub id_column: *const c_char,
        pub streams: i32,
    }
    impl Default for ww_matrix_options {
        fn default() -> Self {
            initialized(ww_matrix_options_init)
        }
    }
    extern "C" {
        pub fn ww_matrix_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_element_name(element: ww_element) -> *const c_char;
        pub fn ww_element_bytes(element: ww_element) -> i64;
        pub fn ww_matrix_options_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_matrix_open(path: *const c_char, matrix: *mut *mut ww_matrix) -> ww_status;
        pub fn ww_matrix_open_with(path: *const c_char, options: *const ww_matrix_options, matrix: *mut *mut ww_matrix) -> ww_status;
        pub fn ww_matrix_close(matrix: *mut ww_matrix);
        pub fn ww_matrix_describe(matrix: *const ww_matrix, info: *mut ww_matrix_info) -> ww_status;
        pub fn ww_matrix_read_f32(matrix: *const ww_matrix, first: i64, count: i64, out: *mut f32) -> ww_status;
        pub fn ww_matrix_read_i32(matrix: *const ww_matrix, first: i64, count: i64, out: *mut i32) -> ww_status;
        pub fn ww_matrix_read_elements(matrix: *const ww_matrix, first: i64, count: i64, out: *mut c_void) -> ww_status;
        pub fn ww_matrix_id(matrix: *const ww_matrix, row: i64) -> *const c_char;
        pub fn ww_matrix_check_finite(matrix: *const ww_matrix, first: i64, count: i64, values: *const f32) -> ww_status;
        pub fn ww_matrix_view_f32(matrix: *const ww_matrix) -> *const f32;
        pub fn ww_matrix_write_f32(path: *const c_char, data: *const f32, rows: i64, dim: i64) -> ww_status;
        pub fn ww_matrix_write_i32(path: *const c_char, data: *const i32, rows: i64, dim: i64) -> ww_status;
    }
}
pub use files::*;

mod arrays {
    use super::*;
    pub const WW_ARRAY_RANK_MAX: i64 = 16;
    pub const WW_ARRAY_TYPE_TEXT: i64 = 24;
    #[repr(C)]
    pub struct ww_npy {
        _opaque: Opaque,
    }
    #[repr(C)]
    pub struct ww_safetensors {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_array_info {
        pub struct_size: usize,
        pub name: *const c_char,
        pub element: ww_element,
        pub r#type: [c_char; WW_ARRAY_TYPE_TEXT as usize],
        pub rank: i32,
        pub shape: [i64; WW_ARRAY_RANK_MAX as usize],
        pub elements: i64,
        pub offset: i64,
        pub bytes: i64,
    }
    impl Default for ww_array_info {
        fn default() -> Self {
            initialized(ww_array_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_array {
        pub struct_size: usize,
        pub name: *const c_char,
        pub element: ww_element,
        pub rank: i32,
        pub shape: [i64; WW_ARRAY_RANK_MAX as usize],
        pub data: *const c_void,
    }
    impl Default for ww_array {
        fn default() -> Self {
            initialized(ww_array_init)
        }
    }
    extern "C" {
        pub fn ww_array_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_npy_open(path: *const c_char, npy: *mut *mut ww_npy) -> ww_status;
        pub fn ww_npy_close(npy: *mut ww_npy);
        pub fn ww_npy_describe(npy: *const ww_npy, info: *mut ww_array_info) -> ww_status;
        pub fn ww_npy_read(npy: *const ww_npy, offset: i64, to: *mut c_void, bytes: usize) -> ww_status;
        pub fn ww_safetensors_open(path: *const c_char, file: *mut *mut ww_safetensors) -> ww_status;
        pub fn ww_safetensors_open_stream(path: *const c_char, file: *mut *mut ww_safetensors) -> ww_status;
        pub fn ww_safetensors_close(file: *mut ww_safetensors);
        pub fn ww_safetensors_count(file: *const ww_safetensors) -> i64;
        pub fn ww_safetensors_at(file: *const ww_safetensors, index: i64, info: *mut ww_array_info) -> ww_status;
        pub fn ww_safetensors_find(file: *const ww_safetensors, name: *const c_char, index: *mut i64) -> ww_status;
        pub fn ww_safetensors_read(file: *const ww_safetensors, index: i64, offset: i64, to: *mut c_void, bytes: usize) -> ww_status;
        pub fn ww_safetensors_map(file: *mut ww_safetensors, index: i64, bytes: *mut *const c_void) -> ww_status;
        pub fn ww_safetensors_metadata_count(file: *const ww_safetensors) -> i64;
        pub fn ww_safetensors_metadata_at(file: *const ww_safetensors, index: i64, key: *mut *const c_char, value: *mut *const c_char) -> ww_status;
        pub fn ww_safetensors_metadata(file: *const ww_safetensors, key: *const c_char, value: *mut *const c_char) -> ww_status;
        pub fn ww_array_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_safetensors_write(path: *const c_char, arrays: *const ww_array, count: i64, metadata: *const *const c_char) -> ww_status;
    }
}
pub use arrays::*;

mod arrow {
    use super::*;
    pub type ww_arrow_form = c_int;
    pub const WW_ARROW_PLAIN: ww_arrow_form = 0;
    pub const WW_ARROW_JSON: ww_arrow_form = 1;
    #[repr(C)]
    pub struct ww_arrow_texts {
        _opaque: Opaque,
    }
    extern "C" {
        pub fn ww_arrow_texts_create(schema: *const c_void, array: *const c_void, form: ww_arrow_form, texts: *mut *mut ww_arrow_texts) -> ww_status;
        pub fn ww_arrow_texts_destroy(texts: *mut ww_arrow_texts);
        pub fn ww_arrow_texts_list(texts: *const ww_arrow_texts, list: *mut *const *const c_char) -> i64;
    }
}
pub use arrow::*;

mod device {
    use super::*;
    #[repr(C)]
    pub struct ww_device {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_device_info {
        pub struct_size: usize,
        pub id: [c_char; 32],
        pub name: [c_char; 128],
        pub vendor: [c_char; 32],
        pub backend: [c_char; 16],
        pub arch: [c_char; 32],
        pub instruction_sets: [c_char; 128],
        pub kernels: [c_char; 128],
        pub driver_version: [c_char; 48],
        pub pci_address: [c_char; 16],
        pub index: i32,
        pub wave_size: i32,
        pub compute_units: i32,
        pub max_threads_per_block: i32,
        pub shared_bytes_per_block: i64,
        pub memory_total_bytes: i64,
        pub memory_free_bytes: i64,
        pub memory_used_bytes: i64,
        pub member_count: i32,
        pub members: [c_char; 512],
        pub passed_over: [c_char; 512],
    }
    impl Default for ww_device_info {
        fn default() -> Self {
            initialized(ww_device_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_member_info {
        pub struct_size: usize,
        pub id: [c_char; 32],
        pub share: f64,
        pub rows_capacity: i64,
        pub bytes: i64,
        pub dropped: i32,
    }
    impl Default for ww_member_info {
        fn default() -> Self {
            initialized(ww_member_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_memory_info {
        pub struct_size: usize,
        pub total_bytes: i64,
        pub free_bytes: i64,
        pub ours_bytes: i64,
        pub pooled_bytes: i64,
        pub peak_bytes: i64,
    }
    impl Default for ww_memory_info {
        fn default() -> Self {
            initialized(ww_memory_info_init)
        }
    }
    extern "C" {
        pub fn ww_device_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_memory_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_member_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_devices(infos: *mut ww_device_info, capacity: usize, count: *mut usize) -> ww_status;
        pub fn ww_backend_absence(backend: *const c_char) -> *const c_char;
        pub fn ww_device_open(name: *const c_char, device: *mut *mut ww_device) -> ww_status;
        pub fn ww_device_close(device: *mut ww_device);
        pub fn ww_device_describe(device: *mut ww_device, info: *mut ww_device_info) -> ww_status;
        pub fn ww_device_memory(device: *mut ww_device, memory: *mut ww_memory_info) -> ww_status;
        pub fn ww_device_trim(device: *mut ww_device) -> ww_status;
        pub fn ww_device_members(device: *mut ww_device, infos: *mut ww_member_info, capacity: usize, count: *mut usize) -> ww_status;
        pub fn ww_device_drop(device: *mut ww_device, member: *const c_char) -> ww_status;
        pub fn ww_kernel_chip_count() -> usize;
        pub fn ww_kernel_chip(index: usize) -> *const c_char;
    }
}
pub use device::*;

mod tensor {
    use super::*;
    pub type ww_dtype = c_int;
    pub type ww_unary = c_int;
    pub type ww_binary = c_int;
    pub type ww_cmp = c_int;
    pub type ww_math = c_int;
    pub const WW_RANK_MAX: i64 = 8;
    pub const WW_U8: ww_dtype = 0;
    pub const WW_U32: ww_dtype = 1;
    pub const WW_I16: ww_dtype = 2;
    pub const WW_I32: ww_dtype = 3;
    pub const WW_I64: ww_dtype = 4;
    pub const WW_BF16: ww_dtype = 5;
    pub const WW_F16: ww_dtype = 6;
    pub const WW_F32: ww_dtype = 7;
    pub const WW_F64: ww_dtype = 8;
    pub const WW_F8E4M3: ww_dtype = 9;
    pub const WW_I8: ww_dtype = 10;
    pub const WW_ABS: ww_unary = 0;
    pub const WW_NEG: ww_unary = 1;
    pub const WW_RECIP: ww_unary = 2;
    pub const WW_SQR: ww_unary = 3;
    pub const WW_SQRT: ww_unary = 4;
    pub const WW_RSQRT: ww_unary = 5;
    pub const WW_RELU: ww_unary = 6;
    pub const WW_FLOOR: ww_unary = 7;
    pub const WW_CEIL: ww_unary = 8;
    pub const WW_ROUND: ww_unary = 9;
    pub const WW_SIGN: ww_unary = 10;
    pub const WW_EXP: ww_unary = 11;
    pub const WW_EXPM1: ww_unary = 12;
    pub const WW_LOG: ww_unary = 13;
    pub const WW_LOG1P: ww_unary = 14;
    pub const WW_SIN: ww_unary = 15;
    pub const WW_COS: ww_unary = 16;
    pub const WW_TANH: ww_unary = 17;
    pub const WW_ERF: ww_unary = 18;
    pub const WW_SIGMOID: ww_unary = 19;
    pub const WW_SILU: ww_unary = 20;
    pub const WW_GELU: ww_unary = 21;
    pub const WW_GELU_ERF: ww_unary = 22;
    pub const WW_ADD: ww_binary = 0;
    pub const WW_SUB: ww_binary = 1;
    pub const WW_MUL: ww_binary = 2;
    pub const WW_DIV: ww_binary = 3;
    pub const WW_MAXIMUM: ww_binary = 4;
    pub const WW_MINIMUM: ww_binary = 5;
    pub const WW_REM: ww_binary = 6;
    pub const WW_POW: ww_binary = 7;
    pub const WW_ATAN2: ww_binary = 8;
    pub const WW_EQ: ww_cmp = 0;
    pub const WW_NE: ww_cmp = 1;
    pub const WW_LT: ww_cmp = 2;
    pub const WW_LE: ww_cmp = 3;
    pub const WW_GT: ww_cmp = 4;
    pub const WW_GE: ww_cmp = 5;
    pub const WW_MATH_CANONICAL: ww_math = 0;
    pub const WW_MATH_FAST: ww_math = 1;
    #[repr(C)]
    pub struct ww_storage {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_layout {
        pub rank: i32,
        pub shape: [i64; WW_RANK_MAX as usize],
        pub strides: [i64; WW_RANK_MAX as usize],
        pub offset: i64,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_tensor {
        pub storage: *mut ww_storage,
        pub layout: ww_layout,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_conv {
        pub struct_size: usize,
        pub padding: [i64; 2],
        pub stride: [i64; 2],
        pub dilation: [i64; 2],
        pub output_padding: [i64; 2],
        pub groups: i64,
        pub math: ww_math,
    }
    impl Default for ww_conv {
        fn default() -> Self {
            initialized(ww_conv_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_pool {
        pub struct_size: usize,
        pub kernel: [i64; 2],
        pub stride: [i64; 2],
        pub padding: [i64; 2],
        pub padding_counts: i32,
    }
    impl Default for ww_pool {
        fn default() -> Self {
            initialized(ww_pool_init)
        }
    }
    extern "C" {
        pub fn ww_dtype_name(dtype: ww_dtype) -> *const c_char;
        pub fn ww_dtype_bytes(dtype: ww_dtype) -> usize;
        pub fn ww_dtype_of_name(name: *const c_char) -> i32;
        pub fn ww_layout_make(layout: *mut ww_layout, rank: i32, shape: *const i64);
        pub fn ww_layout_elements(layout: *const ww_layout) -> i64;
        pub fn ww_storage_create(device: *mut ww_device, dtype: ww_dtype, elements: i64, storage: *mut *mut ww_storage) -> ww_status;
        pub fn ww_storage_from_host(device: *mut ww_device, dtype: ww_dtype, elements: i64, data: *const c_void, storage: *mut *mut ww_storage) -> ww_status;
        pub fn ww_storage_retain(storage: *mut ww_storage) -> *mut ww_storage;
        pub fn ww_storage_release(storage: *mut ww_storage);
        pub fn ww_storage_dtype(storage: *const ww_storage) -> ww_dtype;
        pub fn ww_storage_elements(storage: *const ww_storage) -> i64;
        pub fn ww_storage_device(storage: *const ww_storage) -> *mut ww_device;
        pub fn ww_storage_to_host(storage: *const ww_storage, data: *mut c_void) -> ww_status;
        pub fn ww_device_synchronize(device: *mut ww_device) -> ww_status;
        pub fn ww_tensor_release(x: *mut ww_tensor);
        pub fn ww_tensor_dtype(x: *const ww_tensor) -> ww_dtype;
        pub fn ww_tensor_from_host(device: *mut ww_device, dtype: ww_dtype, rank: i32, shape: *const i64, data: *const c_void, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_to_host(x: *const ww_tensor, data: *mut c_void) -> ww_status;
        pub fn ww_tensor_write(to: *const ww_tensor, data: *const c_void) -> ww_status;
        pub fn ww_tensor_empty(device: *mut ww_device, dtype: ww_dtype, rank: i32, shape: *const i64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_zeros(device: *mut ww_device, dtype: ww_dtype, rank: i32, shape: *const i64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_full(device: *mut ww_device, dtype: ww_dtype, rank: i32, shape: *const i64, value: f64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_arange(device: *mut ww_device, dtype: ww_dtype, start: f64, end: f64, step: f64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_device_seed(device: *mut ww_device, seed: u64) -> ww_status;
        pub fn ww_tensor_uniform(device: *mut ww_device, dtype: ww_dtype, rank: i32, shape: *const i64, low: f64, high: f64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_normal(device: *mut ww_device, dtype: ww_dtype, rank: i32, shape: *const i64, mean: f64, deviation: f64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_view(x: *const ww_tensor, layout: *const ww_layout, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_transpose(x: *const ww_tensor, a: i32, b: i32, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_permute(x: *const ww_tensor, dims: *const i32, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_narrow(x: *const ww_tensor, dim: i32, first: i64, count: i64, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_slice(x: *const ww_tensor, dim: i32, begin: i64, end: i64, step: i64, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_select(x: *const ww_tensor, dim: i32, index: i64, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_reshape(x: *const ww_tensor, rank: i32, shape: *const i64, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_broadcast_to(x: *const ww_tensor, rank: i32, shape: *const i64, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_squeeze(x: *const ww_tensor, dim: i32, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_unsqueeze(x: *const ww_tensor, dim: i32, view: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_contiguous(x: *const ww_tensor, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_copy_to(x: *const ww_tensor, device: *mut ww_device, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_copy_strided(from: *const ww_tensor, to: *const ww_tensor) -> ww_status;
        pub fn ww_tensor_copy2d(from: *const ww_storage, to: *mut ww_storage, rows: i64, columns: i64, from_stride: i64, to_stride: i64, from_offset: i64, to_offset: i64) -> ww_status;
        pub fn ww_tensor_const_set(to: *const ww_tensor, value: *const c_void) -> ww_status;
        pub fn ww_tensor_cat(xs: *const ww_tensor, count: usize, dim: i32, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_gather(x: *const ww_tensor, ids: *const ww_tensor, dim: i32, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_index_select(x: *const ww_tensor, ids: *const ww_tensor, dim: i32, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_scatter(x: *const ww_tensor, ids: *const ww_tensor, src: *const ww_tensor, dim: i32) -> ww_status;
        pub fn ww_tensor_scatter_add(x: *const ww_tensor, ids: *const ww_tensor, src: *const ww_tensor, dim: i32) -> ww_status;
        pub fn ww_tensor_index_add(x: *const ww_tensor, ids: *const ww_tensor, src: *const ww_tensor, dim: i32) -> ww_status;
        pub fn ww_unary_name(op: ww_unary) -> *const c_char;
        pub fn ww_binary_name(op: ww_binary) -> *const c_char;
        pub fn ww_cmp_name(op: ww_cmp) -> *const c_char;
        pub fn ww_unary_of_name(name: *const c_char) -> i32;
        pub fn ww_binary_of_name(name: *const c_char) -> i32;
        pub fn ww_cmp_of_name(name: *const c_char) -> i32;
        pub fn ww_tensor_cast(x: *const ww_tensor, dtype: ww_dtype, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_unary(op: ww_unary, x: *const ww_tensor, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_binary(op: ww_binary, x: *const ww_tensor, y: *const ww_tensor, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_cmp(op: ww_cmp, x: *const ww_tensor, y: *const ww_tensor, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_where(condition: *const ww_tensor, x: *const ww_tensor, y: *const ww_tensor, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_affine(x: *const ww_tensor, mul: f64, add: f64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_powf(x: *const ww_tensor, e: f64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_elu(x: *const ww_tensor, alpha: f64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_matmul(a: *const ww_tensor, b: *const ww_tensor, math: ww_math, out: *mut ww_tensor) -> ww_status;
        pub fn ww_conv_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_conv_size(r#in: i64, kernel: i64, padding: i64, stride: i64, dilation: i64) -> i64;
        pub fn ww_conv_transpose_size(r#in: i64, kernel: i64, padding: i64, stride: i64, dilation: i64, output_padding: i64) -> i64;
        pub fn ww_tensor_conv1d(x: *const ww_tensor, w: *const ww_tensor, how: *const ww_conv, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_conv2d(x: *const ww_tensor, w: *const ww_tensor, how: *const ww_conv, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_conv_transpose1d(x: *const ww_tensor, w: *const ww_tensor, how: *const ww_conv, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_conv_transpose2d(x: *const ww_tensor, w: *const ww_tensor, how: *const ww_conv, out: *mut ww_tensor) -> ww_status;
        pub fn ww_pool_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_tensor_avg_pool2d(x: *const ww_tensor, how: *const ww_pool, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_max_pool2d(x: *const ww_tensor, how: *const ww_pool, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_upsample_nearest1d(x: *const ww_tensor, size: i64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_upsample_nearest2d(x: *const ww_tensor, size_y: i64, size_x: i64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_upsample_bilinear2d(x: *const ww_tensor, size_y: i64, size_x: i64, align_corners: i32, factors: *const f64, out: *mut ww_tensor) -> ww_status;
    }
}
pub use tensor::*;

mod attention {
    use super::*;
    pub type ww_attention_type = c_int;
    pub const WW_ATTENTION_F16: ww_attention_type = 0;
    pub const WW_ATTENTION_F32: ww_attention_type = 1;
    pub const WW_ATTENTION_Q8_0: ww_attention_type = 2;
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_attention {
        pub struct_size: usize,
        pub r#type: ww_attention_type,
        pub causal: bool,
        pub window: i64,
        pub first_position: i64,
        pub scale: f64,
    }
    impl Default for ww_attention {
        fn default() -> Self {
            initialized(ww_attention_init)
        }
    }
    extern "C" {
        pub fn ww_attention_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_tensor_attention(q: *const ww_tensor, k: *const ww_tensor, v: *const ww_tensor, how: *const ww_attention, out: *mut ww_tensor) -> ww_status;
    }
}
pub use attention::*;

mod filter {
    use super::*;
    pub type ww_filter_group = c_int;
    pub type ww_filter_test = c_int;
    pub type ww_filter_type = c_int;
    pub const WW_FILTER_DEPTH_MAX: i64 = 32;
    pub const WW_FILTER_JSON_MAX: i64 = 1048576;
    pub const WW_FILTER_ALL: ww_filter_group = 0;
    pub const WW_FILTER_ANY: ww_filter_group = 1;
    pub const WW_FILTER_NONE: ww_filter_group = 2;
    pub const WW_FILTER_SOME: ww_filter_group = 3;
    pub const WW_FILTER_EXISTS: ww_filter_test = 0;
    pub const WW_FILTER_EQUAL: ww_filter_test = 1;
    pub const WW_FILTER_CONTAINS: ww_filter_test = 2;
    pub const WW_FILTER_LESS: ww_filter_test = 3;
    pub const WW_FILTER_LESS_EQUAL: ww_filter_test = 4;
    pub const WW_FILTER_GREATER: ww_filter_test = 5;
    pub const WW_FILTER_GREATER_EQUAL: ww_filter_test = 6;
    pub const WW_FILTER_SAME: ww_filter_test = 7;
    pub const WW_FILTER_OTHER: ww_filter_test = 8;
    pub const WW_FILTER_ALL_WORDS: ww_filter_test = 9;
    pub const WW_FILTER_ANY_WORD: ww_filter_test = 10;
    pub const WW_FILTER_PHRASE: ww_filter_test = 11;
    pub const WW_FILTER_PREFIX: ww_filter_test = 12;
    pub const WW_FILTER_SUBSTRING: ww_filter_test = 13;
    pub const WW_FILTER_WITHIN: ww_filter_test = 14;
    pub const WW_FILTER_COUNT: ww_filter_test = 15;
    pub const WW_FILTER_EMPTY: ww_filter_test = 16;
    pub const WW_FILTER_HAS_NULL: ww_filter_test = 17;
    pub const WW_FILTER_CIRCLE: ww_filter_test = 18;
    pub const WW_FILTER_BOX: ww_filter_test = 19;
    pub const WW_FILTER_POLYGON: ww_filter_test = 20;
    pub const WW_FILTER_NULL: ww_filter_type = 0;
    pub const WW_FILTER_FALSE: ww_filter_type = 1;
    pub const WW_FILTER_TRUE: ww_filter_type = 2;
    pub const WW_FILTER_INTEGER: ww_filter_type = 3;
    pub const WW_FILTER_REAL: ww_filter_type = 4;
    pub const WW_FILTER_TEXT: ww_filter_type = 5;
    pub const WW_FILTER_DATE: ww_filter_type = 6;
    #[repr(C)]
    pub struct ww_filter {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_filter_value {
        pub r#type: ww_filter_type,
        pub integer: i64,
        pub real: f64,
        pub text: *const c_char,
        pub text_bytes: usize,
        pub bound: ww_filter_test,
    }
    extern "C" {
        pub fn ww_filter_create(filter: *mut *mut ww_filter) -> ww_status;
        pub fn ww_filter_read(json: *const c_char, filter: *mut *mut ww_filter) -> ww_status;
        pub fn ww_filter_destroy(filter: *mut ww_filter);
        pub fn ww_filter_add(filter: *mut ww_filter, field: *const c_char, test: ww_filter_test, values: *const ww_filter_value, count: i64) -> ww_status;
        pub fn ww_filter_add_ids(filter: *mut ww_filter, ids: *const *const c_char, count: i64) -> ww_status;
        pub fn ww_filter_add_filter(filter: *mut ww_filter, other: *const ww_filter) -> ww_status;
        pub fn ww_filter_begin(filter: *mut ww_filter, group: ww_filter_group, at_least: i64) -> ww_status;
        pub fn ww_filter_begin_element(filter: *mut ww_filter, field: *const c_char) -> ww_status;
        pub fn ww_filter_end(filter: *mut ww_filter) -> ww_status;
        pub fn ww_filter_matches(filter: *const ww_filter, id: *const c_char, payload: *const c_char, matches: *mut i32) -> ww_status;
        pub fn ww_filter_equal(a: *const ww_filter, b: *const ww_filter) -> i32;
        pub fn ww_filter_text(filter: *const ww_filter, text: *mut c_char, capacity: usize) -> usize;
    }
}
pub use filter::*;

mod formula {
    use super::*;
    pub const WW_FORMULA_DEPTH_MAX: i64 = 32;
    pub const WW_FORMULA_TERMS_MAX: i64 = 4096;
    #[repr(C)]
    pub struct ww_formula {
        _opaque: Opaque,
    }
    pub type ww_condition_reader = Option<unsafe extern "C" fn(user: *mut c_void, json: *const c_char, filter: *mut ww_filter) -> ww_status>;
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_formula_row {
        pub struct_size: usize,
        pub id: *const c_char,
        pub payload: *const c_char,
        pub scores: *const f32,
        pub score_count: i64,
    }
    impl Default for ww_formula_row {
        fn default() -> Self {
            initialized(ww_formula_row_init)
        }
    }
    extern "C" {
        pub fn ww_formula_row_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_formula_read(json: *const c_char, defaults: *const c_char, reader: ww_condition_reader, user: *mut c_void, formula: *mut *mut ww_formula) -> ww_status;
        pub fn ww_formula_destroy(formula: *mut ww_formula);
        pub fn ww_formula_score(formula: *const ww_formula, row: *const ww_formula_row, score: *mut f32) -> ww_status;
    }
}
pub use formula::*;

mod quant {
    use super::*;
    pub type ww_quant_type = c_int;
    pub type ww_activations = c_int;
    pub const WW_QUANT_F32: ww_quant_type = 0;
    pub const WW_QUANT_F16: ww_quant_type = 1;
    pub const WW_QUANT_Q4_0: ww_quant_type = 2;
    pub const WW_QUANT_Q4_1: ww_quant_type = 3;
    pub const WW_QUANT_Q5_0: ww_quant_type = 6;
    pub const WW_QUANT_Q5_1: ww_quant_type = 7;
    pub const WW_QUANT_Q8_0: ww_quant_type = 8;
    pub const WW_QUANT_Q8_1: ww_quant_type = 9;
    pub const WW_QUANT_Q2_K: ww_quant_type = 10;
    pub const WW_QUANT_Q3_K: ww_quant_type = 11;
    pub const WW_QUANT_Q4_K: ww_quant_type = 12;
    pub const WW_QUANT_Q5_K: ww_quant_type = 13;
    pub const WW_QUANT_Q6_K: ww_quant_type = 14;
    pub const WW_QUANT_Q8_K: ww_quant_type = 15;
    pub const WW_QUANT_IQ4_NL: ww_quant_type = 20;
    pub const WW_QUANT_IQ4_XS: ww_quant_type = 23;
    pub const WW_QUANT_BF16: ww_quant_type = 30;
    pub const WW_QUANT_MXFP4: ww_quant_type = 39;
    pub const WW_ACTIVATIONS_CODED: ww_activations = 0;
    pub const WW_ACTIVATIONS_FLOAT: ww_activations = 1;
    #[repr(C)]
    pub struct ww_quant {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_quant_info {
        pub struct_size: usize,
        pub r#type: ww_quant_type,
        pub rows: i64,
        pub cols: i64,
        pub row_bytes: i64,
        pub bytes: i64,
        pub device: [c_char; 32],
        pub finite: i32,
    }
    impl Default for ww_quant_info {
        fn default() -> Self {
            initialized(ww_quant_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_quant_product {
        pub struct_size: usize,
        pub queued: i32,
        pub math: ww_math,
        pub expert_rows: i64,
        pub experts: *const i64,
        pub expert_ids: *const ww_tensor,
        pub activations: ww_activations,
        pub norm_weight: *const ww_tensor,
        pub norm_eps: f64,
        pub up: *const ww_tensor,
        pub accumulate: i32,
    }
    impl Default for ww_quant_product {
        fn default() -> Self {
            initialized(ww_quant_product_init)
        }
    }
    extern "C" {
        pub fn ww_quant_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_quant_name(r#type: ww_quant_type) -> *const c_char;
        pub fn ww_quant_find(name: *const c_char, r#type: *mut ww_quant_type) -> ww_status;
        pub fn ww_quant_block_elements(r#type: ww_quant_type) -> i64;
        pub fn ww_quant_block_bytes(r#type: ww_quant_type) -> i64;
        pub fn ww_quant_row_bytes(r#type: ww_quant_type, cols: i64, bytes: *mut i64) -> ww_status;
        pub fn ww_quant_from_f32(device: *mut ww_device, r#type: ww_quant_type, values: *const f32, rows: i64, cols: i64, row_stride: i64, matrix: *mut *mut ww_quant) -> ww_status;
        pub fn ww_quant_from_tensor(r#type: ww_quant_type, x: *const ww_tensor, matrix: *mut *mut ww_quant) -> ww_status;
        pub fn ww_quant_load(device: *mut ww_device, r#type: ww_quant_type, blocks: *const c_void, size: usize, rows: i64, cols: i64, matrix: *mut *mut ww_quant) -> ww_status;
        pub fn ww_quant_view(matrix: *const ww_quant, first: i64, count: i64, view: *mut *mut ww_quant) -> ww_status;
        pub fn ww_quant_destroy(matrix: *mut ww_quant);
        pub fn ww_quant_describe(matrix: *const ww_quant, info: *mut ww_quant_info) -> ww_status;
        pub fn ww_quant_read_f32(matrix: *const ww_quant, first: i64, count: i64, values: *mut f32) -> ww_status;
        pub fn ww_quant_read_blocks(matrix: *const ww_quant, first: i64, count: i64, blocks: *mut c_void) -> ww_status;
        pub fn ww_quant_get_rows(matrix: *const ww_quant, ids: *const i64, count: i64, values: *mut f32) -> ww_status;
        pub fn ww_quant_dequantize(matrix: *const ww_quant, first: i64, count: i64, dtype: ww_dtype, out: *mut ww_tensor) -> ww_status;
        pub fn ww_quant_rows(matrix: *const ww_quant, ids: *const ww_tensor, dtype: ww_dtype, out: *mut ww_tensor) -> ww_status;
        pub fn ww_quant_matmul(matrix: *const ww_quant, x: *const ww_tensor, out: *mut ww_tensor) -> ww_status;
        pub fn ww_quant_matmul_experts(matrix: *const ww_quant, expert_rows: i64, x: *const ww_tensor, experts: *const i64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_quant_product_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_quant_multiply(matrix: *const ww_quant, x: *const ww_tensor, options: *const ww_quant_product, out: *mut ww_tensor) -> ww_status;
        pub fn ww_quant_multiply_coded(matrix: *const ww_quant, activations: *const ww_quant, options: *const ww_quant_product, out: *mut ww_tensor) -> ww_status;
    }
}
pub use quant::*;

mod gguf {
    use super::*;
    pub type ww_gguf_kind = c_int;
    pub const WW_GGUF_RANK_MAX: i64 = 4;
    pub const WW_GGUF_U8: ww_gguf_kind = 0;
    pub const WW_GGUF_I8: ww_gguf_kind = 1;
    pub const WW_GGUF_U16: ww_gguf_kind = 2;
    pub const WW_GGUF_I16: ww_gguf_kind = 3;
    pub const WW_GGUF_U32: ww_gguf_kind = 4;
    pub const WW_GGUF_I32: ww_gguf_kind = 5;
    pub const WW_GGUF_F32: ww_gguf_kind = 6;
    pub const WW_GGUF_BOOL: ww_gguf_kind = 7;
    pub const WW_GGUF_STRING: ww_gguf_kind = 8;
    pub const WW_GGUF_ARRAY: ww_gguf_kind = 9;
    pub const WW_GGUF_U64: ww_gguf_kind = 10;
    pub const WW_GGUF_I64: ww_gguf_kind = 11;
    pub const WW_GGUF_F64: ww_gguf_kind = 12;
    #[repr(C)]
    pub struct ww_gguf {
        _opaque: Opaque,
    }
    #[repr(C)]
    pub struct ww_gguf_writer {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_gguf_info {
        pub struct_size: usize,
        pub version: i32,
        pub alignment: i32,
        pub keys: i64,
        pub tensors: i64,
        pub files: i64,
        pub data_bytes: i64,
    }
    impl Default for ww_gguf_info {
        fn default() -> Self {
            initialized(ww_gguf_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_gguf_value {
        pub struct_size: usize,
        pub key: *const c_char,
        pub kind: ww_gguf_kind,
        pub element: ww_gguf_kind,
        pub count: i64,
        pub data: *const c_void,
        pub data_bytes: usize,
    }
    impl Default for ww_gguf_value {
        fn default() -> Self {
            initialized(ww_gguf_value_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_gguf_tensor {
        pub struct_size: usize,
        pub name: *const c_char,
        pub r#type: i32,
        pub rank: i32,
        pub shape: [i64; WW_GGUF_RANK_MAX as usize],
        pub file: i32,
        pub offset: i64,
        pub bytes: i64,
    }
    impl Default for ww_gguf_tensor {
        fn default() -> Self {
            initialized(ww_gguf_tensor_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_gguf_span {
        pub text: *const c_char,
        pub bytes: usize,
    }
    extern "C" {
        pub fn ww_gguf_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_gguf_value_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_gguf_tensor_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_gguf_kind_name(kind: ww_gguf_kind) -> *const c_char;
        pub fn ww_gguf_type_name(r#type: i32) -> *const c_char;
        pub fn ww_gguf_open(path: *const c_char, gguf: *mut *mut ww_gguf) -> ww_status;
        pub fn ww_gguf_open_stream(path: *const c_char, gguf: *mut *mut ww_gguf) -> ww_status;
        pub fn ww_gguf_file_path(gguf: *const ww_gguf, file: i64, path: *mut c_char, capacity: usize) -> ww_status;
        pub fn ww_gguf_close(gguf: *mut ww_gguf);
        pub fn ww_gguf_describe(gguf: *const ww_gguf, info: *mut ww_gguf_info) -> ww_status;
        pub fn ww_gguf_value_at(gguf: *const ww_gguf, index: i64, value: *mut ww_gguf_value) -> ww_status;
        pub fn ww_gguf_tensor_at(gguf: *const ww_gguf, index: i64, tensor: *mut ww_gguf_tensor) -> ww_status;
        pub fn ww_gguf_find_value(gguf: *const ww_gguf, key: *const c_char, index: *mut i64) -> ww_status;
        pub fn ww_gguf_find_tensor(gguf: *const ww_gguf, name: *const c_char, index: *mut i64) -> ww_status;
        pub fn ww_gguf_u64(gguf: *const ww_gguf, key: *const c_char, value: *mut u64) -> ww_status;
        pub fn ww_gguf_i64(gguf: *const ww_gguf, key: *const c_char, value: *mut i64) -> ww_status;
        pub fn ww_gguf_f64(gguf: *const ww_gguf, key: *const c_char, value: *mut f64) -> ww_status;
        pub fn ww_gguf_bool(gguf: *const ww_gguf, key: *const c_char, value: *mut i32) -> ww_status;
        pub fn ww_gguf_text(gguf: *const ww_gguf, key: *const c_char, text: *mut *const c_char, bytes: *mut usize) -> ww_status;
        pub fn ww_gguf_i64s(gguf: *const ww_gguf, key: *const c_char, values: *mut i64, capacity: i64, count: *mut i64) -> ww_status;
        pub fn ww_gguf_f64s(gguf: *const ww_gguf, key: *const c_char, values: *mut f64, capacity: i64, count: *mut i64) -> ww_status;
        pub fn ww_gguf_texts(gguf: *const ww_gguf, key: *const c_char, values: *mut ww_gguf_span, capacity: i64, count: *mut i64) -> ww_status;
        pub fn ww_gguf_view(gguf: *const ww_gguf, index: i64) -> *const c_void;
        pub fn ww_gguf_read(gguf: *const ww_gguf, index: i64, offset: i64, to: *mut c_void, bytes: usize) -> ww_status;
        pub fn ww_gguf_load(gguf: *const ww_gguf, index: i64, device: *mut ww_device, progress: ww_progress, user: *mut c_void, matrix: *mut *mut ww_quant) -> ww_status;
        pub fn ww_gguf_load_joined(gguf: *const ww_gguf, indices: *const i64, count: i64, device: *mut ww_device, progress: ww_progress, user: *mut c_void, matrix: *mut *mut ww_quant) -> ww_status;
        pub fn ww_gguf_load_all(gguf: *const ww_gguf, device: *mut ww_device, progress: ww_progress, user: *mut c_void, matrices: *mut *mut ww_quant) -> ww_status;
        pub fn ww_gguf_writer_create(writer: *mut *mut ww_gguf_writer) -> ww_status;
        pub fn ww_gguf_writer_value(writer: *mut ww_gguf_writer, value: *const ww_gguf_value) -> ww_status;
        pub fn ww_gguf_writer_u32(writer: *mut ww_gguf_writer, key: *const c_char, value: u32) -> ww_status;
        pub fn ww_gguf_writer_string(writer: *mut ww_gguf_writer, key: *const c_char, text: *const c_char) -> ww_status;
        pub fn ww_gguf_writer_tensor(writer: *mut ww_gguf_writer, tensor: *const ww_gguf_tensor) -> ww_status;
        pub fn ww_gguf_writer_open(writer: *mut ww_gguf_writer, path: *const c_char) -> ww_status;
        pub fn ww_gguf_writer_data(writer: *mut ww_gguf_writer, bytes: *const c_void, size: usize) -> ww_status;
        pub fn ww_gguf_writer_finish(writer: *mut ww_gguf_writer) -> ww_status;
        pub fn ww_gguf_writer_destroy(writer: *mut ww_gguf_writer);
    }
}
pub use gguf::*;

mod results {
    use super::*;
    pub type ww_fetch = c_int;
    pub const WW_FETCH_IDS: ww_fetch = 1;
    pub const WW_FETCH_PAYLOADS: ww_fetch = 2;
    pub const WW_FETCH_VECTORS: ww_fetch = 4;
    pub const WW_FETCH_TEXTS: ww_fetch = 8;
    pub const WW_FETCH_SPARSE: ww_fetch = 16;
    pub const WW_FETCH_MULTI: ww_fetch = 32;
    #[repr(C)]
    pub struct ww_results {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_hit_parts {
        pub ranks: [i64; 2],
        pub scores: [f32; 2],
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_results_columns {
        pub struct_size: usize,
        pub query_count: i64,
        pub hit_count: i64,
        pub starts: *const i64,
        pub rows: *const i64,
        pub handles: *const i64,
        pub scores: *const f32,
        pub totals: *const i64,
        pub ids: *const i64,
        pub payloads: *const i64,
        pub text: *const c_char,
        pub text_bytes: i64,
        pub vectors: *const f32,
        pub dim: i32,
        pub proven: *const i64,
        pub texts: *const i64,
        pub parts: *const ww_hit_parts,
    }
    impl Default for ww_results_columns {
        fn default() -> Self {
            initialized(ww_results_columns_init)
        }
    }
    extern "C" {
        pub fn ww_results_destroy(results: *mut ww_results);
        pub fn ww_results_query_count(results: *const ww_results) -> i64;
        pub fn ww_results_count(results: *const ww_results, query: i64) -> i64;
        pub fn ww_results_total(results: *const ww_results, query: i64) -> i64;
        pub fn ww_results_proven(results: *const ww_results, query: i64) -> i64;
        pub fn ww_results_rows(results: *const ww_results, query: i64) -> *const i64;
        pub fn ww_results_handles(results: *const ww_results, query: i64) -> *const i64;
        pub fn ww_results_scores(results: *const ww_results, query: i64) -> *const f32;
        pub fn ww_results_id(results: *const ww_results, query: i64, hit: i64) -> *const c_char;
        pub fn ww_results_payload(results: *const ww_results, query: i64, hit: i64) -> *const c_char;
        pub fn ww_results_text(results: *const ww_results, query: i64, hit: i64) -> *const c_char;
        pub fn ww_results_vector(results: *const ww_results, query: i64, hit: i64) -> *const f32;
        pub fn ww_results_sparse(results: *const ww_results, query: i64, hit: i64, vector: *mut ww_sparse_vector) -> c_int;
        pub fn ww_results_multi(results: *const ww_results, query: i64, hit: i64, vector: *mut ww_multivector) -> c_int;
        pub fn ww_results_parts(results: *const ww_results, query: i64) -> *const ww_hit_parts;
        pub fn ww_results_columns_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_results_describe(results: *const ww_results, columns: *mut ww_results_columns) -> ww_status;
    }
}
pub use results::*;

mod vectors {
    use super::*;
    pub type ww_metric = c_int;
    pub type ww_screen = c_int;
    pub type ww_vector_type = c_int;
    pub type ww_row_place = c_int;
    pub type ww_value_type = c_int;
    pub type ww_query_mode = c_int;
    pub type ww_match_mode = c_int;
    pub type ww_damage = c_int;
    pub const WW_DIM_MAX: i64 = 65536;
    pub const WW_ID_BYTES_MAX: i64 = 256;
    pub const WW_K_MAX: i64 = 16384;
    pub const WW_ROWS_MAX: i64 = 4294967295;
    pub const WW_MATCH_WORDS_MAX: i64 = 1024;
    pub const WW_COSINE: ww_metric = 0;
    pub const WW_L2: ww_metric = 1;
    pub const WW_DOT: ww_metric = 2;
    pub const WW_SCREEN_INT8: ww_screen = 0;
    pub const WW_SCREEN_NONE: ww_screen = 1;
    pub const WW_VECTOR_F32: ww_vector_type = 0;
    pub const WW_VECTOR_F16: ww_vector_type = 1;
    pub const WW_VECTOR_BF16: ww_vector_type = 2;
    pub const WW_VECTOR_I8: ww_vector_type = 3;
    pub const WW_VECTOR_U8: ww_vector_type = 4;
    pub const WW_ROWS_DEVICE: ww_row_place = 0;
    pub const WW_ROWS_HOST: ww_row_place = 1;
    pub const WW_VALUE_NULL: ww_value_type = 0;
    pub const WW_VALUE_INTEGER: ww_value_type = 1;
    pub const WW_VALUE_REAL: ww_value_type = 2;
    pub const WW_VALUE_TEXT: ww_value_type = 3;
    pub const WW_VALUE_LIST: ww_value_type = 4;
    pub const WW_QUERY_NEAREST: ww_query_mode = 0;
    pub const WW_QUERY_RANGE: ww_query_mode = 1;
    pub const WW_MATCH_HYBRID: ww_match_mode = 0;
    pub const WW_MATCH_TEXT: ww_match_mode = 1;
    pub const WW_DAMAGE_VECTOR: ww_damage = 1;
    pub const WW_DAMAGE_NORM: ww_damage = 2;
    pub const WW_DAMAGE_CODES: ww_damage = 4;
    pub const WW_DAMAGE_SCALE: ww_damage = 8;
    pub const WW_DAMAGE_RESIDUAL: ww_damage = 16;
    pub const WW_DAMAGE_LIVE: ww_damage = 32;
    #[repr(C)]
    pub struct ww_collection {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_collection_config {
        pub struct_size: usize,
        pub name: *const c_char,
        pub dim: i32,
        pub metric: ww_metric,
        pub keep_host_copy: i32,
        pub screen: ww_screen,
        pub r#type: ww_vector_type,
        pub rows: ww_row_place,
    }
    impl Default for ww_collection_config {
        fn default() -> Self {
            initialized(ww_collection_config_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_rows {
        pub struct_size: usize,
        pub count: i64,
        pub dim: i32,
        pub vectors: *const f32,
        pub row_stride: i64,
        pub ids: *const *const c_char,
        pub payloads: *const *const c_char,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
        pub elements: *const c_void,
        pub r#type: ww_vector_type,
        pub tensor: *const ww_tensor,
        pub texts: *const *const c_char,
        pub discard_ids: *const *const c_char,
        pub discard_count: i64,
        pub sparse: *const ww_sparse_vector,
        pub multi: *const ww_multivector,
    }
    impl Default for ww_rows {
        fn default() -> Self {
            initialized(ww_rows_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_search_stats {
        pub struct_size: usize,
        pub rows_screened: i64,
        pub rows_kept: i64,
        pub rows_scored: i64,
        pub fallback_queries: i64,
        pub certificate: f32,
        pub repeated_queries: i64,
        pub lists_read: i64,
        pub list_rows_read: i64,
        pub list_bytes_read: i64,
    }
    impl Default for ww_search_stats {
        fn default() -> Self {
            initialized(ww_search_stats_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_parameter {
        pub name: *const c_char,
        pub r#type: ww_value_type,
        pub integer: i64,
        pub real: f64,
        pub text: *const c_char,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_word_counts {
        pub texts: i64,
        pub words: i64,
        pub count: i64,
        pub found: *mut i64,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_match {
        pub struct_size: usize,
        pub texts: *const *const c_char,
        pub mode: ww_match_mode,
        pub fuse: *const ww_fuse,
        pub candidates: i64,
        pub counts: *const ww_word_counts,
    }
    impl Default for ww_match {
        fn default() -> Self {
            initialized(ww_match_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_query {
        pub struct_size: usize,
        pub queries: *const f32,
        pub query_count: i64,
        pub query_stride: i64,
        pub query_tensor: *const ww_tensor,
        pub dim: i32,
        pub mode: ww_query_mode,
        pub k: i32,
        pub bound: f32,
        pub limit: i64,
        pub mask: *const u64,
        pub mask_rows: i64,
        pub r#where: *const c_char,
        pub parameters: *const ww_parameter,
        pub parameter_count: i64,
        pub filter: *const ww_filter,
        pub fetch: u32,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
        pub stats: *mut ww_search_stats,
        pub nprobe: i64,
        pub r#match: *const ww_match,
        pub recall: f32,
        pub cancel: *const ww_cancel,
        pub sparse: *const ww_sparse_query,
        pub multi: *const ww_multi_query,
    }
    impl Default for ww_query {
        fn default() -> Self {
            initialized(ww_query_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_get {
        pub struct_size: usize,
        pub count: i64,
        pub ids: *const *const c_char,
        pub handles: *const i64,
        pub fetch: u32,
        pub cancel: *const ww_cancel,
    }
    impl Default for ww_get {
        fn default() -> Self {
            initialized(ww_get_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_collection_info {
        pub struct_size: usize,
        pub dim: i32,
        pub metric: ww_metric,
        pub rows_live: i64,
        pub rows_removed: i64,
        pub rows_capacity: i64,
        pub segments: i64,
        pub bytes_rows: i64,
        pub bytes_ids: i64,
        pub bytes_payloads: i64,
        pub device: [c_char; 32],
        pub bytes_host_copy: i64,
        pub screen: ww_screen,
        pub bytes_screen: i64,
        pub bytes_handles: i64,
        pub mask_rows: i64,
        pub r#type: ww_vector_type,
        pub rows: ww_row_place,
        pub bytes_rows_host: i64,
        pub members: [c_char; 512],
    }
    impl Default for ww_collection_info {
        fn default() -> Self {
            initialized(ww_collection_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_damage_report {
        pub struct_size: usize,
        pub rows_checked: i64,
        pub rows_damaged: i64,
        pub first_row: i64,
        pub first_damage: u32,
        pub damage: u32,
    }
    impl Default for ww_damage_report {
        fn default() -> Self {
            initialized(ww_damage_report_init)
        }
    }
    extern "C" {
        pub fn ww_collection_config_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_rows_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_query_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_match_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_get_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_search_stats_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_collection_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_damage_report_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_metric_name(metric: ww_metric) -> *const c_char;
        pub fn ww_screen_name(screen: ww_screen) -> *const c_char;
        pub fn ww_vector_type_name(r#type: ww_vector_type) -> *const c_char;
        pub fn ww_row_place_name(place: ww_row_place) -> *const c_char;
        pub fn ww_collection_create(device: *mut ww_device, config: *const ww_collection_config, collection: *mut *mut ww_collection) -> ww_status;
        pub fn ww_collection_destroy(collection: *mut ww_collection);
        pub fn ww_collection_add(collection: *mut ww_collection, rows: *const ww_rows) -> ww_status;
        pub fn ww_collection_upsert(collection: *mut ww_collection, rows: *const ww_rows) -> ww_status;
        pub fn ww_collection_update(collection: *mut ww_collection, rows: *const ww_rows) -> ww_status;
        pub fn ww_collection_remove(collection: *mut ww_collection, ids: *const *const c_char, count: i64) -> ww_status;
        pub fn ww_collection_discard(collection: *mut ww_collection, ids: *const *const c_char, count: i64, missing: *mut i64) -> ww_status;
        pub fn ww_collection_set_payloads(collection: *mut ww_collection, ids: *const *const c_char, payloads: *const *const c_char, count: i64) -> ww_status;
        pub fn ww_collection_clear(collection: *mut ww_collection) -> ww_status;
        pub fn ww_collection_compact(collection: *mut ww_collection, progress: ww_progress, user: *mut c_void) -> ww_status;
        pub fn ww_collection_check(collection: *mut ww_collection, report: *mut ww_damage_report, progress: ww_progress, user: *mut c_void) -> ww_status;
        pub fn ww_collection_reserve(collection: *mut ww_collection, rows: i64) -> ww_status;
        pub fn ww_collection_move(collection: *mut ww_collection, device: *mut ww_device) -> ww_status;
        pub fn ww_collection_count(collection: *mut ww_collection) -> i64;
        pub fn ww_collection_digest(collection: *mut ww_collection, digest: *mut u64) -> ww_status;
        pub fn ww_collection_count_words(collection: *mut ww_collection, text: *const c_char, counts: *mut ww_word_counts) -> ww_status;
        pub fn ww_collection_describe(collection: *mut ww_collection, info: *mut ww_collection_info) -> ww_status;
        pub fn ww_collection_query(collection: *mut ww_collection, query: *const ww_query, results: *mut *mut ww_results) -> ww_status;
        pub fn ww_collection_search(collection: *mut ww_collection, query: *const ww_query, rows: *mut i64, scores: *mut f32) -> ww_status;
        pub fn ww_collection_get(collection: *mut ww_collection, get: *const ww_get, results: *mut *mut ww_results) -> ww_status;
        pub fn ww_collection_find(collection: *mut ww_collection, id: *const c_char, row: *mut i64) -> ww_status;
        pub fn ww_collection_handle(collection: *mut ww_collection, row: i64, handle: *mut i64) -> ww_status;
        pub fn ww_collection_find_handle(collection: *mut ww_collection, handle: i64, row: *mut i64) -> ww_status;
        pub fn ww_collection_vector(collection: *mut ww_collection, row: i64, vector: *mut f32) -> ww_status;
        pub fn ww_collection_elements(collection: *mut ww_collection, row: i64, elements: *mut c_void) -> ww_status;
        pub fn ww_collection_id(collection: *mut ww_collection, row: i64, text: *mut c_char, capacity: usize, length: *mut usize) -> ww_status;
        pub fn ww_collection_payload(collection: *mut ww_collection, row: i64, text: *mut c_char, capacity: usize, length: *mut usize) -> ww_status;
        pub fn ww_collection_next(collection: *mut ww_collection, row: i64) -> i64;
        pub fn ww_score(metric: ww_metric, a: *const f32, b: *const f32, dim: i32, score: *mut f32) -> ww_status;
    }
}
pub use vectors::*;

mod ivf {
    use super::*;
    pub const WW_IVF_LISTS_MAX: i64 = 1048576;
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_ivf_config {
        pub struct_size: usize,
        pub nlist: i64,
        pub sample_rows: i64,
        pub iterations: i32,
        pub seed: u64,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
    }
    impl Default for ww_ivf_config {
        fn default() -> Self {
            initialized(ww_ivf_config_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_ivf_info {
        pub struct_size: usize,
        pub nlist: i64,
        pub rows: i64,
        pub rows_largest: i64,
        pub rows_mean: f64,
        pub loss: f64,
        pub bytes: i64,
        pub rows_trained: i64,
        pub rows_added: i64,
        pub lists_split: i64,
        pub calibration_queries: i64,
        pub calibration_k: i32,
        pub calibration_rows_added: i64,
        pub calibration_rows_removed: i64,
        pub calibration_time: i64,
    }
    impl Default for ww_ivf_info {
        fn default() -> Self {
            initialized(ww_ivf_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_calibrate_config {
        pub struct_size: usize,
        pub queries: *const f32,
        pub query_count: i64,
        pub query_stride: i64,
        pub k: i32,
        pub seed: u64,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
        pub recall: f32,
    }
    impl Default for ww_calibrate_config {
        fn default() -> Self {
            initialized(ww_calibrate_config_init)
        }
    }
    extern "C" {
        pub fn ww_ivf_config_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_ivf_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_calibrate_config_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_collection_build_ivf(collection: *mut ww_collection, config: *const ww_ivf_config) -> ww_status;
        pub fn ww_collection_calibrate(collection: *mut ww_collection, config: *const ww_calibrate_config) -> ww_status;
        pub fn ww_collection_drop_ivf(collection: *mut ww_collection) -> ww_status;
        pub fn ww_collection_describe_ivf(collection: *mut ww_collection, info: *mut ww_ivf_info) -> ww_status;
    }
}
pub use ivf::*;

mod map {
    use super::*;
    pub type ww_map_origin = c_int;
    pub const WW_MAP_NEIGHBOURS_MAX: i64 = 256;
    pub const WW_MAP_STEPS_MAX: i64 = 1000000;
    pub const WW_MAP_KEPT: ww_map_origin = 0;
    pub const WW_MAP_GROWN: ww_map_origin = 1;
    pub const WW_MAP_MADE: ww_map_origin = 2;
    #[repr(C)]
    pub struct ww_map {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_map_config {
        pub struct_size: usize,
        pub neighbours: i32,
        pub steps: i32,
        pub seed: i64,
        pub remake: i32,
        pub nprobe: i64,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
    }
    impl Default for ww_map_config {
        fn default() -> Self {
            initialized(ww_map_config_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_map_info {
        pub struct_size: usize,
        pub rows: i64,
        pub rows_placed: i64,
        pub neighbours: i32,
        pub steps: i32,
        pub seed: i64,
        pub origin: ww_map_origin,
        pub kept: i32,
    }
    impl Default for ww_map_info {
        fn default() -> Self {
            initialized(ww_map_info_init)
        }
    }
    extern "C" {
        pub fn ww_map_config_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_map_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_map_origin_name(origin: ww_map_origin) -> *const c_char;
        pub fn ww_collection_map(collection: *mut ww_collection, config: *const ww_map_config, map: *mut *mut ww_map) -> ww_status;
        pub fn ww_collection_drop_map(collection: *mut ww_collection) -> ww_status;
        pub fn ww_map_destroy(map: *mut ww_map);
        pub fn ww_map_count(map: *const ww_map) -> i64;
        pub fn ww_map_handles(map: *const ww_map) -> *const i64;
        pub fn ww_map_points(map: *const ww_map) -> *const f32;
        pub fn ww_map_describe(map: *const ww_map, info: *mut ww_map_info) -> ww_status;
    }
}
pub use map::*;

#[cfg(feature = "model")]
mod model {
    use super::*;
    pub type ww_model_kind = c_int;
    pub type ww_pooling = c_int;
    pub type ww_token_flags = c_int;
    pub type ww_grammar_kind = c_int;
    pub type ww_generation_end = c_int;
    pub const WW_MODEL_ENCODER: ww_model_kind = 0;
    pub const WW_MODEL_DECODER: ww_model_kind = 1;
    pub const WW_POOLING_NONE: ww_pooling = 0;
    pub const WW_POOLING_MEAN: ww_pooling = 1;
    pub const WW_POOLING_CLS: ww_pooling = 2;
    pub const WW_POOLING_LAST: ww_pooling = 3;
    pub const WW_POOLING_RANK: ww_pooling = 4;
    pub const WW_TOKENS_PLAIN: ww_token_flags = 1;
    pub const WW_TOKENS_NO_ADD: ww_token_flags = 2;
    pub const WW_GRAMMAR_GBNF: ww_grammar_kind = 0;
    pub const WW_GRAMMAR_JSON_SCHEMA: ww_grammar_kind = 1;
    pub const WW_GENERATION_LENGTH: ww_generation_end = 0;
    pub const WW_GENERATION_EOS: ww_generation_end = 1;
    pub const WW_GENERATION_CONTEXT: ww_generation_end = 2;
    pub const WW_GENERATION_STOPPED: ww_generation_end = 3;
    #[repr(C)]
    pub struct ww_model {
        _opaque: Opaque,
    }
    #[repr(C)]
    pub struct ww_session {
        _opaque: Opaque,
    }
    #[repr(C)]
    pub struct ww_tokenizer {
        _opaque: Opaque,
    }
    #[repr(C)]
    pub struct ww_grammar {
        _opaque: Opaque,
    }
    pub type ww_text_callback = Option<unsafe extern "C" fn(text: *const c_char, bytes: usize, user: *mut c_void) -> c_int>;
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_model_options {
        pub struct_size: usize,
        pub activations: ww_activations,
        pub cache: ww_quant_type,
        pub context: i64,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
        pub chat_template: *const c_char,
        pub pooling: ww_pooling,
        pub copy_weights: i32,
    }
    impl Default for ww_model_options {
        fn default() -> Self {
            initialized(ww_model_options_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_model_info {
        pub struct_size: usize,
        pub kind: ww_model_kind,
        pub architecture: [c_char; 32],
        pub name: [c_char; 128],
        pub licence: [c_char; 64],
        pub tokenizer: [c_char; 32],
        pub device: [c_char; 32],
        pub fingerprint: [c_char; 40],
        pub parameters: i64,
        pub weight_bytes: i64,
        pub cache_bytes: i64,
        pub vocabulary: i64,
        pub context: i64,
        pub layers: i32,
        pub width: i32,
        pub hidden: i32,
        pub heads: i32,
        pub key_heads: i32,
        pub head_size: i32,
        pub window: i32,
        pub pooling: ww_pooling,
        pub bos: i32,
        pub eos: i32,
        pub has_chat: i32,
        pub embeds: i32,
        pub reranks: i32,
        pub prompts: [c_char; 128],
        pub default_prompt: [c_char; 64],
        pub pooling_assumed: i32,
        pub texts_cut: i64,
        pub mapped_bytes: i64,
    }
    impl Default for ww_model_info {
        fn default() -> Self {
            initialized(ww_model_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_chat_message {
        pub role: *const c_char,
        pub text: *const c_char,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_embedding {
        pub struct_size: usize,
        pub prompt: *const c_char,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
        pub cut: *mut i64,
    }
    impl Default for ww_embedding {
        fn default() -> Self {
            initialized(ww_embedding_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_sampling {
        pub struct_size: usize,
        pub temperature: f64,
        pub top_k: i32,
        pub top_p: f64,
        pub min_p: f64,
        pub repetition_penalty: f64,
        pub repetition_window: i32,
        pub seed: u64,
        pub grammar: *mut ww_grammar,
        pub frequency_penalty: f64,
        pub presence_penalty: f64,
        pub bias_tokens: *const i32,
        pub biases: *const f32,
        pub bias_count: i64,
    }
    impl Default for ww_sampling {
        fn default() -> Self {
            initialized(ww_sampling_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_generation {
        pub struct_size: usize,
        pub tokens: i64,
        pub sampling: *const ww_sampling,
        pub text: ww_text_callback,
        pub user: *mut c_void,
        pub ignore_eos: i32,
    }
    impl Default for ww_generation {
        fn default() -> Self {
            initialized(ww_generation_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_conversion {
        pub struct_size: usize,
        pub folder: *const c_char,
        pub out_path: *const c_char,
        pub name: *const c_char,
        pub r#type: *const c_char,
        pub pooling: ww_pooling,
        pub device: *mut ww_device,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
    }
    impl Default for ww_conversion {
        fn default() -> Self {
            initialized(ww_conversion_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_conversion_report {
        pub struct_size: usize,
        pub architecture: [c_char; 32],
        pub tensors: i64,
        pub bytes_before: i64,
        pub bytes_after: i64,
        pub other: i64,
        pub pooling_assumed: i32,
    }
    impl Default for ww_conversion_report {
        fn default() -> Self {
            initialized(ww_conversion_report_init)
        }
    }
    extern "C" {
        pub fn ww_model_options_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_model_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_model_open(path: *const c_char, device: *mut ww_device, options: *const ww_model_options, model: *mut *mut ww_model) -> ww_status;
        pub fn ww_model_close(model: *mut ww_model);
        pub fn ww_model_describe(model: *const ww_model, info: *mut ww_model_info) -> ww_status;
        pub fn ww_model_tokenize(model: *const ww_model, text: *const c_char, bytes: usize, flags: u32, ids: *mut i32, capacity: usize, count: *mut usize) -> ww_status;
        pub fn ww_model_detokenize(model: *const ww_model, ids: *const i32, count: usize, text: *mut c_char, capacity: usize, bytes: *mut usize) -> ww_status;
        pub fn ww_tokenizer_create(gguf: *const ww_gguf, tokenizer: *mut *mut ww_tokenizer) -> ww_status;
        pub fn ww_tokenizer_destroy(tokenizer: *mut ww_tokenizer);
        pub fn ww_model_tokenizer(model: *const ww_model) -> *const ww_tokenizer;
        pub fn ww_tokenizer_encode(tokenizer: *const ww_tokenizer, text: *const c_char, bytes: usize, flags: u32, ids: *mut i32, capacity: usize, count: *mut usize) -> ww_status;
        pub fn ww_tokenizer_piece(tokenizer: *const ww_tokenizer, token: i32, piece: *mut *const c_char, bytes: *mut usize) -> ww_status;
        pub fn ww_tokenizer_is_special(tokenizer: *const ww_tokenizer, token: i32) -> i32;
        pub fn ww_model_token_ends(model: *const ww_model, token: i32) -> i32;
        pub fn ww_model_chat(model: *const ww_model, messages: *const ww_chat_message, count: usize, text: *mut c_char, capacity: usize, bytes: *mut usize) -> ww_status;
        pub fn ww_model_chat_tokens(model: *const ww_model, messages: *const ww_chat_message, count: usize, flags: u32, ids: *mut i32, capacity: usize, token_count: *mut usize) -> ww_status;
        pub fn ww_model_chat_json_tokens(model: *const ww_model, json: *const c_char, behind: *const c_char, ids: *mut i32, capacity: usize, token_count: *mut usize) -> ww_status;
        pub fn ww_model_chat_template(model: *const ww_model) -> *const c_char;
        pub fn ww_embedding_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_model_embed(model: *mut ww_model, texts: *const *const c_char, bytes: *const usize, count: usize, how: *const ww_embedding, vectors: *mut f32) -> ww_status;
        pub fn ww_model_prompt(model: *const ww_model, name: *const c_char, text: *mut *const c_char) -> ww_status;
        pub fn ww_model_embed_tokens(model: *mut ww_model, ids: *const i32, counts: *const usize, count: usize, vectors: *mut f32) -> ww_status;
        pub fn ww_embeddings_shorten(vectors: *mut f32, count: usize, width: i32, dimensions: i32) -> ww_status;
        pub fn ww_model_rerank(model: *mut ww_model, query: *const c_char, texts: *const *const c_char, bytes: *const usize, count: usize, scores: *mut f32, progress: ww_progress, user: *mut c_void) -> ww_status;
        pub fn ww_session_create(model: *mut ww_model, session: *mut *mut ww_session) -> ww_status;
        pub fn ww_session_destroy(session: *mut ww_session);
        pub fn ww_session_length(session: *const ww_session) -> usize;
        pub fn ww_session_tokens(session: *const ww_session, first: usize, ids: *mut i32, capacity: usize) -> ww_status;
        pub fn ww_session_feed(session: *mut ww_session, ids: *const i32, count: usize) -> ww_status;
        pub fn ww_sessions_feed(sessions: *const *mut ww_session, ids: *const *const i32, counts: *const usize, count: usize) -> ww_status;
        pub fn ww_session_logits(session: *const ww_session, logits: *mut f32) -> ww_status;
        pub fn ww_session_truncate(session: *mut ww_session, length: usize) -> ww_status;
        pub fn ww_session_fork(session: *mut ww_session, fork: *mut *mut ww_session) -> ww_status;
        pub fn ww_session_save(session: *mut ww_session, path: *const c_char) -> ww_status;
        pub fn ww_session_load(model: *mut ww_model, path: *const c_char, session: *mut *mut ww_session) -> ww_status;
        pub fn ww_session_cancel(session: *mut ww_session);
        pub fn ww_grammar_create(model: *mut ww_model, kind: ww_grammar_kind, text: *const c_char, bytes: usize, grammar: *mut *mut ww_grammar) -> ww_status;
        pub fn ww_grammar_destroy(grammar: *mut ww_grammar);
        pub fn ww_grammar_accept(grammar: *mut ww_grammar, token: i32) -> ww_status;
        pub fn ww_sampling_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_session_sample(session: *const ww_session, sampling: *const ww_sampling, token: *mut i32) -> ww_status;
        pub fn ww_generation_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_session_generate(session: *mut ww_session, generation: *const ww_generation, end: *mut ww_generation_end) -> ww_status;
        pub fn ww_conversion_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_conversion_report_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_model_convert(conversion: *const ww_conversion, report: *mut ww_conversion_report) -> ww_status;
    }
}
#[cfg(feature = "model")]
pub use model::*;

mod multi {
    use super::*;
    pub const WW_MULTI_MAX: i64 = 1024;
    #[repr(C)]
    pub struct ww_multi_index {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_multivector {
        pub count: i32,
        pub dim: i32,
        pub vectors: *const f32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_multi_query {
        pub struct_size: usize,
        pub vectors: *const ww_multivector,
    }
    impl Default for ww_multi_query {
        fn default() -> Self {
            initialized(ww_multi_query_init)
        }
    }
    extern "C" {
        pub fn ww_multi_query_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_multi_create(device: *mut ww_device, dim: i32, metric: ww_metric, index: *mut *mut ww_multi_index) -> ww_status;
        pub fn ww_multi_destroy(index: *mut ww_multi_index);
        pub fn ww_multi_add(index: *mut ww_multi_index, rows: *const ww_multivector, count: i64) -> ww_status;
        pub fn ww_multi_remove(index: *mut ww_multi_index, row: i64) -> ww_status;
        pub fn ww_multi_count(index: *mut ww_multi_index) -> i64;
        pub fn ww_multi_search(index: *mut ww_multi_index, query: *const ww_query, results: *mut *mut ww_results) -> ww_status;
        pub fn ww_multi_score(metric: ww_metric, query: *const ww_multivector, row: *const ww_multivector, score: *mut f32) -> ww_status;
    }
}
pub use multi::*;

mod ranking {
    use super::*;
    pub type ww_fusion = c_int;
    pub const WW_DIVERSITY_MAX: i64 = 2048;
    pub const WW_FUSION_RANKS: ww_fusion = 0;
    pub const WW_FUSION_SCORES: ww_fusion = 1;
    pub const WW_FUSION_SCALED_RANKS: ww_fusion = 2;
    pub const WW_FUSION_DISTRIBUTIONS: ww_fusion = 3;
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_fuse {
        pub struct_size: usize,
        pub fusion: ww_fusion,
        pub constant: f64,
        pub weights: *const f64,
        pub limit: i64,
        pub by_id: bool,
        pub cancel: *const ww_cancel,
    }
    impl Default for ww_fuse {
        fn default() -> Self {
            initialized(ww_fuse_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_picked_hit {
        pub results: *const ww_results,
        pub query: i64,
        pub hit: i64,
        pub score: f32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_diversity {
        pub struct_size: usize,
        pub metric: ww_metric,
        pub lambda: f64,
        pub limit: i64,
        pub queries: *const f32,
        pub similarity: u32,
    }
    impl Default for ww_diversity {
        fn default() -> Self {
            initialized(ww_diversity_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_grouping {
        pub struct_size: usize,
        pub field: *const c_char,
        pub groups: i64,
        pub size: i64,
    }
    impl Default for ww_grouping {
        fn default() -> Self {
            initialized(ww_grouping_init)
        }
    }
    extern "C" {
        pub fn ww_fuse_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_diversity_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_grouping_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_results_fuse(lists: *const *const ww_results, list_count: i64, how: *const ww_fuse, fused: *mut *mut ww_results) -> ww_status;
        pub fn ww_results_pick(hits: *const ww_picked_hit, count: i64, picked: *mut *mut ww_results) -> ww_status;
        pub fn ww_results_diversify(results: *const ww_results, how: *const ww_diversity, diverse: *mut *mut ww_results) -> ww_status;
        pub fn ww_results_group(results: *const ww_results, how: *const ww_grouping, grouped: *mut *mut ww_results) -> ww_status;
        pub fn ww_results_rerank(results: *const ww_results, scores: *const f32, limit: i64, reranked: *mut *mut ww_results) -> ww_status;
        pub fn ww_collection_rank(collection: *mut ww_collection, query: *const ww_query, diversity: *const ww_diversity, grouping: *const ww_grouping, candidates: i64, results: *mut *mut ww_results) -> ww_status;
    }
}
pub use ranking::*;

mod plan {
    use super::*;
    pub const WW_PLAN_STAGES_MAX: i64 = 8192;
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_stage_report {
        pub struct_size: usize,
        pub rows_in: i64,
        pub rows_found: i64,
        pub rows_worse: i64,
        pub rows_excluded: i64,
        pub rows_skipped: i64,
        pub rows_gone: i64,
        pub hits: i64,
        pub seconds: f64,
        pub rows_screened: i64,
        pub rows_kept: i64,
        pub rows_scored: i64,
        pub lists_read: i64,
        pub list_bytes_read: i64,
        pub certificate: f32,
    }
    impl Default for ww_stage_report {
        fn default() -> Self {
            initialized(ww_stage_report_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_order {
        pub struct_size: usize,
        pub field: *const c_char,
        pub descending: bool,
    }
    impl Default for ww_order {
        fn default() -> Self {
            initialized(ww_order_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_finder {
        pub struct_size: usize,
        pub find: Option<unsafe extern "C" fn(user: *mut c_void, question: i64, filter: *const ww_filter, limit: i64, results: *mut *mut ww_results) -> ww_status>,
        pub user: *mut c_void,
        pub filter: *const ww_filter,
        pub smaller_is_better: bool,
        pub in_order: bool,
    }
    impl Default for ww_finder {
        fn default() -> Self {
            initialized(ww_finder_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_stage {
        pub struct_size: usize,
        pub collection: *mut ww_collection,
        pub inputs: *const i32,
        pub input_count: i64,
        pub query: *const ww_query,
        pub fuse: *const ww_fuse,
        pub diversity: *const ww_diversity,
        pub grouping: *const ww_grouping,
        pub order: *const ww_order,
        pub formula: *const ww_formula,
        pub finder: *const ww_finder,
        pub limit: i64,
        pub offset: i64,
        pub has_threshold: bool,
        pub threshold: f64,
        pub exclude: *const *const c_char,
        pub exclude_count: i64,
        pub report: *mut ww_stage_report,
    }
    impl Default for ww_stage {
        fn default() -> Self {
            initialized(ww_stage_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_plan {
        pub struct_size: usize,
        pub stages: *const *const ww_stage,
        pub stage_count: i64,
        pub question_count: i64,
        pub fetch: u32,
        pub collection: *mut ww_collection,
        pub ties_by_id: bool,
        pub cancel: *const ww_cancel,
    }
    impl Default for ww_plan {
        fn default() -> Self {
            initialized(ww_plan_init)
        }
    }
    extern "C" {
        pub fn ww_stage_report_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_order_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_finder_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_stage_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_plan_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_plan_run(plan: *const ww_plan, results: *mut *mut ww_results) -> ww_status;
        pub fn ww_stage_name(stage: *const ww_stage) -> *const c_char;
        pub fn ww_plan_explain(plan: *const ww_plan, text: *mut c_char, capacity: usize) -> usize;
    }
}
pub use plan::*;

mod selection {
    use super::*;
    pub type ww_payload_change = c_int;
    pub const WW_PAYLOAD_SET: ww_payload_change = 0;
    pub const WW_PAYLOAD_MERGE: ww_payload_change = 1;
    #[repr(C)]
    pub struct ww_cursor {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_selection {
        pub struct_size: usize,
        pub filter: *const ww_filter,
        pub r#where: *const c_char,
        pub parameters: *const ww_parameter,
        pub parameter_count: i64,
        pub first_handle: i64,
        pub limit: i64,
        pub cancel: *const ww_cancel,
    }
    impl Default for ww_selection {
        fn default() -> Self {
            initialized(ww_selection_init)
        }
    }
    extern "C" {
        pub fn ww_selection_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_collection_select(collection: *mut ww_collection, selection: *const ww_selection, fetch: u32, results: *mut *mut ww_results) -> ww_status;
        pub fn ww_collection_select_count(collection: *mut ww_collection, selection: *const ww_selection, count: *mut i64) -> ww_status;
        pub fn ww_cursor_create(collection: *mut ww_collection, selection: *const ww_selection, fetch: u32, cursor: *mut *mut ww_cursor) -> ww_status;
        pub fn ww_cursor_next(cursor: *mut ww_cursor, count: i64, results: *mut *mut ww_results) -> ww_status;
        pub fn ww_cursor_destroy(cursor: *mut ww_cursor);
        pub fn ww_collection_select_remove(collection: *mut ww_collection, selection: *const ww_selection, removed: *mut i64) -> ww_status;
        pub fn ww_collection_select_payload(collection: *mut ww_collection, selection: *const ww_selection, payload: *const c_char, change: ww_payload_change, changed: *mut i64) -> ww_status;
        pub fn ww_collection_merge_payloads(collection: *mut ww_collection, ids: *const *const c_char, payloads: *const *const c_char, count: i64) -> ww_status;
    }
}
pub use selection::*;

mod sparse {
    use super::*;
    pub type ww_sparse_modifier = c_int;
    pub const WW_SPARSE_MAX: i64 = 65536;
    pub const WW_SPARSE_PLAIN: ww_sparse_modifier = 0;
    pub const WW_SPARSE_IDF: ww_sparse_modifier = 1;
    #[repr(C)]
    pub struct ww_sparse_index {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_sparse_vector {
        pub count: i64,
        pub indices: *const u32,
        pub values: *const f32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_sparse_query {
        pub struct_size: usize,
        pub vectors: *const ww_sparse_vector,
        pub modifier: ww_sparse_modifier,
    }
    impl Default for ww_sparse_query {
        fn default() -> Self {
            initialized(ww_sparse_query_init)
        }
    }
    extern "C" {
        pub fn ww_sparse_query_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_sparse_create(index: *mut *mut ww_sparse_index) -> ww_status;
        pub fn ww_sparse_destroy(index: *mut ww_sparse_index);
        pub fn ww_sparse_add(index: *mut ww_sparse_index, vectors: *const ww_sparse_vector, count: i64) -> ww_status;
        pub fn ww_sparse_remove(index: *mut ww_sparse_index, row: i64) -> ww_status;
        pub fn ww_sparse_count(index: *mut ww_sparse_index) -> i64;
        pub fn ww_sparse_search(index: *mut ww_sparse_index, query: *const ww_query, results: *mut *mut ww_results) -> ww_status;
        pub fn ww_sparse_score(a: *const ww_sparse_vector, b: *const ww_sparse_vector, score: *mut f32, common: *mut i64) -> ww_status;
    }
}
pub use sparse::*;

#[cfg(feature = "store")]
mod store {
    use super::*;
    pub type ww_synchronous = c_int;
    pub const WW_STORE_FORMAT: i64 = 4;
    pub const WW_SYNCHRONOUS_FULL: ww_synchronous = 0;
    pub const WW_SYNCHRONOUS_NORMAL: ww_synchronous = 1;
    pub const WW_SYNCHRONOUS_OFF: ww_synchronous = 2;
    #[repr(C)]
    pub struct ww_store {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_store_config {
        pub struct_size: usize,
        pub synchronous: ww_synchronous,
        pub busy_ms: i32,
        pub page_bytes: i32,
        pub filter_ms: i32,
        pub must_exist: i32,
        pub read_only: i32,
        pub loading: ww_progress,
        pub loading_user: *mut c_void,
        pub rows: ww_row_place,
        pub exclusive: i32,
        pub memory_bytes: i64,
    }
    impl Default for ww_store_config {
        fn default() -> Self {
            initialized(ww_store_config_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_store_info {
        pub struct_size: usize,
        pub format: i64,
        pub collections: i64,
        pub page_bytes: i64,
        pub bytes_file: i64,
        pub bytes_wal: i64,
        pub bytes_unused: i64,
        pub sqlite_version: [c_char; 32],
        pub bytes_memory: i64,
    }
    impl Default for ww_store_info {
        fn default() -> Self {
            initialized(ww_store_info_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_store_model {
        pub struct_size: usize,
        pub name: [c_char; 128],
        pub fingerprint: [c_char; 72],
        pub path: [c_char; 1024],
        pub pooling: [c_char; 16],
        pub query_prefix: [c_char; 256],
        pub document_prefix: [c_char; 256],
    }
    impl Default for ww_store_model {
        fn default() -> Self {
            initialized(ww_store_model_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_store_copy {
        pub struct_size: usize,
        pub names: *const *const c_char,
        pub to: *const *const c_char,
        pub count: i64,
        pub note_key: *const c_char,
        pub note: *mut *const c_char,
        pub progress: ww_progress,
        pub user: *mut c_void,
    }
    impl Default for ww_store_copy {
        fn default() -> Self {
            initialized(ww_store_copy_init)
        }
    }
    extern "C" {
        pub fn ww_store_copy_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_store_config_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_store_info_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_store_model_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_synchronous_name(level: ww_synchronous) -> *const c_char;
        pub fn ww_store_open(path: *const c_char, device: *mut ww_device, config: *const ww_store_config, store: *mut *mut ww_store) -> ww_status;
        pub fn ww_store_close(store: *mut ww_store);
        pub fn ww_store_create(store: *mut ww_store, config: *const ww_collection_config, collection: *mut *mut ww_collection) -> ww_status;
        pub fn ww_store_collection(store: *mut ww_store, name: *const c_char, collection: *mut *mut ww_collection) -> ww_status;
        pub fn ww_store_drop(store: *mut ww_store, name: *const c_char) -> ww_status;
        pub fn ww_store_rename(store: *mut ww_store, name: *const c_char, to: *const c_char) -> ww_status;
        pub fn ww_store_list(store: *mut ww_store, results: *mut *mut ww_results) -> ww_status;
        pub fn ww_store_begin(store: *mut ww_store) -> ww_status;
        pub fn ww_store_commit(store: *mut ww_store) -> ww_status;
        pub fn ww_store_rollback(store: *mut ww_store) -> ww_status;
        pub fn ww_store_index(store: *mut ww_store, collection: *const c_char, path: *const c_char) -> ww_status;
        pub fn ww_store_set_model(store: *mut ww_store, collection: *const c_char, model: *const ww_store_model) -> ww_status;
        pub fn ww_store_get_model(store: *mut ww_store, collection: *const c_char, model: *mut ww_store_model) -> ww_status;
        pub fn ww_store_set_note(store: *mut ww_store, collection: *const c_char, key: *const c_char, text: *const c_char) -> ww_status;
        pub fn ww_store_get_note(store: *mut ww_store, collection: *const c_char, key: *const c_char, text: *mut c_char) -> ww_status;
        pub fn ww_store_backup(store: *mut ww_store, path: *const c_char, progress: ww_progress, user: *mut c_void) -> ww_status;
        pub fn ww_store_backup_collections(store: *mut ww_store, path: *const c_char, copy: *const ww_store_copy) -> ww_status;
        pub fn ww_store_restore(store: *mut ww_store, path: *const c_char, copy: *const ww_store_copy) -> ww_status;
        pub fn ww_store_upgrade(store: *mut ww_store, progress: ww_progress, user: *mut c_void) -> ww_status;
        pub fn ww_store_shrink(store: *mut ww_store, collection: *const c_char, bytes: i64, left: *mut i64) -> ww_status;
        pub fn ww_store_check(store: *mut ww_store, progress: ww_progress, user: *mut c_void) -> ww_status;
        pub fn ww_store_describe(store: *mut ww_store, info: *mut ww_store_info) -> ww_status;
    }
}
#[cfg(feature = "store")]
pub use store::*;

mod tensor_files {
    use super::*;
    extern "C" {
        pub fn ww_tensor_load_npy(device: *mut ww_device, path: *const c_char, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_load_safetensors(device: *mut ww_device, path: *const c_char, name: *const c_char, out: *mut ww_tensor) -> ww_status;
        pub fn ww_safetensors_load(file: *const ww_safetensors, index: i64, device: *mut ww_device, out: *mut ww_tensor) -> ww_status;
        pub fn ww_safetensors_load_all(file: *const ww_safetensors, device: *mut ww_device, out: *mut ww_tensor) -> ww_status;
    }
}
pub use tensor_files::*;

mod tensor_foreign {
    use super::*;
    pub const WW_STREAM_NONE: *mut c_void = usize::MAX as *mut c_void;
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_foreign {
        pub struct_size: usize,
        pub data: *mut c_void,
        pub dtype: ww_dtype,
        pub layout: ww_layout,
        pub read_only: i32,
        pub stream: *mut c_void,
        pub release: Option<unsafe extern "C" fn(owner: *mut c_void)>,
        pub owner: *mut c_void,
    }
    impl Default for ww_foreign {
        fn default() -> Self {
            initialized(ww_foreign_init)
        }
    }
    extern "C" {
        pub fn ww_device_stream(device: *mut ww_device, stream: *mut *mut c_void) -> ww_status;
        pub fn ww_device_wait_stream(device: *mut ww_device, stream: *mut c_void) -> ww_status;
        pub fn ww_device_signal_stream(device: *mut ww_device, stream: *mut c_void) -> ww_status;
        pub fn ww_foreign_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_tensor_wrap(device: *mut ww_device, foreign: *const ww_foreign, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_data(x: *const ww_tensor, data: *mut *mut c_void) -> ww_status;
        pub fn ww_tensor_to_dlpack(x: *const ww_tensor, stream: *mut c_void, managed: *mut *mut DLManagedTensorVersioned) -> ww_status;
        pub fn ww_tensor_to_dlpack_unversioned(x: *const ww_tensor, stream: *mut c_void, managed: *mut *mut DLManagedTensor) -> ww_status;
        pub fn ww_tensor_from_dlpack(device: *mut ww_device, managed: *mut DLManagedTensorVersioned, stream: *mut c_void, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_from_dlpack_unversioned(device: *mut ww_device, managed: *mut DLManagedTensor, stream: *mut c_void, out: *mut ww_tensor) -> ww_status;
        pub fn ww_dlpack_capsules(is_valid: Option<unsafe extern "C" fn(capsule: *mut c_void, name: *const c_char) -> c_int>, get_pointer: Option<unsafe extern "C" fn(capsule: *mut c_void, name: *const c_char) -> *mut c_void>) -> ww_status;
        pub fn ww_dlpack_capsule_destroy(capsule: *mut c_void);
    }
}
pub use tensor_foreign::*;

mod tensor_rows {
    use super::*;
    pub type ww_reduce = c_int;
    pub const WW_REDUCE_SUM: ww_reduce = 0;
    pub const WW_REDUCE_MIN: ww_reduce = 1;
    pub const WW_REDUCE_MAX: ww_reduce = 2;
    pub const WW_REDUCE_ARGMIN: ww_reduce = 3;
    pub const WW_REDUCE_ARGMAX: ww_reduce = 4;
    pub const WW_REDUCE_MEAN: ww_reduce = 5;
    pub const WW_REDUCE_PROD: ww_reduce = 6;
    extern "C" {
        pub fn ww_reduce_name(op: ww_reduce) -> *const c_char;
        pub fn ww_reduce_of_name(name: *const c_char) -> i32;
        pub fn ww_tensor_reduce(op: ww_reduce, x: *const ww_tensor, dims: *const i32, count: i32, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_cumsum(x: *const ww_tensor, dim: i32, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_softmax(x: *const ww_tensor, dim: i32, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_layer_norm(x: *const ww_tensor, weight: *const ww_tensor, bias: *const ww_tensor, eps: f64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_rms_norm(x: *const ww_tensor, weight: *const ww_tensor, eps: f64, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_rope(x: *const ww_tensor, cosines: *const ww_tensor, sines: *const ww_tensor, interleaved: bool, out: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_sort(x: *const ww_tensor, descending: bool, values: *mut ww_tensor, indices: *mut ww_tensor) -> ww_status;
        pub fn ww_tensor_top_k(x: *const ww_tensor, k: i64, largest: bool, values: *mut ww_tensor, indices: *mut ww_tensor) -> ww_status;
    }
}
pub use tensor_rows::*;

#[cfg(feature = "text")]
mod text {
    use super::*;
    pub type ww_text_mode = c_int;
    pub const WW_EXPAND_MAX: i64 = 100;
    pub const WW_TEXT_VECTOR: ww_text_mode = 0;
    pub const WW_TEXT_WORDS: ww_text_mode = 1;
    pub const WW_TEXT_HYBRID: ww_text_mode = 2;
    #[repr(C)]
    pub struct ww_text {
        _opaque: Opaque,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_text_config {
        pub struct_size: usize,
        pub opened: *mut ww_model,
        pub model: *const c_char,
        pub device: *mut ww_device,
        pub create: i32,
        pub metric: ww_metric,
        pub r#type: ww_vector_type,
        pub query_prefix: *const c_char,
        pub document_prefix: *const c_char,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
    }
    impl Default for ww_text_config {
        fn default() -> Self {
            initialized(ww_text_config_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_text_rows {
        pub struct_size: usize,
        pub count: i64,
        pub texts: *const *const c_char,
        pub ids: *const *const c_char,
        pub payloads: *const *const c_char,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
    }
    impl Default for ww_text_rows {
        fn default() -> Self {
            initialized(ww_text_rows_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_chunking {
        pub struct_size: usize,
        pub tokens: i64,
        pub overlap: i64,
    }
    impl Default for ww_chunking {
        fn default() -> Self {
            initialized(ww_chunking_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_chunk {
        pub start: i64,
        pub end: i64,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_documents {
        pub struct_size: usize,
        pub count: i64,
        pub texts: *const *const c_char,
        pub sources: *const *const c_char,
        pub payloads: *const *const c_char,
        pub chunking: *const ww_chunking,
        pub progress: ww_progress,
        pub progress_user: *mut c_void,
    }
    impl Default for ww_documents {
        fn default() -> Self {
            initialized(ww_documents_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_text_query {
        pub struct_size: usize,
        pub texts: *const *const c_char,
        pub count: i64,
        pub mode: ww_text_mode,
        pub query: *const ww_query,
        pub fuse: *const ww_fuse,
        pub candidates: i64,
        pub diversity: *const ww_diversity,
        pub grouping: *const ww_grouping,
        pub expand: i32,
        pub rerank: *mut ww_model,
        pub reranked: i64,
    }
    impl Default for ww_text_query {
        fn default() -> Self {
            initialized(ww_text_query_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_bm25 {
        pub struct_size: usize,
        pub k: f64,
        pub b: f64,
        pub average_words: f64,
        pub query: i32,
    }
    impl Default for ww_bm25 {
        fn default() -> Self {
            initialized(ww_bm25_init)
        }
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct ww_sparse_room {
        pub capacity: i64,
        pub count: i64,
        pub indices: *mut u32,
        pub values: *mut f32,
    }
    extern "C" {
        pub fn ww_text_config_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_text_rows_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_chunking_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_documents_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_bm25_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_text_query_init(value: *mut c_void, struct_size: usize) -> ww_status;
        pub fn ww_text_open(store: *mut ww_store, collection: *const c_char, config: *const ww_text_config, text: *mut *mut ww_text) -> ww_status;
        pub fn ww_text_close(text: *mut ww_text);
        pub fn ww_text_collection(text: *mut ww_text) -> *mut ww_collection;
        pub fn ww_text_model(text: *mut ww_text) -> *mut ww_model;
        pub fn ww_text_kept(text: *const ww_text) -> *const ww_store_model;
        pub fn ww_text_add(text: *mut ww_text, rows: *const ww_text_rows) -> ww_status;
        pub fn ww_text_upsert(text: *mut ww_text, rows: *const ww_text_rows) -> ww_status;
        pub fn ww_text_add_documents(text: *mut ww_text, documents: *const ww_documents, chunks: *mut i64) -> ww_status;
        pub fn ww_text_upsert_documents(text: *mut ww_text, documents: *const ww_documents, chunks: *mut i64) -> ww_status;
        pub fn ww_text_chunks(model: *const ww_model, document: *const c_char, bytes: usize, how: *const ww_chunking, chunks: *mut ww_chunk, capacity: usize, count: *mut usize) -> ww_status;
        pub fn ww_text_search(text: *mut ww_text, query: *const ww_text_query, results: *mut *mut ww_results) -> ww_status;
        pub fn ww_sparse_from_text(text: *const c_char, how: *const ww_bm25, vector: *mut ww_sparse_room) -> ww_status;
    }
}
#[cfg(feature = "text")]
pub use text::*;

#[repr(C)]
pub struct DLManagedTensor {
    _opaque: Opaque,
}
#[repr(C)]
pub struct DLManagedTensorVersioned {
    _opaque: Opaque,
}
