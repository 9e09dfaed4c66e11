//! Tensors: creating, reading and writing them, and views. Operations are in `operations.rs`.
use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::Path;
use std::ptr;

use warpwave_sys as sys;

use crate::device::Device;
use crate::element::{DType, Element};
use crate::error::{call, Error, Result, Status};
use crate::inside::inside;
use crate::text::{with_path, with_text};

/// Elements of one type in a shape, on a device. Results have the same bits on every device.
///
/// On a GPU operations are queued and return at once; [`Tensor::to_vec`] and [`Device::synchronize`] wait. Threads may share a
/// tensor for reading. Writing takes a [`ViewMut`], which borrows the tensor exclusively.
///
/// ```
/// use warpwave::{Device, Tensor};
///
/// let device = Device::open("cpu")?;
/// let a = Tensor::from_slice(&device, &[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let product = a.matmul(&*a.transpose(0, 1)?)?;
/// assert_eq!(product.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct Tensor {
    raw: sys::ww_tensor,
}

// SAFETY: tensor.h says that storages may be used from any thread, one thread at a time for each that is written. Writing takes
// a ViewMut, for which the tensor is borrowed mutably; all other views borrow it as well, so no thread reads meanwhile.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

impl Drop for Tensor {
    fn drop(&mut self) {
        if inside() {
            return; // leaked, as handle.rs says
        }
        // SAFETY: the struct is one that the library filled in, or empty; it is released once.
        unsafe { sys::ww_tensor_release(&mut self.raw) }
    }
}

pub(crate) const EMPTY: sys::ww_tensor = sys::ww_tensor {
    storage: ptr::null_mut(),
    layout: sys::ww_layout {
        rank: 0,
        shape: [0; sys::WW_RANK_MAX as usize],
        strides: [0; sys::WW_RANK_MAX as usize],
        offset: 0,
    },
};

/// Returns the number of elements of a shape; the library refuses an invalid shape.
fn elements_of(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |all, &size| all.checked_mul(usize::try_from(size).ok()?))
}

/// Returns the number of dimensions of a shape; the library refuses too many.
fn rank_of(shape: &[i64]) -> i32 {
    i32::try_from(shape.len()).unwrap_or(i32::MAX)
}

impl Tensor {
    /// Creates a tensor with a call that fills it in.
    #[inline]
    pub(crate) fn make(function: impl FnOnce(*mut sys::ww_tensor) -> sys::ww_status) -> Result<Self> {
        let mut made = Tensor { raw: EMPTY };
        call(|| function(&mut made.raw)).map(|()| made)
    }

    #[inline]
    pub(crate) fn raw(&self) -> *const sys::ww_tensor {
        &self.raw
    }

    /// Creates a tensor from `data`, in row-major order.
    pub fn from_slice<T: Element>(device: &Device, shape: &[i64], data: &[T]) -> Result<Self> {
        if elements_of(shape) != Some(data.len()) {
            let message = format!("a tensor of shape {shape:?} cannot be made of {} elements", data.len());
            return Err(Error::new(Status::DimensionMismatch, message));
        }
        let (dtype, rank) = (T::DTYPE.raw(), rank_of(shape));
        // SAFETY: shape has `rank` sizes and data their product in elements of this type.
        Tensor::make(|out| unsafe {
            sys::ww_tensor_from_host(device.raw(), dtype, rank, shape.as_ptr(), data.as_ptr().cast(), out)
        })
    }

    /// Creates a tensor of zeros.
    pub fn zeros(device: &Device, dtype: DType, shape: &[i64]) -> Result<Self> {
        let rank = rank_of(shape);
        // SAFETY: shape has `rank` sizes.
        Tensor::make(|out| unsafe { sys::ww_tensor_zeros(device.raw(), dtype.raw(), rank, shape.as_ptr(), out) })
    }

    /// Creates a tensor filled with `value`, converted as [`Tensor::cast`] does.
    pub fn full(device: &Device, dtype: DType, shape: &[i64], value: f64) -> Result<Self> {
        let rank = rank_of(shape);
        // SAFETY: shape has `rank` sizes.
        Tensor::make(|out| unsafe { sys::ww_tensor_full(device.raw(), dtype.raw(), rank, shape.as_ptr(), value, out) })
    }

