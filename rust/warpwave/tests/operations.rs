//! Every operation on tensors does what its name says, with its arguments in their places, on numbers small enough to check by
//! hand. same_bits.rs compares bits with C.
use std::sync::OnceLock;

use warpwave::{Attention, AttentionType, Conv, DType, Device, Math, Pool, Reduce, Result, Tensor};

/// One device for all tensors: those of two openings do not meet.
fn cpu() -> &'static Device {
    static CPU: OnceLock<Device> = OnceLock::new();
    CPU.get_or_init(|| Device::open("cpu").unwrap())
}

fn tensor(shape: &[i64], data: &[f32]) -> Tensor {
    Tensor::from_slice(cpu(), shape, data).unwrap()
}

/// The numbers of a result, each rounded to four decimals.
#[track_caller]
fn is(result: Result<Tensor>, expected: &[f32]) {
    let numbers = result.unwrap().to_vec::<f32>().unwrap();
    let near = numbers.len() == expected.len() && numbers.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4);
    assert!(near, "{numbers:?} is not {expected:?}");
}

#[test]
fn each_element_is_computed_by_the_function_of_the_name() {
    let x = tensor(&[3], &[-0.5, 0.25, 1.5]);
    let each = |function: fn(f32) -> f32| [-0.5, 0.25, 1.5].map(function);
    is(x.abs(), &each(f32::abs));
    is(x.neg(), &each(|x| -x));
    is(x.recip(), &each(f32::recip));
    is(x.sqr(), &each(|x| x * x));
    is(x.sqr().unwrap().sqrt(), &each(f32::abs));
    is(x.sqr().unwrap().rsqrt(), &each(|x| 1.0 / x.abs()));
    is(x.relu(), &each(|x| x.max(0.0)));
    is(x.floor(), &each(f32::floor));
    is(x.ceil(), &each(f32::ceil));
    is(x.round(), &each(f32::round));
    is(x.sign(), &each(f32::signum));
    is(x.exp(), &each(f32::exp));
    is(x.expm1(), &each(f32::exp_m1));
    is(x.sqr().unwrap().log(), &each(|x| (x * x).ln()));
    is(x.log1p(), &each(f32::ln_1p));
    is(x.sin(), &each(f32::sin));
    is(x.cos(), &each(f32::cos));
    is(x.tanh(), &each(f32::tanh));
    is(x.erf(), &[-0.5205, 0.2763, 0.9661]);
    is(x.sigmoid(), &each(|x| 1.0 / (1.0 + (-x).exp())));
    is(x.silu(), &each(|x| x / (1.0 + (-x).exp())));
    is(x.gelu(), &[-0.1543, 0.1497, 1.3996]);
    is(x.gelu_erf(), &[-0.1543, 0.1497, 1.3998]);
    is(x.affine(2.0, 1.0), &each(|x| 2.0 * x + 1.0));
    is(x.powf(2.0), &each(|x| x * x));
    is(x.elu(2.0), &each(|x| if x > 0.0 { x } else { 2.0 * x.exp_m1() }));
}

#[test]
fn two_elements_meet_in_the_order_that_is_written() {
    let (x, y) = (tensor(&[3], &[7.0, -7.0, 2.0]), tensor(&[1], &[2.0]));
    is(x.add(&y), &[9.0, -5.0, 4.0]);
    is(x.sub(&y), &[5.0, -9.0, 0.0]);
    is(x.mul(&y), &[14.0, -14.0, 4.0]);
    is(x.div(&y), &[3.5, -3.5, 1.0]);
    is(x.maximum(&y), &[7.0, 2.0, 2.0]);
    is(x.minimum(&y), &[2.0, -7.0, 2.0]);
    is(x.rem(&y), &[1.0, -1.0, 0.0]);
    is(x.pow(&y), &[49.0, 49.0, 4.0]);
    is(x.atan2(&y), &[7f32.atan2(2.0), (-7f32).atan2(2.0), 2f32.atan2(2.0)]);
    let bytes = |result: Result<Tensor>| result.unwrap().to_vec::<u8>().unwrap();
    assert_eq!(bytes(x.eq_to(&y)), [0, 0, 1]);
    assert_eq!(bytes(x.ne_to(&y)), [1, 1, 0]);
    assert_eq!(bytes(x.lt(&y)), [0, 1, 0]);
    assert_eq!(bytes(x.le(&y)), [0, 1, 1]);
    assert_eq!(bytes(x.gt(&y)), [1, 0, 0]);
    assert_eq!(bytes(x.ge(&y)), [1, 0, 1]);
    is(x.gt(&y).unwrap().choose(&x, &y), &[7.0, 2.0, 2.0]);
}

