//! The calls of hive-gpu's IVF indexes.
use hive_gpu::error::{HiveGpuError, Result};
use hive_gpu::traits::GpuVectorStorage;
use hive_gpu::types::{GpuDistanceMetric, GpuSearchResult, GpuVector, IvfConfig as HiveIvfConfig};
use warpwave::IvfConfig;

use crate::{error, WarpwaveContext, WarpwaveStorage};

/// An index with the calls of hive-gpu's IVF indexes, on Warpwave's: the same seed gives the same cells on every device. Without a
/// seed it is 0, so that builds can be repeated. A search reads the rows of `nprobe` cells; with `nprobe` of `n_list` it is exact.
#[derive(Debug)]
pub struct WarpwaveIvfIndex {
    storage: WarpwaveStorage,
    config: HiveIvfConfig,
    trained: bool,
}

fn check_nprobe(nprobe: usize, n_list: usize) -> Result<()> {
    if nprobe == 0 || nprobe > n_list {
        return Err(HiveGpuError::InvalidConfiguration(format!("nprobe is {nprobe}; 1 to {n_list} are possible")));
    }
    Ok(())
}

impl WarpwaveIvfIndex {
    /// An index without vectors.
    pub fn new(context: &WarpwaveContext, dimension: usize, metric: GpuDistanceMetric, config: HiveIvfConfig) -> Result<Self> {
        if config.n_list == 0 {
            return Err(HiveGpuError::InvalidConfiguration("n_list is 0; the minimum is 1".to_owned()));
        }
        check_nprobe(config.nprobe, config.n_list)?;
        Ok(WarpwaveIvfIndex { storage: context.storage(dimension, metric)?, config, trained: false })
    }

    /// Replaces its vectors by these, at least `n_list` of them. One that fails leaves it without vectors.
    pub fn build(&mut self, vectors: &[GpuVector]) -> Result<()> {
        if vectors.len() < self.config.n_list {
            let message = format!("{} vectors for {} cells; each needs one", vectors.len(), self.config.n_list);
            return Err(HiveGpuError::InvalidConfiguration(message));
        }
        self.trained = false;
        self.storage.clear()?;
        self.storage.add_vectors(vectors)?;
        let config = IvfConfig {
            nlist: self.config.n_list,
            sample_rows: self.config.training_sample_size.clamp(self.config.n_list, vectors.len()),
            iterations: u32::try_from(self.config.kmeans_iters).unwrap_or(u32::MAX).clamp(1, i32::MAX as u32),
            seed: self.config.seed.unwrap_or(0),
        };
        self.storage.collection().build_ivf(&config, None).map_err(error)?;
        self.trained = true;
        Ok(())
    }

    /// The `k` nearest vectors.
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<GpuSearchResult>> {
        if !self.trained {
            return Err(HiveGpuError::InvalidConfiguration("build the index before it is searched".to_owned()));
        }
        self.storage.nearest(query, k, self.config.nprobe)
    }

    /// Changes how many cells a search reads.
    pub fn set_nprobe(&mut self, nprobe: usize) -> Result<()> {
        check_nprobe(nprobe, self.config.n_list)?;
        self.config.nprobe = nprobe;
        Ok(())
    }

    /// How many cells a search reads.
    pub fn nprobe(&self) -> usize {
        self.config.nprobe
    }

    /// How many cells there are.
    pub fn n_list(&self) -> usize {
        self.config.n_list
    }

    /// How many vectors it has.
    pub fn vector_count(&self) -> usize {
        self.storage.vector_count()
    }

    /// Whether it was built.
    pub fn is_trained(&self) -> bool {
        self.trained
    }
}
