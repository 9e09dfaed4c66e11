//! A double of the crate ndarray: dense arrays of any rank, in row-major order. rust/Cargo.toml says why.
use std::borrow::Cow;
use std::fmt;

#[derive(Debug)]
pub struct ShapeError;

impl fmt::Display for ShapeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the shape has another number of elements")
    }
}
impl std::error::Error for ShapeError {}

#[derive(Clone, Debug, PartialEq)]
pub struct ArrayD<T> {
    shape: Vec<usize>,
    data: Vec<T>,
}

impl<T: Clone> ArrayD<T> {
    pub fn from_shape_vec(shape: Vec<usize>, data: Vec<T>) -> Result<Self, ShapeError> {
        if shape.iter().product::<usize>() == data.len() {
            Ok(ArrayD { shape, data })
        } else {
            Err(ShapeError)
        }
    }
    pub fn view(&self) -> ArrayViewD<'_, T> {
        ArrayViewD { shape: &self.shape, data: Cow::Borrowed(&self.data) }
    }
}

#[derive(Clone, Debug)]
pub struct ArrayViewD<'a, T: Clone> {
    shape: &'a [usize],
    data: Cow<'a, [T]>,
}

impl<T: Clone> ArrayViewD<'_, T> {
    pub fn shape(&self) -> &[usize] {
        self.shape
    }
    pub fn as_standard_layout(&self) -> ArrayViewD<'_, T> {
        self.clone()
    }
    pub fn as_slice(&self) -> Option<&[T]> {
        Some(&self.data)
    }
}
