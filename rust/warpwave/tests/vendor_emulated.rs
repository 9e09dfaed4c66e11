//! A failure of the emulated driver, which every test build has, comes with the driver's call and code. In a process of its own: its
//! address space is limited.
use warpwave::{DType, Device, Status, Tensor, Vendor};

const RLIMIT_AS: i32 = 9;

#[repr(C)]
#[derive(Clone, Copy)]
struct Limit {
    now: u64,
    max: u64,
}

extern "C" {
    fn getrlimit(resource: i32, limit: *mut Limit) -> i32;
    fn setrlimit(resource: i32, limit: *const Limit) -> i32;
}

/// The bytes of address space that this process uses.
fn address_space() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_failed_call_of_the_emulator_is_named_with_its_code() {
    if std::env::var_os("WARPWAVE_RUST_REFERENCE").is_none() {
        eprintln!("SKIP: not a library that was built with its tests");
        return;
    }
    let device = Device::open("emulator:32").unwrap();
    let mut limit = Limit { now: 0, max: 0 };
    // SAFETY: both calls get a struct of C's shape.
    let error = unsafe {
        assert_eq!(getrlimit(RLIMIT_AS, &mut limit), 0);
        assert_eq!(setrlimit(RLIMIT_AS, &Limit { now: address_space() + (1 << 28), ..limit }), 0);
        let error = Tensor::zeros(&device, DType::F32, &[1 << 28]).unwrap_err(); // 1 GiB of the 4 that the device has
        assert_eq!(setrlimit(RLIMIT_AS, &limit), 0);
        error
    };
    assert_eq!(error.status(), Status::OutOfMemory, "{error}");
    let vendor = Vendor {
        backend: "emulator".into(),
        library: "emulator".into(),
        call: "emulatedMemoryTake".into(),
        name: "EMULATED_OUT_OF_MEMORY".into(),
        code: 2,
    };
    assert_eq!(error.vendor(), Some(&vendor), "{error}");
    assert_eq!(Tensor::zeros(&device, DType::F32, &[1000]).unwrap().elements(), 1000);
}
