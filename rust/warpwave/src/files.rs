//! Files of vectors and of tensors: .npy, .fvecs, .fbin and their families, CSV, .safetensors.
use std::ffi::{c_char, CStr};
use std::fmt;
use std::path::Path;
use std::ptr;

use warpwave_sys as sys;

use crate::device::Device;
use crate::element::DType;
use crate::error::{call, number, Error, Result, Status};
use crate::handle::Handle;
use crate::tensor::Tensor;
use crate::text::{with_path, with_text, Texts};

info! {
    /// Description of a file of vectors.
    MatrixInfo(ww_matrix_info) {
        /// Vectors.
        count rows: i64,
        /// Numbers per vector.
        count dim: i64,
    }
}

/// An open file of vectors; the file name extension decides the format. Any number of threads may read it.
///
/// ```
/// use warpwave::{write_matrix, Collection, Device, Matrix, Metric, Rows};
///
/// # let path = std::env::temp_dir().join(format!("warpwave-doc-{}.npy", std::process::id()));
/// write_matrix(&path, &[1.0, 0.0, 0.0, 1.0], 2)?;
/// let file = Matrix::open(&path)?;
/// let (rows, dim) = (file.info()?.rows(), file.info()?.dim() as usize);
/// let collection = Collection::new(&Device::open("cpu")?, dim, Metric::L2)?;
/// collection.add(&Rows::new(dim, &file.read(0, rows)?))?;
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct Matrix(Handle<sys::ww_matrix>);

impl Matrix {
    /// Opens a file. Refuses an unknown extension and malformed content.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the path ends with a NUL and lives until the call returns.
        with_path(path.as_ref(), |path| Handle::make(|matrix| unsafe { sys::ww_matrix_open(path, matrix) })).map(Matrix)
    }

    /// Opens a CSV file with ids in the column with this name or this number, from 1.
    pub fn open_csv(path: impl AsRef<Path>, id_column: &str) -> Result<Self> {
        with_path(path.as_ref(), |path| {
            with_text(id_column, "the column", |id_column| {
                let options = sys::ww_matrix_options { id_column, ..Default::default() };
                // SAFETY: the path and the options live until the call returns.
                Handle::make(|matrix| unsafe { sys::ww_matrix_open_with(path, &options, matrix) })
            })
        })
        .map(Matrix)
    }

    /// Describes the file.
    pub fn info(&self) -> Result<MatrixInfo> {
        let mut info = sys::ww_matrix_info::default();
        // SAFETY: the file is open and the struct is initialized.
        call(|| unsafe { sys::ww_matrix_describe(self.0.raw(), &mut info) }).map(|()| MatrixInfo(info))
    }

    /// Reads `count` vectors starting at number `first`, converted to f32, one after the other.
    pub fn read(&self, first: i64, count: i64) -> Result<Vec<f32>> {
        let mut values = vec![0.0; self.room(first, count)?];
        // SAFETY: there is room for count x dim floats.
        call(|| unsafe { sys::ww_matrix_read_f32(self.0.raw(), first, count, values.as_mut_ptr()) }).map(|()| values)
    }

    /// Reads rows of a file of integers, such as the true neighbours in an `.ivecs`.
    pub fn read_i32(&self, first: i64, count: i64) -> Result<Vec<i32>> {
        let mut values = vec![0; self.room(first, count)?];
        // SAFETY: there is room for count x dim integers.
        call(|| unsafe { sys::ww_matrix_read_i32(self.0.raw(), first, count, values.as_mut_ptr()) }).map(|()| values)
    }

    /// Returns how many numbers these rows have; refuses rows that do not exist before allocating memory.
    fn room(&self, first: i64, count: i64) -> Result<usize> {
        let info = self.info()?;
        if first < 0 || count < 0 || first.checked_add(count).map_or(true, |end| end > info.rows()) {
            let message = format!("{count} rows from row {first} on, of a file with {} rows", info.rows());
            return Err(Error::new(Status::OutOfRange, message));
        }
        number(count * info.dim(), "the number of values")
    }

    /// Returns the id of a row of a CSV file with ids.
    pub fn id(&self, row: i64) -> Option<&str> {
        // SAFETY: the file is open; any number may be given.
        let id = unsafe { sys::ww_matrix_id(self.0.raw(), row) };
        if id.is_null() {
            return None;
        }
        // SAFETY: the text ends with a NUL and is there until the file closes.
        unsafe { CStr::from_ptr(id) }.to_str().ok()
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => info.fmt(out),
            Err(error) => write!(out, "Matrix({error})"),
        }
    }
}

/// Writes vectors of `dim` numbers to a `.npy` or `.fbin` file. Replaces an existing file only once the new one is complete.
pub fn write_matrix(path: impl AsRef<Path>, vectors: &[f32], dim: usize) -> Result<()> {
    if dim == 0 || vectors.len() % dim != 0 {
        let message = format!("{} numbers are not vectors of dimension {dim}", vectors.len());
        return Err(Error::new(Status::DimensionMismatch, message));
    }
    let (rows, dim) = (number(vectors.len() / dim, "the number of rows")?, number(dim, "the dimension")?);
    // SAFETY: there are rows x dim floats, and the path lives until the call returns.
    with_path(path.as_ref(), |path| call(|| unsafe { sys::ww_matrix_write_f32(path, vectors.as_ptr(), rows, dim) }))
}

