//! Queries: the description of a search.
use std::ffi::c_char;
use std::ptr;

use warpwave_sys as sys;

use crate::error::{number, Error, Result, Status};
use crate::handle::Handle;
use crate::multi::Multivector;
use crate::ranking::Fuse;
use crate::results::Fetch;
use crate::sparse::{SparseModifier, SparseVector};
use crate::tensor::Tensor;
use crate::text::Texts;

/// A value for a parameter of [`Query::filter_sql`]: it is bound, never pasted into the text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A text.
    Text(String),
    /// A list, as the text of a JSON array, for `IN`: `payload->>'$.lang' IN :langs`.
    List(String),
}

macro_rules! value_from {
    ($($type:ty => $value:ident),*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Value::$value(value.into())
            }
        })*
    };
}
value_from!(i64 => Integer, i32 => Integer, u32 => Integer, f64 => Real, f32 => Real, &str => Text, String => Text);

/// The rows that a search may find, by row number: bit r admits row r.
///
/// ```
/// let mut mask = warpwave::Mask::new(100);
/// mask.set(3, true);
/// assert!(mask.get(3) && !mask.get(4));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    words: Vec<u64>,
    rows: usize,
}

impl Mask {
    /// Creates a mask over `rows` rows ([`CollectionInfo::mask_rows`](crate::CollectionInfo::mask_rows) of the collection) that
    /// admits none.
    pub fn new(rows: usize) -> Self {
        Mask { words: vec![0; rows.div_ceil(64)], rows }
    }

    /// Admits or excludes a row. Rows beyond the mask are never admitted, and setting them has no effect.
    pub fn set(&mut self, row: usize, admitted: bool) {
        if row < self.rows {
            let bit = 1u64 << (row % 64);
            let word = &mut self.words[row / 64];
            *word = if admitted { *word | bit } else { *word & !bit };
        }
    }

    /// Returns whether a row is admitted.
    pub fn get(&self, row: usize) -> bool {
        row < self.rows && self.words[row / 64] >> (row % 64) & 1 == 1
    }
}

impl FromIterator<bool> for Mask {
    /// Creates a mask from one boolean per row, in order.
    fn from_iter<I: IntoIterator<Item = bool>>(answers: I) -> Self {
        let answers: Vec<bool> = answers.into_iter().collect();
        let mut mask = Mask::new(answers.len());
        for (row, admitted) in answers.into_iter().enumerate() {
            mask.set(row, admitted);
        }
        mask
    }
}

/// Conditions on payloads, shared by queries and selections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions<'a> {
    pub(crate) filter: Option<String>,
    pub(crate) filter_sql: Option<&'a str>,
    pub(crate) parameters: Vec<(String, Value)>,
}

/// The conditions in C's form.
pub(crate) struct RawConditions {
    pub(crate) filter: *const sys::ww_filter,
    pub(crate) filter_sql: *const c_char,
    pub(crate) parameters: *const sys::ww_parameter,
    pub(crate) parameter_count: i64,
}

impl Conditions<'_> {
    /// Makes a call with pointers that are valid until it returns.
    #[inline]
    pub(crate) fn with_raw<R>(&self, function: impl FnOnce(RawConditions) -> Result<R>) -> Result<R> {
        if self.filter.is_none() && self.filter_sql.is_none() && self.parameters.is_empty() {
            let (filter, filter_sql) = (ptr::null(), ptr::null());
            return function(RawConditions { filter, filter_sql, parameters: ptr::null(), parameter_count: 0 });
        }
        let texts = Texts::new([self.filter.as_deref(), self.filter_sql]);
        let pointers = texts.pointers("a filter")?;
        let filter = match self.filter {
            // SAFETY: the text ends with a NUL and is there.
            Some(_) => Some(Handle::make(|filter| unsafe { sys::ww_filter_read(pointers[0], filter) })?),
            None => None,
        };
        let names = Texts::new(self.parameters.iter().map(|(name, _)| Some(name)));
        let values = Texts::new(self.parameters.iter().map(|(_, value)| match value {
            Value::Text(text) | Value::List(text) => Some(text),
            _ => None,
        }));
        let parameters: Vec<sys::ww_parameter> = (self.parameters.iter())
            .zip(names.pointers("a parameter's name")?)
            .zip(values.pointers("a parameter's text")?)
            .map(|(((_, value), name), text)| parameter(value, name, text))
            .collect();
        let parameter_count = number(parameters.len(), "the number of parameters")?;
        let parameters = parameters.as_slice();
        function(RawConditions {
            filter: filter.as_ref().map_or(ptr::null(), |filter| filter.raw().cast_const()),
            filter_sql: pointers[1],
            parameters: parameters.as_ptr(),
            parameter_count,
        })
    }
}

