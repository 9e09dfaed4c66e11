//! The declarations of Warpwave's C library, as its headers have them.
//!
//! `native.rs` is made from the headers by `scripts/python-native.py`, which also makes Python's declarations; `make lint` checks
//! that both are up to date. The headers say what each function takes, returns and refuses. Most programs want the safe crate
//! `warpwave` instead.
//!
//! An enumeration of C is an integer with constants here, because a later library may return a value that this crate does not
//! know. A struct that begins with `struct_size` has a [`Default`] that calls its `..._init()`. Left out are `kernel.h`,
//! `cluster.h` and `dlpack.h`.
//!
//! # Linking
//! 1. The folder that the environment variable `WARPWAVE_LIB_DIR` names, a build folder for instance.
//! 2. With the feature `vendored`: a build by cmake of the repository that this crate is part of (a dependency by git or by path
//!    brings it whole; `WARPWAVE_SOURCE_DIR` names another). `WARPWAVE_CHIPS` says which GPUs kernels are compiled for, as for
//!    `make build`.
//! 3. Otherwise what `pkg-config` knows as `warpwave`.
//!
//! The features `store`, `model` and `text` declare the functions of those headers, which a library can be built without.
//!
//! The library is a shared one. A program finds it at run time in the system's folders, by `LD_LIBRARY_PATH`, or by an rpath
//! that its own build script sets: there `DEP_WARPWAVE_LIBDIR` is the folder of the first two ways.
#![no_std]
#![allow(non_camel_case_types)]

use core::ffi::{c_char, c_int, c_void};
use core::marker::{PhantomData, PhantomPinned};
use core::mem::{size_of, MaybeUninit};

#[rustfmt::skip]
mod native;
pub use native::*;

/// What only the library can make: of no known size, and neither `Send` nor `Sync` nor `Unpin` by itself.
#[repr(C)]
struct Opaque {
    _bytes: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// A struct as its `..._init()` fills it in.
fn initialized<T>(init: unsafe extern "C" fn(*mut c_void, usize) -> ww_status) -> T {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: `init` belongs to T (the generated code pairs them) and writes at most size_of::<T>() bytes. It refuses only NULL and
    // sizes below that of a size_t. All structs are integers, floats, bools of C, pointers and function pointers that may be NULL, for which
    // any bytes that the library writes, and zeros, are values.
    unsafe {
        init(value.as_mut_ptr().cast(), size_of::<T>());
        value.assume_init()
    }
}