    /// Creates `start`, `start + step`, ... up to but not including `end`.
    pub fn arange(device: &Device, dtype: DType, start: f64, end: f64, step: f64) -> Result<Self> {
        // SAFETY: numbers only.
        Tensor::make(|out| unsafe { sys::ww_tensor_arange(device.raw(), dtype.raw(), start, end, step, out) })
    }

    /// Creates uniformly distributed random floats from `low` up to `high`; [`Device::seed`] sets the seed.
    pub fn uniform(device: &Device, dtype: DType, shape: &[i64], low: f64, high: f64) -> Result<Self> {
        let rank = rank_of(shape);
        // SAFETY: shape has `rank` sizes.
        Tensor::make(|out| unsafe { sys::ww_tensor_uniform(device.raw(), dtype.raw(), rank, shape.as_ptr(), low, high, out) })
    }

    /// Creates normally distributed random floats; [`Device::seed`] sets the seed.
    pub fn normal(device: &Device, dtype: DType, shape: &[i64], mean: f64, deviation: f64) -> Result<Self> {
        let rank = rank_of(shape);
        // SAFETY: shape has `rank` sizes.
        Tensor::make(|out| unsafe {
            sys::ww_tensor_normal(device.raw(), dtype.raw(), rank, shape.as_ptr(), mean, deviation, out)
        })
    }

    /// Loads the array in a `.npy` file.
    pub fn load_npy(device: &Device, path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the path ends with a NUL and lives until the call returns.
        with_path(path.as_ref(), |path| Tensor::make(|out| unsafe { sys::ww_tensor_load_npy(device.raw(), path, out) }))
    }

    /// Loads the tensor called `name` from a `.safetensors` file.
    pub fn load_safetensors(device: &Device, path: impl AsRef<Path>, name: &str) -> Result<Self> {
        with_path(path.as_ref(), |path| {
            with_text(name, "the tensor's name", |name| {
                // SAFETY: both texts end with a NUL and live until the call returns.
                Tensor::make(|out| unsafe { sys::ww_tensor_load_safetensors(device.raw(), path, name, out) })
            })
        })
    }

    /// Returns the sizes of the dimensions.
    pub fn shape(&self) -> &[i64] {
        &self.raw.layout.shape[..self.raw.layout.rank as usize]
    }

    /// Returns the number of elements.
    pub fn elements(&self) -> usize {
        elements_of(self.shape()).unwrap_or(0)
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        // SAFETY: the tensor is there.
        let raw = unsafe { sys::ww_tensor_dtype(&self.raw) };
        DType::from_raw(raw).unwrap_or(DType::U8)
    }

