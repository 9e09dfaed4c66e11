// A query cannot outlive its vector.
// error: E0515
use warpwave::*;
pub fn made() -> Query<'static> {
    let vector = vec![1.0, 0.0];
    Query::new(&vector)
}
fn main() {}
