//! Results of queries and gets.
use std::ffi::{c_char, CStr};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{BitOr, Range};
use std::slice;

use warpwave_sys as sys;

use crate::error::{call, Result};
use crate::handle::Handle;
use crate::multi::Multivector;
use crate::sparse::SparseVector;

/// What to copy into results besides rows, handles and scores. Combine with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetch(pub(crate) u32);

impl Fetch {
    /// Rows, handles and scores only.
    pub const NONE: Fetch = Fetch(0);
    /// The rows' ids.
    pub const IDS: Fetch = Fetch(sys::WW_FETCH_IDS as u32);
    /// Their payloads.
    pub const PAYLOADS: Fetch = Fetch(sys::WW_FETCH_PAYLOADS as u32);
    /// Their vectors.
    pub const VECTORS: Fetch = Fetch(sys::WW_FETCH_VECTORS as u32);
    /// The texts of a store's rows.
    pub const TEXTS: Fetch = Fetch(sys::WW_FETCH_TEXTS as u32);
    /// The multivectors of a store's rows.
    pub const MULTI: Fetch = Fetch(sys::WW_FETCH_MULTI as u32);
    /// The sparse vectors of a store's rows.
    pub const SPARSE: Fetch = Fetch(sys::WW_FETCH_SPARSE as u32);
}

impl BitOr for Fetch {
    type Output = Fetch;
    fn bitor(self, other: Fetch) -> Fetch {
        Fetch(self.0 | other.0)
    }
}

/// What a query found: a snapshot that does not change with the collection. Any number of threads may read it.
///
/// ```
/// use warpwave::{Collection, Device, Fetch, Metric, Query, Rows};
///
/// let collection = Collection::new(&Device::open("cpu")?, 2, Metric::Cosine)?;
/// collection.add(&Rows::new(2, &[1.0, 0.0, 0.0, 1.0]).ids(&["east", "north"]))?;
/// let results = collection.query(&Query::new(&[0.9, 0.1]).nearest(2).fetch(Fetch::IDS))?;
/// let names: Vec<_> = results.hits().filter_map(|hit| hit.id()).collect();
/// assert_eq!(names, ["east", "north"]);
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct Results {
    columns: sys::ww_results_columns, // points into what the handle owns
    handle: Handle<sys::ww_results>,
}

// SAFETY: the columns are addresses of memory that the handle owns and nobody writes to; results.h says that any number of threads
// may read results.
unsafe impl Send for Results {}
// SAFETY: as above.
unsafe impl Sync for Results {}

impl Results {
    pub(crate) fn new(handle: Handle<sys::ww_results>) -> Result<Self> {
        let mut columns = sys::ww_results_columns::default();
        // SAFETY: the results are there and the struct is initialized.
        call(|| unsafe { sys::ww_results_describe(handle.raw(), &mut columns) })?;
        Ok(Results { columns, handle })
    }

    pub(crate) fn raw(&self) -> *const sys::ww_results {
        self.handle.raw()
    }

    /// Returns the number of queries.
    pub fn query_count(&self) -> usize {
        self.columns.query_count as usize
    }

    /// Returns the hits of the first query, best first; equal scores are ordered by row. Empty if there is no query.
    pub fn hits(&self) -> Hits<'_> {
        self.hits_of(0)
    }

    /// Returns the hits of query number `query`, best first; empty if there is no such query.
    pub fn hits_of(&self, query: usize) -> Hits<'_> {
        Hits { results: self, range: self.range(query) }
    }

    /// Returns the hits of each query in turn.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Hits<'_>> + '_ {
        (0..self.query_count()).map(|query| self.hits_of(query))
    }

    /// Returns how many rows a range search found for a query; its hits are the best of them. Otherwise, the number of hits.
    pub fn total(&self, query: usize) -> usize {
        let totals = self.column(self.columns.totals, self.query_count());
        totals.get(query).map_or(self.range(query).len(), |&total| total as usize)
    }

    /// Returns how many of a query's first hits are certainly those of an exact search: all for an exact query, maybe fewer
    /// with [`Query::nprobe`](crate::Query::nprobe).
    pub fn proven(&self, query: usize) -> usize {
        let proven = self.column(self.columns.proven, self.query_count());
        proven.get(query).map_or(self.range(query).len(), |&hits| hits as usize)
    }

    /// Returns the row numbers of all hits of all queries.
    pub fn rows(&self) -> &[i64] {
        self.column(self.columns.rows, self.columns.hit_count as usize)
    }

    /// Returns the handles of all hits of all queries.
    pub fn handles(&self) -> &[i64] {
        self.column(self.columns.handles, self.columns.hit_count as usize)
    }

    /// Returns the scores of all hits of all queries.
    pub fn scores(&self) -> &[f32] {
        self.column(self.columns.scores, self.columns.hit_count as usize)
    }

    /// Returns the vectors of all hits of all queries, one after the other; empty if they were not fetched.
    pub fn vectors(&self) -> &[f32] {
        self.column(self.columns.vectors, self.columns.hit_count as usize * self.dim())
    }

    /// Returns how many numbers each vector has.
    pub fn dim(&self) -> usize {
        self.columns.dim as usize
    }

    fn range(&self, query: usize) -> Range<usize> {
        let starts = self.column(self.columns.starts, self.query_count() + 1);
        match starts.get(query..query.saturating_add(2)) {
            Some(ends) => ends[0] as usize..ends[1] as usize,
            None => 0..0,
        }
    }

    /// Returns a column of this many entries; empty if there is none.
    fn column<T>(&self, first: *const T, count: usize) -> &[T] {
        if first.is_null() {
            return &[];
        }
        // SAFETY: results.h says how many entries each column has, and that they are there and unchanged as long as the results.
        unsafe { slice::from_raw_parts(first, count) }
    }

    /// Returns the text at the offset that a column has for a hit.
    fn text(&self, places: *const i64, hit: usize) -> Option<&CStr> {
        let place = *self.column(places, self.columns.hit_count as usize).get(hit)?;
        let text: &[c_char] = self.column(self.columns.text, self.columns.text_bytes as usize);
        let text = text.get(usize::try_from(place).ok()?..)?;
        // SAFETY: texts are contiguous, each with its NUL, within text_bytes.
        Some(unsafe { CStr::from_ptr(text.as_ptr()) })
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

/// An iterator over the hits of one query.
#[derive(Clone)]
pub struct Hits<'a> {
    results: &'a Results,
    range: Range<usize>,
}