#[derive(Clone, Copy)]
enum Vectors<'a> {
    Host(&'a [f32], usize),
    Tensor(&'a Tensor),
    None(usize),
}

/// A search by words.
#[derive(Clone)]
struct Words {
    texts: Texts,
    mode: sys::ww_match_mode,
    fuse: Option<Fuse>,
    candidates: usize,
}

/// A search: vectors, what to find for each, which rows to search, and what to copy. By default it finds the 10 nearest.
///
/// ```
/// use warpwave::{Fetch, Query};
///
/// let query = Query::new(&[0.9, 0.1])
///     .nearest(5)
///     .filter(r#"{"year": {"$gt": 2000}}"#)
///     .fetch(Fetch::IDS | Fetch::PAYLOADS);
/// # let _ = query;
/// ```
#[derive(Clone)]
pub struct Query<'a> {
    vectors: Vectors<'a>,
    mode: sys::ww_query_mode,
    k: usize,
    bound: f32,
    limit: usize,
    mask: Option<&'a Mask>,
    conditions: Conditions<'a>,
    fetch: Fetch,
    nprobe: usize,
    recall: f32,
    words: Option<Words>,
    sparse: Option<(&'a [SparseVector<'a>], SparseModifier)>,
    multi: Option<&'a [Multivector<'a>]>,
}

impl<'a> Query<'a> {
    fn of(vectors: Vectors<'a>) -> Self {
        Query {
            vectors,
            mode: sys::WW_QUERY_NEAREST,
            k: 10,
            bound: 0.0,
            limit: 0,
            mask: None,
            conditions: Conditions::default(),
            fetch: Fetch::NONE,
            nprobe: 0,
            recall: 0.0,
            words: None,
            sparse: None,
            multi: None,
        }
    }

    /// A query without vectors: the options of a [`TextQuery`](crate::TextQuery).
    #[cfg(feature = "text")]
    pub fn without_vectors() -> Self {
        Query::of(Vectors::None(0))
    }

    /// One query vector.
    pub fn new(vector: &'a [f32]) -> Self {
        Query::of(Vectors::Host(vector, 1))
    }

    /// `count` query vectors of the same length, one after the other.
    pub fn batch(vectors: &'a [f32], count: usize) -> Self {
        Query::of(Vectors::Host(vectors, count))
    }

    /// The rows of a tensor of shape `[queries, dim]` or `[dim]`. On the collection's device they are used in place.
    pub fn tensor(vectors: &'a Tensor) -> Self {
        Query::of(Vectors::Tensor(vectors))
    }

    /// Queries by words only, one text each, in a collection of a store whose rows have texts ([`Rows::texts`](crate::Rows::texts)).
    /// Scores are those of BM25.
    pub fn words<T: AsRef<str>>(texts: &[T]) -> Self {
        let words = Words { texts: Texts::of(texts), mode: sys::WW_MATCH_TEXT, fuse: None, candidates: 0 };
        Query { words: Some(words), ..Query::of(Vectors::None(texts.len())) }
    }

