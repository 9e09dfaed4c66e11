//! GGUF files: models with their metadata.
use std::ffi::{c_char, CStr};
use std::fmt;
use std::path::Path;
use std::ptr;
use std::slice;

use warpwave_sys as sys;

use crate::callback::{with_progress, Progress};
use crate::device::Device;
use crate::error::{call, failed, number, refuse_inside, Error, Result, Status};
use crate::handle::Handle;
use crate::quant::{QuantType, Quantized};
use crate::text::{with_path, with_text};

info! {
    /// Description of a GGUF file.
    GgufInfo(ww_gguf_info) {
        /// 2 or 3.
        count version: i32,
        /// Of tensors in the file.
        count alignment: i32,
        /// Keys of metadata.
        count keys: i64,
        /// Tensors in all files.
        count tensors: i64,
        /// 1, or more for a split model.
        count files: i64,
        /// Bytes of all tensors.
        count data_bytes: i64,
    }
}

/// An open GGUF file. It does not change, so any number of threads may read it. Loaded matrices stay valid when it closes.
///
/// ```no_run
/// use warpwave::{Device, Gguf};
///
/// let file = Gguf::open("model.gguf")?;
/// println!("{}", file.text("general.architecture")?);
/// for tensor in file.tensors() {
///     let tensor = tensor?;
///     println!("{} {:?} {:?}", tensor.name(), tensor.shape(), tensor.quant_type());
/// }
/// let matrix = file.load(file.find_tensor("token_embd.weight")?, &Device::auto()?, None)?;
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct Gguf(Handle<sys::ww_gguf>);

/// A tensor of a file: its name, shape and type.
pub struct GgufTensor<'a> {
    raw: sys::ww_gguf_tensor,
    file: &'a Gguf,
    index: i64,
}

impl<'a> GgufTensor<'a> {
    /// Returns the name.
    pub fn name(&self) -> &'a str {
        // SAFETY: the name is in the file's memory, with a NUL behind it, until the file closes.
        unsafe { CStr::from_ptr(self.raw.name) }.to_str().unwrap_or("")
    }

    /// Returns the index in the file.
    pub fn index(&self) -> i64 {
        self.index
    }

    /// Returns the sizes; the first is the row length, which varies fastest.
    pub fn shape(&self) -> &[i64] {
        &self.raw.shape[..self.raw.rank as usize]
    }

    /// Returns how weights are stored; None for types that cannot be loaded as a matrix.
    pub fn quant_type(&self) -> Option<QuantType> {
        QuantType::from_raw(self.raw.r#type)
    }

    /// Returns the file's number for the type.
    pub fn raw_type(&self) -> i32 {
        self.raw.r#type
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> i64 {
        self.raw.bytes
    }

    /// Returns the bytes in memory; the first call reads them.
    pub fn data(&self) -> Result<&'a [u8]> {
        refuse_inside()?;
        // SAFETY: the file is open and the number is one of its tensors.
        let data = unsafe { sys::ww_gguf_view(self.file.0.raw(), self.index) };
        if data.is_null() {
            return Err(failed());
        }
        // SAFETY: the tensor has this many bytes, which are there and unchanged until the file closes.
        Ok(unsafe { slice::from_raw_parts(data.cast(), self.raw.bytes as usize) })
    }
}