impl<'a> Hits<'a> {
    /// Returns hit number `index` of the remaining ones.
    pub fn get(&self, index: usize) -> Option<Hit<'a>> {
        self.range.clone().nth(index).map(|index| Hit { results: self.results, index })
    }
}

impl<'a> Iterator for Hits<'a> {
    type Item = Hit<'a>;

    #[inline]
    fn next(&mut self) -> Option<Hit<'a>> {
        self.range.next().map(|index| Hit { results: self.results, index })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl<'a> DoubleEndedIterator for Hits<'a> {
    fn next_back(&mut self) -> Option<Hit<'a>> {
        self.range.next_back().map(|index| Hit { results: self.results, index })
    }
}

impl ExactSizeIterator for Hits<'_> {}
impl FusedIterator for Hits<'_> {}

impl fmt::Debug for Hits<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.clone()).finish()
    }
}

/// A hit's position in one of the fused lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The rank, from 1.
    pub rank: usize,
    /// The score in that list.
    pub score: f32,
}

/// One hit.
#[derive(Clone, Copy)]
pub struct Hit<'a> {
    results: &'a Results,
    index: usize, // among the hits of all queries
}

impl<'a> Hit<'a> {
    /// Returns the row number when the query ran; -1 if a get did not find the row. Compact renumbers rows.
    pub fn row(&self) -> i64 {
        self.results.rows()[self.index]
    }

    /// Returns the handle, which identifies the row permanently; -1 if a get did not find the row.
    pub fn handle(&self) -> i64 {
        self.results.handles()[self.index]
    }

    /// Returns the score; 0 for a get.
    pub fn score(&self) -> f32 {
        self.results.scores()[self.index]
    }

    /// Returns the id if it was fetched, the row exists, and the id is UTF-8 (only a damaged file has other ids).
    pub fn id(&self) -> Option<&'a str> {
        self.results.text(self.results.columns.ids, self.index)?.to_str().ok()
    }

    /// Returns the payload, a JSON text, if it was fetched and the row has one.
    pub fn payload(&self) -> Option<&'a str> {
        self.results.text(self.results.columns.payloads, self.index)?.to_str().ok()
    }

    /// Returns the text if it was fetched and the row has one.
    pub fn text(&self) -> Option<&'a str> {
        self.results.text(self.results.columns.texts, self.index)?.to_str().ok()
    }

    /// Returns the multivector if it was fetched and the row has one.
    pub fn multi(&self) -> Option<Multivector<'a>> {
        let mut raw = sys::ww_multivector { count: 0, dim: 0, vectors: std::ptr::null() };
        let (query, hit) = self.place();
        // SAFETY: the results are there.
        let found = unsafe { sys::ww_results_multi(self.results.raw(), query, hit, &mut raw) };
        // SAFETY: the numbers belong to the results, which do not change as long as they are borrowed.
        (found != 0).then(|| unsafe { Multivector::of_raw(&raw) })
    }

    /// The number of the query, and of the hit within it.
    fn place(&self) -> (i64, i64) {
        let starts = self.results.column(self.results.columns.starts, self.results.query_count() + 1);
        let query = starts.partition_point(|&start| start <= self.index as i64) - 1; // starts begin with 0
        (query as i64, self.index as i64 - starts[query])
    }

    /// Returns the sparse vector if it was fetched and the row has one.
    pub fn sparse(&self) -> Option<SparseVector<'a>> {
        let mut raw = sys::ww_sparse_vector { count: 0, indices: std::ptr::null(), values: std::ptr::null() };
        let (query, hit) = self.place();
        // SAFETY: the results are there.
        let found = unsafe { sys::ww_results_sparse(self.results.raw(), query, hit, &mut raw) };
        // SAFETY: the numbers belong to the results, which do not change as long as they are borrowed.
        (found != 0).then(|| unsafe { SparseVector::of_raw(&raw) })
    }

    /// Returns how a fused search found the hit: by vector, or in the first results, and by words, or in the second. None if
    /// the results were not fused.
    pub fn parts(&self) -> Option<[Option<Part>; 2]> {
        let parts = self.results.column(self.results.columns.parts, self.results.columns.hit_count as usize).get(self.index)?;
        let part = |which: usize| {
            let (rank, score) = (parts.ranks[which], parts.scores[which]);
            (rank > 0).then_some(Part { rank: rank as usize, score })
        };
        Some([part(0), part(1)])
    }

    /// Returns the vector if it was fetched and the row exists.
    pub fn vector(&self) -> Option<&'a [f32]> {
        let dim = self.results.columns.dim as usize;
        let first = self.index * dim;
        if self.row() < 0 || self.results.columns.vectors.is_null() {
            return None;
        }
        self.results.vectors().get(first..first + dim)
    }
}

impl fmt::Debug for Hit<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Hit");
        out.field("row", &self.row()).field("score", &self.score());
        if let Some(id) = self.id() {
            out.field("id", &id);
        }
        out.finish()
    }
}
