//! Collections: vectors with ids and payloads, with exact search.
use std::ffi::c_char;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use warpwave_sys as sys;

use crate::callback::{with_progress, Progress};
use crate::config::{CollectionConfig, CollectionInfo, DamageReport, Metric};
use crate::device::Device;
use crate::error::{call, number, Error, Result, Status};
use crate::handle::Handle;
use crate::inside::inside;
use crate::query::{Query, SearchStats};
use crate::ranking::{Diversity, Grouping};
use crate::results::{Fetch, Results};
use crate::rows::Rows;
use crate::text::{with_text, Texts};

/// Vectors with ids and payloads on a device, with exact search: the same rows with the same score bits on every device.
///
/// Any number of threads may read and write at once; a call that writes waits for the calls that read. A call that fails leaves
/// the collection unchanged.
///
/// ```
/// use warpwave::{Collection, Device, Fetch, Metric, Query, Rows};
///
/// let device = Device::open("cpu")?;
/// let collection = Collection::new(&device, 2, Metric::L2)?;
/// collection.add(&Rows::new(2, &[0.0, 0.0, 3.0, 4.0]).ids(&["origin", "far"]))?;
/// let results = collection.query(&Query::new(&[0.0, 1.0]).nearest(1).fetch(Fetch::IDS))?;
/// for hit in results.hits() {
///     println!("{} at {}", hit.id().unwrap(), hit.score());
/// }
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct Collection {
    handle: Handle<sys::ww_collection>,
    _keep: Option<Arc<dyn Send + Sync>>, // the closure that a store's collections call; dropped after the handle
}

impl Collection {
    /// Creates an empty collection of f32 vectors.
    pub fn new(device: &Device, dim: usize, metric: Metric) -> Result<Self> {
        Collection::create(device, &CollectionConfig::new(dim, metric))
    }

    /// Creates an empty collection.
    pub fn create(device: &Device, config: &CollectionConfig) -> Result<Self> {
        config
            .with_raw(|config| {
                // SAFETY: the device is open, the config is initialized and its texts live until the call returns.
                Handle::make(|collection| unsafe { sys::ww_collection_create(device.raw(), config, collection) })
            })
            .map(|handle| Collection { handle, _keep: None })
    }

