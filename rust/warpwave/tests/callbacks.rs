//! Callbacks: cancelled calls, panics, and calls from within.
#![cfg(all(feature = "store", feature = "model"))]
mod common;
use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use common::{cpu, numbers, reference, winds, Folder};
use warpwave::{
    Collection, CollectionConfig, Generation, GenerationEnd, Metric, Model, Query, Rows, Status, Store, StoreConfig,
};

fn many() -> (Collection, Vec<f32>) {
    (Collection::new(&cpu(), 16, Metric::L2).unwrap(), numbers(5, 16 * 20_000))
}

#[test]
fn progress_is_reported_and_can_cancel() {
    let (collection, vectors) = many();
    let mut last = (0, 0);
    let mut listen = |done, total| {
        last = (done, total);
        ControlFlow::Continue(())
    };
    collection.add_with(&Rows::new(16, &vectors), Some(&mut listen)).unwrap();
    assert_eq!(last, (20_000, 20_000));
    let error = collection.add_with(&Rows::new(16, &vectors), Some(&mut |_, _| ControlFlow::Break(()))).unwrap_err();
    assert_eq!((error.status(), collection.len()), (Status::Cancelled, 20_000));
}

#[test]
fn a_panic_goes_on_after_the_call_which_has_changed_nothing() {
    let (collection, vectors) = many();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut panics = |_, _| -> ControlFlow<()> { std::panic::panic_any("from the callback") };
        collection.add_with(&Rows::new(16, &vectors), Some(&mut panics))
    }));
    assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"from the callback"));
    assert_eq!(collection.len(), 0);
    collection.add(&Rows::new(16, &vectors)).unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| collection.compact(Some(&mut |_, _| panic!("again")))));
    assert!(outcome.is_ok() || collection.len() == 20_000);
    assert_eq!(collection.query(&Query::new(&vectors[..16]).nearest(1)).unwrap().rows(), [0]);
}

#[test]
fn calls_from_within_a_callback_are_refused() {
    let (collection, vectors) = many();
    let other = winds();
    let mut moved_in = Some(winds()); // dropped in the callback: leaked
    let mut seen = Vec::new();
    let mut nosy = |_, _| {
        seen.push(collection.info().map(|_| ()).unwrap_err().status());
        seen.push(other.find("east").unwrap_err().status());
        assert_eq!((collection.len(), collection.rows().count()), (0, 0));
        drop(moved_in.take());
        ControlFlow::Continue(())
    };
    collection.add_with(&Rows::new(16, &vectors), Some(&mut nosy)).unwrap();
    assert!(!seen.is_empty() && seen.iter().all(|&status| status == Status::InvalidArgument));
    assert_eq!((collection.len(), other.find("east").unwrap()), (20_000, 0));
}

#[test]
fn a_store_tells_of_loading_and_a_panic_there_cancels() {
    let (folder, device) = (Folder::new("loading"), cpu());
    let path = folder.join("a.db");
    let store = Store::open(&path, &device).unwrap();
    let filled = store.create(&CollectionConfig::new(2, Metric::L2).name("a")).unwrap();
    filled.add(&Rows::new(2, &numbers(6, 2000))).unwrap();
    drop((filled, store));

    let told = Arc::new(AtomicUsize::new(0));
    let counter = told.clone();
    let config = StoreConfig::new().loading(move |_, _| {
        if counter.fetch_add(1, Ordering::SeqCst) == 0 {
            panic!("the first time");
        }
        ControlFlow::Continue(())
    });
    let store = Store::open_with(&path, &device, &config).unwrap();
    let collection = store.collection("a").unwrap();
    drop((store, config)); // the collection keeps both
    let query = Query::new(&[0.0, 0.0]).nearest(1);
    assert_eq!(collection.query(&query).unwrap_err().status(), Status::Cancelled);
    assert_eq!(collection.query(&query).unwrap().hits().len(), 1);
    assert!(told.load(Ordering::SeqCst) >= 2);
}

#[test]
fn generating_can_be_stopped_and_panics_are_caught() {
    let Some((folder, _)) = reference() else { return };
    let decoder = Model::open(folder.join("decoder.gguf"), &cpu()).unwrap();
    let mut session = decoder.session().unwrap();
    session.feed(&[1, 2, 3]).unwrap();
    let how = Generation { tokens: 20, ignore_eos: true, ..Default::default() };
    let end = session.generate(&how, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!(end, GenerationEnd::Stopped);
    let outcome = catch_unwind(AssertUnwindSafe(|| session.generate(&how, &mut |_| panic!("heard"))));
    assert!(outcome.is_err() && session.len() > 3);
    let canceller = session.canceller();
    std::thread::scope(|scope| {
        scope.spawn(move || canceller.cancel()); // nothing is under way, or the generation below
        match session.generate(&how, &mut |_| ControlFlow::Continue(())) {
            Ok(end) => assert!(matches!(end, GenerationEnd::Length | GenerationEnd::Context)),
            Err(error) => assert_eq!(error.status(), Status::Cancelled),
        }
    });
}
