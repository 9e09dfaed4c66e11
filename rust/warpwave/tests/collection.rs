//! Collections and results.
mod common;
use common::{cpu, numbers, winds};
use warpwave::{
    score, Calibration, Collection, CollectionConfig, Diversity, Fetch, Fuse, Fusion, Grouping, IvfConfig, MapConfig,
    MapOrigin, Mask, Metric, Query, Results, Rows, Screen, Selection, Status, Tensor, VectorType,
};

fn ids(results: &warpwave::Results) -> Vec<&str> {
    results.hits().filter_map(|hit| hit.id()).collect()
}

#[test]
fn hits_come_best_first_with_what_was_fetched() {
    let everything = Fetch::IDS | Fetch::PAYLOADS | Fetch::VECTORS;
    let results = winds().query(&Query::new(&[0.9, 0.1]).nearest(2).fetch(everything)).unwrap();
    assert_eq!(ids(&results), ["east", "northeast"]);
    let hit = results.hits().next().unwrap();
    assert_eq!((hit.row(), hit.payload(), hit.vector()), (0, Some(r#"{"year": 1999}"#), Some(&[1.0, 0.0][..])));
    assert_eq!(hit.score().to_bits(), score(Metric::Cosine, &[0.9, 0.1], &[1.0, 0.0]).unwrap().to_bits());
    let backwards: Vec<_> = results.hits().rev().map(|hit| hit.row()).collect();
    assert_eq!(backwards, [2, 0]);
    assert_eq!(results.hits().get(1).unwrap().row(), 2);
    assert!(results.hits().get(2).is_none() && results.hits_of(1).next().is_none() && results.hits_of(usize::MAX).len() == 0);
}

#[test]
fn what_was_not_fetched_is_none() {
    let results = winds().query(&Query::new(&[0.9, 0.1]).nearest(1)).unwrap();
    let hit = results.hits().next().unwrap();
    assert_eq!((hit.id(), hit.payload(), hit.vector()), (None, None, None));
    assert!(results.vectors().is_empty());
}

#[test]
fn a_range_counts_more_than_its_limit() {
    let results = winds().query(&Query::new(&[1.0, 0.2]).within(0.5, 1)).unwrap();
    assert_eq!((results.hits().len(), results.total(0), results.total(9)), (1, 2, 0));
}

#[test]
fn masks_and_filters_choose_rows() {
    let collection = winds();
    let mask: Mask = [false, true, true].into_iter().collect();
    let query = Query::new(&[1.0, 0.0]).nearest(3).fetch(Fetch::IDS);
    assert_eq!(ids(&collection.query(&query.clone().mask(&mask)).unwrap()), ["northeast", "north"]);
    assert_eq!(ids(&collection.query(&query.clone().filter(r#"{"year": {"$gt": 2000}}"#)).unwrap()), ["northeast"]);
    let refused = collection.query(&query.filter_sql("id = 'east'")).unwrap_err();
    assert_eq!(refused.status(), Status::InvalidArgument);
}

#[test]
fn rows_can_be_found_read_replaced_and_removed() {
    let collection = winds();
    let row = collection.find("north").unwrap();
    let handle = collection.handle(row).unwrap();
    assert_eq!((collection.id(row).unwrap().as_str(), collection.payload(row).unwrap()), ("north", None));
    assert_eq!(collection.vector(row).unwrap(), [0.0, 1.0]);
    collection.upsert(&Rows::new(2, &[0.0, 2.0]).ids(&["north"])).unwrap();
    let moved = collection.find_handle(handle).unwrap();
    assert_ne!(moved, row);
    assert_eq!(collection.vector(moved).unwrap(), [0.0, 2.0]);
    collection.set_payloads(&["north"], &[Some("[1]")]).unwrap();
    assert_eq!(collection.payload(moved).unwrap().as_deref(), Some("[1]"));
    collection.update(&Rows::without_vectors(1).ids(&["north"]).payloads(&[None::<&str>])).unwrap();
    assert_eq!((collection.payload(moved).unwrap(), collection.vector(moved).unwrap()), (None, vec![0.0, 2.0]));
    assert_eq!(collection.discard(&["east", "nowhere"]).unwrap(), 1);
    collection.remove(&["north"]).unwrap();
    assert_eq!(collection.rows().collect::<Vec<_>>(), [2]);
    collection.compact(None).unwrap();
    assert_eq!((collection.rows().collect::<Vec<_>>(), collection.len()), (vec![0], 1));
    assert_eq!(collection.check(None).unwrap().rows_damaged(), 0);
    collection.clear().unwrap();
    assert!(collection.is_empty());
}

#[test]
fn get_has_a_place_for_what_is_not_there() {
    let collection = winds();
    let got = collection.get(&["north", "nowhere"], Fetch::IDS | Fetch::VECTORS).unwrap();
    let rows: Vec<_> = got.hits().map(|hit| (hit.row(), hit.id(), hit.vector().is_some())).collect();
    assert_eq!(rows, [(1, Some("north"), true), (-1, None, false)]);
    assert_eq!(collection.get_handles(&[2], Fetch::IDS).unwrap().hits().next().unwrap().id(), Some("northeast"));
    assert_eq!(collection.get_all(usize::MAX, Fetch::NONE).unwrap().hits().len(), 3);
    assert_eq!(collection.get::<&str>(&[], Fetch::NONE).unwrap().hits().len(), 0);
}

#[test]
fn rows_come_as_bytes_and_as_tensors() {
    let config = CollectionConfig::new(4, Metric::Dot).name("bytes").vector_type(VectorType::U8).screen(Screen::None);
    let collection = Collection::create(&cpu(), &config).unwrap();
    collection.add(&Rows::elements(4, &[1u8, 2, 3, 4, 250, 0, 0, 0])).unwrap();
    assert_eq!(collection.vector(1).unwrap(), [250.0, 0.0, 0.0, 0.0]);
    let tensor = Tensor::from_slice(&cpu(), &[1, 4], &[7.0f32, 7.0, 7.0, 7.0]).unwrap();
    collection.add(&Rows::tensor(&tensor)).unwrap();
    assert_eq!((collection.len(), collection.info().unwrap().r#type()), (3, Some(VectorType::U8)));
}

#[test]
fn a_refused_add_changes_nothing() {
    let collection = winds();
    for (rows, status) in [
        (Rows::new(2, &[f32::NAN, 0.0]), Status::InvalidArgument),
        (Rows::new(3, &[1.0, 0.0, 0.0]), Status::DimensionMismatch),
        (Rows::new(2, &[1.0, 0.0, 0.0]), Status::DimensionMismatch),
        (Rows::new(2, &[1.0, 0.0]).ids(&["east"]), Status::DuplicateId),
        (Rows::new(2, &[1.0, 0.0]).ids(&["a", "b"]), Status::InvalidArgument),
        (Rows::new(2, &[1.0, 0.0]).ids(&["a\0b"]), Status::InvalidArgument),
        (Rows::new(2, &[1.0, 0.0]).payloads(&[Some("{")]), Status::InvalidArgument),
    ] {
        let error = collection.add(&rows).unwrap_err();
        assert_eq!(error.status(), status, "{error}");
        assert_eq!(collection.len(), 3);
    }
}

#[test]
fn threads_read_and_write_at_once() {
    let collection = Collection::new(&cpu(), 8, Metric::L2).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let collection = &collection;
            scope.spawn(move || {
                for i in 0..50 {
                    let id = format!("{thread}-{i}");
                    collection.add(&Rows::new(8, &[i as f32; 8]).ids(&[&id])).unwrap();
                    let results = collection.query(&Query::new(&[i as f32; 8]).nearest(1)).unwrap();
                    assert_eq!(results.scores(), [0.0]);
                }
            });
        }
    });
    assert_eq!(collection.len(), 200);
}

#[test]
fn rows_are_selected_changed_and_removed_by_conditions() {
    let collection = winds();
    let dated = Selection::new().filter(r#"{"year": {"$gt": 0}}"#);
    let page = collection.select(&dated.clone().limit(1), Fetch::IDS).unwrap();
    assert_eq!(ids(&page), ["east"]);
    let rest = dated.clone().first_handle(page.handles()[0] + 1);
    assert_eq!(ids(&collection.select(&rest, Fetch::IDS).unwrap()), ["northeast"]);
    assert_eq!(collection.select_merge_payload(&dated, r#"{"lang": "en"}"#).unwrap(), 2);
    collection.merge_payloads(&["north"], &[r#"{"lang": "de"}"#]).unwrap();
    assert_eq!(collection.select_count(&Selection::new().filter(r#"{"lang": "de"}"#)).unwrap(), 1);
    assert_eq!(collection.select_set_payload(&rest, None).unwrap(), 1);
    assert_eq!((collection.payload(2).unwrap(), collection.select_count(&Selection::new()).unwrap()), (None, 3));
    assert_eq!(collection.select_remove(&Selection::new()).unwrap_err().status(), Status::InvalidArgument);
    assert_eq!(collection.select_remove(&dated).unwrap(), 1);
    assert_eq!(collection.len(), 2);
    assert!(collection.merge_payloads(&["north"], &[] as &[&str]).is_err());
}

#[test]
fn an_index_is_built_used_and_dropped() {
    let (collection, vectors) = (Collection::new(&cpu(), 8, Metric::L2).unwrap(), numbers(7, 8 * 2000));
    collection.add(&Rows::new(8, &vectors)).unwrap();
    assert_eq!(collection.ivf_info().unwrap_err().status(), Status::NotFound);
    let query = Query::new(&vectors[80..88]).nearest(5);
    assert!(collection.query(&query.clone().nprobe(2)).is_err());
    collection.build_ivf(&IvfConfig { nlist: 20, seed: 3, ..Default::default() }, None).unwrap();
    assert_eq!((collection.ivf_info().unwrap().nlist(), collection.ivf_info().unwrap().rows()), (20, 2000));
    let exact = collection.query(&query).unwrap();
    assert_eq!((exact.proven(0), exact.proven(1)), (5, 0));
    let (near, stats) = collection.query_stats(&query.clone().nprobe(2)).unwrap();
    assert!(near.rows()[0] == 10 && near.proven(0) <= 5 && near.rows()[..near.proven(0)] == exact.rows()[..near.proven(0)]);
    assert!(stats.lists_read() >= 2 && stats.list_rows_read() < 2000, "{stats:?}");
    assert_eq!(collection.query(&query.nprobe(20)).unwrap().rows(), exact.rows());
    assert!(collection.query(&Query::new(&vectors[..8]).recall(0.9)).is_err(), "not calibrated yet");
    collection.calibrate(&Calibration { k: 5, recall: 0.9, ..Default::default() }, None).unwrap();
    let info = collection.ivf_info().unwrap();
    assert_eq!((info.calibration_k(), info.calibration_rows_removed()), (5, 0));
    assert!(info.calibration_time() > 1_700_000_000);
    assert_eq!(collection.query(&Query::new(&vectors[..8]).nearest(5).recall(0.9)).unwrap().rows()[0], 0);
    let short = Calibration { queries: Some(&vectors[..9]), ..Default::default() };
    assert_eq!(collection.calibrate(&short, None).unwrap_err().status(), Status::DimensionMismatch);
    let stop = &mut |_, _| std::ops::ControlFlow::Break(());
    assert_eq!(collection.build_ivf(&IvfConfig::default(), Some(stop)).unwrap_err().status(), Status::Cancelled);
    collection.drop_ivf().unwrap();
    assert!(collection.drop_ivf().is_err());
}

#[test]
fn a_map_is_made_kept_and_grown() {
    let (collection, vectors) = (Collection::new(&cpu(), 8, Metric::L2).unwrap(), numbers(7, 8 * 200));
    collection.add(&Rows::new(8, &vectors)).unwrap();
    let mut calls = 0;
    let count = &mut |_, _| {
        calls += 1;
        std::ops::ControlFlow::Continue(())
    };
    let made = collection.map(&MapConfig { steps: 40, seed: Some(3), ..Default::default() }, Some(count)).unwrap();
    let info = made.info().unwrap();
    assert_eq!((made.len(), made.is_empty(), info.rows(), info.seed(), info.steps()), (200, false, 200, 3, 40));
    assert_eq!((info.origin(), info.neighbours(), info.kept()), (Some(MapOrigin::Made), 15, true));
    assert!(calls >= 40 && made.points().iter().flatten().all(|number| number.is_finite()));
    collection.add(&Rows::new(8, &vectors[..8]).ids(&["new"])).unwrap();
    let grown = collection.map(&MapConfig::default(), None).unwrap();
    assert_eq!((grown.len(), grown.info().unwrap().rows_placed()), (201, 1));
    assert_eq!((&grown.points()[..200], grown.handles()[200]), (made.points(), 200));
    let stop = &mut |_, _| std::ops::ControlFlow::Break(());
    let again = MapConfig { remake: true, ..Default::default() };
    assert_eq!(collection.map(&again, Some(stop)).err().unwrap().status(), Status::Cancelled);
    let wrong = collection.map(&MapConfig { neighbours: 1, ..Default::default() }, None).err().unwrap();
    assert_eq!(wrong.status(), Status::OutOfRange);
    assert!(wrong.message().starts_with("neighbours is 1"), "{wrong}");
    collection.drop_map().unwrap();
    assert!(Collection::new(&cpu(), 8, Metric::L2).unwrap().map(&again, None).unwrap().is_empty());
}

#[test]
fn results_are_fused_thinned_out_grouped_and_reranked() {
    let collection = winds();
    let everything = Fetch::IDS | Fetch::PAYLOADS | Fetch::VECTORS;
    let query = Query::new(&[1.0, 0.1]).nearest(3).fetch(everything);
    let (first, second) = (collection.query(&query).unwrap(), collection.query(&Query::new(&[0.0, 1.0]).nearest(1)).unwrap());
    let fused = Results::fuse(&[&first, &second], &Fuse { weights: vec![1.0, 10.0], limit: 2, ..Default::default() }).unwrap();
    assert_eq!(ids(&fused), ["north", "east"]);
    let [in_first, in_second] = fused.hits().next().unwrap().parts().unwrap();
    assert_eq!((in_first.unwrap().rank, in_second.unwrap().rank), (3, 1));
    assert_eq!(fused.hits().nth(1).unwrap().parts().unwrap()[1], None);
    assert!(first.hits().next().unwrap().parts().is_none());
    let three =
        Results::fuse(&[&first, &first, &first], &Fuse { fusion: Fusion::Distributions, ..Default::default() }).unwrap();
    assert!(three.hits().next().unwrap().parts().is_none() && ids(&three) == ids(&first));
    assert!(Results::fuse(&[&first], &Fuse { weights: vec![1.0, 10.0], ..Default::default() }).is_err());
    assert!(Results::fuse(&[], &Fuse::default()).is_err());
    assert!(Results::fuse(&[&first, &second], &Fuse { by_id: true, ..Default::default() }).is_err()); // no ids in the second

    let apart = Diversity { lambda: 0.1, limit: 2, queries: Some(&[1.0, 0.1]) };
    assert_eq!(ids(&first.diversify(Metric::Cosine, &apart).unwrap()), ["east", "north"]);
    assert_eq!(ids(&collection.query_diverse(&query.clone().nearest(2), &apart, 3).unwrap()), ["east", "north"]);
    let short = Diversity { queries: Some(&[1.0]), ..Default::default() };
    assert!(first.diversify(Metric::Cosine, &short).is_err() && collection.query_diverse(&query, &short, 0).is_err());

    let by_year = Grouping { groups: 1, ..Grouping::new("year") };
    assert_eq!(ids(&first.group(&by_year).unwrap()), ["east"]);
    assert_eq!(ids(&collection.query_grouped(&query, &by_year).unwrap()), ["east"]);
    assert_eq!(ids(&first.rerank(&[0.0, 1.0, 2.0], 2).unwrap()), ["north", "northeast"]);
    assert!(first.rerank(&[0.0], 0).is_err() && second.group(&by_year).is_err());
}
