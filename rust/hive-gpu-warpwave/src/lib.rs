//! hive-gpu's [`GpuContext`], [`GpuBackend`] and [`GpuVectorStorage`] on Warpwave: a program that is written for hive-gpu runs on
//! AMD GPUs, NVIDIA GPUs or the CPU once it makes a [`WarpwaveContext`] instead of its own context.
//!
//! It follows hive-gpu 0.2. Scores are hive-gpu's: the cosine, the inner product, and for the euclidean metric 1 / (1 + distance);
//! the best comes first.
//!
//! ```
//! use hive_gpu::traits::{GpuContext, GpuVectorStorage};
//! use hive_gpu::types::{GpuDistanceMetric, GpuVector};
//! use hive_gpu_warpwave::WarpwaveContext;
//!
//! let context = WarpwaveContext::open("cpu")?; // the line that changes
//! let mut storage = context.create_storage(2, GpuDistanceMetric::Cosine)?;
//! let vector = GpuVector { id: "east".into(), data: vec![1.0, 0.0], metadata: Default::default() };
//! storage.add_vectors(&[vector])?;
//! assert_eq!(storage.search(&[0.9, 0.1], 1)?[0].id, "east");
//! # Ok::<(), hive_gpu::error::HiveGpuError>(())
//! ```
//!
//! # What differs
//! - Searches are exact. [`GpuContext::create_storage_with_config`] takes hive-gpu's HNSW parameters, which an exact search has no
//!   use for.
//! - Vectors have at most 65536 numbers, and ids 1 to 256 bytes without a NUL character.
//! - A call that fails has changed nothing: [`GpuVectorStorage::remove_vectors`] removes all ids or none. An id that was removed
//!   can be added again.
//! - Metadata is kept as JSON. [`WarpwaveStorage::collection`] gives the collection behind a storage, which can do what the traits
//!   cannot say: filters on metadata, masks, ranges, many queries at once, other types of rows, another device.
//! - [`GpuMemoryStats::buffer_count`] is always 0: Warpwave does not count buffers.
#![forbid(unsafe_code)]

mod ivf;
mod metadata;

use hive_gpu::error::{HiveGpuError, Result};
use hive_gpu::traits::{GpuBackend, GpuContext, GpuVectorStorage};
use hive_gpu::types::{
    GpuCapabilities, GpuDeviceInfo, GpuDistanceMetric, GpuMemoryStats, GpuSearchResult, GpuVector, HnswConfig,
};
use warpwave::{Collection, Device, Error, Fetch, Metric, Query, Rows, Status, Vendor};

pub use ivf::WarpwaveIvfIndex;

/// Hits that one nearest-neighbour search can have; a larger limit is a search within any distance.
const NEAREST_MAX: usize = 2048;

/// An error of Warpwave as one of hive-gpu, with the message where that has a place for it.
fn error(error: Error) -> HiveGpuError {
    let message = error.to_string();
    if let Some(Vendor { library, .. }) = error.vendor() {
        match library.as_str() {
            "CUDA" => return HiveGpuError::CudaError(message),
            "cuBLAS" => return HiveGpuError::CublasError(message),
            "HIP" | "hipRTC" => return HiveGpuError::HipError(message),
            "rocBLAS" => return HiveGpuError::RocblasError(message),
            _ => {}
        }
    }
    match error.status() {
        Status::NoDevice => HiveGpuError::NoDeviceAvailable,
        Status::OutOfMemory => HiveGpuError::MemoryAllocationFailed(message),
        Status::NotFound => HiveGpuError::VectorNotFound(message),
        Status::InvalidArgument
        | Status::DimensionMismatch
        | Status::DuplicateId
        | Status::OutOfRange
        | Status::Unsupported => HiveGpuError::InvalidConfiguration(message),
        Status::Internal => HiveGpuError::InternalError(message),
        _ => HiveGpuError::GpuOperationFailed(message),
    }
}

fn metric_of(metric: GpuDistanceMetric) -> Metric {
    match metric {
        GpuDistanceMetric::Cosine => Metric::Cosine,
        GpuDistanceMetric::Euclidean => Metric::L2,
        GpuDistanceMetric::DotProduct => Metric::Dot,
    }
}

/// The chip as hive-gpu writes it: `"9.0"` for sm_90; AMD's by their names.
fn compute_capability(arch: &str) -> String {
    match arch.strip_prefix("sm_").and_then(|number| number.parse::<u32>().ok()) {
        Some(number) => format!("{}.{}", number / 10, number % 10),
        None => arch.to_owned(),
    }
}

