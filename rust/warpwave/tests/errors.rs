//! Errors of every kind that a program can meet without MPI, a broken GPU or a defect.
#![cfg(all(feature = "store", feature = "model"))]
mod common;
use common::{cpu, winds, Folder};
use warpwave::{Collection, CollectionConfig, DType, Device, Gguf, Metric, Query, Rows, Status, Store, StoreConfig, Tensor};

fn status<T>(result: warpwave::Result<T>) -> Status {
    let error = result.err().expect("an error");
    assert!(!error.message().is_empty() && !error.message().contains('\n'), "{error}");
    assert_eq!(error.to_string(), error.message());
    assert!(!error.message().contains("ww_"), "no function of C has a place in {error}");
    error.status()
}

#[test]
fn each_has_its_status() {
    let (collection, folder) = (winds(), Folder::new("errors"));
    assert_eq!(status(collection.query(&Query::new(&[f32::INFINITY, 0.0]))), Status::InvalidArgument);
    assert_eq!(status(collection.query(&Query::new(&[1.0, 0.0, 0.0]))), Status::DimensionMismatch);
    assert_eq!(status(collection.query(&Query::batch(&[1.0, 0.0, 0.0], 2))), Status::DimensionMismatch);
    assert_eq!(status(collection.query(&Query::batch(&[], 0))), Status::DimensionMismatch);
    assert_eq!(status(Collection::new(&cpu(), 65536, Metric::L2).unwrap().reserve(4_000_000_000)), Status::OutOfMemory);
    assert_eq!(status(Device::open("abacus:0")), Status::NoDevice);
    assert_eq!(status(Device::open("cpu\0")), Status::InvalidArgument);
    assert_eq!(status(collection.find("nowhere")), Status::NotFound);
    assert_eq!(status(collection.add(&Rows::new(2, &[0.0; 4]).ids(&["a", "a"]))), Status::DuplicateId);
    assert_eq!(status(cpu().drop_member("cpu")), Status::Unsupported);
    assert_eq!(status(collection.query(&Query::new(&[1.0, 0.0]).nearest(20_000))), Status::OutOfRange);
    assert_eq!(status(collection.query(&Query::new(&[1.0, 0.0]).nearest(usize::MAX))), Status::OutOfRange);
    std::fs::write(folder.join("bad.gguf"), b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").unwrap();
    let corrupt = Gguf::open(folder.join("bad.gguf")).unwrap_err();
    assert_eq!(corrupt.status(), Status::CorruptFile);
    assert!(corrupt.message().contains("bad.gguf"), "{corrupt}");
    let missing = status(Gguf::open(folder.join("none.gguf")));
    assert!(matches!(missing, Status::NotFound | Status::IoError), "{missing:?}");
    assert_eq!(
        status(collection.search(&Query::new(&[1.0, 0.0]).nearest(3), &mut [0; 2], &mut [0.0; 3])),
        Status::DimensionMismatch
    );
}

#[test]
fn a_file_that_another_has_is_busy() {
    let (folder, device) = (Folder::new("busy"), cpu());
    let path = folder.join("a.db");
    let store = Store::open(&path, &device).unwrap();
    store.create(&CollectionConfig::new(2, Metric::L2).name("a")).unwrap();
    assert_eq!(status(Store::open_with(&path, &device, &StoreConfig::new().busy_ms(10).exclusive())), Status::Busy);
    let missing = Store::open_with(folder.join("none.db"), &device, &StoreConfig::new().must_exist());
    assert_eq!(status(missing), Status::IoError);
}

#[test]
fn tensors_refuse_other_types_and_shapes() {
    let x = Tensor::from_slice(&cpu(), &[2, 3], &[0.0f32; 6]).unwrap();
    assert_eq!(status(Tensor::from_slice(&cpu(), &[2, 2], &[0.0f32; 6])), Status::DimensionMismatch);
    assert_eq!(status(Tensor::from_slice(&cpu(), &[-1, 2], &[0.0f32; 6])), Status::DimensionMismatch);
    assert_eq!(status(x.to_vec::<f64>()), Status::DimensionMismatch);
    assert_eq!(status(x.matmul(&x)), Status::DimensionMismatch);
    assert_eq!(status(x.permute(&[0])), Status::DimensionMismatch);
    assert!(x.reshape(&[4, 2]).is_err() && x.reshape(&[0; 12]).is_err() && x.narrow(0, 1, 5).is_err());
    assert_eq!(status(x.binary(warpwave::Binary::Add, &x.cast(DType::F64).unwrap())), Status::InvalidArgument);
}

#[test]
fn after_fork_a_child_is_told() {
    extern "C" {
        fn fork() -> i32;
        fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(code: i32) -> !;
    }
    let collection = winds();
    // SAFETY: the child makes one call, allocates only the error, and leaves without running destructors.
    unsafe {
        let child = fork();
        if child == 0 {
            let told = collection.find("east").map_err(|error| error.status()) == Err(Status::OtherProcess);
            _exit(if told { 0 } else { 1 });
        }
        let mut ended = -1;
        assert_eq!(waitpid(child, &mut ended, 0), child);
        assert_eq!(ended, 0);
    }
    assert_eq!(collection.find("east").unwrap(), 0);
}

#[test]
fn statuses_have_words_and_numbers() {
    assert_eq!((Status::OutOfMemory.to_string().as_str(), Status::OutOfMemory.raw()), ("out of memory", 3));
    assert_eq!(Status::Other(99).raw(), 99);
}
