//! Ranking: fusing and reordering results.
use std::ptr;

use warpwave_sys as sys;

use crate::config::Metric;
use crate::error::{number, Error, Result, Status};
use crate::handle::Handle;
use crate::results::Results;
use crate::text::with_text;

c_enum! {
    /// What a fused score is the sum of, over the lists that have the hit.
    Fusion(ww_fusion) {
        /// weight / (constant + rank): reciprocal rank fusion.
        Ranks = WW_FUSION_RANKS,
        /// The weighted score, scaled so that the best of a list is 1 and the worst 0.
        Scores = WW_FUSION_SCORES,
        /// 1 / (constant + rank / weight).
        ScaledRanks = WW_FUSION_SCALED_RANKS,
        /// The weighted score, scaled by the mean and the deviation of its list.
        Distributions = WW_FUSION_DISTRIBUTIONS,
    }
}

/// How to fuse lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Fuse {
    /// Ranks or scores.
    pub fusion: Fusion,
    /// The constant of [`Fusion::Ranks`] and [`Fusion::ScaledRanks`].
    pub constant: f64,
    /// One weight per list; empty: 1 each.
    pub weights: Vec<f64>,
    /// Maximum hits per query; 0: all.
    pub limit: usize,
    /// Hits with the same id are one, for results of different collections; otherwise those with the same handle.
    pub by_id: bool,
}

impl Default for Fuse {
    /// By ranks with a constant of 60, all lists with the same weight.
    fn default() -> Self {
        let raw = sys::ww_fuse::default();
        Fuse { fusion: Fusion::Ranks, constant: raw.constant, weights: Vec::new(), limit: 0, by_id: false }
    }
}

impl Fuse {
    /// The struct points to the weights, so it must not outlive them. Refuses a number of weights that differs from what the
    /// library reads.
    pub(crate) fn raw(&self, lists: usize) -> Result<sys::ww_fuse> {
        if !self.weights.is_empty() && self.weights.len() != lists {
            let message = format!("{} weights for {lists} lists; each needs one", self.weights.len());
            return Err(Error::new(Status::DimensionMismatch, message));
        }
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let weights = if self.weights.is_empty() { ptr::null() } else { self.weights.as_ptr() };
        let (fusion, constant, by_id) = (self.fusion.raw(), self.constant, self.by_id);
        Ok(sys::ww_fuse { fusion, constant, weights, limit, by_id, ..Default::default() })
    }
}

/// Maximal marginal relevance: hits that are relevant and differ from earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Diversity<'a> {
    /// From 0 to 1; 1 orders by relevance only.
    pub lambda: f64,
    /// Maximum hits per query; 0: all.
    pub limit: usize,
    /// One vector per query, one after the other, whose score is the relevance. None: use the hit's score.
    pub queries: Option<&'a [f32]>,
}

impl Default for Diversity<'_> {
    /// Equal weight for relevance and difference.
    fn default() -> Self {
        Diversity { lambda: sys::ww_diversity::default().lambda, limit: 0, queries: None }
    }
}

impl Diversity<'_> {
    pub(crate) fn raw(&self, metric: Metric) -> Result<sys::ww_diversity> {
        Ok(sys::ww_diversity {
            metric: metric.raw(),
            lambda: self.lambda,
            limit: number(self.limit, "the limit")?,
            queries: self.queries.map_or(ptr::null(), <[f32]>::as_ptr),
            ..Default::default()
        })
    }

    /// Refuses a number of vectors that differs from what the library reads.
    pub(crate) fn check(&self, queries: usize, dim: usize) -> Result<()> {
        match self.queries {
            Some(vectors) if Some(vectors.len()) != queries.checked_mul(dim) => {
                let message = format!("{} numbers are not {queries} queries of dimension {dim}", vectors.len());
                Err(Error::new(Status::DimensionMismatch, message))
            }
            _ => Ok(()),
        }
    }
}

/// Grouping by a payload field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping<'a> {
    /// `"source"`, or `"author.name"` for a field of an object.
    pub field: &'a str,
    /// Maximum groups per query.
    pub groups: usize,
    /// Maximum hits per group.
    pub size: usize,
}

impl<'a> Grouping<'a> {
    /// Ten groups of one hit.
    pub fn new(field: &'a str) -> Self {
        Grouping { field, groups: 10, size: 1 }
    }

    pub(crate) fn with_raw<R>(&self, function: impl FnOnce(&sys::ww_grouping) -> Result<R>) -> Result<R> {
        let (groups, size) = (number(self.groups, "the number of groups")?, number(self.size, "the size of a group")?);
        with_text(self.field, "the field", |field| function(&sys::ww_grouping { field, groups, size, ..Default::default() }))
    }
}

impl Results {
    pub(crate) fn made(function: impl FnOnce(*mut *mut sys::ww_results) -> sys::ww_status) -> Result<Results> {
        Results::new(Handle::make(function)?)
    }

    /// Fuses lists query by query; hits with the same handle, or with the same id, become one.
    ///
    /// ```
    /// use warpwave::{Collection, Device, Fuse, Metric, Query, Results, Rows};
    ///
    /// let collection = Collection::new(&Device::open("cpu")?, 2, Metric::L2)?;
    /// collection.add(&Rows::new(2, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]))?;
    /// let first = collection.query(&Query::new(&[1.0, 0.1]).nearest(2))?;
    /// let second = collection.query(&Query::new(&[0.1, 0.2]).nearest(2))?;
    /// let fused = Results::fuse(&[&first, &second], &Fuse::default())?;
    /// assert_eq!(fused.rows()[0], 0); // in both lists
    /// # Ok::<(), warpwave::Error>(())
    /// ```
    pub fn fuse(lists: &[&Results], how: &Fuse) -> Result<Results> {
        let raw = how.raw(lists.len())?;
        let pointers: Vec<_> = lists.iter().map(|list| list.raw()).collect();
        let count = number(pointers.len(), "the number of lists")?;
        // SAFETY: the results are there; the struct is initialized, and it has no weights or as many as there are lists.
        Results::made(|made| unsafe { sys::ww_results_fuse(pointers.as_ptr(), count, &raw, made) })
    }

    /// Orders the hits of each query by maximal marginal relevance. Refuses results without vectors.
    pub fn diversify(&self, metric: Metric, how: &Diversity<'_>) -> Result<Results> {
        how.check(self.query_count(), self.dim())?;
        let raw = how.raw(metric)?;
        // SAFETY: the results are there; the struct is initialized, and its vectors are as many as the results have queries.
        Results::made(|made| unsafe { sys::ww_results_diversify(self.raw(), &raw, made) })
    }

    /// Orders the hits of each query by group, the group with the best hit first. Refuses results without payloads.
    pub fn group(&self, how: &Grouping<'_>) -> Result<Results> {
        // SAFETY: the results are there; the struct and its text live until the call returns.
        how.with_raw(|raw| Results::made(|made| unsafe { sys::ww_results_group(self.raw(), raw, made) }))
    }

    /// Gives each hit a new score and reorders each query, larger first. Keeps `limit` hits per query; 0: all.
    pub fn rerank(&self, scores: &[f32], limit: usize) -> Result<Results> {
        if scores.len() != self.scores().len() {
            let message = format!("{} scores for {} hits; each needs one", scores.len(), self.scores().len());
            return Err(Error::new(Status::DimensionMismatch, message));
        }
        let limit = number(limit, "the limit")?;
        // SAFETY: the results are there, and there is a score for each hit.
        Results::made(|made| unsafe { sys::ww_results_rerank(self.raw(), scores.as_ptr(), limit, made) })
    }
}
