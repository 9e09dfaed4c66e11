//! The optional features over the published crates, with what rust/doubles lacks: check-crates puts this file beside features.rs.
mod common;
use common::cpu;
use half::{bf16, f16};
use ndarray::{arr0, s, Array2, ArrayD, ShapeBuilder};
use serde_json::{json, Value};
use warpwave::{Collection, DType, Fetch, Metric, Query, Rows, Tensor};

#[test]
fn arrays_in_any_memory_order_have_their_elements() {
    let columns_first = Array2::from_shape_vec((2, 3).f(), vec![0i32, 3, 1, 4, 2, 5]).unwrap();
    let rows_first = Array2::from_shape_vec((2, 3), vec![0i32, 1, 2, 3, 4, 5]).unwrap();
    let views = [
        columns_first.view(),
        rows_first.view(),
        rows_first.t(),
        rows_first.slice(s![.., ..;2]),
        rows_first.slice(s![..;-1, 1..]),
        rows_first.slice(s![..0, ..]),
    ];
    for view in views {
        let x = Tensor::from_array(&cpu(), &view.into_dyn()).unwrap();
        assert_eq!(x.shape(), view.shape().iter().map(|&size| size as i64).collect::<Vec<_>>());
        assert_eq!(x.to_vec::<i32>().unwrap(), view.iter().copied().collect::<Vec<_>>());
        assert_eq!(x.to_array::<i32>().unwrap(), view.to_owned().into_dyn());
    }
    let scalar = Tensor::from_array(&cpu(), &arr0(7.5f64).view().into_dyn()).unwrap();
    assert_eq!((scalar.shape(), scalar.to_array::<f64>().unwrap()), (&[][..], arr0(7.5).into_dyn()));
    let transposed = Tensor::from_array(&cpu(), &rows_first.view().into_dyn()).unwrap();
    let back: ArrayD<i32> = transposed.transpose(0, 1).unwrap().to_array().unwrap();
    assert_eq!(back, rows_first.t().to_owned().into_dyn());
}

/// Every value of a type of 16 bits becomes the float that the crate half makes of it, and the floats become these values again.
macro_rules! all_values {
    ($type:ident, $dtype:ident) => {{
        let values: Vec<$type> = (0..=u16::MAX).map($type::from_bits).collect();
        let halves = Tensor::from_slice(&cpu(), &[1 << 16], &values).unwrap();
        let floats = halves.cast(DType::F32).unwrap();
        for (value, float) in values.iter().zip(floats.to_vec::<f32>().unwrap()) {
            assert!(value.to_f32().to_bits() == float.to_bits() || (value.is_nan() && float.is_nan()), "{value:?} is {float}");
        }
        let back = floats.cast(DType::$dtype).unwrap().to_vec::<$type>().unwrap();
        assert!(values.iter().zip(&back).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())));
        let numbers: Vec<f32> =
            common::numbers(9, 4000).iter().enumerate().map(|(i, x)| x * 1.1f32.powi(i as i32 % 300 - 200)).collect();
        let rounded = Tensor::from_slice(&cpu(), &[4000], &numbers).unwrap().cast(DType::$dtype).unwrap();
        let expected: Vec<$type> = numbers.iter().map(|&number| $type::from_f32(number)).collect();
        assert_eq!(rounded.to_vec::<$type>().unwrap(), expected);
    }};
}

#[test]
fn halves_have_the_values_of_the_crate() {
    all_values!(f16, F16);
    all_values!(bf16, BF16);
}

#[test]
fn payloads_are_the_values_that_were_given() {
    let payloads = [
        Some(json!({"year": 7, "title": "a \"quoted\" \\ line\nand \u{1F98A}", "tags": ["x", null, true], "share": 0.1})),
        None,
        Some(json!({"year": 2000, "nested": {"empty": {}, "list": []}, "large": u64::MAX, "small": -0.0015})),
    ];
    let collection = Collection::new(&cpu(), 2, Metric::L2).unwrap();
    collection.add(&Rows::new(2, &[0.0, 1.0, 0.0, 2.0, 0.0, 3.0]).payload_values(&payloads)).unwrap();
    let everything = Query::new(&[0.0, 0.0]).nearest(3).fetch(Fetch::PAYLOADS);
    let kept: Vec<Option<Value>> =
        collection.query(&everything).unwrap().hits().map(|hit| hit.payload_value().unwrap()).collect();
    assert_eq!(kept, payloads);
    let filtered = collection.query(&everything.filter_value(&json!({"tags": "x", "title": {"$contains": "\"quoted\""}})));
    match filtered {
        Ok(results) => assert_eq!(results.rows(), [0]),
        Err(error) => panic!("{error}"),
    }
}
