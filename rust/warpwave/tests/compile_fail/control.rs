// Compiles: without it the others could fail for another reason.
// error: none
use warpwave::*;
fn main() -> Result<()> {
    let collection = Collection::new(&Device::open("cpu")?, 2, Metric::L2)?;
    let results = collection.query(&Query::new(&[1.0, 0.0]))?;
    std::thread::scope(|scope| {
        scope.spawn(|| collection.len());
        scope.spawn(|| results.hits().len());
    });
    Ok(())
}
