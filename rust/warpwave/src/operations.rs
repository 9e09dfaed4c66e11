//! Operations on tensors. Each returns a new tensor.
use std::ptr;

use warpwave_sys as sys;

use crate::device::Device;
use crate::element::DType;
use crate::error::{number, Result};
use crate::tensor::{Tensor, EMPTY};

/// An enumeration of operations, with a method of Tensor for each.
macro_rules! operations {
    ($(#[$doc:meta])* $name:ident($raw:ident) by $function:ident$others:tt {
        $($(#[$value_doc:meta])* $value:ident = $constant:ident as $method:ident,)*
    }) => {
        c_enum! {
            $(#[$doc])*
            $name($raw) { $($(#[$value_doc])* $value = $constant,)* }
        }

        impl Tensor {
            $(operation! { [$(#[$value_doc])*] $method = $function($name::$value) of $others })*
        }
    };
}

/// A method for one operation, of one tensor or of two.
macro_rules! operation {
    ([$($doc:tt)*] $method:ident = $function:ident($value:path) of ()) => {
        $($doc)*
        pub fn $method(&self) -> Result<Tensor> {
            self.$function($value)
        }
    };
    ([$($doc:tt)*] $method:ident = $function:ident($value:path) of ($other:ident)) => {
        $($doc)*
        pub fn $method(&self, $other: &Tensor) -> Result<Tensor> {
            self.$function($value, $other)
        }
    };
}

operations! {
    /// An operation on each element.
    Unary(ww_unary) by unary() {
        /// The absolute value.
        Abs = WW_ABS as abs,
        /// The negative.
        Neg = WW_NEG as neg,
        /// 1 / x
        Recip = WW_RECIP as recip,
        /// The square.
        Sqr = WW_SQR as sqr,
        /// The square root.
        Sqrt = WW_SQRT as sqrt,
        /// 1 / sqrt(x)
        Rsqrt = WW_RSQRT as rsqrt,
        /// The maximum of x and 0.
        Relu = WW_RELU as relu,
        /// The largest integer that is not above x.
        Floor = WW_FLOOR as floor,
        /// The smallest integer that is not below x.
        Ceil = WW_CEIL as ceil,
        /// The nearest integer, halves away from zero.
        Round = WW_ROUND as round,
        /// -1, 0 or 1.
        Sign = WW_SIGN as sign,
        /// e to the power of x.
        Exp = WW_EXP as exp,
        /// exp(x) - 1
        Expm1 = WW_EXPM1 as expm1,
        /// The natural logarithm.
        Log = WW_LOG as log,
        /// log(1 + x)
        Log1p = WW_LOG1P as log1p,
        /// The sine.
        Sin = WW_SIN as sin,
        /// The cosine.
        Cos = WW_COS as cos,
        /// The hyperbolic tangent.
        Tanh = WW_TANH as tanh,
        /// The error function.
        Erf = WW_ERF as erf,
        /// 1 / (1 + exp(-x))
        Sigmoid = WW_SIGMOID as sigmoid,
        /// x sigmoid(x)
        Silu = WW_SILU as silu,
        /// gelu by its approximation with tanh.
        Gelu = WW_GELU as gelu,
        /// gelu by erf.
        GeluErf = WW_GELU_ERF as gelu_erf,
    }
}

operations! {
    /// An operation on two elements. Shapes are broadcast as NumPy does.
    Binary(ww_binary) by binary(y) {
        /// x + y
        Add = WW_ADD as add,
        /// x - y
        Sub = WW_SUB as sub,
        /// x * y
        Mul = WW_MUL as mul,
        /// x / y; integers round towards zero, and division by zero gives 0.
        Div = WW_DIV as div,
        /// The larger; NaN if either is.
        Maximum = WW_MAXIMUM as maximum,
        /// The smaller; NaN if either is.
        Minimum = WW_MINIMUM as minimum,
        /// The remainder of division towards zero.
        Rem = WW_REM as rem,
        /// x to the power of y.
        Pow = WW_POW as pow,
        /// The angle of the point (y, x).
        Atan2 = WW_ATAN2 as atan2,
    }
}

operations! {
    /// A comparison: 1 if it is true and 0 if not, as u8.
    Cmp(ww_cmp) by cmp(y) {
        /// x == y
        Eq = WW_EQ as eq_to,
        /// x != y
        Ne = WW_NE as ne_to,
        /// x < y
        Lt = WW_LT as lt,
        /// x <= y
        Le = WW_LE as le,
        /// x > y
        Gt = WW_GT as gt,
        /// x >= y
        Ge = WW_GE as ge,
    }
}

c_enum! {
    /// How dimensions are reduced to one element.
    Reduce(ww_reduce) {
        /// The sum.
        Sum = WW_REDUCE_SUM,
        /// The minimum.
        Min = WW_REDUCE_MIN,
        /// The maximum.
        Max = WW_REDUCE_MAX,
        /// The index of the first minimum, as u32.
        ArgMin = WW_REDUCE_ARGMIN,
        /// The index of the first maximum, as u32.
        ArgMax = WW_REDUCE_ARGMAX,
        /// The mean, of floats.
        Mean = WW_REDUCE_MEAN,
        /// The product.
        Prod = WW_REDUCE_PROD,
    }
}

c_enum! {
    /// How products are computed.
    Math(ww_math) {
        /// The same bits on every device.
        Canonical = WW_MATH_CANONICAL,
        /// The vendor's library and low-precision units; close to the canonical product.
        Fast = WW_MATH_FAST,
    }
}

/// Parameters of a convolution, for y and x; in one dimension the first number is used.
#[derive(Clone, Debug)]
pub struct Conv {
    /// Zeros around the image.
    pub padding: [i64; 2],
    /// Pixels from one output to the next.
    pub stride: [i64; 2],
    /// Pixels from one weight to the next.
    pub dilation: [i64; 2],
    /// Added to the end of the output of transposed convolutions.
    pub output_padding: [i64; 2],
    /// Number of groups that the channels are split into.
    pub groups: i64,
    /// Canonical or fast.
    pub math: Math,
}

impl Default for Conv {
    /// No padding, strides and dilations of 1, one group, canonical.
    fn default() -> Self {
        let raw = sys::ww_conv::default();
        Conv {
            padding: raw.padding,
            stride: raw.stride,
            dilation: raw.dilation,
            output_padding: raw.output_padding,
            groups: raw.groups,
            math: Math::Canonical,
        }
    }
}

impl Conv {
    fn raw(&self) -> sys::ww_conv {
        let mut raw = sys::ww_conv::default();
        (raw.padding, raw.stride, raw.dilation) = (self.padding, self.stride, self.dilation);
        (raw.output_padding, raw.groups, raw.math) = (self.output_padding, self.groups, self.math.raw());
        raw
    }
}

/// A window over y and x.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its size.
    pub kernel: [i64; 2],
    /// Pixels from one window to the next.
    pub stride: [i64; 2],
    /// Padding around the image, at most half of the kernel.
    pub padding: [i64; 2],
    /// Whether averages count padding as zeros.
    pub padding_counts: bool,
}

impl Pool {
    /// Adjacent windows, no padding.
    pub fn new(kernel_y: i64, kernel_x: i64) -> Self {
        let kernel = [kernel_y, kernel_x];
        Pool { kernel, stride: kernel, padding: [0, 0], padding_counts: false }
    }

    fn raw(&self) -> sys::ww_pool {
        let mut raw = sys::ww_pool::default();
        (raw.kernel, raw.stride, raw.padding) = (self.kernel, self.stride, self.padding);
        raw.padding_counts = i32::from(self.padding_counts);
        raw
    }
}

c_enum! {
    /// The precision of keys and values in attention.
    AttentionType(ww_attention_type) {
        /// Half precision.
        F16 = WW_ATTENTION_F16,
        /// Not rounded.
        F32 = WW_ATTENTION_F32,
        /// Blocks of 32 numbers with a scale.
        Q8_0 = WW_ATTENTION_Q8_0,
    }
}

/// Parameters of attention.
#[derive(Clone, Debug)]
pub struct Attention {
    /// The precision of keys and values.
    pub r#type: AttentionType,
    /// A query sees keys up to its own position.
    pub causal: bool,
    /// Causal only: a query sees only this many of the last keys; 0: all.
    pub window: i64,
    /// The position of the first query; None: the queries are the last of the keys.
    pub first_position: Option<i64>,
    /// The factor for dot products; None: 1 / sqrt(head size).
    pub scale: Option<f64>,
}

impl Default for Attention {
    /// Keys and values in f16; every query sees every key.
    fn default() -> Self {
        Attention { r#type: AttentionType::F16, causal: false, window: 0, first_position: None, scale: None }
    }
}

fn or_null(tensor: Option<&Tensor>) -> *const sys::ww_tensor {
    tensor.map_or(ptr::null(), Tensor::raw)
}

/// Methods that take tensors and numbers and return a tensor.
macro_rules! simple {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) = $function:ident($($given:expr),*);)*) => {
        impl Tensor {
            $($(#[$doc])*
            pub fn $name(&self, $($argument: $type),*) -> Result<Tensor> {
                // SAFETY: all tensors and structs are there until the call returns; the library checks all that they say.
                Tensor::make(|out| unsafe { sys::$function(self.raw(), $($given,)* out) })
            })*
        }
    };
}

simple! {
    /// Converts to another type: rounds to nearest even; floats to integers round towards zero and saturate, NaN becomes 0.
    fn cast(dtype: DType) = ww_tensor_cast(dtype.raw());
    /// Returns a dense copy.
    fn contiguous() = ww_tensor_contiguous();
    /// Returns a copy on another device. Waits.
    fn to_device(device: &Device) = ww_tensor_copy_to(device.raw());
    /// x * mul + add, fused.
    fn affine(mul: f64, add: f64) = ww_tensor_affine(mul, add);
    /// x to the power of e.
    fn powf(e: f64) = ww_tensor_powf(e);
    /// x where it is positive, alpha (exp(x) - 1) elsewhere.
    fn elu(alpha: f64) = ww_tensor_elu(alpha);
    /// `out[i][j] = x[ids[i][j]][j]` for dimension 0, and so on.
    fn gather(ids: &Tensor, dim: i32) = ww_tensor_gather(ids.raw(), dim);
    /// The slices at the given ids, in their order.
    fn index_select(ids: &Tensor, dim: i32) = ww_tensor_index_select(ids.raw(), dim);
    /// `[..., m, k]` times `[..., k, n]`, canonical or fast.
    fn matmul_with(other: &Tensor, math: Math) = ww_tensor_matmul(other.raw(), math.raw());
    /// Running sums along a dimension.
    fn cumsum(dim: i32) = ww_tensor_cumsum(dim);
    /// Softmax along a dimension.
    fn softmax(dim: i32) = ww_tensor_softmax(dim);
    /// (x - mean) / sqrt(variance + eps) * weight + bias along the last dimension.
    fn layer_norm(weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) = ww_tensor_layer_norm(or_null(weight), or_null(bias), eps);
    /// x / sqrt(mean of squares + eps) * weight along the last dimension.
    fn rms_norm(weight: Option<&Tensor>, eps: f64) = ww_tensor_rms_norm(or_null(weight), eps);
    /// Rotary embedding: rotates pairs of the last dimension, either adjacent (`interleaved`) or half its size apart.
    fn rope(cosines: &Tensor, sines: &Tensor, interleaved: bool) = ww_tensor_rope(cosines.raw(), sines.raw(), interleaved);
    /// A convolution of `[images, in, x]` with `[out, in / groups, x]`.
    fn conv1d(weights: &Tensor, how: &Conv) = ww_tensor_conv1d(weights.raw(), &how.raw());
    /// A convolution of `[images, in, y, x]` with `[out, in / groups, y, x]`.
    fn conv2d(weights: &Tensor, how: &Conv) = ww_tensor_conv2d(weights.raw(), &how.raw());
    /// A transposed convolution with `[in, out / groups, x]`.
    fn conv_transpose1d(weights: &Tensor, how: &Conv) = ww_tensor_conv_transpose1d(weights.raw(), &how.raw());
    /// A transposed convolution with `[in, out / groups, y, x]`.
    fn conv_transpose2d(weights: &Tensor, how: &Conv) = ww_tensor_conv_transpose2d(weights.raw(), &how.raw());
    /// The averages of windows of `[images, channels, y, x]`.
    fn avg_pool2d(how: &Pool) = ww_tensor_avg_pool2d(&how.raw());
    /// The maxima of windows of `[images, channels, y, x]`.
    fn max_pool2d(how: &Pool) = ww_tensor_max_pool2d(&how.raw());
    /// Resizes `[images, channels, x]` to another size, by the nearest element.
    fn upsample_nearest1d(size: i64) = ww_tensor_upsample_nearest1d(size);
    /// Resizes `[images, channels, y, x]` to other sizes, by the nearest element.
    fn upsample_nearest2d(size_y: i64, size_x: i64) = ww_tensor_upsample_nearest2d(size_y, size_x);
    /// Resizes `[images, channels, y, x]` to other sizes, interpolating between the four nearest elements.
    fn upsample_bilinear2d(size_y: i64, size_x: i64, align_corners: bool) = ww_tensor_upsample_bilinear2d(size_y, size_x, i32::from(align_corners), ptr::null());
}

impl Tensor {
    /// Applies an operation to each element.
    pub fn unary(&self, op: Unary) -> Result<Tensor> {
        // SAFETY: the tensor is there.
        Tensor::make(|out| unsafe { sys::ww_tensor_unary(op.raw(), self.raw(), out) })
    }

    /// Applies an operation to the elements of two tensors of the same type.
    pub fn binary(&self, op: Binary, y: &Tensor) -> Result<Tensor> {
        // SAFETY: the tensors are there.
        Tensor::make(|out| unsafe { sys::ww_tensor_binary(op.raw(), self.raw(), y.raw(), out) })
    }

    /// Compares the elements of two tensors of the same type; returns u8.
    pub fn cmp(&self, op: Cmp, y: &Tensor) -> Result<Tensor> {
        // SAFETY: the tensors are there.
        Tensor::make(|out| unsafe { sys::ww_tensor_cmp(op.raw(), self.raw(), y.raw(), out) })
    }

    /// Returns x where `self`, of integers, is not 0, and y elsewhere.
    pub fn choose(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        // SAFETY: the tensors are there.
        Tensor::make(|out| unsafe { sys::ww_tensor_where(self.raw(), x.raw(), y.raw(), out) })
    }

    /// Returns the matrix product in canonical order: the same bits on every device.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        self.matmul_with(other, Math::Canonical)
    }

    /// Reduces dimensions, or all of them if none is given.
    pub fn reduce(&self, op: Reduce, dims: &[i32]) -> Result<Tensor> {
        let count = number(dims.len(), "the number of dimensions")?;
        let list = if dims.is_empty() { ptr::null() } else { dims.as_ptr() };
        // SAFETY: the list has `count` dimensions, or is NULL for all.
        Tensor::make(|out| unsafe { sys::ww_tensor_reduce(op.raw(), self.raw(), list, count, out) })
    }

    /// Joins tensors, at least one, along a dimension.
    pub fn cat(tensors: &[&Tensor], dim: i32) -> Result<Tensor> {
        // SAFETY: copies of the structs, which do not own their storages; the tensors are there until the call returns.
        let raw: Vec<sys::ww_tensor> = tensors.iter().map(|tensor| unsafe { *tensor.raw() }).collect();
        // SAFETY: the list has this many tensors.
        Tensor::make(|out| unsafe { sys::ww_tensor_cat(raw.as_ptr(), raw.len(), dim, out) })
    }

    /// Sorts along the last dimension, keeping the order of equal elements. Returns the elements and their former indices
    /// (u32).
    pub fn sort(&self, descending: bool) -> Result<(Tensor, Tensor)> {
        // SAFETY: the tensor is there, and both results are empty or filled in.
        pair(|values, indices| unsafe { sys::ww_tensor_sort(self.raw(), descending, values, indices) })
    }

    /// Returns the k largest or smallest along the last dimension, best first, and their former indices (u32).
    pub fn top_k(&self, k: i64, largest: bool) -> Result<(Tensor, Tensor)> {
        // SAFETY: as in sort().
        pair(|values, indices| unsafe { sys::ww_tensor_top_k(self.raw(), k, largest, values, indices) })
    }

    /// Attention: `self` is `[queries, heads, head size]`, keys and values are `[keys, key heads, head size]`, all f32.
    pub fn attention(&self, keys: &Tensor, values: &Tensor, how: &Attention) -> Result<Tensor> {
        let mut raw = sys::ww_attention::default();
        (raw.r#type, raw.causal, raw.window) = (how.r#type.raw(), how.causal, how.window);
        raw.first_position = how.first_position.unwrap_or(-1);
        raw.scale = how.scale.unwrap_or(0.0);
        // SAFETY: the tensors are there and the struct is initialized.
        Tensor::make(|out| unsafe { sys::ww_tensor_attention(self.raw(), keys.raw(), values.raw(), &raw, out) })
    }
}

/// Makes two tensors with one call.
fn pair(function: impl FnOnce(*mut sys::ww_tensor, *mut sys::ww_tensor) -> sys::ww_status) -> Result<(Tensor, Tensor)> {
    let mut second = EMPTY;
    // The first is owned at once. A call that fails fills in neither.
    let first = Tensor::make(|first| function(first, &mut second))?;
    let second = Tensor::make(|out| {
        // SAFETY: `out` is an empty tensor, which takes over what the call gave.
        unsafe { *out = second };
        sys::WW_OK
    })?;
    Ok((first, second))
}
