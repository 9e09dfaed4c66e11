//! What the tests share.
#![allow(dead_code)]
use std::path::{Path, PathBuf};

use warpwave::{Collection, Device, Metric, Rows};

/// The CPU.
pub fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

/// A collection of three named rows with payloads.
pub fn winds() -> Collection {
    let collection = Collection::new(&cpu(), 2, Metric::Cosine).unwrap();
    let payloads = [Some(r#"{"year": 1999}"#), None, Some(r#"{"year": 2004}"#)];
    let rows = Rows::new(2, &[1.0, 0.0, 0.0, 1.0, 0.8, 0.6]).ids(&["east", "north", "northeast"]).payloads(&payloads);
    collection.add(&rows).unwrap();
    collection
}

/// A folder that goes when the test ends.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("warpwave-rust-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The same numbers as tests/rust/reference.c makes.
pub fn numbers(mut seed: u32, count: usize) -> Vec<f32> {
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// What tests/rust/reference.c computed, if the build has it: its folder with the models, and the lines by name.
pub fn reference() -> Option<(Folder, std::collections::HashMap<String, Vec<String>>)> {
    let Some(program) = std::env::var_os("WARPWAVE_RUST_REFERENCE") else {
        eprintln!("SKIP: WARPWAVE_RUST_REFERENCE does not name the C program");
        return None;
    };
    let name = std::thread::current().name().unwrap_or("reference").replace("::", "-");
    let folder = Folder::new(&name);
    let output = std::process::Command::new(program).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        (words.next().unwrap(), words.collect())
    });
    Some((folder, lines.collect()))
}
