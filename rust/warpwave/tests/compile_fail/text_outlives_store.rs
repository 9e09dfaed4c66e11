// A collection of text cannot outlive its store.
// error: E0505
use warpwave::*;
pub fn count(store: Store, model: &Model) -> Result<usize> {
    let texts = TextCollection::open(&store, "t", model, &TextConfig::default())?;
    drop(store);
    Ok(texts.collection().len())
}
fn main() {}