impl Gguf {
    /// Opens a file, or the first file of a split model, and checks everything except the tensors' data.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the path ends with a NUL and lives until the call returns.
        with_path(path.as_ref(), |path| Handle::make(|file| unsafe { sys::ww_gguf_open(path, file) })).map(Gguf)
    }

    /// Describes the file.
    pub fn info(&self) -> Result<GgufInfo> {
        let mut info = sys::ww_gguf_info::default();
        // SAFETY: the file is open and the struct is initialized.
        call(|| unsafe { sys::ww_gguf_describe(self.0.raw(), &mut info) }).map(|()| GgufInfo(info))
    }

    /// Returns the metadata keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = Result<&str>> + '_ {
        let count = self.info().map_or(0, |info| info.keys());
        (0..count).map(move |index| {
            let mut value = sys::ww_gguf_value::default();
            // SAFETY: the file is open and the struct is initialized.
            call(|| unsafe { sys::ww_gguf_value_at(self.0.raw(), index, &mut value) })?;
            // SAFETY: the key is in the file's memory, with a NUL behind it, until the file closes.
            Ok(unsafe { CStr::from_ptr(value.key) }.to_str().unwrap_or(""))
        })
    }

    /// Returns the tensors, in order.
    pub fn tensors(&self) -> impl Iterator<Item = Result<GgufTensor<'_>>> + '_ {
        let count = self.info().map_or(0, |info| info.tensors());
        (0..count).map(move |index| self.tensor(index))
    }

    /// Returns tensor number `index`.
    pub fn tensor(&self, index: i64) -> Result<GgufTensor<'_>> {
        let mut raw = sys::ww_gguf_tensor::default();
        // SAFETY: the file is open and the struct is initialized.
        call(|| unsafe { sys::ww_gguf_tensor_at(self.0.raw(), index, &mut raw) })?;
        Ok(GgufTensor { raw, file: self, index })
    }

    /// Finds a tensor by name; [`Status::NotFound`](crate::Status::NotFound) if there is none.
    pub fn find_tensor(&self, name: &str) -> Result<i64> {
        // SAFETY: in all of these the file is open and the key lives until the call returns.
        self.by_key(name, 0, |name, index| unsafe { sys::ww_gguf_find_tensor(self.0.raw(), name, index) })
    }

    fn by_key<T>(&self, key: &str, mut value: T, function: impl FnOnce(*const c_char, *mut T) -> sys::ww_status) -> Result<T> {
        with_text(key, "the key", |key| call(|| function(key, &mut value)))?;
        Ok(value)
    }

    /// Returns a metadata number. Here and below, the value is exact or the call fails.
    pub fn u64(&self, key: &str) -> Result<u64> {
        // SAFETY: as in find_tensor().
        self.by_key(key, 0, |key, value| unsafe { sys::ww_gguf_u64(self.0.raw(), key, value) })
    }

    /// Returns a signed number.
    pub fn i64(&self, key: &str) -> Result<i64> {
        // SAFETY: as in find_tensor().
        self.by_key(key, 0, |key, value| unsafe { sys::ww_gguf_i64(self.0.raw(), key, value) })
    }

    /// Returns a number as a float.
    pub fn f64(&self, key: &str) -> Result<f64> {
        // SAFETY: as in find_tensor().
        self.by_key(key, 0.0, |key, value| unsafe { sys::ww_gguf_f64(self.0.raw(), key, value) })
    }

    /// Returns a boolean.
    pub fn bool(&self, key: &str) -> Result<bool> {
        // SAFETY: as in find_tensor().
        Ok(self.by_key(key, 0, |key, value| unsafe { sys::ww_gguf_bool(self.0.raw(), key, value) })? != 0)
    }

    /// Returns a text in the file's memory.
    pub fn text(&self, key: &str) -> Result<&str> {
        let mut bytes = 0;
        // SAFETY: as in find_tensor().
        let text =
            self.by_key(key, ptr::null(), |key, text| unsafe { sys::ww_gguf_text(self.0.raw(), key, text, &mut bytes) })?;
        self.span(text, bytes, key)
    }

    fn span(&self, text: *const c_char, bytes: usize, key: &str) -> Result<&str> {
        if bytes == 0 {
            return Ok("");
        }
        // SAFETY: the text is in the file's memory and has this many bytes, until the file closes.
        let text = unsafe { slice::from_raw_parts(text.cast(), bytes) };
        std::str::from_utf8(text).map_err(|_| Error::new(Status::Unsupported, format!("{key} is not UTF-8")))
    }

    /// Returns an array of texts in the file's memory.
    pub fn texts(&self, key: &str) -> Result<Vec<&str>> {
        let empty = sys::ww_gguf_span { text: ptr::null(), bytes: 0 };
        // SAFETY: as in find_tensor(); there is room for `capacity` entries.
        let spans = self.array(key, empty, |key, values, capacity, count| unsafe {
            sys::ww_gguf_texts(self.0.raw(), key, values, capacity, count)
        })?;
        spans.into_iter().map(|span| self.span(span.text, span.bytes, key)).collect()
    }

    /// Returns an array of integers.
    pub fn i64s(&self, key: &str) -> Result<Vec<i64>> {
        // SAFETY: as in texts().
        self.array(key, 0, |key, values, capacity, count| unsafe {
            sys::ww_gguf_i64s(self.0.raw(), key, values, capacity, count)
        })
    }

    /// Returns an array of floats.
    pub fn f64s(&self, key: &str) -> Result<Vec<f64>> {
        // SAFETY: as in texts().
        self.array(key, 0.0, |key, values, capacity, count| unsafe {
            sys::ww_gguf_f64s(self.0.raw(), key, values, capacity, count)
        })
    }

    fn array<T: Clone>(
        &self,
        key: &str,
        zero: T,
        function: impl Fn(*const c_char, *mut T, i64, *mut i64) -> sys::ww_status,
    ) -> Result<Vec<T>> {
        with_text(key, "the key", |key| {
            let mut count = 0;
            call(|| function(key, ptr::null_mut(), 0, &mut count))?;
            let mut values = vec![zero; number(count, "the length of the array")?];
            call(|| function(key, values.as_mut_ptr(), count, &mut count))?;
            Ok(values)
        })
    }

    /// Loads a tensor to a device as a matrix. `progress` counts bytes.
    pub fn load(&self, index: i64, device: &Device, progress: Option<Progress<'_>>) -> Result<Quantized> {
        with_progress(progress, |told, user| {
            // SAFETY: the file and the device are open.
            Quantized::make(|made| unsafe { sys::ww_gguf_load(self.0.raw(), index, device.raw(), told, user, made) })
        })
    }

    /// Loads tensors of the same type and number of columns as one matrix, with their rows one after the other.
    pub fn load_joined(&self, indices: &[i64], device: &Device, progress: Option<Progress<'_>>) -> Result<Quantized> {
        let count = number(indices.len(), "the number of tensors")?;
        with_progress(progress, |told, user| {
            // SAFETY: the file and the device are open; there are `count` numbers.
            Quantized::make(|made| unsafe {
                sys::ww_gguf_load_joined(self.0.raw(), indices.as_ptr(), count, device.raw(), told, user, made)
            })
        })
    }

    /// Loads all tensors; None for types that cannot be a matrix.
    pub fn load_all(&self, device: &Device, progress: Option<Progress<'_>>) -> Result<Vec<Option<Quantized>>> {
        let mut pointers = vec![ptr::null_mut(); self.info()?.tensors() as usize];
        with_progress(progress, |told, user| {
            // SAFETY: the file and the device are open; there is room for a pointer for each tensor, and on failure none is given.
            call(|| unsafe { sys::ww_gguf_load_all(self.0.raw(), device.raw(), told, user, pointers.as_mut_ptr()) })
        })?;
        Ok(pointers.into_iter().map(Quantized::adopt).collect())
    }
}

