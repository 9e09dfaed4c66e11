//! Conversion between tensors and ndarray's arrays: the feature `ndarray`.
use ndarray::{ArrayD, ArrayViewD};

use crate::device::Device;
use crate::element::Element;
use crate::error::{number, Error, Result, Status};
use crate::tensor::Tensor;

impl Tensor {
    /// Creates a tensor from an array in any memory order.
    pub fn from_array<T: Element>(device: &Device, array: &ArrayViewD<'_, T>) -> Result<Self> {
        let shape: Result<Vec<i64>> = array.shape().iter().map(|&size| number(size, "a size")).collect();
        let dense = array.as_standard_layout();
        let data =
            dense.as_slice().ok_or_else(|| Error::new(Status::Internal, "an array in standard layout is not a slice"))?;
        Tensor::from_slice(device, &shape?, data)
    }

    /// Returns the elements as an array. Waits for queued operations.
    pub fn to_array<T: Element>(&self) -> Result<ArrayD<T>> {
        let shape: Vec<usize> = self.shape().iter().map(|&size| size as usize).collect();
        ArrayD::from_shape_vec(shape, self.to_vec()?).map_err(|error| Error::new(Status::Internal, error.to_string()))
    }
}