    /// Wraps a collection of a store, which needs `keep` for as long as it lives.
    #[cfg(feature = "store")]
    pub(crate) fn of_store(handle: Handle<sys::ww_collection>, keep: Option<Arc<dyn Send + Sync>>) -> Self {
        Collection { handle, _keep: keep }
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut sys::ww_collection {
        self.handle.raw()
    }

    /// Adds all rows or none. Refuses values that are not finite, ids that exist already, and payloads that are not JSON.
    pub fn add(&self, rows: &Rows<'_>) -> Result<()> {
        self.add_with(rows, None)
    }

    /// Adds like `add`, with a callback that counts rows.
    pub fn add_with(&self, rows: &Rows<'_>, progress: Option<Progress<'_>>) -> Result<()> {
        // SAFETY: the collection is there, and so are the rows until the call returns.
        rows.with_raw(progress, |rows| call(|| unsafe { sys::ww_collection_add(self.raw(), rows) }))
    }

    /// Adds like `add`, but a row whose id exists replaces that row, takes a new row number and keeps the handle.
    pub fn upsert(&self, rows: &Rows<'_>) -> Result<()> {
        // SAFETY: as in add().
        rows.with_raw(None, |rows| call(|| unsafe { sys::ww_collection_upsert(self.raw(), rows) }))
    }

    /// Changes vectors, payloads or both of existing rows, by id; what is not given stays.
    pub fn update(&self, rows: &Rows<'_>) -> Result<()> {
        // SAFETY: as in add().
        rows.with_raw(None, |rows| call(|| unsafe { sys::ww_collection_update(self.raw(), rows) }))
    }

    /// Removes all of these ids, or none if one does not exist.
    pub fn remove<T: AsRef<str>>(&self, ids: &[T]) -> Result<()> {
        // SAFETY: the texts live until the call returns.
        with_texts(ids, |ids, count| call(|| unsafe { sys::ww_collection_remove(self.raw(), ids, count) }))
    }

    /// Removes the ids that exist, and returns how many do not.
    pub fn discard<T: AsRef<str>>(&self, ids: &[T]) -> Result<usize> {
        let mut missing = 0;
        // SAFETY: the texts live until the call returns.
        with_texts(ids, |ids, count| call(|| unsafe { sys::ww_collection_discard(self.raw(), ids, count, &mut missing) }))?;
        Ok(missing as usize)
    }

    /// Replaces the payloads of rows; None removes a payload. All or nothing.
    pub fn set_payloads<T: AsRef<str>, P: AsRef<str>>(&self, ids: &[T], payloads: &[Option<P>]) -> Result<()> {
        self.with_payloads(ids, payloads, |ids, payloads, count| {
            // SAFETY: both lists have `count` entries and live until the call returns.
            call(|| unsafe { sys::ww_collection_set_payloads(self.raw(), ids, payloads, count) })
        })
    }

    /// Calls a function with ids and payloads, after checking that their numbers are equal.
    pub(crate) fn with_payloads<T: AsRef<str>, P: AsRef<str>, R>(
        &self,
        ids: &[T],
        payloads: &[Option<P>],
        function: impl FnOnce(*const *const c_char, *const *const c_char, i64) -> Result<R>,
    ) -> Result<R> {
        if ids.len() != payloads.len() {
            let message = format!("{} ids and {} payloads; each id needs one", ids.len(), payloads.len());
            return Err(Error::new(Status::InvalidArgument, message));
        }
        let texts = Texts::new(payloads.iter().map(Option::as_ref));
        let payloads = texts.pointers("a payload")?;
        with_texts(ids, |ids, count| function(ids, payloads.as_ptr(), count))
    }

    /// Removes all rows and frees their memory.
    pub fn clear(&self) -> Result<()> {
        // SAFETY: the collection is there.
        call(|| unsafe { sys::ww_collection_clear(self.raw()) })
    }

    /// Reclaims removed rows: live rows keep their order and handles and get new row numbers. `progress` counts rows.
    pub fn compact(&self, progress: Option<Progress<'_>>) -> Result<()> {
        // SAFETY: the collection is there, and `user` until the call returns.
        with_progress(progress, |told, user| call(|| unsafe { sys::ww_collection_compact(self.raw(), told, user) }))
    }

    /// Compares the device's memory with what was written to it. Damage is the error
    /// [`Status::Damaged`](crate::Status::Damaged), whose message names the first damaged row.
    pub fn check(&self, progress: Option<Progress<'_>>) -> Result<DamageReport> {
        let mut report = sys::ww_damage_report::default();
        with_progress(progress, |told, user| {
            // SAFETY: as in compact(); the report is initialized.
            call(|| unsafe { sys::ww_collection_check(self.raw(), &mut report, told, user) })
        })?;
        Ok(DamageReport(report))
    }

    /// Reserves memory for this many live rows in total.
    pub fn reserve(&self, rows: usize) -> Result<()> {
        let rows = number(rows, "the number of rows")?;
        // SAFETY: the collection is there.
        call(|| unsafe { sys::ww_collection_reserve(self.raw(), rows) })
    }

    /// Moves everything to another device. Rows, ids, handles and the bits of all results stay the same.
    pub fn move_to(&self, device: &Device) -> Result<()> {
        // SAFETY: both are there.
        call(|| unsafe { sys::ww_collection_move(self.raw(), device.raw()) })
    }

    /// Returns the number of live rows; 0 inside a callback.
    pub fn len(&self) -> usize {
        if inside() {
            return 0;
        }
        // SAFETY: the collection is there.
        unsafe { sys::ww_collection_count(self.raw()) as usize }
    }

    /// Returns whether there are no live rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Describes the collection.
    pub fn info(&self) -> Result<CollectionInfo> {
        let mut info = sys::ww_collection_info::default();
        // SAFETY: the collection is there and the struct is initialized.
        call(|| unsafe { sys::ww_collection_describe(self.raw(), &mut info) }).map(|()| CollectionInfo(info))
    }

    /// Finds the nearest rows of each query, or all rows within a bound.
    pub fn query(&self, query: &Query<'_>) -> Result<Results> {
        self.query_with(query, None)
    }

    /// Searches like `query`, with a callback that counts queries.
    pub fn query_with(&self, query: &Query<'_>, progress: Option<Progress<'_>>) -> Result<Results> {
        self.with_query(query, |raw| self.results(raw, progress))
    }

    /// Searches like `query`, and returns statistics of the search.
    pub fn query_stats(&self, query: &Query<'_>) -> Result<(Results, SearchStats)> {
        let mut stats = sys::ww_search_stats::default();
        let results = self.with_query(query, |raw| {
            raw.stats = &mut stats;
            self.results(raw, None)
        })?;
        Ok((results, SearchStats(stats)))
    }

    /// Calls a function with a query in C's form. A query without vectors gets the collection's dimension.
    #[inline]
    pub(crate) fn with_query<R>(&self, query: &Query<'_>, function: impl FnOnce(&mut sys::ww_query) -> Result<R>) -> Result<R> {
        query.with_raw(|raw| {
            if raw.queries.is_null() && raw.query_tensor.is_null() {
                raw.dim = self.info()?.dim();
            }
            function(raw)
        })
    }

    fn results(&self, raw: &mut sys::ww_query, progress: Option<Progress<'_>>) -> Result<Results> {
        let handle = with_progress(progress, |told, user| {
            (raw.progress, raw.progress_user) = (told, user);
            // SAFETY: the collection is there, and all that the query points to until the call returns.
            Handle::make(|results| unsafe { sys::ww_collection_query(self.raw(), raw, results) })
        })?;
        Results::new(handle)
    }

    /// Writes the k nearest rows of each query without allocating results: `rows` and `scores` have k entries per query. If
    /// fewer rows are admitted, the rest is row -1 with the worst score.
    pub fn search(&self, query: &Query<'_>, rows: &mut [i64], scores: &mut [f32]) -> Result<()> {
        self.with_query(query, |raw| {
            let needed = query.count().saturating_mul(query.k());
            if rows.len() != needed || scores.len() != needed {
                let message = format!("{} rows and {} scores; {needed} of each are needed", rows.len(), scores.len());
                return Err(Error::new(Status::DimensionMismatch, message));
            }
            // SAFETY: the collection is there, all that the query points to until the call returns, and room for all results.
            call(|| unsafe { sys::ww_collection_search(self.raw(), raw, rows.as_mut_ptr(), scores.as_mut_ptr()) })
        })
    }

    /// Finds `candidates` hits (0: 100, or four times k if that is more) and chooses k of them by maximal marginal relevance.
    pub fn query_diverse(&self, query: &Query<'_>, how: &Diversity<'_>, candidates: usize) -> Result<Results> {
        how.check(query.count(), self.info()?.dim() as usize)?;
        let (raw_how, candidates) = (how.raw(Metric::Cosine)?, number(candidates, "the number of candidates")?);
        self.with_query(query, |raw| {
            // SAFETY: the collection is there, all that the query points to until the call returns, and as many vectors as it
            // has queries.
            Results::made(|made| unsafe { sys::ww_collection_rank(self.raw(), raw, &raw_how, ptr::null(), candidates, made) })
        })
    }

    /// Finds enough hits to fill the groups.
    pub fn query_grouped(&self, query: &Query<'_>, how: &Grouping<'_>) -> Result<Results> {
        self.with_query(query, |raw| {
            how.with_raw(|how| {
                // SAFETY: the collection is there, and all that both structs point to until the call returns.
                Results::made(|made| unsafe { sys::ww_collection_rank(self.raw(), raw, ptr::null(), how, 0, made) })
            })
        })
    }

    /// Returns a snapshot of rows by id: one hit per id, with row -1 for ids that do not exist.
    pub fn get<T: AsRef<str>>(&self, ids: &[T], fetch: Fetch) -> Result<Results> {
        with_texts(ids, |ids, count| self.got(sys::ww_get { ids, count, ..Default::default() }, fetch))
    }

    /// Returns a snapshot of rows by handle.
    pub fn get_handles(&self, handles: &[i64], fetch: Fetch) -> Result<Results> {
        let count = number(handles.len(), "the number of handles")?;
        self.got(sys::ww_get { handles: handles.as_ptr(), count, ..Default::default() }, fetch)
    }

    /// Returns the first `limit` live rows in order.
    pub fn get_all(&self, limit: usize, fetch: Fetch) -> Result<Results> {
        let count = i64::try_from(limit).unwrap_or(i64::MAX).min(sys::WW_ROWS_MAX);
        self.got(sys::ww_get { count, ..Default::default() }, fetch)
    }

    fn got(&self, mut raw: sys::ww_get, fetch: Fetch) -> Result<Results> {
        raw.fetch = fetch.0;
        // SAFETY: the collection is there, and the list until the call returns.
        Results::new(Handle::make(|results| unsafe { sys::ww_collection_get(self.raw(), &raw, results) })?)
    }

    /// Finds a live row by id; [`Status::NotFound`](crate::Status::NotFound) if there is none.
    pub fn find(&self, id: &str) -> Result<i64> {
        // SAFETY: the text lives until the call returns.
        with_text(id, "the id", |id| given(|row| unsafe { sys::ww_collection_find(self.raw(), id, row) }))
    }

    /// Returns the handle of a live row.
    pub fn handle(&self, row: i64) -> Result<i64> {
        // SAFETY: the collection is there.
        given(|handle| unsafe { sys::ww_collection_handle(self.raw(), row, handle) })
    }

    /// Returns the row of a handle.
    pub fn find_handle(&self, handle: i64) -> Result<i64> {
        // SAFETY: the collection is there.
        given(|row| unsafe { sys::ww_collection_find_handle(self.raw(), handle, row) })
    }

    /// Returns the vector of a live row, as f32.
    pub fn vector(&self, row: i64) -> Result<Vec<f32>> {
        let mut vector = vec![0.0; self.info()?.dim() as usize];
        // SAFETY: there is room for `dim` floats; a collection's dimension does not change.
        call(|| unsafe { sys::ww_collection_vector(self.raw(), row, vector.as_mut_ptr()) })?;
        Ok(vector)
    }

    /// Returns the id of a live row.
    pub fn id(&self, row: i64) -> Result<String> {
        // SAFETY: the function writes at most `capacity` bytes.
        copied(|text, capacity, length| unsafe { sys::ww_collection_id(self.raw(), row, text, capacity, length) })
    }

    /// Returns the payload of a live row; None if it has none.
    pub fn payload(&self, row: i64) -> Result<Option<String>> {
        // SAFETY: the function writes at most `capacity` bytes.
        let text =
            copied(|text, capacity, length| unsafe { sys::ww_collection_payload(self.raw(), row, text, capacity, length) })?;
        Ok((!text.is_empty()).then_some(text))
    }

    /// Visits the numbers of all live rows in order. With concurrent writers it includes rows that are added meanwhile, and no
    /// rows that are removed; [`Collection::get_all`] is a snapshot. Inside a callback it visits no rows.
    pub fn rows(&self) -> impl Iterator<Item = i64> + '_ {
        let next = |row: i64| {
            if inside() {
                return -1;
            }
            // SAFETY: the collection is there; any number may be given.
            unsafe { sys::ww_collection_next(self.raw(), row) }
        };
        let present = |row: i64| (row >= 0).then_some(row);
        std::iter::successors(present(next(-1)), move |&row| present(next(row)))
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => info.fmt(out),
            Err(error) => write!(out, "Collection({error})"),
        }
    }
}