impl fmt::Debug for Gguf {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => info.fmt(out),
            Err(error) => write!(out, "Gguf({error})"),
        }
    }
}

impl fmt::Debug for GgufTensor<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "GgufTensor({:?}, {:?}, {:?})", self.name(), self.shape(), self.quant_type())
    }
}

/// A metadata value to write.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum GgufValue<'a> {
    /// u32
    U32(u32),
    /// i32
    I32(i32),
    /// u64
    U64(u64),
    /// i64
    I64(i64),
    /// f32
    F32(f32),
    /// f64
    F64(f64),
    /// bool
    Bool(bool),
    /// A text.
    Text(&'a str),
    /// An array of texts.
    Texts(&'a [&'a str]),
    /// An array of i32.
    I32s(&'a [i32]),
    /// An array of f32.
    F32s(&'a [f32]),
}

impl GgufValue<'_> {
    /// Returns kind, kind of elements, count and bytes, as in the file.
    fn encoded(&self) -> (sys::ww_gguf_kind, sys::ww_gguf_kind, usize, Vec<u8>) {
        let one = |kind, bytes: &[u8]| (kind, kind, 1, bytes.to_vec());
        let array = |kind, count, bytes| (sys::WW_GGUF_ARRAY, kind, count, bytes);
        match *self {
            GgufValue::U32(value) => one(sys::WW_GGUF_U32, &value.to_le_bytes()),
            GgufValue::I32(value) => one(sys::WW_GGUF_I32, &value.to_le_bytes()),
            GgufValue::U64(value) => one(sys::WW_GGUF_U64, &value.to_le_bytes()),
            GgufValue::I64(value) => one(sys::WW_GGUF_I64, &value.to_le_bytes()),
            GgufValue::F32(value) => one(sys::WW_GGUF_F32, &value.to_le_bytes()),
            GgufValue::F64(value) => one(sys::WW_GGUF_F64, &value.to_le_bytes()),
            GgufValue::Bool(value) => one(sys::WW_GGUF_BOOL, &[u8::from(value)]),
            GgufValue::Text(text) => (sys::WW_GGUF_STRING, sys::WW_GGUF_STRING, text.len(), text.as_bytes().to_vec()),
            GgufValue::I32s(list) => array(sys::WW_GGUF_I32, list.len(), list.iter().flat_map(|x| x.to_le_bytes()).collect()),
            GgufValue::F32s(list) => array(sys::WW_GGUF_F32, list.len(), list.iter().flat_map(|x| x.to_le_bytes()).collect()),
            GgufValue::Texts(list) => {
                let mut bytes = Vec::new();
                for text in list {
                    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                    bytes.extend_from_slice(text.as_bytes());
                }
                array(sys::WW_GGUF_STRING, list.len(), bytes)
            }
        }
    }
}

