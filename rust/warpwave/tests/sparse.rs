//! Sparse vectors in a store and in memory.
mod common;
use warpwave::{Query, SparseIndex, SparseModifier, SparseVector, Status};

#[test]
fn an_index_in_memory_finds_and_forgets() {
    let index = SparseIndex::new().unwrap();
    assert!(index.is_empty());
    index.add(&[SparseVector::new(&[7, 3], &[2.0, 0.5]), SparseVector::NONE, SparseVector::new(&[7], &[1.0])]).unwrap();
    let asked = [SparseVector::new(&[7], &[1.0]), SparseVector::new(&[3], &[4.0])];
    let found = index.query(&Query::sparse(&asked).nearest(5)).unwrap();
    assert_eq!((found.rows(), found.scores()), (&[0, 2, 0][..], &[2.0, 1.0, 2.0][..]));
    index.remove(0).unwrap();
    assert_eq!(index.len(), 2);
    assert_eq!(index.query(&Query::sparse(&asked[..1]).within(0.5, 9)).unwrap().rows(), [2]);
    assert_eq!(index.remove(0).unwrap_err().status(), Status::NotFound);
}

#[test]
fn wrong_sparse_vectors_are_refused() {
    let index = SparseIndex::new().unwrap();
    for (indices, values) in [(&[1, 1][..], &[1.0, 1.0][..]), (&[1], &[]), (&[1], &[f32::NAN])] {
        let refused = index.add(&[SparseVector::new(indices, values)]).unwrap_err();
        assert_eq!(refused.status(), Status::InvalidArgument);
    }
    assert!(index.is_empty());
    assert!(SparseVector::new(&[1], &[]).dot(&SparseVector::NONE).is_err());
    assert_eq!(SparseVector::new(&[5, 2], &[3.0, 1.0]).dot(&SparseVector::new(&[2, 5], &[1.0, 2.0])).unwrap(), 7.0);
}

#[test]
fn the_modifier_favours_rare_indices() {
    let index = SparseIndex::new().unwrap();
    let row = |indices| SparseVector::new(indices, &[1.0]);
    index.add(&[row(&[1]), row(&[1]), row(&[2])]).unwrap();
    let asked = [SparseVector::new(&[1, 2], &[1.1, 1.0])];
    assert_eq!(index.query(&Query::sparse(&asked).nearest(1)).unwrap().rows(), [0]);
    assert_eq!(index.query(&Query::sparse_with(&asked, SparseModifier::Idf).nearest(1)).unwrap().rows(), [2]);
}

#[cfg(feature = "store")]
mod stored {
    use crate::common::{cpu, winds, Folder};
    use warpwave::{CollectionConfig, Fetch, Metric, Query, Rows, SparseVector, Status, Store};

    #[test]
    fn rows_of_a_store_are_found_by_their_sparse_vectors() {
        let folder = Folder::new("sparse");
        let store = Store::open(folder.join("a.db"), &cpu()).unwrap();
        let collection = store.create(&CollectionConfig::new(2, Metric::L2).name("a")).unwrap();
        let sparse = [SparseVector::new(&[9, 4], &[1.0, 2.0]), SparseVector::NONE, SparseVector::new(&[9], &[3.0])];
        let rows = Rows::new(2, &[0.0; 6]).ids(&["x", "y", "z"]);
        collection.add(&rows.clone().sparse(&sparse)).unwrap();
        let asked = [SparseVector::new(&[9], &[1.0]), SparseVector::new(&[4], &[1.0])];
        let fetch = Fetch::IDS | Fetch::SPARSE;
        let found = collection.query(&Query::sparse(&asked).nearest(5).fetch(fetch)).unwrap();
        let hits: Vec<_> =
            found.iter().map(|hits| hits.map(|hit| (hit.id().unwrap(), hit.score())).collect::<Vec<_>>()).collect();
        assert_eq!(hits, [vec![("z", 3.0), ("x", 1.0)], vec![("x", 2.0)]]);
        let last = found.hits_of(1).next().unwrap().sparse().unwrap();
        assert_eq!((last.indices(), last.values()), (&[4, 9][..], &[2.0, 1.0][..]));
        let filtered = collection.query(&Query::sparse(&asked[..1]).filter_sql("id <> 'z'").fetch(Fetch::IDS)).unwrap();
        assert_eq!(filtered.hits().next().unwrap().id(), Some("x"));
        assert!(filtered.hits().next().unwrap().sparse().is_none());
        let refused = collection.upsert(&rows.sparse(&sparse[..2])).unwrap_err();
        assert_eq!(refused.status(), Status::InvalidArgument);
        let refused = winds().query(&Query::sparse(&asked)).unwrap_err();
        assert_eq!(refused.status(), Status::InvalidArgument);
    }
}
