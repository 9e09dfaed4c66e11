//! Finds or builds the C library and tells cargo where it is. In this order:
//! the folder that WARPWAVE_LIB_DIR names; with the feature `vendored`, a build of the repository that this crate is part of;
//! otherwise what pkg-config knows.
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fail(message: &str) -> ! {
    eprintln!("warpwave-sys: {message}");
    std::process::exit(1);
}

/// Runs a program to its end and returns what it printed; ends the build with a message if it fails.
fn run(command: &mut Command, advice: &str) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => fail(&format!("{program} cannot be run ({error}); {advice}")),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        fail(&format!("{program} failed; {advice}\n{}", said.trim_end()));
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn link_from(folder: &Path) {
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:libdir={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=warpwave");
}

/// The words of pkg-config that concern the linker.
fn link_by_pkg_config() {
    let advice =
        "install the library (make install) with PKG_CONFIG_PATH naming its folder, set WARPWAVE_LIB_DIR to the folder \
                  with libwarpwave.so, or use the feature `vendored`";
    let words = run(Command::new("pkg-config").args(["--libs", "warpwave"]), advice);
    for word in words.split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(name) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib=dylib={name}");
        }
    }
}

/// Builds the library in cargo's folder. The sources are those of the repository, which a dependency by git or by path brings whole.
fn build() -> PathBuf {
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let source = env::var_os("WARPWAVE_SOURCE_DIR").map(PathBuf::from).unwrap_or_else(|| crate_folder.join("../.."));
    if !source.join("include/warpwave/status.h").is_file() {
        fail(&format!(
            "the feature `vendored` needs Warpwave's sources, and {} does not have them; set WARPWAVE_SOURCE_DIR",
            source.display()
        ));
    }
    for folder in ["src", "programs", "mpi", "include", "cmake", "CMakeLists.txt"] {
        println!("cargo:rerun-if-changed={}", source.join(folder).display());
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("warpwave");
    let chips = env::var("WARPWAVE_CHIPS").unwrap_or_else(|_| "auto".into());
    let advice = "a build needs cmake, a C compiler and the packages that scripts/setup.sh installs";
    run(
        Command::new("cmake").arg("-S").arg(&source).arg("-B").arg(&folder).args([
            "-DCMAKE_BUILD_TYPE=Release",
            "-DWARPWAVE_TESTS=OFF",
            &format!("-DWARPWAVE_CHIPS={chips}"),
        ]),
        advice,
    );
    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "1".into());
    run(Command::new("cmake").arg("--build").arg(&folder).args(["-j", &jobs, "--target", "libraries"]), advice);
    folder
}

fn main() {
    for name in ["WARPWAVE_LIB_DIR", "WARPWAVE_SOURCE_DIR", "WARPWAVE_CHIPS", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    if let Some(folder) = env::var_os("WARPWAVE_LIB_DIR") {
        link_from(Path::new(&folder));
    } else if env::var_os("CARGO_FEATURE_VENDORED").is_some() {
        link_from(&build());
    } else {
        link_by_pkg_config();
    }
}
