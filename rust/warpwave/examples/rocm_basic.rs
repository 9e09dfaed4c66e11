//! Describes the first AMD GPU, or the device that is named, and compares its answers with the CPU's, bit for bit. Exits with 0 if they
//! are equal, with 1 if not, and with 77, and ROCm's reason, if there is no such device: `rocm_basic [DEVICE]`.
use std::process::ExitCode;

use warpwave::{Collection, Device, Metric, Query, Result, Rows};

const ROWS: usize = 5000;
const DIM: usize = 128;
const QUERIES: usize = 8;

/// Repeatable numbers between -1 and 1.
fn numbers(count: usize, state: &mut u32) -> Vec<f32> {
    let mut next = || {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The handles and the bits of the scores of what is nearest to each query.
fn answers(device: &Device, vectors: &[f32], queries: &[f32]) -> Result<Vec<(i64, u32)>> {
    let collection = Collection::new(device, DIM, Metric::Cosine)?;
    collection.add(&Rows::new(DIM, vectors))?;
    let mut found = Vec::new();
    for query in queries.chunks(DIM) {
        let results = collection.query(&Query::new(query).nearest(5))?;
        found.extend(results.hits().map(|hit| (hit.handle(), hit.score().to_bits())));
    }
    Ok(found)
}

fn compare(device: &Device) -> Result<bool> {
    let info = device.info()?;
    println!("{}: {} ({})", info.id(), info.name(), info.arch());
    let mut state = 1;
    let vectors = numbers(ROWS * DIM, &mut state);
    let queries = numbers(QUERIES * DIM, &mut state);
    let theirs = answers(device, &vectors, &queries)?;
    let ours = answers(&Device::open("cpu")?, &vectors, &queries)?;
    println!("{} results: rows and score bits are {}", ours.len(), if theirs == ours { "the same" } else { "NOT the same" });
    Ok(theirs == ours)
}

fn main() -> Result<ExitCode> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "rocm:0".to_string());
    match Device::open(&name) {
        Ok(device) => Ok(ExitCode::from(u8::from(!compare(&device)?))),
        Err(absent) => {
            println!("{absent}");
            Ok(ExitCode::from(77))
        }
    }
}
