// A hit's text cannot outlive the results.
// error: E0597
use warpwave::*;
pub fn first(collection: &Collection) -> Result<Option<String>> {
    let id;
    {
        let results = collection.query(&Query::new(&[1.0, 0.0]).fetch(Fetch::IDS))?;
        id = results.hits().next().and_then(|hit| hit.id());
    }
    Ok(id.map(str::to_owned))
}
fn main() {}
