// Rows cannot outlive their vectors.
// error: E0505
use warpwave::*;
pub fn add(collection: &Collection) -> Result<()> {
    let vectors = vec![1.0, 0.0];
    let rows = Rows::new(2, &vectors);
    drop(vectors);
    collection.add(&rows)
}
fn main() {}
