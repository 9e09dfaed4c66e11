//! An index of sparse vectors in memory.
use std::fmt;

use warpwave_sys as sys;

use crate::error::{call, number, Result};
use crate::handle::Handle;
use crate::query::Query;
use crate::results::Results;
use crate::sparse::SparseVector;

/// Sparse vectors in memory, numbered from 0, without ids and payloads; a store has them as
/// [`Rows::sparse`](crate::Rows::sparse).
///
/// ```
/// use warpwave::{Query, SparseIndex, SparseVector};
///
/// let index = SparseIndex::new()?;
/// index.add(&[SparseVector::new(&[17, 4096], &[0.5, 1.25]), SparseVector::new(&[17], &[2.0])])?;
/// let found = index.query(&Query::sparse(&[SparseVector::new(&[17], &[1.0])]).nearest(5))?;
/// assert_eq!((found.rows(), found.scores()), (&[1, 0][..], &[2.0, 0.5][..]));
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct SparseIndex(Handle<sys::ww_sparse_index>);

impl SparseIndex {
    /// Creates an empty index.
    pub fn new() -> Result<Self> {
        // SAFETY: the call writes one pointer.
        Handle::make(|index| unsafe { sys::ww_sparse_create(index) }).map(SparseIndex)
    }

    /// Adds all vectors or none, with the next numbers.
    pub fn add(&self, vectors: &[SparseVector<'_>]) -> Result<()> {
        let (raw, count) = (SparseVector::raw_list(vectors)?, number(vectors.len(), "the number of vectors")?);
        // SAFETY: the index is there, and the vectors borrow what they point to.
        call(|| unsafe { sys::ww_sparse_add(self.0.raw(), raw.as_ptr(), count) })
    }

    /// Removes a row, whose number is not used again.
    pub fn remove(&self, row: i64) -> Result<()> {
        // SAFETY: the index is there.
        call(|| unsafe { sys::ww_sparse_remove(self.0.raw(), row) })
    }

    /// Returns the number of live rows.
    pub fn len(&self) -> usize {
        // SAFETY: the index is there.
        unsafe { sys::ww_sparse_count(self.0.raw()) as usize }
    }

    /// Returns whether there are no live rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs a [`Query::sparse`], without conditions on payloads and without [`Fetch`](crate::Fetch).
    pub fn query(&self, query: &Query<'_>) -> Result<Results> {
        query.with_raw(|raw| {
            // SAFETY: the index is there, and the query until the call returns.
            Results::new(Handle::make(|results| unsafe { sys::ww_sparse_search(self.0.raw(), raw, results) })?)
        })
    }
}

impl fmt::Debug for SparseIndex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SparseIndex").field("len", &self.len()).finish()
    }
}
