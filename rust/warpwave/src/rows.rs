//! Rows to add to a collection.
use warpwave_sys as sys;

use crate::callback::{with_progress, Progress};
use crate::element::{bytes_of, VectorElement};
use crate::error::{number, Error, Result, Status};
use crate::multi::Multivector;
use crate::sparse::SparseVector;
use crate::tensor::Tensor;
use crate::text::Texts;

#[derive(Clone, Copy)]
enum Vectors<'a> {
    None(usize),
    Host { dim: usize, numbers: usize, bytes: &'a [u8], r#type: Option<sys::ww_vector_type> },
    Tensor(&'a Tensor),
}

/// Rows to add, replace or update: vectors with optional ids and payloads.
///
/// ```
/// use warpwave::Rows;
///
/// let rows = Rows::new(2, &[1.0, 0.0, 0.0, 1.0])
///     .ids(&["east", "north"])
///     .payloads(&[Some(r#"{"wind": 3}"#), None]);
/// # let _ = rows;
/// ```
#[derive(Clone)]
pub struct Rows<'a> {
    vectors: Vectors<'a>,
    ids: Option<Texts>,
    payloads: Option<Texts>,
    texts: Option<Texts>,
    sparse: Option<&'a [SparseVector<'a>]>,
    multi: Option<&'a [Multivector<'a>]>,
}

impl<'a> Rows<'a> {
    fn of(vectors: Vectors<'a>) -> Self {
        Rows { vectors, ids: None, payloads: None, texts: None, sparse: None, multi: None }
    }

    /// Vectors of `dim` numbers, one after the other. They are rounded to the collection's type.
    pub fn new(dim: usize, vectors: &'a [f32]) -> Self {
        Rows::of(Vectors::Host { dim, numbers: vectors.len(), bytes: bytes_of(vectors), r#type: None })
    }

    /// Vectors that already have the collection's type: `i8`, `u8`, and with the feature `half` its two types.
    pub fn elements<T: VectorElement>(dim: usize, vectors: &'a [T]) -> Self {
        let r#type = Some(T::VECTOR_TYPE.raw());
        Rows::of(Vectors::Host { dim, numbers: vectors.len(), bytes: bytes_of(vectors), r#type })
    }

    /// The rows of a tensor of shape `[count, dim]`, of f32 or the collection's type. On the collection's device they are used
    /// in place.
    pub fn tensor(vectors: &'a Tensor) -> Self {
        Rows::of(Vectors::Tensor(vectors))
    }

    /// `count` rows without vectors, for [`Collection::update`](crate::Collection::update), which then leaves vectors
    /// unchanged.
    pub fn without_vectors(count: usize) -> Self {
        Rows::of(Vectors::None(count))
    }

    /// Sets the ids, 1 to 256 bytes each. Without ids each row's id is its handle in decimal.
    pub fn ids<T: AsRef<str>>(mut self, ids: &[T]) -> Self {
        self.ids = Some(Texts::of(ids));
        self
    }

    /// Sets the payloads, JSON texts; None for rows without one.
    pub fn payloads<T: AsRef<str>>(mut self, payloads: &[Option<T>]) -> Self {
        self.payloads = Some(Texts::new(payloads.iter().map(Option::as_ref)));
        self
    }

    /// Sets the texts, for a collection in a store; None for rows without one. They are kept with the rows and can be searched
    /// by words ([`Query::words`](crate::Query::words), [`Query::hybrid`](crate::Query::hybrid)).
    pub fn texts<T: AsRef<str>>(mut self, texts: &[Option<T>]) -> Self {
        self.texts = Some(Texts::new(texts.iter().map(Option::as_ref)));
        self
    }

    /// Sets the multivectors, for a collection in a store; [`Multivector::NONE`] for rows without one. A search finds them by
    /// [`Query::multi`](crate::Query::multi).
    pub fn multi(mut self, vectors: &'a [Multivector<'a>]) -> Self {
        self.multi = Some(vectors);
        self
    }

    /// Sets the sparse vectors, for a collection in a store; [`SparseVector::NONE`] for rows without one. A search finds them by
    /// [`Query::sparse`](crate::Query::sparse).
    pub fn sparse(mut self, vectors: &'a [SparseVector<'a>]) -> Self {
        self.sparse = Some(vectors);
        self
    }

    /// Returns the number of rows.
    fn count(&self) -> Result<usize> {
        match self.vectors {
            Vectors::None(count) => Ok(count),
            Vectors::Tensor(tensor) if tensor.shape().len() == 1 => Ok(1),
            Vectors::Tensor(tensor) => number(tensor.shape().first().copied().unwrap_or(0), "the number of rows"),
            Vectors::Host { dim, numbers, .. } if dim == 0 || numbers % dim != 0 => {
                Err(Error::new(Status::DimensionMismatch, format!("{numbers} numbers are not vectors of dimension {dim}")))
            }
            Vectors::Host { dim, numbers, .. } => Ok(numbers / dim),
        }
    }

    /// Makes a call with the rows in C's form, whose pointers are valid until the call returns.
    pub(crate) fn with_raw<R>(
        &self,
        progress: Option<Progress<'_>>,
        function: impl FnOnce(&sys::ww_rows) -> Result<R>,
    ) -> Result<R> {
        let mut raw = sys::ww_rows::default();
        let count = self.count()?;
        raw.count = number(count, "the number of rows")?;
        match self.vectors {
            Vectors::None(_) => {}
            Vectors::Tensor(tensor) => raw.tensor = tensor.raw(),
            Vectors::Host { dim, bytes, r#type, .. } => {
                raw.dim = number(dim, "the dimension")?;
                match r#type {
                    None => raw.vectors = bytes.as_ptr().cast(),
                    Some(r#type) => (raw.elements, raw.r#type) = (bytes.as_ptr().cast(), r#type),
                }
            }
        }
        let pointers = |texts: &Option<Texts>, what: &str| match texts {
            None => Ok(Vec::new()),
            Some(texts) if texts.len() == count => texts.pointers(what),
            Some(texts) => Err(Error::new(
                Status::InvalidArgument,
                format!("{what} is missing or too much: {count} rows, {} texts", texts.len()),
            )),
        };
        let ids = pointers(&self.ids, "an id")?;
        let payloads = pointers(&self.payloads, "a payload")?;
        let texts = pointers(&self.texts, "a text")?;
        if self.texts.is_some() {
            raw.texts = texts.as_ptr();
        }
        if self.ids.is_some() {
            raw.ids = ids.as_ptr();
        }
        if self.payloads.is_some() {
            raw.payloads = payloads.as_ptr();
        }
        let multi = Multivector::raw_list(self.multi.unwrap_or_default())?;
        if self.multi.is_some() {
            if multi.len() != count {
                let message = format!("{count} rows and {} multivectors; each row needs one, or NONE", multi.len());
                return Err(Error::new(Status::InvalidArgument, message));
            }
            raw.multi = multi.as_ptr();
        }
        let sparse = SparseVector::raw_list(self.sparse.unwrap_or_default())?;
        if self.sparse.is_some() {
            if sparse.len() != count {
                let message = format!("{count} rows and {} sparse vectors; each row needs one, or NONE", sparse.len());
                return Err(Error::new(Status::InvalidArgument, message));
            }
            raw.sparse = sparse.as_ptr();
        }
        with_progress(progress, |function_pointer, user| {
            (raw.progress, raw.progress_user) = (function_pointer, user);
            function(&raw)
        })
    }
}
