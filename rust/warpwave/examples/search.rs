//! Search: three named vectors with payloads, the nearest to a query, and the nearest that a filter admits.
use warpwave::{Collection, Device, Fetch, Metric, Query, Result, Rows};

fn main() -> Result<()> {
    let device = Device::auto()?;
    let collection = Collection::new(&device, 2, Metric::Cosine)?;
    let rows = Rows::new(2, &[1.0, 0.0, 0.0, 1.0, 0.8, 0.6]).ids(&["east", "north", "northeast"]).payloads(&[
        Some(r#"{"year": 1999}"#),
        Some(r#"{"year": 2004}"#),
        Some(r#"{"year": 2011}"#),
    ]);
    collection.add(&rows)?;

    let query = Query::new(&[0.9, 0.1]).nearest(2).fetch(Fetch::IDS | Fetch::PAYLOADS);
    println!("on {}:", device.info()?.name());
    for hit in collection.query(&query)?.hits() {
        println!("{} {:.4} {}", hit.id().unwrap_or("?"), hit.score(), hit.payload().unwrap_or("-"));
    }
    println!("after 2000:");
    for hit in collection.query(&query.filter(r#"{"year": {"$gt": 2000}}"#))?.hits() {
        println!("{} {:.4}", hit.id().unwrap_or("?"), hit.score());
    }
    Ok(())
}
