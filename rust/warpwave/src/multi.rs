//! Multivectors: several vectors of one dimension, compared by MaxSim.
use std::slice;

use warpwave_sys as sys;

use crate::config::Metric;
use crate::error::{call, number, Error, Result, Status};

/// Several vectors of one dimension, one after the other. One without vectors is the same as none.
///
/// ```
/// use warpwave::{Metric, Multivector};
///
/// let (row, query) = (Multivector::new(2, &[1.0, 0.0, 0.0, 1.0]), Multivector::new(2, &[3.0, 4.0]));
/// assert_eq!(query.score(Metric::Dot, &row)?, 4.0);
/// # Ok::<(), warpwave::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Multivector<'a> {
    dim: usize,
    vectors: &'a [f32],
}

impl<'a> Multivector<'a> {
    /// No multivector.
    pub const NONE: Multivector<'static> = Multivector { dim: 1, vectors: &[] };

    /// Vectors of `dim` numbers each; calls refuse other lengths.
    pub fn new(dim: usize, vectors: &'a [f32]) -> Self {
        Multivector { dim, vectors }
    }

    /// Returns the dimension.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the numbers of all vectors.
    pub fn vectors(&self) -> &'a [f32] {
        self.vectors
    }

    /// Returns the score of a query, `self`, and a row: the sum of the greatest similarities, with the bits of a search.
    pub fn score(&self, metric: Metric, row: &Multivector<'_>) -> Result<f32> {
        let (query, row, mut score) = (self.raw()?, row.raw()?, 0.0);
        // SAFETY: both borrow what they point to.
        call(|| unsafe { sys::ww_multi_score(metric.raw(), &query, &row, &mut score) })?;
        Ok(score)
    }

    /// Returns C's form, whose pointer is as good as the borrowed slice.
    fn raw(&self) -> Result<sys::ww_multivector> {
        if self.dim == 0 || self.vectors.len() % self.dim != 0 {
            let message = format!("a multivector of dimension {} has {} numbers", self.dim, self.vectors.len());
            return Err(Error::new(Status::InvalidArgument, message));
        }
        let count = number(self.vectors.len() / self.dim, "the number of vectors")?;
        Ok(sys::ww_multivector { count, dim: number(self.dim, "the dimension")?, vectors: self.vectors.as_ptr() })
    }

    /// Returns the multivectors in C's form.
    pub(crate) fn raw_list(vectors: &[Multivector<'_>]) -> Result<Vec<sys::ww_multivector>> {
        vectors.iter().map(Multivector::raw).collect()
    }

    /// # Safety
    /// The pointer is valid for `'a`.
    pub(crate) unsafe fn of_raw(raw: &sys::ww_multivector) -> Self {
        let dim = raw.dim as usize;
        // SAFETY: as the caller promises.
        Multivector { dim, vectors: unsafe { slice::from_raw_parts(raw.vectors, raw.count as usize * dim) } }
    }
}
