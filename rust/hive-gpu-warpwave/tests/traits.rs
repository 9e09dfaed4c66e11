//! A program that is written for hive-gpu's traits.
use std::collections::HashMap;

use hive_gpu::error::HiveGpuError;
use hive_gpu::traits::{GpuBackend, GpuContext, GpuVectorStorage};
use hive_gpu::types::{GpuDistanceMetric, GpuVector, HnswConfig, IvfConfig};
use hive_gpu_warpwave::{WarpwaveContext, WarpwaveIvfIndex};

fn vector(id: &str, data: &[f32]) -> GpuVector {
    let metadata = HashMap::from([("source".to_owned(), format!("\"{id}\"\n"))]);
    GpuVector { id: id.to_owned(), data: data.to_vec(), metadata }
}

fn filled(metric: GpuDistanceMetric) -> Box<dyn GpuVectorStorage> {
    let context: &dyn GpuContext = &WarpwaveContext::open("cpu").unwrap();
    let mut storage = context.create_storage(2, metric).unwrap();
    let added = [vector("east", &[1.0, 0.0]), vector("north", &[0.0, 1.0]), vector("far", &[3.0, 4.0])];
    assert_eq!(storage.add_vectors(&added).unwrap(), [0, 1, 2]);
    storage
}

#[test]
fn the_best_comes_first_in_hive_gpus_scores() {
    for (metric, ids, scores) in [
        (GpuDistanceMetric::Cosine, ["east", "far", "north"], [1.0, 0.6, 0.0]),
        (GpuDistanceMetric::DotProduct, ["far", "east", "north"], [3.0, 1.0, 0.0]),
        (GpuDistanceMetric::Euclidean, ["east", "north", "far"], [1.0, 1.0 / (1.0 + 2f32.sqrt()), 1.0 / (1.0 + 20f32.sqrt())]),
    ] {
        let storage = filled(metric);
        for limit in [3, 5000, usize::MAX] {
            let found = storage.search(&[1.0, 0.0], limit).unwrap();
            assert_eq!(found.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ids, "{metric:?}");
            assert_eq!(found.iter().map(|hit| hit.score).collect::<Vec<_>>(), scores, "{metric:?}");
        }
        assert!(storage.search(&[1.0, 0.0], 0).unwrap().is_empty());
    }
}

#[test]
fn vectors_come_back_with_their_metadata_and_go() {
    let mut storage = filled(GpuDistanceMetric::Cosine);
    let got = storage.get_vector("far").unwrap().unwrap();
    assert_eq!((got.data, got.metadata["source"].as_str()), (vec![3.0, 4.0], "\"far\"\n"));
    assert!(storage.get_vector("nowhere").unwrap().is_none());
    let both = ["east".to_owned(), "nowhere".to_owned()];
    assert!(matches!(storage.remove_vectors(&both), Err(HiveGpuError::VectorNotFound(id)) if id == "nowhere"));
    assert_eq!(storage.vector_count(), 3);
    storage.remove_vectors(&["east".to_owned(), "east".to_owned()]).unwrap();
    assert_eq!((storage.vector_count(), storage.dimension()), (2, 2));
    storage.add_vectors(&[vector("east", &[1.0, 1.0])]).unwrap();
    storage.clear().unwrap();
    assert_eq!(storage.vector_count(), 0);
}

#[test]
fn errors_are_hive_gpus() {
    let mut storage = filled(GpuDistanceMetric::Cosine);
    let mismatch = storage.add_vectors(&[vector("short", &[1.0])]).unwrap_err();
    assert!(matches!(mismatch, HiveGpuError::DimensionMismatch { expected: 2, actual: 1 }));
    assert!(matches!(storage.search(&[1.0; 3], 1), Err(HiveGpuError::DimensionMismatch { expected: 2, actual: 3 })));
    for refused in [vector("east", &[1.0, 0.0]), vector("", &[1.0, 0.0]), vector("new", &[f32::NAN, 0.0])] {
        assert!(matches!(storage.add_vectors(&[refused]), Err(HiveGpuError::InvalidConfiguration(_))));
    }
    assert_eq!(storage.vector_count(), 3);
    assert!(matches!(WarpwaveContext::open("abacus"), Err(HiveGpuError::NoDeviceAvailable)));
    if let Err(absent) = WarpwaveContext::open("rocm:99") {
        assert!(matches!(&absent, HiveGpuError::RocmError(why) if why.contains("rocm:99")), "{absent}");
    }
    let context = WarpwaveContext::open("cpu").unwrap();
    assert!(context.create_storage_with_config(0, GpuDistanceMetric::Cosine, HnswConfig::default()).is_err());
}

#[test]
fn devices_describe_themselves() {
    let context = WarpwaveContext::open("cpu").unwrap();
    let info = GpuContext::device_info(&context).unwrap();
    assert!(info.backend == "cpu" && info.total_vram_bytes > 0 && info.driver_version.is_empty());
    assert_eq!(GpuBackend::device_info(&context).name, info.name);
    assert!(GpuBackend::memory_stats(&context).available > 0 && !context.supports_operations().supports_hnsw);
}

#[test]
fn an_ivf_index_reads_as_many_cells_as_it_should() {
    let context = WarpwaveContext::open("cpu").unwrap();
    let config = IvfConfig { n_list: 4, nprobe: 1, training_sample_size: 100, kmeans_iters: 5, seed: Some(1) };
    let mut index = WarpwaveIvfIndex::new(&context, 2, GpuDistanceMetric::Euclidean, config.clone()).unwrap();
    assert!(index.search(&[0.0, 0.0], 1).is_err() && !index.is_trained());
    let vectors: Vec<_> = (0..100).map(|i| vector(&i.to_string(), &[i as f32, 0.0])).collect();
    assert!(index.build(&vectors[..3]).is_err());
    index.build(&vectors).unwrap();
    let ids: Vec<_> = index.search(&[41.2, 0.0], 2).unwrap().into_iter().map(|hit| hit.id).collect();
    assert_eq!(ids, ["41", "42"]);
    assert!(index.search(&[0.0, 0.0], 100).unwrap().len() == 100, "more cells are read until there are enough");
    index.set_nprobe(4).unwrap();
    let all: Vec<_> = index.search(&[41.2, 0.0], 100).unwrap().into_iter().map(|hit| hit.score).collect();
    assert!(all.windows(2).all(|pair| pair[0] >= pair[1]) && all.len() == 100);
    assert!(index.set_nprobe(5).is_err() && index.set_nprobe(0).is_err());
    assert_eq!((index.nprobe(), index.n_list(), index.vector_count()), (4, 4, 100));
    assert!(WarpwaveIvfIndex::new(&context, 2, GpuDistanceMetric::Cosine, IvfConfig { n_list: 0, ..config }).is_err());
}
