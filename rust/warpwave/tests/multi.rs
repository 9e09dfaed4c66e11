//! Multivectors in a store.
#![cfg(feature = "store")]
mod common;
use common::{cpu, Folder};
use warpwave::{CollectionConfig, Fetch, Metric, Multivector, Query, Rows, Status, Store};

#[test]
fn rows_of_a_store_are_found_by_their_multivectors() {
    let folder = Folder::new("multi");
    let store = Store::open(folder.join("a.db"), &cpu()).unwrap();
    let collection = store.create(&CollectionConfig::new(2, Metric::Dot).name("a")).unwrap();
    let both = [Multivector::new(2, &[1.0, 0.0, 0.0, 3.0]), Multivector::NONE, Multivector::new(2, &[2.0, 2.0])];
    let rows = Rows::new(2, &[0.0; 6]).ids(&["x", "y", "z"]);
    collection.add(&rows.clone().multi(&both)).unwrap();
    assert_eq!(collection.upsert(&rows.multi(&both[..2])).unwrap_err().status(), Status::InvalidArgument);
    let asked = [Multivector::new(2, &[1.0, 0.0, 0.0, 1.0])];
    let found = collection.query(&Query::multi(&asked).nearest(5).fetch(Fetch::MULTI)).unwrap();
    assert_eq!(found.scores(), [4.0, 4.0]);
    assert_eq!(found.hits().next().unwrap().multi(), Some(both[0]));
    assert_eq!(asked[0].score(Metric::Dot, &both[2]).unwrap(), 4.0);
    assert_eq!(asked[0].score(Metric::L2, &both[2]).unwrap_err().status(), Status::Unsupported);
    assert_eq!(Multivector::new(2, &[1.0]).score(Metric::Dot, &both[0]).unwrap_err().status(), Status::InvalidArgument);
}