/// A device, as hive-gpu's contexts are.
#[derive(Clone, Debug)]
pub struct WarpwaveContext {
    device: Device,
}

impl WarpwaveContext {
    /// The first device that opens: NVIDIA's, AMD's, the CPU.
    pub fn new() -> Result<Self> {
        Device::auto().map(|device| WarpwaveContext { device }).map_err(error)
    }

    /// A device by its name: `"cuda:0"`, `"rocm:1"`, `"cpu"`, `"all"`. If there is no ROCm, `RocmError` has the reason.
    pub fn open(name: &str) -> Result<Self> {
        Device::open(name).map(|device| WarpwaveContext { device }).map_err(|why| match why.status() {
            Status::NoDevice if name.starts_with("rocm") => HiveGpuError::RocmError(why.to_string()),
            _ => error(why),
        })
    }

    /// The device behind it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn info(&self) -> Result<GpuDeviceInfo> {
        let info = self.device.info().map_err(error)?;
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let bytes = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
        Ok(GpuDeviceInfo {
            name: info.name().to_owned(),
            backend: match info.backend() {
                "cuda" => "CUDA".to_owned(),
                "rocm" => "ROCm".to_owned(),
                other => other.to_owned(),
            },
            total_vram_bytes: bytes(info.memory_total_bytes()),
            available_vram_bytes: bytes(info.memory_free_bytes()),
            used_vram_bytes: bytes(info.memory_used_bytes()),
            driver_version: info.driver_version().to_owned(),
            compute_capability: text(&compute_capability(info.arch())),
            max_threads_per_block: u32::try_from(info.max_threads_per_block()).unwrap_or(0),
            max_shared_memory_per_block: bytes(info.shared_bytes_per_block()),
            device_id: info.index(),
            pci_bus_id: text(info.pci_address()),
        })
    }

    fn memory(&self) -> GpuMemoryStats {
        let (total, free, ours) = match self.device.memory() {
            Ok(memory) => (memory.total_bytes(), memory.free_bytes(), memory.ours_bytes()),
            Err(_) => (0, 0, 0),
        };
        GpuMemoryStats {
            total_allocated: usize::try_from(ours).unwrap_or(0),
            available: usize::try_from(free).unwrap_or(0),
            utilization: if total > 0 { (total - free) as f32 / total as f32 } else { 0.0 },
            buffer_count: 0,
        }
    }

    /// An empty storage, by its own type.
    pub fn storage(&self, dimension: usize, metric: GpuDistanceMetric) -> Result<WarpwaveStorage> {
        let collection = Collection::new(&self.device, dimension, metric_of(metric)).map_err(error)?;
        Ok(WarpwaveStorage { collection, dimension, metric })
    }
}

impl GpuContext for WarpwaveContext {
    fn create_storage(&self, dimension: usize, metric: GpuDistanceMetric) -> Result<Box<dyn GpuVectorStorage>> {
        Ok(Box::new(self.storage(dimension, metric)?))
    }

    /// The parameters are those of an approximate index; a search here is exact and needs none.
    fn create_storage_with_config(
        &self,
        dimension: usize,
        metric: GpuDistanceMetric,
        _config: HnswConfig,
    ) -> Result<Box<dyn GpuVectorStorage>> {
        self.create_storage(dimension, metric)
    }

    fn memory_stats(&self) -> GpuMemoryStats {
        self.memory()
    }

    fn device_info(&self) -> Result<GpuDeviceInfo> {
        self.info()
    }
}

impl GpuBackend for WarpwaveContext {
    fn device_info(&self) -> GpuDeviceInfo {
        self.info().unwrap_or_else(|error| GpuDeviceInfo {
            name: error.to_string(),
            backend: String::new(),
            total_vram_bytes: 0,
            available_vram_bytes: 0,
            used_vram_bytes: 0,
            driver_version: String::new(),
            compute_capability: None,
            max_threads_per_block: 0,
            max_shared_memory_per_block: 0,
            device_id: 0,
            pci_bus_id: None,
        })
    }

    fn supports_operations(&self) -> GpuCapabilities {
        GpuCapabilities { supports_hnsw: false, supports_batch: true, max_dimension: 65536, max_batch_size: u32::MAX as usize }
    }

