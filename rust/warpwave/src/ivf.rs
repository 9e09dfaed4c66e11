//! IVF: an index for very large collections.
use std::ptr;

use warpwave_sys as sys;

use crate::callback::{with_progress, Progress};
use crate::collection::Collection;
use crate::error::{call, number, Error, Result, Status};

info! {
    /// Description of an index.
    IvfInfo(ww_ivf_info) {
        /// Lists.
        count nlist: i64,
        /// Rows in lists; removed rows count until compact.
        count rows: i64,
        /// Rows in the largest list.
        count rows_largest: i64,
        /// Average rows per list.
        count rows_mean: f64,
        /// The mean squared distance of rows to their centroid, or 1 - cosine.
        count loss: f64,
        /// Bytes of lists and centroids, on host and device.
        count bytes: i64,
        /// Rows when the index was built.
        count rows_trained: i64,
        /// Rows added since then.
        count rows_added: i64,
        /// Lists that have been split.
        count lists_split: i64,
        /// Queries of the last [`Collection::calibrate`]; 0 if there was none.
        count calibration_queries: i64,
        /// Neighbours per query.
        count calibration_k: i32,
        /// Rows added since then.
        count calibration_rows_added: i64,
        /// Rows removed since then, with those that an upsert has replaced.
        count calibration_rows_removed: i64,
        /// When that was, in seconds since 1970; 0: never.
        count calibration_time: i64,
    }
}

/// How to build an index. Zeros choose the library's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IvfConfig {
    /// Lists; 0: 4 times the square root of the rows, but at least 16 rows per list.
    pub nlist: usize,
    /// Rows for training k-means; 0: 256 per list.
    pub sample_rows: usize,
    /// Maximum iterations of k-means; 0: 10.
    pub iterations: u32,
    /// Seed for the sample and the first centroids.
    pub seed: u64,
}

/// How [`Collection::calibrate`] measures. Zeros choose the library's defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration<'a> {
    /// Queries that resemble future ones, one after the other; None: rows sampled from the collection.
    pub queries: Option<&'a [f32]>,
    /// Number of rows to sample, at least 299; 0: 1000, or 299 if there are fewer rows. Ignored with `queries`.
    pub drawn: usize,
    /// Neighbours per query; 0: 10.
    pub k: usize,
    /// Seed for the sampled rows.
    pub seed: u64,
    /// The recall that queries will ask for most; 0: all recalls alike. Its queries read the fewest lists.
    pub recall: f32,
}

impl Collection {
    /// Measures how many lists of the index each recall needs, so that queries can ask for a [`recall`](crate::Query::recall):
    /// of queries like these at most 1% fall below it, with a confidence of 95%. `progress` counts queries.
    pub fn calibrate(&self, how: &Calibration<'_>, progress: Option<Progress<'_>>) -> Result<()> {
        let dim = self.info()?.dim() as usize;
        let count = match how.queries {
            Some(queries) if queries.is_empty() || queries.len() % dim != 0 => {
                let message = format!("{} numbers are not queries of dimension {dim}", queries.len());
                return Err(Error::new(Status::DimensionMismatch, message));
            }
            Some(queries) => queries.len() / dim,
            None => how.drawn,
        };
        let (query_count, k) = (number(count, "the number of queries")?, number(how.k, "k")?);
        let queries = how.queries.map_or(ptr::null(), <[f32]>::as_ptr);
        with_progress(progress, |progress, progress_user| {
            let (seed, recall, none) = (how.seed, how.recall, Default::default());
            let raw = sys::ww_calibrate_config { queries, query_count, k, seed, recall, progress, progress_user, ..none };
            // SAFETY: the collection is there; there are this many queries of its dimension, and the callback lives until the
            // call returns.
            call(|| unsafe { sys::ww_collection_calibrate(self.raw(), &raw) })
        })
    }

    /// Builds an index from the live rows, replacing any existing index. Queries with [`Query::nprobe`](crate::Query::nprobe)
    /// use it; all others stay exact. `progress` counts rows compared with centroids.
    ///
    /// ```
    /// use warpwave::{Collection, Device, IvfConfig, Metric, Query, Rows};
    ///
    /// let collection = Collection::new(&Device::open("cpu")?, 1, Metric::L2)?;
    /// let vectors: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    /// collection.add(&Rows::new(1, &vectors))?;
    /// collection.build_ivf(&IvfConfig { nlist: 10, ..Default::default() }, None)?;
    /// let results = collection.query(&Query::new(&[500.2]).nearest(3).nprobe(2))?;
    /// println!("{} of {} hits are proven", results.proven(0), results.hits().len());
    /// # Ok::<(), warpwave::Error>(())
    /// ```
    pub fn build_ivf(&self, config: &IvfConfig, progress: Option<Progress<'_>>) -> Result<()> {
        let nlist = number(config.nlist, "nlist")?;
        let sample_rows = number(config.sample_rows, "sample_rows")?;
        let iterations = number(config.iterations, "iterations")?;
        with_progress(progress, |told, user| {
            let raw = sys::ww_ivf_config {
                nlist,
                sample_rows,
                iterations,
                seed: config.seed,
                progress: told,
                progress_user: user,
                ..Default::default()
            };
            // SAFETY: the collection is there; the struct and the callback live until the call returns.
            call(|| unsafe { sys::ww_collection_build_ivf(self.raw(), &raw) })
        })
    }

    /// Removes the index; [`Status::NotFound`](crate::Status::NotFound) if there is none.
    pub fn drop_ivf(&self) -> Result<()> {
        // SAFETY: the collection is there.
        call(|| unsafe { sys::ww_collection_drop_ivf(self.raw()) })
    }

    /// Describes the index; [`Status::NotFound`](crate::Status::NotFound) if there is none.
    pub fn ivf_info(&self) -> Result<IvfInfo> {
        let mut info = sys::ww_ivf_info::default();
        // SAFETY: the collection is there and the struct is initialized.
        call(|| unsafe { sys::ww_collection_describe_ivf(self.raw(), &mut info) }).map(|()| IvfInfo(info))
    }
}