#[test]
fn rows_are_reduced_normalized_and_rotated() {
    let x = tensor(&[2, 3], &[3.0, 1.0, 2.0, 4.0, 6.0, 5.0]);
    is(x.reduce(Reduce::Sum, &[1]), &[6.0, 15.0]);
    is(x.reduce(Reduce::Sum, &[0]), &[7.0, 7.0, 7.0]);
    is(x.reduce(Reduce::Prod, &[]), &[720.0]);
    is(x.reduce(Reduce::Min, &[1]), &[1.0, 4.0]);
    is(x.reduce(Reduce::Max, &[1]), &[3.0, 6.0]);
    is(x.reduce(Reduce::Mean, &[1]), &[2.0, 5.0]);
    let indices = |op| x.reduce(op, &[1]).unwrap().to_vec::<u32>().unwrap();
    assert_eq!((indices(Reduce::ArgMin), indices(Reduce::ArgMax)), (vec![1, 0], vec![0, 1]));
    is(x.cumsum(0), &[3.0, 1.0, 2.0, 7.0, 7.0, 7.0]);
    is(x.cumsum(1), &[3.0, 4.0, 6.0, 4.0, 10.0, 15.0]);
    is(Tensor::zeros(cpu(), DType::F32, &[1, 4]).unwrap().softmax(1), &[0.25; 4]);
    is(Tensor::zeros(cpu(), DType::F32, &[1, 4]).unwrap().softmax(0), &[1.0; 4]);
    let (largest, places) = x.top_k(2, true).unwrap();
    is(Ok(largest), &[3.0, 2.0, 6.0, 5.0]);
    assert_eq!(places.to_vec::<u32>().unwrap(), [0, 2, 1, 2]);
    is(Ok(x.top_k(1, false).unwrap().0), &[1.0, 4.0]);

    let (row, weight, bias) = (tensor(&[1, 2], &[-1.0, 1.0]), tensor(&[2], &[2.0, 3.0]), tensor(&[2], &[10.0, 20.0]));
    is(row.layer_norm(Some(&weight), Some(&bias), 3.0), &[9.0, 21.5]);
    is(row.layer_norm(None, None, 3.0), &[-0.5, 0.5]);
    is(row.rms_norm(Some(&weight), 3.0), &[-1.0, 1.5]);
    let (cosines, sines) = (tensor(&[1, 2], &[0.0, 1.0]), tensor(&[1, 2], &[1.0, 0.0])); // a quarter turn, and none
    let pairs = tensor(&[1, 4], &[1.0, 2.0, 3.0, 4.0]);
    is(pairs.rope(&cosines, &sines, true), &[-2.0, 1.0, 3.0, 4.0]);
    is(pairs.rope(&cosines, &sines, false), &[-3.0, 2.0, 1.0, 4.0]);
}