    fn memory_stats(&self) -> GpuMemoryStats {
        self.memory()
    }
}

/// A storage: a collection of Warpwave.
#[derive(Debug)]
pub struct WarpwaveStorage {
    collection: Collection,
    dimension: usize,
    metric: GpuDistanceMetric,
}

impl WarpwaveStorage {
    /// The collection behind it, for what the trait cannot say.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    fn check(&self, numbers: &[f32]) -> Result<()> {
        if numbers.len() != self.dimension {
            return Err(HiveGpuError::DimensionMismatch { expected: self.dimension, actual: numbers.len() });
        }
        Ok(())
    }

    /// The best `limit` vectors; with `nprobe`, those of this many cells of the index.
    fn nearest(&self, query: &[f32], limit: usize, nprobe: usize) -> Result<Vec<GpuSearchResult>> {
        self.check(query)?;
        let query = Query::new(query).fetch(Fetch::IDS);
        let query = match self.metric {
            _ if limit <= NEAREST_MAX => query.nearest(limit).nprobe(nprobe),
            GpuDistanceMetric::Euclidean => query.within(f32::MAX, limit.min(u32::MAX as usize)),
            _ => query.within(f32::MIN, limit.min(u32::MAX as usize)),
        };
        let results = self.collection.query(&query).map_err(error)?;
        let found = results.hits().map(|hit| GpuSearchResult {
            id: hit.id().unwrap_or("").to_owned(),
            score: match self.metric {
                GpuDistanceMetric::Euclidean => 1.0 / (1.0 + hit.score()),
                _ => hit.score(),
            },
            index: hit.row() as usize,
        });
        Ok(found.collect())
    }

    /// The rows of ids, in their order; an id that is not there is an error.
    fn rows_of<T: AsRef<str>>(&self, ids: &[T]) -> Result<Vec<usize>> {
        let got = self.collection.get(ids, Fetch::NONE).map_err(error)?;
        let row =
            |(id, &row): (&T, &i64)| usize::try_from(row).map_err(|_| HiveGpuError::VectorNotFound(id.as_ref().to_owned()));
        ids.iter().zip(got.rows()).map(row).collect()
    }
}

impl GpuVectorStorage for WarpwaveStorage {
    fn add_vectors(&mut self, vectors: &[GpuVector]) -> Result<Vec<usize>> {
        let mut numbers = Vec::with_capacity(vectors.len() * self.dimension);
        for vector in vectors {
            self.check(&vector.data)?;
            numbers.extend_from_slice(&vector.data);
        }
        let ids: Vec<&str> = vectors.iter().map(|vector| vector.id.as_str()).collect();
        let payloads: Vec<Option<String>> = vectors.iter().map(|vector| metadata::to_json(&vector.metadata)).collect();
        let rows = Rows::new(self.dimension, &numbers).ids(&ids).payloads(&payloads);
        self.collection.add(&rows).map_err(error)?;
        self.rows_of(&ids)
    }

    fn search(&self, query: &[f32], limit: usize) -> Result<Vec<GpuSearchResult>> {
        self.nearest(query, limit, 0)
    }

    fn remove_vectors(&mut self, ids: &[String]) -> Result<()> {
        self.rows_of(ids)?;
        self.collection.discard(ids).map(|_| ()).map_err(error)
    }

    fn vector_count(&self) -> usize {
        self.collection.len()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn get_vector(&self, id: &str) -> Result<Option<GpuVector>> {
        let got = self.collection.get(&[id], Fetch::VECTORS | Fetch::PAYLOADS).map_err(error)?;
        let Some((hit, data)) = got.hits().next().and_then(|hit| Some((hit, hit.vector()?))) else {
            return Ok(None);
        };
        let metadata = hit.payload().map_or_else(|| Some(Default::default()), metadata::from_json);
        let metadata = metadata.ok_or_else(|| HiveGpuError::Other(format!("the payload of {id} is not metadata")))?;
        Ok(Some(GpuVector { id: id.to_owned(), data: data.to_vec(), metadata }))
    }

    fn clear(&mut self) -> Result<()> {
        self.collection.clear().map_err(error)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn compute_capabilities_are_written_as_hive_gpu_writes_them() {
        let written = ["sm_75", "sm_90", "sm_120", "gfx942", ""].map(super::compute_capability);
        assert_eq!(written, ["7.5", "9.0", "12.0", "gfx942", ""]);
    }
}
