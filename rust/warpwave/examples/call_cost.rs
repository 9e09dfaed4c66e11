//! What a call costs through the crate and in C: the same work by both, in turns, the fastest round of each.
//!
//! `cargo run --release --example call_cost` prints nanoseconds per call and fails where the crate takes over 200 ns more.
use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use warpwave::{Collection, Device, Metric, Query, Rows, Tensor};
use warpwave_sys as sys;

const ROUNDS: usize = 200;
const CALLS: usize = 500;
const ALLOWED_NS: f64 = 200.0;

/// Nanoseconds per call of the fastest round.
fn fastest(work: &mut dyn FnMut(), best: f64) -> f64 {
    let begin = Instant::now();
    for _ in 0..CALLS {
        work();
    }
    best.min(begin.elapsed().as_nanos() as f64 / CALLS as f64)
}

/// Measures both in turns, so that whatever else the machine does meets both; prints the line and returns the difference.
fn compare(name: &str, in_c: &mut dyn FnMut(), in_rust: &mut dyn FnMut()) -> f64 {
    let (mut c, mut rust) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        c = fastest(in_c, c);
        rust = fastest(in_rust, rust);
    }
    println!("{name:28} {c:9.1} {rust:9.1} {:9.1}", rust - c);
    rust - c
}

/// A collection of the C interface with the same rows.
unsafe fn raw_collection(vectors: &[f32], dim: usize) -> *mut sys::ww_collection {
    let (mut device, mut collection) = (ptr::null_mut(), ptr::null_mut());
    let config = sys::ww_collection_config { dim: dim as i32, metric: sys::WW_L2, ..Default::default() };
    let count = (vectors.len() / dim) as i64;
    let rows = sys::ww_rows { count, dim: dim as i32, vectors: vectors.as_ptr(), ..Default::default() };
    // SAFETY: the structs are initialized, and the vectors are there. What is made here lives until the program ends.
    unsafe {
        assert_eq!(sys::ww_device_open(c_text(b"cpu\0"), &mut device), sys::WW_OK);
        assert_eq!(sys::ww_collection_create(device, &config, &mut collection), sys::WW_OK);
        assert_eq!(sys::ww_collection_add(collection, &rows), sys::WW_OK);
    }
    collection
}

fn c_text(text: &[u8]) -> *const std::ffi::c_char {
    text.as_ptr().cast()
}

fn main() -> warpwave::Result<()> {
    let (dim, vectors) = (16, (0..16 * 64).map(|i| (i % 97) as f32).collect::<Vec<_>>());
    let device = Device::open("cpu")?;
    let collection = Collection::new(&device, dim, Metric::L2)?;
    collection.add(&Rows::new(dim, &vectors))?;
    // SAFETY: the vectors have this dimension.
    let raw = unsafe { raw_collection(&vectors, dim) };
    let (mut rows, mut scores) = ([0i64; 4], [0f32; 4]);
    let (mut rows_too, mut scores_too) = ([0i64; 4], [0f32; 4]);
    let raw_query = || sys::ww_query { queries: vectors.as_ptr(), query_count: 1, dim: dim as i32, k: 4, ..Default::default() };
    println!("{:28} {:>9} {:>9} {:>9}", "nanoseconds per call", "C", "crate", "more");
    let mut worst = f64::MIN;
    let mut keep = |difference: f64| worst = worst.max(difference);

    keep(compare(
        "find an id",
        // SAFETY: in all of these the handles are live and the memory is as large as the calls need.
        &mut || unsafe {
            let mut row = 0;
            sys::ww_collection_find(raw, c_text(b"17\0"), &mut row);
            black_box(row);
        },
        &mut || {
            black_box(collection.find("17").unwrap_or(-1));
        },
    ));
    keep(compare(
        "search 64 rows",
        // SAFETY: as above.
        &mut || unsafe {
            sys::ww_collection_search(raw, &raw_query(), rows.as_mut_ptr(), scores.as_mut_ptr());
        },
        &mut || {
            let query = Query::new(&vectors[..dim]).nearest(4);
            let _ = black_box(collection.search(&query, &mut rows_too, &mut scores_too));
        },
    ));
    keep(compare(
        "query 64 rows, read 4 hits",
        // SAFETY: as above.
        &mut || unsafe {
            let mut results = ptr::null_mut();
            sys::ww_collection_query(raw, &raw_query(), &mut results);
            let count = sys::ww_results_count(results, 0) as usize;
            let found = std::slice::from_raw_parts(sys::ww_results_scores(results, 0), count);
            black_box(found.iter().sum::<f32>());
            sys::ww_results_destroy(results);
        },
        &mut || {
            let results = collection.query(&Query::new(&vectors[..dim]).nearest(4));
            black_box(results.map_or(0.0, |results| results.hits().map(|hit| hit.score()).sum::<f32>()));
        },
    ));
    let x = Tensor::from_slice(&device, &[16], &vectors[..16])?;
    let mut raw_device = ptr::null_mut();
    // SAFETY: all zeros are an empty tensor.
    let mut raw_x: sys::ww_tensor = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe {
        sys::ww_device_open(c_text(b"cpu\0"), &mut raw_device);
        sys::ww_tensor_from_host(raw_device, sys::WW_F32, 1, [16].as_ptr(), vectors.as_ptr().cast(), &mut raw_x);
    }
    keep(compare(
        "exp of 16 elements",
        // SAFETY: as above.
        &mut || unsafe {
            let mut out: sys::ww_tensor = std::mem::zeroed();
            sys::ww_tensor_unary(sys::WW_EXP, &raw_x, &mut out);
            sys::ww_tensor_release(&mut out);
        },
        &mut || {
            let _ = black_box(x.exp());
        },
    ));
    assert_eq!((rows, scores), (rows_too, scores_too));
    assert!(
        worst <= ALLOWED_NS,
        "a call through the crate takes {worst:.0} ns more than in C; at most {ALLOWED_NS:.0} are allowed"
    );
    Ok(())
}
