//! Ranking: fusing and reordering results.
use std::ptr;

use warpwave_sys as sys;

use crate::config::Metric;
use crate::error::{number, Error, Result, Status};
use crate::handle::Handle;
use crate::results::Results;
use crate::text::with_text;

c_enum! {
    /// What a fused score is computed from.
    Fusion(ww_fusion) {
        /// 1 / (constant + rank): reciprocal rank fusion.
        Ranks = WW_FUSION_RANKS,
        /// The score, scaled so that the best of a list is 1 and the worst 0.
        Scores = WW_FUSION_SCORES,
    }
}

/// How to fuse two lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Fuse {
    /// Ranks or scores.
    pub fusion: Fusion,
    /// The constant of [`Fusion::Ranks`].
    pub constant: f64,
    /// Weights of the first and the second list.
    pub weights: [f64; 2],
    /// Maximum hits per query; 0: all.
    pub limit: usize,
}

impl Default for Fuse {
    /// By ranks with a constant of 60, both lists with the same weight.
    fn default() -> Self {
        let raw = sys::ww_fuse::default();
        Fuse { fusion: Fusion::Ranks, constant: raw.constant, weights: raw.weights, limit: 0 }
    }
}

impl Fuse {
    pub(crate) fn raw(&self) -> sys::ww_fuse {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let (fusion, constant, weights) = (self.fusion.raw(), self.constant, self.weights);
        sys::ww_fuse { fusion, constant, weights, limit, ..Default::default() }
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

    /// Fuses these results with others, query by query; hits with the same handle become one.
    ///
    /// ```
    /// use warpwave::{Collection, Device, Fuse, Metric, Query, Rows};
    ///
    /// let collection = Collection::new(&Device::open("cpu")?, 2, Metric::L2)?;
    /// collection.add(&Rows::new(2, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]))?;
    /// let first = collection.query(&Query::new(&[1.0, 0.1]).nearest(2))?;
    /// let second = collection.query(&Query::new(&[0.1, 0.2]).nearest(2))?;
    /// let fused = first.fuse(&second, &Fuse::default())?;
    /// assert_eq!(fused.rows()[0], 0); // in both lists
    /// # Ok::<(), warpwave::Error>(())
    /// ```
    pub fn fuse(&self, other: &Results, how: &Fuse) -> Result<Results> {
        let raw = how.raw();
        // SAFETY: both results are there and the struct is initialized.
        Results::made(|made| unsafe { sys::ww_results_fuse(self.raw(), other.raw(), &raw, made) })
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
