//! A double of the crate hive-gpu 0.2: its traits and types in the shape that hive-gpu-warpwave uses, for builds without a registry.
//! rust/Cargo.toml says why. The words and the code are Warpwave's.

pub mod error {
    use std::fmt;

    #[derive(Debug)]
    #[non_exhaustive]
    pub enum HiveGpuError {
        DimensionMismatch { expected: usize, actual: usize },
        GpuOperationFailed(String),
        NoDeviceAvailable,
        DeviceInitializationFailed(String),
        MemoryAllocationFailed(String),
        SearchFailed(String),
        VectorNotFound(String),
        InvalidConfiguration(String),
        CudaError(String),
        CublasError(String),
        HipError(String),
        RocblasError(String),
        RocmError(String),
        InternalError(String),
        Other(String),
    }

    impl fmt::Display for HiveGpuError {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "{self:?}")
        }
    }
    impl std::error::Error for HiveGpuError {}

    pub type Result<T> = std::result::Result<T, HiveGpuError>;
}

pub mod types {
    use std::collections::HashMap;

    #[derive(Clone, Debug)]
    pub struct GpuVector {
        pub id: String,
        pub data: Vec<f32>,
        pub metadata: HashMap<String, String>,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum GpuDistanceMetric {
        Cosine,
        Euclidean,
        DotProduct,
    }

    #[derive(Clone, Debug)]
    pub struct GpuSearchResult {
        pub id: String,
        pub score: f32,
        pub index: usize,
    }

    #[derive(Clone, Debug)]
    pub struct GpuDeviceInfo {
        pub name: String,
        pub backend: String,
        pub total_vram_bytes: u64,
        pub available_vram_bytes: u64,
        pub used_vram_bytes: u64,
        pub driver_version: String,
        pub compute_capability: Option<String>,
        pub max_threads_per_block: u32,
        pub max_shared_memory_per_block: u64,
        pub device_id: i32,
        pub pci_bus_id: Option<String>,
    }

    #[derive(Clone, Debug)]
    pub struct GpuCapabilities {
        pub supports_hnsw: bool,
        pub supports_batch: bool,
        pub max_dimension: usize,
        pub max_batch_size: usize,
    }

    #[derive(Clone, Debug)]
    pub struct GpuMemoryStats {
        pub total_allocated: usize,
        pub available: usize,
        pub utilization: f32,
        pub buffer_count: usize,
    }

    #[derive(Clone, Debug, Default)]
    pub struct HnswConfig {
        pub max_connections: usize,
        pub ef_construction: usize,
        pub ef_search: usize,
        pub max_level: usize,
        pub level_multiplier: f32,
        pub seed: Option<u64>,
    }

    #[derive(Clone, Debug)]
    pub struct IvfConfig {
        pub n_list: usize,
        pub nprobe: usize,
        pub training_sample_size: usize,
        pub kmeans_iters: usize,
        pub seed: Option<u64>,
    }
}

pub mod traits {
    use crate::error::Result;
    use crate::types::{
        GpuCapabilities, GpuDeviceInfo, GpuDistanceMetric, GpuMemoryStats, GpuSearchResult, GpuVector, HnswConfig,
    };

    pub trait GpuBackend {
        fn device_info(&self) -> GpuDeviceInfo;
        fn supports_operations(&self) -> GpuCapabilities;
        fn memory_stats(&self) -> GpuMemoryStats;
    }

    pub trait GpuVectorStorage {
        fn add_vectors(&mut self, vectors: &[GpuVector]) -> Result<Vec<usize>>;
        fn search(&self, query: &[f32], limit: usize) -> Result<Vec<GpuSearchResult>>;
        fn remove_vectors(&mut self, ids: &[String]) -> Result<()>;
        fn vector_count(&self) -> usize;
        fn dimension(&self) -> usize;
        fn get_vector(&self, id: &str) -> Result<Option<GpuVector>>;
        fn clear(&mut self) -> Result<()>;
    }

    pub trait GpuContext {
        fn create_storage(&self, dimension: usize, metric: GpuDistanceMetric) -> Result<Box<dyn GpuVectorStorage>>;
        fn create_storage_with_config(
            &self,
            dimension: usize,
            metric: GpuDistanceMetric,
            config: HnswConfig,
        ) -> Result<Box<dyn GpuVectorStorage>>;
        fn memory_stats(&self) -> GpuMemoryStats;
        fn device_info(&self) -> Result<GpuDeviceInfo>;
    }
}