    /// Queries by multivectors, in a collection of a store whose rows have them ([`Rows::multi`](crate::Rows::multi)): the score is
    /// the sum of the greatest similarities.
    pub fn multi(vectors: &'a [Multivector<'a>]) -> Self {
        Query { multi: Some(vectors), ..Query::of(Vectors::None(vectors.len())) }
    }

    /// Queries by sparse vectors, in a collection of a store whose rows have them ([`Rows::sparse`](crate::Rows::sparse)).
    /// Scores are dot products; so is the bound of [`Query::within`].
    pub fn sparse(vectors: &'a [SparseVector<'a>]) -> Self {
        Query::sparse_with(vectors, SparseModifier::Plain)
    }

    /// Queries by sparse vectors whose values are multiplied first.
    pub fn sparse_with(vectors: &'a [SparseVector<'a>], modifier: SparseModifier) -> Self {
        Query { sparse: Some((vectors, modifier)), ..Query::of(Vectors::None(vectors.len())) }
    }

    /// Also finds rows by words: one text per query. The best of both are fused into one list by rank, and
    /// [`Hit::parts`](crate::Hit::parts) has the rank and score in each.
    pub fn hybrid<T: AsRef<str>>(self, texts: &[T]) -> Self {
        self.hybrid_with(texts, Fuse::default(), 0)
    }

    /// Finds rows by vectors and words with another fusion, using this many hits of each part (0: 100, or k if that is more).
    /// The limit of the fusion is k.
    pub fn hybrid_with<T: AsRef<str>>(mut self, texts: &[T], fuse: Fuse, candidates: usize) -> Self {
        self.words = Some(Words { texts: Texts::of(texts), mode: sys::WW_MATCH_HYBRID, fuse: Some(fuse), candidates });
        self
    }

    /// Reads only the rows of this many lists of the collection's index ([`Collection::build_ivf`](crate::Collection::build_ivf)):
    /// faster, and it may miss a neighbour. [`Results::proven`](crate::Results::proven) says how many hits are certainly right.
    /// 0: exact.
    pub fn nprobe(mut self, lists: usize) -> Self {
        self.nprobe = lists;
        self
    }

    /// Reads as many lists as this recall needs, more than 0 and at most 1, after
    /// [`Collection::calibrate`](crate::Collection::calibrate). 0: no recall requested.
    pub fn recall(mut self, recall: f32) -> Self {
        self.recall = recall;
        self
    }

    /// Finds the `k` nearest rows of each query, at most 16384.
    pub fn nearest(mut self, k: usize) -> Self {
        (self.mode, self.k, self.bound, self.limit) = (sys::WW_QUERY_NEAREST, k, 0.0, 0);
        self
    }

    /// Finds all rows within a bound of each query: for l2 rows at most this far away, for cosine and dot rows with at least
    /// this score. Returns the best `limit` as hits; [`Results::total`](crate::Results::total) counts all of them.
    pub fn within(mut self, bound: f32, limit: usize) -> Self {
        (self.mode, self.k, self.bound, self.limit) = (sys::WW_QUERY_RANGE, 0, bound, limit);
        self
    }

    /// Finds only rows that the mask admits.
    pub fn mask(mut self, mask: &'a Mask) -> Self {
        self.mask = Some(mask);
        self
    }

    conditions!('a);

    /// Chooses what to copy of each hit into the results.
    pub fn fetch(mut self, what: Fetch) -> Self {
        self.fetch = what;
        self
    }

    /// Returns the number of results per query of [`Collection::search`](crate::Collection::search).
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// Makes a call with the query in C's form, whose pointers are valid until the call returns.
    #[inline]
    pub(crate) fn with_raw<R>(&self, function: impl FnOnce(&mut sys::ww_query) -> Result<R>) -> Result<R> {
        let mut raw = sys::ww_query::default();
        match self.vectors {
            Vectors::Host(vectors, count) => {
                if count == 0 || vectors.len() % count != 0 {
                    return Err(Error::new(
                        Status::DimensionMismatch,
                        format!("{} numbers are not {count} queries of one length", vectors.len()),
                    ));
                }
                raw.queries = vectors.as_ptr();
                raw.query_count = number(count, "the number of queries")?;
                raw.dim = number(vectors.len() / count, "the dimension")?;
            }
            Vectors::Tensor(tensor) => raw.query_tensor = tensor.raw(),
            Vectors::None(count) => raw.query_count = number(count, "the number of queries")?,
        }
        raw.nprobe = number(self.nprobe, "nprobe")?;
        raw.recall = self.recall;
        raw.mode = self.mode;
        raw.k = number(self.k, "k")?;
        raw.bound = self.bound;
        raw.limit = number(self.limit, "the limit")?;
        if let Some(mask) = self.mask {
            raw.mask = mask.words.as_ptr();
            raw.mask_rows = number(mask.rows, "the number of rows of the mask")?;
        }
        raw.fetch = self.fetch.0;
        let multivectors = Multivector::raw_list(self.multi.unwrap_or_default())?;
        let multi = self.multi.map(|_| sys::ww_multi_query { vectors: multivectors.as_ptr(), ..Default::default() });
        raw.multi = multi.as_ref().map_or(ptr::null(), |multi| multi);
        let vectors = SparseVector::raw_list(self.sparse.map_or(&[], |(vectors, _)| vectors))?;
        let sparse = self.sparse.map(|(_, modifier)| sys::ww_sparse_query {
            vectors: vectors.as_ptr(),
            modifier: modifier.raw(),
            ..Default::default()
        });
        raw.sparse = sparse.as_ref().map_or(ptr::null(), |sparse| sparse);
        self.conditions.with_raw(|conditions| {
            (raw.filter, raw.r#where) = (conditions.filter, conditions.filter_sql);
            (raw.parameters, raw.parameter_count) = (conditions.parameters, conditions.parameter_count);
            match &self.words {
                None => function(&mut raw),
                Some(words) => words.with_raw(self.count(), |words| {
                    raw.r#match = words;
                    function(&mut raw)
                }),
            }
        })
    }

    /// Returns the number of queries.
    pub(crate) fn count(&self) -> usize {
        match self.vectors {
            Vectors::Host(_, count) | Vectors::None(count) => count,
            Vectors::Tensor(tensor) if tensor.shape().len() == 2 => tensor.shape()[0] as usize,
            Vectors::Tensor(_) => 1,
        }
    }
}

impl Words {
    fn with_raw<R>(&self, queries: usize, function: impl FnOnce(&sys::ww_match) -> Result<R>) -> Result<R> {
        if self.texts.len() != queries {
            let message = format!("{} texts for {queries} queries; each needs one", self.texts.len());
            return Err(Error::new(Status::InvalidArgument, message));
        }
        let texts = self.texts.pointers("a text")?;
        let fuse = self.fuse.as_ref().map(|how| how.raw(2)).transpose()?;
        function(&sys::ww_match {
            texts: texts.as_ptr(),
            mode: self.mode,
            fuse: fuse.as_ref().map_or(ptr::null(), |fuse| fuse),
            candidates: number(self.candidates, "the number of candidates")?,
            ..Default::default()
        })
    }
}

fn parameter(value: &Value, name: *const c_char, text: *const c_char) -> sys::ww_parameter {
    let mut raw = sys::ww_parameter { name, r#type: sys::WW_VALUE_NULL, integer: 0, real: 0.0, text: ptr::null() };
    match value {
        Value::Null => {}
        Value::Integer(integer) => (raw.r#type, raw.integer) = (sys::WW_VALUE_INTEGER, *integer),
        Value::Real(real) => (raw.r#type, raw.real) = (sys::WW_VALUE_REAL, *real),
        Value::Text(_) => (raw.r#type, raw.text) = (sys::WW_VALUE_TEXT, text),
        Value::List(_) => (raw.r#type, raw.text) = (sys::WW_VALUE_LIST, text),
    }
    raw
}

info! {
    /// Statistics of a search over all its queries; a row counts once per query. They may differ between devices; the results
    /// do not.
    SearchStats(ww_search_stats) {
        /// Rows tested by their 8-bit codes.
        count rows_screened: i64,
        /// Rows of these that the codes did not exclude.
        count rows_kept: i64,
        /// Rows scored exactly.
        count rows_scored: i64,
        /// Queries for which some rows were not screened, because too many candidates had been kept.
        count fallback_queries: i64,
        /// How much better the k-th result was than the threshold for discarding rows; never below 0.
        count certificate: f32,
        /// Queries that were searched again, which reveals a bug; the results are still right.
        count repeated_queries: i64,
        /// Lists of an index that queries with [`Query::nprobe`] read; here and below 0 for exact queries.
        count lists_read: i64,
        /// Rows in these lists.
        count list_rows_read: i64,
        /// Bytes of their codes, or of the rows themselves without a screen.
        count list_bytes_read: i64,
    }
}
