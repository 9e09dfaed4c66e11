//! The calls of hive-gpu's IVF indexes.
use hive_gpu::error::{HiveGpuError, Result};
use hive_gpu::traits::GpuVectorStorage;
use hive_gpu::types::{GpuDistanceMetric, GpuSearchResult, GpuVector, IvfConfig};

use crate::{WarpwaveContext, WarpwaveStorage};

/// An index with the calls of hive-gpu's IVF indexes. Its searches are exact: they find what an index of theirs finds when it
/// probes every cell. `n_list` and `nprobe` are checked and kept, as a program may ask for them, and change no result.
#[derive(Debug)]
pub struct WarpwaveIvfIndex {
    storage: WarpwaveStorage,
    config: IvfConfig,
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
    pub fn new(context: &WarpwaveContext, dimension: usize, metric: GpuDistanceMetric, config: IvfConfig) -> Result<Self> {
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
        self.trained = true;
        Ok(())
    }

    /// The `k` nearest vectors.
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<GpuSearchResult>> {
        if !self.trained {
            return Err(HiveGpuError::InvalidConfiguration("build the index before it is searched".to_owned()));
        }
        self.storage.search(query, k)
    }

    /// Changes how many cells a search is to look at.
    pub fn set_nprobe(&mut self, nprobe: usize) -> Result<()> {
        check_nprobe(nprobe, self.config.n_list)?;
        self.config.nprobe = nprobe;
        Ok(())
    }

    /// How many cells a search is to look at.
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
