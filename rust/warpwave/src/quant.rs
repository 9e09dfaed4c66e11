//! Quantized matrices: weights in ggml's block formats.
use std::fmt;
use std::ptr;

use warpwave_sys as sys;

use crate::device::Device;
use crate::element::DType;
use crate::error::{call, number, Error, Result, Status};
use crate::handle::Handle;
use crate::operations::Math;
use crate::tensor::Tensor;
use crate::text::with_text;

c_enum! {
    /// How weights are stored; the names are ggml's.
    QuantType(ww_quant_type) {
        /// f32
        F32 = WW_QUANT_F32,
        /// f16
        F16 = WW_QUANT_F16,
        /// bf16
        BF16 = WW_QUANT_BF16,
        /// q4_0
        Q4_0 = WW_QUANT_Q4_0,
        /// q4_1
        Q4_1 = WW_QUANT_Q4_1,
        /// q5_0
        Q5_0 = WW_QUANT_Q5_0,
        /// q5_1
        Q5_1 = WW_QUANT_Q5_1,
        /// q8_0
        Q8_0 = WW_QUANT_Q8_0,
        /// q8_1, for activations
        Q8_1 = WW_QUANT_Q8_1,
        /// q2_K
        Q2K = WW_QUANT_Q2_K,
        /// q3_K
        Q3K = WW_QUANT_Q3_K,
        /// q4_K
        Q4K = WW_QUANT_Q4_K,
        /// q5_K
        Q5K = WW_QUANT_Q5_K,
        /// q6_K
        Q6K = WW_QUANT_Q6_K,
        /// q8_K, for activations
        Q8K = WW_QUANT_Q8_K,
        /// iq4_nl
        Iq4Nl = WW_QUANT_IQ4_NL,
        /// iq4_xs
        Iq4Xs = WW_QUANT_IQ4_XS,
        /// mxfp4
        Mxfp4 = WW_QUANT_MXFP4,
    }
}

names!(QuantType by ww_quant_name);

impl QuantType {
    /// Finds a type by name, in upper or lower case.
    pub fn find(name: &str) -> Result<Self> {
        let mut raw = 0;
        // SAFETY: the text ends with a NUL and lives until the call returns.
        with_text(name, "the type's name", |name| call(|| unsafe { sys::ww_quant_find(name, &mut raw) }))?;
        QuantType::from_raw(raw).ok_or_else(|| Error::new(Status::Unsupported, format!("{name} is newer than this crate")))
    }

    /// Returns the bytes of a row of `cols` numbers. Refuses a number that is not a multiple of the type's block.
    pub fn row_bytes(self, cols: i64) -> Result<i64> {
        let mut bytes = 0;
        // SAFETY: numbers only.
        call(|| unsafe { sys::ww_quant_row_bytes(self.raw(), cols, &mut bytes) }).map(|()| bytes)
    }
}

c_enum! {
    /// How a quantized product treats activations.
    Activations(ww_activations) {
        /// Quantized to 8 bits: fast, slightly inexact.
        Coded = WW_ACTIVATIONS_CODED,
        /// They stay f32, and the weights are decoded.
        Float = WW_ACTIVATIONS_FLOAT,
    }
}

info! {
    /// Description of a quantized matrix.
    QuantizedInfo(ww_quant_info) {
        /// How weights are stored.
        value r#type: QuantType,
        /// Rows: the outputs of a product.
        count rows: i64,
        /// Columns: its inputs.
        count cols: i64,
        /// The bytes of a row.
        count row_bytes: i64,
        /// The bytes of all rows.
        count bytes: i64,
        /// The device's name.
        text device,
        /// Whether all weights were finite when they were loaded.
        flag finite,
    }
}

/// A quantized matrix on a device. It does not change once it is made, so any number of threads may use it.
///
/// ```
/// use warpwave::{Device, QuantType, Quantized, Tensor};
///
/// let device = Device::open("cpu")?;
/// let weights: Vec<f32> = (0..64).map(|i| i as f32 / 64.0).collect();
/// let matrix = Quantized::from_f32(&device, QuantType::Q8_0, &weights, 2, 32)?;
/// let x = Tensor::from_slice(&device, &[1, 32], &[1.0f32; 32])?;
/// let y = matrix.matmul(&x)?;
/// assert_eq!(y.shape(), [1, 2]);
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct Quantized(Handle<sys::ww_quant>);

/// How [`Quantized::multiply`] multiplies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Product<'a> {
    raw: sys::ww_quant_product,
    experts: Option<&'a [i64]>,
    expert_ids: Option<&'a Tensor>,
    norm: Option<(&'a Tensor, f64)>,
    up: Option<&'a Tensor>,
}