/// Returns the number that a call writes.
#[inline]
pub(crate) fn given(function: impl FnOnce(*mut i64) -> sys::ww_status) -> Result<i64> {
    let mut value = 0;
    call(|| function(&mut value)).map(|()| value)
}

/// Calls a function with a list of texts and their number.
fn with_texts<T: AsRef<str>, R>(texts: &[T], function: impl FnOnce(*const *const c_char, i64) -> Result<R>) -> Result<R> {
    let texts = Texts::of(texts);
    let pointers = texts.pointers("an id")?;
    function(pointers.as_ptr(), number(texts.len(), "the number of ids")?)
}

/// Copies a text: asks for its length first, and again if a writer has made it longer meanwhile.
fn copied(function: impl Fn(*mut c_char, usize, *mut usize) -> sys::ww_status) -> Result<String> {
    let mut length = 0;
    call(|| function(ptr::null_mut(), 0, &mut length))?;
    loop {
        let mut bytes = vec![0u8; length + 1];
        match call(|| function(bytes.as_mut_ptr().cast(), bytes.len(), &mut length)) {
            Err(error) if error.status() == Status::OutOfRange && length >= bytes.len() => continue,
            Err(error) => return Err(error),
            Ok(()) => {
                bytes.truncate(length);
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
}

/// Returns the canonical score of two vectors: the same bits on every device.
///
/// ```
/// use warpwave::{score, Metric};
/// assert_eq!(score(Metric::L2, &[0.0, 0.0], &[3.0, 4.0])?, 5.0);
/// # Ok::<(), warpwave::Error>(())
/// ```
pub fn score(metric: Metric, a: &[f32], b: &[f32]) -> Result<f32> {
    if a.len() != b.len() {
        let message = format!("vectors of {} and {} numbers have no score", a.len(), b.len());
        return Err(Error::new(Status::DimensionMismatch, message));
    }
    let (dim, mut score) = (number(a.len(), "the dimension")?, 0.0);
    // SAFETY: both have `dim` numbers.
    call(|| unsafe { sys::ww_score(metric.raw(), a.as_ptr(), b.as_ptr(), dim, &mut score) }).map(|()| score)
}