#[test]
fn elements_are_found_and_written_by_ids() {
    let mut x = tensor(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let ids = Tensor::from_slice(cpu(), &[2, 2], &[1u32, 0, 0, 0]).unwrap();
    is(x.gather(&ids, 0), &[3.0, 2.0, 1.0, 2.0]);
    is(x.gather(&ids, 1), &[2.0, 1.0, 3.0, 3.0]);
    let list = Tensor::from_slice(cpu(), &[3], &[1i64, 1, 0]).unwrap();
    is(x.index_select(&list, 0), &[3.0, 4.0, 3.0, 4.0, 1.0, 2.0]);
    is(x.index_select(&list, 1), &[2.0, 2.0, 1.0, 4.0, 4.0, 3.0]);
    is(Tensor::cat(&[&x, &x], 1), &[1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
    let more = tensor(&[2, 2], &[10.0, 20.0, 30.0, 40.0]);
    x.view_mut().scatter_add(&ids, &more, 1).unwrap(); // 10 to (0, 1), 20 to (0, 0), 30 and 40 to (1, 0)
    is(x.contiguous(), &[21.0, 12.0, 73.0, 4.0]);
    x.view_mut().scatter(&ids, &more, 0).unwrap(); // 10 to (1, 0), 20 to (0, 1), 30 to (0, 0), 40 to (0, 1)
    is(x.contiguous(), &[30.0, 40.0, 10.0, 4.0]);
    let slices = tensor(&[3, 2], &[1.0, 1.0, 2.0, 2.0, 5.0, 5.0]);
    x.view_mut().index_add(&list, &slices, 0).unwrap();
    is(x.contiguous(), &[35.0, 45.0, 13.0, 7.0]);
    assert_eq!(x.unsqueeze(-1).unwrap().shape(), [2, 2, 1]);
    assert_eq!(x.unsqueeze(0).unwrap().squeeze(0).unwrap().shape(), [2, 2]);
}

#[test]
fn images_are_convolved_pooled_and_resized() {
    let line = tensor(&[1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
    let two = tensor(&[1, 1, 2], &[1.0, 10.0]);
    is(line.conv1d(&two, &Conv::default()), &[21.0, 32.0, 43.0]);
    is(line.conv1d(&two, &Conv { stride: [2, 1], ..Default::default() }), &[21.0, 43.0]);
    is(line.conv1d(&two, &Conv { dilation: [3, 1], ..Default::default() }), &[41.0]);
    is(line.conv1d(&two, &Conv { padding: [1, 0], ..Default::default() }), &[10.0, 21.0, 32.0, 43.0, 4.0]);
    let short = line.narrow(2, 0, 2).unwrap();
    is(short.conv_transpose1d(&two, &Conv::default()), &[1.0, 12.0, 20.0]);
    let later = Conv { stride: [2, 1], output_padding: [1, 0], ..Default::default() };
    is(short.conv_transpose1d(&two, &later), &[1.0, 10.0, 2.0, 20.0, 0.0]);

    let image = line.reshape(&[1, 1, 2, 2]).unwrap();
    let wide = two.reshape(&[1, 1, 1, 2]).unwrap(); // along x
    is(image.conv2d(&wide, &Conv::default()), &[21.0, 43.0]);
    is(image.conv2d(&wide, &Conv { padding: [1, 0], ..Default::default() }), &[0.0, 21.0, 43.0, 0.0]);
    is(image.conv_transpose2d(&wide, &Conv::default()), &[1.0, 12.0, 20.0, 3.0, 34.0, 40.0]);
    let channels = line.reshape(&[1, 2, 1, 2]).unwrap();
    let of_each = two.reshape(&[2, 1, 1, 1]).unwrap();
    is(channels.conv2d(&of_each, &Conv { groups: 2, math: Math::Canonical, ..Default::default() }), &[1.0, 2.0, 30.0, 40.0]);

    is(image.avg_pool2d(&Pool::new(1, 2)), &[1.5, 3.5]);
    is(image.max_pool2d(&Pool::new(2, 1)), &[3.0, 4.0]);
    let padded = |padding_counts| Pool { padding: [0, 1], padding_counts, ..Pool::new(2, 2) };
    is(image.avg_pool2d(&padded(true)), &[1.0, 1.5]);
    is(image.avg_pool2d(&padded(false)), &[2.0, 3.0]);

    is(short.upsample_nearest1d(4), &[1.0, 1.0, 2.0, 2.0]);
    is(image.upsample_nearest2d(2, 4), &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
    let row = image.narrow(2, 0, 1).unwrap();
    is(row.upsample_bilinear2d(1, 3, true), &[1.0, 1.5, 2.0]);
    is(row.upsample_bilinear2d(1, 4, false), &[1.0, 1.25, 1.75, 2.0]);
}

#[test]
fn queries_attend_to_the_keys_that_they_may_see() {
    let all = |numbers: &[f32]| -> Vec<f32> { numbers.iter().flat_map(|&number| [number; 32]).collect() };
    let (zeros, keys) = (tensor(&[2, 1, 32], &all(&[0.0, 0.0])), tensor(&[2, 1, 32], &all(&[0.0, 1.0])));
    let values = tensor(&[2, 1, 32], &all(&[1.0, 3.0]));
    let attend = |queries: &Tensor, how: Attention| queries.attention(&keys, &values, &how);
    let plain = Attention { r#type: AttentionType::F32, ..Default::default() };
    is(attend(&zeros, plain.clone()), &all(&[2.0, 2.0]));
    is(attend(&zeros, Attention { causal: true, ..plain.clone() }), &all(&[1.0, 2.0]));
    is(attend(&zeros, Attention { causal: true, window: 1, ..plain.clone() }), &all(&[1.0, 3.0]));
    let one = zeros.narrow(0, 0, 1).unwrap();
    is(attend(&one, Attention { causal: true, first_position: Some(0), ..plain.clone() }), &all(&[1.0]));
    is(attend(&one, Attention { causal: true, ..plain.clone() }), &all(&[2.0]));
    let ones = tensor(&[1, 1, 32], &all(&[1.0]));
    is(attend(&ones, Attention { scale: Some(10.0), ..plain.clone() }), &all(&[3.0]));
    is(attend(&ones, Attention { scale: Some(1e-9), ..plain }), &all(&[2.0]));
}