    /// Returns the elements in row-major order, for any layout. Waits for queued operations. `T` must be the tensor's type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let mut data = vec![T::default(); self.elements()];
        self.read(&mut data)?;
        Ok(data)
    }

    /// Copies the elements to the caller's memory, which must have exactly their number.
    pub fn read<T: Element>(&self, data: &mut [T]) -> Result<()> {
        self.check_elements::<T>(data.len())?;
        // SAFETY: there is room for all elements, of the tensor's type.
        call(|| unsafe { sys::ww_tensor_to_host(&self.raw, data.as_mut_ptr().cast()) })
    }

    /// Returns the elements as bytes, in row-major order.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        // SAFETY: takes any number.
        let each = unsafe { sys::ww_dtype_bytes(self.dtype().raw()) };
        let mut bytes = vec![0u8; self.elements() * each];
        // SAFETY: there is room for all elements.
        call(|| unsafe { sys::ww_tensor_to_host(&self.raw, bytes.as_mut_ptr().cast()) }).map(|()| bytes)
    }

    fn check_elements<T: Element>(&self, elements: usize) -> Result<()> {
        if T::DTYPE != self.dtype() || elements != self.elements() {
            let message = format!(
                "{elements} elements of {:?} are not those of a tensor of {:?} and shape {:?}",
                T::DTYPE,
                self.dtype(),
                self.shape()
            );
            return Err(Error::new(Status::DimensionMismatch, message));
        }
        Ok(())
    }

    /// Returns a view of the whole tensor.
    pub fn view(&self) -> View<'_> {
        View { tensor: self.retained(), _of: PhantomData }
    }

    /// Returns a writable view of the whole tensor.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut { tensor: self.retained(), _of: PhantomData }
    }

    /// Returns another reference to the storage, only for views, which borrow `self`.
    fn retained(&self) -> Tensor {
        // SAFETY: the storage is there, or NULL, which is accepted.
        unsafe { sys::ww_storage_retain(self.raw.storage) };
        Tensor { raw: self.raw }
    }

    /// Returns the name of the tensor's device.
    pub fn device_id(&self) -> Result<String> {
        let mut info = sys::ww_device_info::default();
        // SAFETY: the storage keeps its device open; the struct is initialized.
        call(|| unsafe { sys::ww_device_describe(sys::ww_storage_device(self.raw.storage), &mut info) })?;
        // SAFETY: the field ends with a NUL.
        Ok(unsafe { CStr::from_ptr(info.id.as_ptr()) }.to_string_lossy().into_owned())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Tensor({:?}, {:?})", self.dtype(), self.shape())
    }
}

/// A view of a tensor, without a copy. It borrows the tensor and is used like one.
pub struct View<'a> {
    tensor: Tensor,
    _of: PhantomData<&'a Tensor>,
}

/// A writable view: it borrows the tensor exclusively, so nothing else reads it meanwhile.
///
/// ```
/// use warpwave::{DType, Device, Tensor};
///
/// let mut x = Tensor::zeros(&Device::open("cpu")?, DType::F32, &[2, 3])?;
/// x.view_mut().narrow(0, 1, 1)?.write(&[1.0f32, 2.0, 3.0])?;
/// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]);
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct ViewMut<'a> {
    tensor: Tensor,
    _of: PhantomData<&'a mut Tensor>,
}

impl Deref for View<'_> {
    type Target = Tensor;
    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

impl Deref for ViewMut<'_> {
    type Target = Tensor;
    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(out)
    }
}

impl fmt::Debug for ViewMut<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(out)
    }
}

/// Each method three times: on a borrowed tensor, and on the two kinds of views, which it replaces.
macro_rules! views {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) = $function:ident($($given:expr),*);)*) => {
        impl Tensor {
            $($(#[$doc])*
            pub fn $name(&self, $($argument: $type),*) -> Result<View<'_>> {
                self.view().$name($($argument),*)
            })*
        }
        impl<'a> View<'a> {
            $($(#[$doc])*
            pub fn $name(mut self, $($argument: $type),*) -> Result<View<'a>> {
                let x: *mut sys::ww_tensor = &mut self.tensor.raw;
                // SAFETY: the header allows the view to be the tensor itself, which is then seen that way; lists have the length
                // that is given, or that of the rank, which was checked.
                call(|| unsafe { sys::$function(x, $($given,)* x) }).map(|()| self)
            })*
        }
        impl<'a> ViewMut<'a> {
            $($(#[$doc])*
            pub fn $name(mut self, $($argument: $type),*) -> Result<ViewMut<'a>> {
                let x: *mut sys::ww_tensor = &mut self.tensor.raw;
                // SAFETY: as for View.
                call(|| unsafe { sys::$function(x, $($given,)* x) }).map(|()| self)
            })*
        }
    };
}