/// Writes a GGUF file: first the metadata and the list of tensors, then [`GgufWriter::open`], then their data in that order,
/// then [`GgufWriter::finish`]. Until then the path has no file, or the old one.
pub struct GgufWriter(Handle<sys::ww_gguf_writer>);

impl GgufWriter {
    /// Creates a writer.
    pub fn new() -> Result<Self> {
        // SAFETY: gives a writer.
        Handle::make(|writer| unsafe { sys::ww_gguf_writer_create(writer) }).map(GgufWriter)
    }

    /// Adds a value.
    pub fn value(&mut self, key: &str, value: GgufValue<'_>) -> Result<()> {
        let (kind, element, count, bytes) = value.encoded();
        with_text(key, "the key", |key| {
            let mut raw = sys::ww_gguf_value::default();
            (raw.key, raw.kind, raw.element) = (key, kind, element);
            raw.count = number(count, "the length of the value")?;
            (raw.data, raw.data_bytes) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: the writer is there, and the key and the bytes until the call returns, which copies them.
            call(|| unsafe { sys::ww_gguf_writer_value(self.0.raw(), &raw) })
        })
    }

    /// Declares a tensor. The first size is the row length.
    pub fn tensor(&mut self, name: &str, r#type: QuantType, shape: &[i64]) -> Result<()> {
        with_text(name, "the tensor's name", |name| {
            let mut raw = sys::ww_gguf_tensor::default();
            raw.name = name;
            raw.r#type = r#type.raw();
            raw.rank = number(shape.len(), "the rank")?;
            for (size, &given) in raw.shape.iter_mut().zip(shape) {
                *size = given;
            }
            // SAFETY: the writer is there, and the name until the call returns; a rank above the maximum is refused.
            call(|| unsafe { sys::ww_gguf_writer_tensor(self.0.raw(), &raw) })
        })
    }

    /// Starts the file.
    pub fn open(&mut self, path: impl AsRef<Path>) -> Result<()> {
        // SAFETY: the writer is there, and the path until the call returns.
        with_path(path.as_ref(), |path| call(|| unsafe { sys::ww_gguf_writer_open(self.0.raw(), path) }))
    }

    /// Appends tensor data, in pieces of any size.
    pub fn data(&mut self, bytes: &[u8]) -> Result<()> {
        // SAFETY: the writer is there, and this many bytes.
        call(|| unsafe { sys::ww_gguf_writer_data(self.0.raw(), bytes.as_ptr().cast(), bytes.len()) })
    }

    /// Moves the finished file to its path. Refuses if data is missing.
    pub fn finish(self) -> Result<()> {
        // SAFETY: the writer is there; it is freed in either case.
        call(|| unsafe { sys::ww_gguf_writer_finish(self.0.raw()) })
    }
}

impl fmt::Debug for GgufWriter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("GgufWriter")
    }
}