/// An open `.safetensors` file. Any number of threads may read it.
pub struct Safetensors(Handle<sys::ww_safetensors>);

impl Safetensors {
    /// Opens a file and checks its whole header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the path ends with a NUL and lives until the call returns.
        with_path(path.as_ref(), |path| Handle::make(|file| unsafe { sys::ww_safetensors_open(path, file) })).map(Safetensors)
    }

    /// Returns the number of tensors.
    pub fn len(&self) -> usize {
        // SAFETY: the file is open.
        unsafe { sys::ww_safetensors_count(self.0.raw()) as usize }
    }

    /// Returns whether the file has no tensors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names and shapes of the tensors, in the order of their data.
    pub fn tensors(&self) -> impl Iterator<Item = Result<(&str, Vec<i64>)>> + '_ {
        (0..self.len() as i64).map(move |index| {
            let mut info = sys::ww_array_info::default();
            // SAFETY: the file is open and the struct is initialized.
            call(|| unsafe { sys::ww_safetensors_at(self.0.raw(), index, &mut info) })?;
            // SAFETY: the name ends with a NUL and is there until the file closes.
            let name = unsafe { CStr::from_ptr(info.name) }.to_str().unwrap_or("");
            Ok((name, info.shape[..info.rank as usize].to_vec()))
        })
    }

    /// Loads a tensor by name.
    pub fn load(&self, name: &str, device: &Device) -> Result<Tensor> {
        let mut index = 0;
        with_text(name, "the tensor's name", |name| {
            // SAFETY: the file is open, the name lives until the call returns.
            call(|| unsafe { sys::ww_safetensors_find(self.0.raw(), name, &mut index) })
        })?;
        // SAFETY: the file and the device are open.
        Tensor::make(|out| unsafe { sys::ww_safetensors_load(self.0.raw(), index, device.raw(), out) })
    }

    /// Returns a metadata text by key.
    pub fn metadata(&self, key: &str) -> Result<&str> {
        let mut value: *const c_char = ptr::null();
        with_text(key, "the key", |key| {
            // SAFETY: the file is open, the key lives until the call returns.
            call(|| unsafe { sys::ww_safetensors_metadata(self.0.raw(), key, &mut value) })
        })?;
        // SAFETY: the text ends with a NUL and is there until the file closes.
        Ok(unsafe { CStr::from_ptr(value) }.to_str().unwrap_or(""))
    }
}

impl fmt::Debug for Safetensors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Safetensors({} tensors)", self.len())
    }
}

fn element_of(dtype: DType) -> sys::ww_element {
    match dtype {
        DType::U8 => sys::WW_ELEMENT_U8,
        DType::U32 => sys::WW_ELEMENT_U32,
        DType::I16 => sys::WW_ELEMENT_I16,
        DType::I32 => sys::WW_ELEMENT_I32,
        DType::I64 => sys::WW_ELEMENT_I64,
        DType::BF16 => sys::WW_ELEMENT_BF16,
        DType::F16 => sys::WW_ELEMENT_F16,
        DType::F32 => sys::WW_ELEMENT_F32,
        DType::F64 => sys::WW_ELEMENT_F64,
        DType::F8E4M3 => sys::WW_ELEMENT_F8E4M3,
        DType::I8 => sys::WW_ELEMENT_I8,
    }
}

/// Writes tensors by name, and metadata texts by key, to a `.safetensors` file. Replaces an existing file only once the new one
/// is complete.
pub fn write_safetensors(path: impl AsRef<Path>, tensors: &[(&str, &Tensor)], metadata: &[(&str, &str)]) -> Result<()> {
    let names = Texts::new(tensors.iter().map(|(name, _)| Some(name)));
    let names = (names.pointers("a tensor's name")?, names);
    let texts = Texts::new(metadata.iter().flat_map(|(key, value)| [Some(key), Some(value)]).chain([None]));
    let texts = (texts.pointers("metadata")?, texts);
    let data: Result<Vec<Vec<u8>>> = tensors.iter().map(|(_, tensor)| tensor.to_bytes()).collect();
    let data = data?;
    let arrays: Vec<sys::ww_array> = (tensors.iter().zip(&names.0).zip(&data))
        .map(|(((_, tensor), &name), bytes)| {
            let mut array =
                sys::ww_array { name, element: element_of(tensor.dtype()), data: bytes.as_ptr().cast(), ..Default::default() };
            array.rank = tensor.shape().len() as i32;
            array.shape[..tensor.shape().len()].copy_from_slice(tensor.shape());
            array
        })
        .collect();
    let count = number(arrays.len(), "the number of tensors")?;
    let listed = if metadata.is_empty() { ptr::null() } else { texts.0.as_ptr() };
    with_path(path.as_ref(), |path| {
        // SAFETY: there are `count` arrays with all their elements, and keys and values in turn that end with NULL.
        call(|| unsafe { sys::ww_safetensors_write(path, arrays.as_ptr(), count, listed) })
    })
}