views! {
    /// Exchanges two dimensions. Negative ones count from the last, here and below.
    fn transpose(a: i32, b: i32) = ww_tensor_transpose(a, b);
    /// `count` elements along a dimension, starting at `first`.
    fn narrow(dim: i32, first: i64, count: i64) = ww_tensor_narrow(dim, first, count);
    /// Every step-th element from `begin` up to `end` along a dimension, as a slice in Python.
    fn slice(dim: i32, begin: i64, end: i64, step: i64) = ww_tensor_slice(dim, begin, end, step);
    /// One element along a dimension, which is removed.
    fn select(dim: i32, index: i64) = ww_tensor_select(dim, index);
    /// The elements in another shape, in which one size may be -1 to be computed. Refuses shapes that need a copy;
    /// [`Tensor::contiguous`] makes one.
    fn reshape(shape: &[i64]) = ww_tensor_reshape(rank_of(shape), shape.as_ptr());
    /// Removes a dimension of size 1.
    fn squeeze(dim: i32) = ww_tensor_squeeze(dim);
    /// Adds a dimension of size 1.
    fn unsqueeze(dim: i32) = ww_tensor_unsqueeze(dim);
}

impl Tensor {
    /// Reorders all dimensions: dimension d of the view is `dims[d]` of the tensor.
    pub fn permute(&self, dims: &[i32]) -> Result<View<'_>> {
        if dims.len() != self.shape().len() {
            let message = format!("{} dimensions in another order, but the tensor has {}", dims.len(), self.shape().len());
            return Err(Error::new(Status::DimensionMismatch, message));
        }
        let mut view = self.view();
        let x: *mut sys::ww_tensor = &mut view.tensor.raw;
        // SAFETY: as many dimensions are given as the tensor has; the view may be the tensor itself.
        call(|| unsafe { sys::ww_tensor_permute(x, dims.as_ptr(), x) }).map(|()| view)
    }

    /// Repeats the elements to a larger shape. Read-only: one element would be written at several places.
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<View<'_>> {
        let mut view = self.view();
        let x: *mut sys::ww_tensor = &mut view.tensor.raw;
        let rank = rank_of(shape);
        // SAFETY: shape has `rank` sizes; the view may be the tensor itself.
        call(|| unsafe { sys::ww_tensor_broadcast_to(x, rank, shape.as_ptr(), x) }).map(|()| view)
    }
}

impl ViewMut<'_> {
    /// Writes elements from the host, in row-major order.
    pub fn write<T: Element>(&mut self, data: &[T]) -> Result<()> {
        self.check_elements::<T>(data.len())?;
        // SAFETY: data has all elements, of the tensor's type; nothing else uses the storage.
        call(|| unsafe { sys::ww_tensor_write(&self.tensor.raw, data.as_ptr().cast()) })
    }

    /// Writes the elements of a tensor of the same shape and type.
    pub fn copy_from(&mut self, from: &Tensor) -> Result<()> {
        // SAFETY: both are there; nothing else uses what is written.
        call(|| unsafe { sys::ww_tensor_copy_strided(from.raw(), &self.tensor.raw) })
    }

    /// Sets every element to a value of the tensor's type.
    pub fn fill<T: Element>(&mut self, value: T) -> Result<()> {
        self.check_elements::<T>(self.elements())?;
        // SAFETY: the value is one of the tensor's type.
        call(|| unsafe { sys::ww_tensor_const_set(&self.tensor.raw, ptr::addr_of!(value).cast()) })
    }

    /// `x[ids[i][j]][j] = src[i][j]` for dimension 0, and so on.
    pub fn scatter(&mut self, ids: &Tensor, src: &Tensor, dim: i32) -> Result<()> {
        // SAFETY: all are there; nothing else uses what is written.
        call(|| unsafe { sys::ww_tensor_scatter(&self.tensor.raw, ids.raw(), src.raw(), dim) })
    }

    /// `x[ids[i][j]][j] += src[i][j]` for dimension 0, and so on, in the order of i.
    pub fn scatter_add(&mut self, ids: &Tensor, src: &Tensor, dim: i32) -> Result<()> {
        // SAFETY: as in scatter().
        call(|| unsafe { sys::ww_tensor_scatter_add(&self.tensor.raw, ids.raw(), src.raw(), dim) })
    }

    /// Adds the slices of `src`, in order, to the slices at the given ids.
    pub fn index_add(&mut self, ids: &Tensor, src: &Tensor, dim: i32) -> Result<()> {
        // SAFETY: as in scatter().
        call(|| unsafe { sys::ww_tensor_index_add(&self.tensor.raw, ids.raw(), src.raw(), dim) })
    }
}
