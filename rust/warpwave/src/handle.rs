//! Handles of C: owned pointers with the functions that free their objects, and whether threads may share them.
use std::ptr::{self, NonNull};

use warpwave_sys as sys;

use crate::error::{call, failed, Result};
use crate::inside::inside;

/// What a handle points to.
///
/// # Safety
/// `release` frees the library's object on any thread, if no other thread uses it.
pub(crate) unsafe trait Opaque {
    /// Whether freeing it takes locks that a call may hold while it calls back.
    const LOCKS: bool;

    /// # Safety
    /// The pointer is the library's, and this is its last use.
    unsafe fn release(pointer: *mut Self);
}

/// An object that any number of threads may use at once, as its header says.
///
/// # Safety
/// The header says so.
#[allow(dead_code)] // rustc 1.78 does not count the bound of Sync below
pub(crate) unsafe trait Shared: Opaque {}

/// An owned pointer.
pub(crate) struct Handle<T: Opaque>(NonNull<T>);

impl<T: Opaque> Handle<T> {
    /// Creates a handle with a call that writes a pointer.
    pub(crate) fn make(function: impl FnOnce(*mut *mut T) -> sys::ww_status) -> Result<Self> {
        let mut pointer = ptr::null_mut();
        call(|| function(&mut pointer))?;
        NonNull::new(pointer).map(Handle).ok_or_else(failed)
    }

    /// Takes ownership of a pointer from the library; None if it is NULL.
    pub(crate) fn adopt(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).map(Handle)
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Opaque> Drop for Handle<T> {
    fn drop(&mut self) {
        if T::LOCKS && inside() {
            return; // leaked: the call that is under way on this thread may hold the lock
        }
        // SAFETY: the pointer came from the library and is released once, here. Every user of it borrows the handle.
        unsafe { T::release(self.0.as_ptr()) }
    }
}

// SAFETY: see Opaque: what is owned may end on any thread. What may be used on several threads at once is said by Shared.
unsafe impl<T: Opaque> Send for Handle<T> {}
// SAFETY: Shared promises it.
unsafe impl<T: Shared> Sync for Handle<T> {}

macro_rules! opaque {
    ($($name:ident by $release:ident locks $locks:literal $(is $shared:ident)?;)*) => {
        $(
            // SAFETY: the header names this function as the one that ends it, and binds it to no thread.
            unsafe impl Opaque for sys::$name {
                const LOCKS: bool = $locks;

                unsafe fn release(pointer: *mut Self) {
                    // SAFETY: as the caller promises.
                    unsafe { sys::$release(pointer) }
                }
            }
            $(
                // SAFETY: the header says that any number of threads may use one at once.
                unsafe impl $shared for sys::$name {}
            )?
        )*
    };
}

opaque! {
    ww_device by ww_device_close locks true is Shared;
    ww_collection by ww_collection_destroy locks true is Shared;
    ww_filter by ww_filter_destroy locks false is Shared;
    ww_results by ww_results_destroy locks false is Shared;
    ww_map by ww_map_destroy locks false is Shared;
    ww_sparse_index by ww_sparse_destroy locks false is Shared;
    ww_quant by ww_quant_destroy locks true is Shared;
    ww_gguf by ww_gguf_close locks false is Shared;
    ww_matrix by ww_matrix_close locks false is Shared;
    ww_safetensors by ww_safetensors_close locks false is Shared;
    ww_gguf_writer by ww_gguf_writer_destroy locks false;
}

#[cfg(feature = "store")]
opaque! {
    ww_store by ww_store_close locks true is Shared;
}

#[cfg(feature = "model")]
opaque! {
    ww_model by ww_model_close locks true is Shared;
    ww_session by ww_session_destroy locks true;
    ww_grammar by ww_grammar_destroy locks true;
}

#[cfg(feature = "text")]
opaque! {
    ww_text by ww_text_close locks true is Shared;
}
