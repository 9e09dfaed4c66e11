//! A vendor's failure has the vendor's call and code. In a process of its own: the stand-in for ROCm is chosen before the first call.
use warpwave::{Device, Status, Vendor};

#[test]
fn a_failed_call_of_hip_is_named_with_its_code() {
    let standin = std::env::var_os("WARPWAVE_LIB_DIR").map(std::path::PathBuf::from).unwrap_or_default().join("standin");
    if !standin.join("libamdhip64.so.6").exists() {
        eprintln!("SKIP: the build has no stand-in for ROCm");
        return;
    }
    std::env::set_var("WARPWAVE_HIP_LIBRARY", standin.join("libamdhip64.so.6"));
    std::env::set_var("WARPWAVE_ROCBLAS_LIBRARY", standin.join("librocblas.so.4"));
    std::env::set_var("WARPWAVE_STANDIN", "fail=hipStreamCreateWithFlags:1:719");
    let error = Device::open("rocm:0").unwrap_err();
    if error.message().contains("no GPU kernels") {
        eprintln!("SKIP: {error}");
        return;
    }
    assert_eq!(error.status(), Status::DriverError, "{error}");
    let vendor = Vendor {
        backend: "rocm".into(),
        library: "HIP".into(),
        call: "hipStreamCreateWithFlags".into(),
        name: "hipErrorLaunchFailure".into(),
        code: 719,
    };
    assert_eq!(error.vendor(), Some(&vendor));
}
