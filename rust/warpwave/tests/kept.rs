//! What a store keeps beside the rows of a collection: its index and its map.
#![cfg(feature = "store")]
mod common;
use common::{cpu, numbers, Folder};
use warpwave::{Calibration, CollectionConfig, IvfConfig, MapConfig, MapOrigin, Metric, Query, Rows, Status, Store};

#[test]
fn a_store_keeps_the_index_and_the_map() {
    let (folder, vectors) = (Folder::new("kept"), numbers(7, 8 * 500));
    let path = folder.join("a.db");
    let how = MapConfig { steps: 20, ..Default::default() };
    let points = {
        let store = Store::open(&path, &cpu()).unwrap();
        let collection = store.create(&CollectionConfig::new(8, Metric::L2).name("a")).unwrap();
        collection.add(&Rows::new(8, &vectors)).unwrap();
        collection.build_ivf(&IvfConfig { nlist: 10, ..Default::default() }, None).unwrap();
        collection.calibrate(&Calibration { k: 5, ..Default::default() }, None).unwrap();
        collection.map(&how, None).unwrap().points().to_vec()
    };
    let collection = Store::open(&path, &cpu()).unwrap().collection("a").unwrap();
    let info = collection.ivf_info().unwrap();
    assert_eq!((info.nlist(), info.rows(), info.calibration_k()), (10, 500, 5));
    let query = Query::new(&vectors[80..88]).nearest(5);
    let exact = collection.query(&query).unwrap();
    assert_eq!(collection.query(&query.clone().nprobe(10)).unwrap().rows(), exact.rows());
    assert_eq!(collection.query(&query.recall(0.9)).unwrap().rows()[0], 10);
    let kept = collection.map(&MapConfig::default(), None).unwrap();
    assert_eq!((kept.info().unwrap().origin(), kept.points()), (Some(MapOrigin::Kept), &points[..]));
    collection.drop_ivf().unwrap();
    assert_eq!(collection.ivf_info().unwrap_err().status(), Status::NotFound);
}
