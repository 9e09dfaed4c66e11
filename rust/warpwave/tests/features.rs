//! The optional features, over the doubles of the crates that they use.
#![cfg(all(feature = "half", feature = "ndarray", feature = "serde_json"))]
mod common;
use common::{cpu, winds};
use warpwave::{Collection, CollectionConfig, DType, Fetch, Metric, Query, Rows, Tensor, VectorType};

#[test]
fn halves_are_elements_of_tensors_and_rows() {
    let halves = [0x3c00, 0xc000].map(half::f16::from_bits); // 1 and -2
    let x = Tensor::from_slice(&cpu(), &[2], &halves).unwrap();
    assert_eq!((x.dtype(), x.cast(DType::F32).unwrap().to_vec::<f32>().unwrap()), (DType::F16, vec![1.0, -2.0]));
    assert_eq!(x.to_vec::<half::f16>().unwrap(), halves);
    assert!(x.to_vec::<half::bf16>().is_err());
    let config = CollectionConfig::new(2, Metric::L2).vector_type(VectorType::BF16);
    let collection = Collection::create(&cpu(), &config).unwrap();
    collection.add(&Rows::elements(2, &[0x3f80, 0xc000].map(half::bf16::from_bits))).unwrap();
    assert_eq!(collection.vector(0).unwrap(), [1.0, -2.0]);
}

#[test]
fn arrays_become_tensors_and_back() {
    let array = ndarray::ArrayD::from_shape_vec(vec![2, 3], vec![0i64, 1, 2, 3, 4, 5]).unwrap();
    let x = Tensor::from_array(&cpu(), &array.view()).unwrap();
    assert_eq!((x.shape(), x.dtype()), (&[2, 3][..], DType::I64));
    let back = x.transpose(0, 1).unwrap().to_array::<i64>().unwrap();
    assert_eq!(back, ndarray::ArrayD::from_shape_vec(vec![3, 2], vec![0, 3, 1, 4, 2, 5]).unwrap());
}

#[test]
fn payloads_and_filters_are_values() {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let collection = winds();
    collection.upsert(&Rows::new(2, &[0.0, 1.0]).ids(&["north"]).payload_values(&[Some(value(r#"{"year": 7}"#))])).unwrap();
    let conditions = value(r#"{"year": {"$lt": 100}}"#);
    let results = collection.query(&Query::new(&[1.0, 0.0]).filter_value(&conditions).fetch(Fetch::PAYLOADS)).unwrap();
    let payloads: Vec<_> = results.hits().map(|hit| hit.payload_value().unwrap().unwrap()).collect();
    assert_eq!(payloads, [value(r#"{"year": 7}"#)]);
}