impl<'a> Product<'a> {
    /// Canonical, synchronous, with coded activations.
    pub fn new() -> Self {
        Self::default()
    }

    /// On a GPU, returns before the product is done. If activations cannot be coded, the results are NaN.
    pub fn queued(mut self) -> Self {
        self.raw.queued = 1;
        self
    }

    /// Canonical or fast.
    pub fn math(mut self, math: Math) -> Self {
        self.raw.math = math.raw();
        self
    }

    /// Coded or float.
    pub fn activations(mut self, activations: Activations) -> Self {
        self.raw.activations = activations.raw();
        self
    }

    /// The matrix consists of experts of `rows` rows each; row i of x is multiplied by expert `experts[i]`.
    pub fn experts(mut self, rows: i64, experts: &'a [i64]) -> Self {
        self.raw.expert_rows = rows;
        self.experts = Some(experts);
        self
    }

    /// Like `experts`, with the numbers on the matrix's device: u8, u32 or i64.
    pub fn expert_ids(mut self, rows: i64, experts: &'a Tensor) -> Self {
        self.raw.expert_rows = rows;
        self.expert_ids = Some(experts);
        self
    }

    /// Applies an rms norm to x first.
    pub fn norm(mut self, weight: &'a Tensor, eps: f64) -> Self {
        self.norm = Some((weight, eps));
        self
    }

    /// Multiplies silu(x) * up.
    pub fn up(mut self, up: &'a Tensor) -> Self {
        self.up = Some(up);
        self
    }

    fn raw(&self) -> sys::ww_quant_product {
        let mut raw = self.raw;
        raw.experts = self.experts.map_or(ptr::null(), <[i64]>::as_ptr);
        raw.expert_ids = self.expert_ids.map_or(ptr::null(), Tensor::raw);
        if let Some((weight, eps)) = self.norm {
            (raw.norm_weight, raw.norm_eps) = (weight.raw(), eps);
        }
        raw.up = self.up.map_or(ptr::null(), Tensor::raw);
        raw
    }
}

/// Returns rows and columns of a list, if it has that many elements.
fn check_size(values: usize, rows: i64, cols: i64) -> Result<()> {
    let wanted = usize::try_from(rows).ok().zip(usize::try_from(cols).ok()).and_then(|(rows, cols)| rows.checked_mul(cols));
    if wanted != Some(values) {
        let message = format!("{values} numbers are not {rows} rows of {cols}");
        return Err(Error::new(Status::DimensionMismatch, message));
    }
    Ok(())
}

