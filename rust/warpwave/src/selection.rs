//! Selections: rows that match conditions on their payloads, to get, count, remove or change.
use std::ptr;

use warpwave_sys as sys;

use crate::collection::{given, Collection};
use crate::error::{call, number, Result};
use crate::handle::Handle;
use crate::query::Conditions;
use crate::results::{Fetch, Results};
use crate::text::with_text;

/// Rows that match conditions, in the order of their handles.
///
/// ```
/// use warpwave::{Collection, Device, Metric, Rows, Selection};
///
/// let collection = Collection::new(&Device::open("cpu")?, 1, Metric::L2)?;
/// let payloads = [Some(r#"{"year": 1999}"#), Some(r#"{"year": 2004}"#)];
/// collection.add(&Rows::new(1, &[1.0, 2.0]).payloads(&payloads))?;
/// let recent = Selection::new().filter(r#"{"year": {"$gt": 2000}}"#);
/// assert_eq!(collection.select_count(&recent)?, 1);
/// assert_eq!(collection.select_remove(&recent)?, 1);
/// # Ok::<(), warpwave::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Selection<'a> {
    conditions: Conditions<'a>,
    first_handle: i64,
    limit: usize,
}

impl<'a> Selection<'a> {
    /// All rows.
    pub fn new() -> Self {
        Self::default()
    }

    conditions!('a);

    /// Only rows with at least this handle: for the next page, the last row's handle plus 1.
    pub fn first_handle(mut self, handle: i64) -> Self {
        self.first_handle = handle;
        self
    }

    /// At most this many rows; 0: all.
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    fn with_raw<R>(&self, function: impl FnOnce(&sys::ww_selection) -> Result<R>) -> Result<R> {
        let limit = number(self.limit, "the limit")?;
        self.conditions.with_raw(|conditions| {
            function(&sys::ww_selection {
                filter: conditions.filter,
                r#where: conditions.filter_sql,
                parameters: conditions.parameters,
                parameter_count: conditions.parameter_count,
                first_handle: self.first_handle,
                limit,
                ..Default::default()
            })
        })
    }
}

impl Collection {
    /// Returns the rows of a selection, with score 0.
    pub fn select(&self, selection: &Selection<'_>, fetch: Fetch) -> Result<Results> {
        let handle = selection.with_raw(|raw| {
            // SAFETY: the collection is there, and all that the selection points to until the call returns.
            Handle::make(|results| unsafe { sys::ww_collection_select(self.raw(), raw, fetch.0, results) })
        })?;
        Results::new(handle)
    }

    /// Returns the number of rows of a selection.
    pub fn select_count(&self, selection: &Selection<'_>) -> Result<usize> {
        // SAFETY: as in select().
        let count = selection.with_raw(|raw| given(|count| unsafe { sys::ww_collection_select_count(self.raw(), raw, count) }));
        number(count?, "the number of rows")
    }

    /// Removes the rows of a selection, all or none, and returns their number. Refuses a selection without conditions.
    pub fn select_remove(&self, selection: &Selection<'_>) -> Result<usize> {
        // SAFETY: as in select().
        let count =
            selection.with_raw(|raw| given(|count| unsafe { sys::ww_collection_select_remove(self.raw(), raw, count) }));
        number(count?, "the number of rows")
    }

    /// Sets the payload of every row of a selection, a JSON text or None, and returns the number of rows.
    pub fn select_set_payload(&self, selection: &Selection<'_>, payload: Option<&str>) -> Result<usize> {
        self.select_payload(selection, payload, sys::WW_PAYLOAD_SET)
    }

    /// Merges the fields of a JSON object into the payload of every row of a selection, and returns the number of rows.
    pub fn select_merge_payload(&self, selection: &Selection<'_>, payload: &str) -> Result<usize> {
        self.select_payload(selection, Some(payload), sys::WW_PAYLOAD_MERGE)
    }

    fn select_payload(&self, selection: &Selection<'_>, payload: Option<&str>, how: sys::ww_payload_change) -> Result<usize> {
        let count = selection.with_raw(|raw| {
            let change = |text| {
                given(|count| {
                    // SAFETY: as in select(); the text ends with a NUL and lives until the call returns, or is NULL.
                    unsafe { sys::ww_collection_select_payload(self.raw(), raw, text, how, count) }
                })
            };
            payload.map_or_else(|| change(ptr::null()), |text| with_text(text, "the payload", change))
        });
        number(count?, "the number of rows")
    }

    /// Merges the fields of JSON objects into the payloads of rows, by id; all or nothing.
    pub fn merge_payloads<T: AsRef<str>, P: AsRef<str>>(&self, ids: &[T], payloads: &[P]) -> Result<()> {
        let payloads: Vec<Option<&P>> = payloads.iter().map(Some).collect();
        self.with_payloads(ids, &payloads, |ids, payloads, count| {
            // SAFETY: both lists have `count` entries and live until the call returns.
            call(|| unsafe { sys::ww_collection_merge_payloads(self.raw(), ids, payloads, count) })
        })
    }
}
