//! Sparse vectors: a few indices with a value each.
use std::slice;

use warpwave_sys as sys;

use crate::error::{call, number, Error, Result, Status};

/// A sparse vector: indices in any order, each at most once, with a value each. The vectors of results ascend. A vector without
/// indices is the same as none.
///
/// ```
/// use warpwave::SparseVector;
///
/// let (row, query) = (SparseVector::new(&[17, 4096], &[0.5, 1.25]), SparseVector::new(&[17], &[2.0]));
/// assert_eq!(row.dot(&query)?, 1.0);
/// # Ok::<(), warpwave::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SparseVector<'a> {
    indices: &'a [u32],
    values: &'a [f32],
}

impl<'a> SparseVector<'a> {
    /// No vector.
    pub const NONE: SparseVector<'static> = SparseVector { indices: &[], values: &[] };

    /// A vector of as many indices as values; calls refuse others.
    pub fn new(indices: &'a [u32], values: &'a [f32]) -> Self {
        SparseVector { indices, values }
    }

    /// Returns the indices.
    pub fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// Returns the value of each index.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// Returns the dot product, with the bits of a search.
    pub fn dot(&self, other: &SparseVector<'_>) -> Result<f32> {
        let (a, b, mut score) = (self.raw()?, other.raw()?, 0.0);
        // SAFETY: both vectors borrow what they point to.
        call(|| unsafe { sys::ww_sparse_score(&a, &b, &mut score, std::ptr::null_mut()) })?;
        Ok(score)
    }

    /// Returns C's form, whose pointers are as good as the borrowed slices.
    fn raw(&self) -> Result<sys::ww_sparse_vector> {
        if self.indices.len() != self.values.len() {
            let message = format!("a sparse vector has {} indices and {} values", self.indices.len(), self.values.len());
            return Err(Error::new(Status::InvalidArgument, message));
        }
        let count = number(self.indices.len(), "the number of indices")?;
        Ok(sys::ww_sparse_vector { count, indices: self.indices.as_ptr(), values: self.values.as_ptr() })
    }

    /// Returns the vectors in C's form.
    pub(crate) fn raw_list(vectors: &[SparseVector<'_>]) -> Result<Vec<sys::ww_sparse_vector>> {
        vectors.iter().map(SparseVector::raw).collect()
    }

    /// # Safety
    /// The vector's pointers are valid for `'a`.
    pub(crate) unsafe fn of_raw(raw: &sys::ww_sparse_vector) -> Self {
        let count = raw.count as usize;
        // SAFETY: as the caller promises.
        unsafe {
            SparseVector {
                indices: slice::from_raw_parts(raw.indices, count),
                values: slice::from_raw_parts(raw.values, count),
            }
        }
    }
}

c_enum! {
    /// What the values of a sparse query are multiplied by.
    SparseModifier(ww_sparse_modifier) {
        /// Nothing.
        Plain = WW_SPARSE_PLAIN,
        /// The inverse document frequency of the index among the live rows that have a sparse vector, which BM25 needs.
        Idf = WW_SPARSE_IDF,
    }
}