impl Quantized {
    /// Quantizes floats on the host, row after row.
    pub fn from_f32(device: &Device, r#type: QuantType, values: &[f32], rows: i64, cols: i64) -> Result<Self> {
        check_size(values.len(), rows, cols)?;
        // SAFETY: there are rows x cols floats.
        Handle::make(|made| unsafe { sys::ww_quant_from_f32(device.raw(), r#type.raw(), values.as_ptr(), rows, cols, 0, made) })
            .map(Quantized)
    }

    /// Quantizes a tensor of shape `[..., cols]` on its device.
    pub fn from_tensor(r#type: QuantType, x: &Tensor) -> Result<Self> {
        // SAFETY: the tensor is there.
        Handle::make(|made| unsafe { sys::ww_quant_from_tensor(r#type.raw(), x.raw(), made) }).map(Quantized)
    }

    /// Creates a matrix from blocks that are already quantized.
    pub fn from_blocks(device: &Device, r#type: QuantType, blocks: &[u8], rows: i64, cols: i64) -> Result<Self> {
        // SAFETY: the library receives the number of bytes, and refuses another number than it needs.
        Handle::make(|made| unsafe {
            sys::ww_quant_load(device.raw(), r#type.raw(), blocks.as_ptr().cast(), blocks.len(), rows, cols, made)
        })
        .map(Quantized)
    }

    pub(crate) fn adopt(pointer: *mut sys::ww_quant) -> Option<Self> {
        Handle::adopt(pointer).map(Quantized)
    }

    pub(crate) fn make(function: impl FnOnce(*mut *mut sys::ww_quant) -> sys::ww_status) -> Result<Self> {
        Handle::make(function).map(Quantized)
    }

    /// Returns a matrix of `count` rows starting at row `first`, which shares the memory.
    pub fn view(&self, first: i64, count: i64) -> Result<Self> {
        // SAFETY: the matrix is there; either may be destroyed first.
        Handle::make(|made| unsafe { sys::ww_quant_view(self.0.raw(), first, count, made) }).map(Quantized)
    }

    /// Describes the matrix.
    pub fn info(&self) -> Result<QuantizedInfo> {
        let mut info = sys::ww_quant_info::default();
        // SAFETY: the matrix is there and the struct is initialized.
        call(|| unsafe { sys::ww_quant_describe(self.0.raw(), &mut info) }).map(|()| QuantizedInfo(info))
    }

    /// Reads rows as f32.
    pub fn read_f32(&self, first: i64, count: i64) -> Result<Vec<f32>> {
        let mut values = vec![0.0; self.room(first, count, |info| info.cols())?];
        // SAFETY: there is room for count x cols floats.
        call(|| unsafe { sys::ww_quant_read_f32(self.0.raw(), first, count, values.as_mut_ptr()) }).map(|()| values)
    }

    /// Reads rows in their quantized form.
    pub fn read_blocks(&self, first: i64, count: i64) -> Result<Vec<u8>> {
        let mut blocks = vec![0u8; self.room(first, count, |info| info.row_bytes())?];
        // SAFETY: there is room for count x row_bytes bytes.
        call(|| unsafe { sys::ww_quant_read_blocks(self.0.raw(), first, count, blocks.as_mut_ptr().cast()) }).map(|()| blocks)
    }

    /// Returns how much memory rows need; refuses rows that do not exist before allocating any.
    fn room(&self, first: i64, count: i64, each: impl Fn(&QuantizedInfo) -> i64) -> Result<usize> {
        let info = self.info()?;
        if first < 0 || count < 0 || first.checked_add(count).map_or(true, |end| end > info.rows()) {
            let message = format!("rows {first} to {first} + {count} of a matrix with {} rows", info.rows());
            return Err(Error::new(Status::OutOfRange, message));
        }
        number(count * each(&info), "the room for the rows")
    }

    /// Looks rows up as f32, one after the other.
    pub fn get_rows(&self, ids: &[i64]) -> Result<Vec<f32>> {
        let count = number(ids.len(), "the number of ids")?;
        let mut values = vec![0.0; ids.len() * self.info()?.cols() as usize];
        // SAFETY: there is room for count x cols floats.
        call(|| unsafe { sys::ww_quant_get_rows(self.0.raw(), ids.as_ptr(), count, values.as_mut_ptr()) }).map(|()| values)
    }

    /// Dequantizes rows to a tensor of f32, f16 or bf16.
    pub fn dequantize(&self, first: i64, count: i64, dtype: DType) -> Result<Tensor> {
        // SAFETY: the matrix is there.
        Tensor::make(|out| unsafe { sys::ww_quant_dequantize(self.0.raw(), first, count, dtype.raw(), out) })
    }

    /// Looks rows up by ids on the device: returns a tensor of the ids' shape followed by cols.
    pub fn rows(&self, ids: &Tensor, dtype: DType) -> Result<Tensor> {
        // SAFETY: both are there.
        Tensor::make(|out| unsafe { sys::ww_quant_rows(self.0.raw(), ids.raw(), dtype.raw(), out) })
    }

    /// Multiplies x, of shape `[..., cols]`, by each row: f32 of shape `[..., rows]`, the same bits on every device.
    pub fn matmul(&self, x: &Tensor) -> Result<Tensor> {
        // SAFETY: both are there.
        Tensor::make(|out| unsafe { sys::ww_quant_matmul(self.0.raw(), x.raw(), out) })
    }

    /// Multiplies with options.
    pub fn multiply(&self, x: &Tensor, product: &Product<'_>) -> Result<Tensor> {
        if let Some(experts) = product.experts {
            let rows = x.elements() / x.shape().last().map_or(1, |&cols| cols.max(1) as usize);
            if experts.len() != rows {
                let message = format!("{} experts for {rows} rows of x; each needs one", experts.len());
                return Err(Error::new(Status::DimensionMismatch, message));
            }
        }
        let raw = product.raw();
        // SAFETY: all that the options name is there; experts are as many as x has rows.
        Tensor::make(|out| unsafe { sys::ww_quant_multiply(self.0.raw(), x.raw(), &raw, out) })
    }

    /// Multiplies activations that are already coded, as q8_1 or q8_K.
    pub fn multiply_coded(&self, activations: &Quantized, product: &Product<'_>) -> Result<Tensor> {
        if product.experts.is_some() {
            return Err(Error::new(
                Status::Unsupported,
                "coded activations need expert ids on the device, not experts on the host",
            ));
        }
        let raw = product.raw();
        // SAFETY: all that the options name is there.
        Tensor::make(|out| unsafe { sys::ww_quant_multiply_coded(self.0.raw(), activations.0.raw(), &raw, out) })
    }
}

impl fmt::Debug for Quantized {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => info.fmt(out),
            Err(error) => write!(out, "Quantized({error})"),
        }
    }
}
