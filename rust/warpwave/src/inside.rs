//! Whether a thread is in a callback, where the library holds its locks and must not be called.
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

extern "C" {
    fn pthread_key_create(key: *mut c_uint, destructor: Option<unsafe extern "C" fn(*mut c_void)>) -> c_int;
    fn pthread_getspecific(key: c_uint) -> *mut c_void;
    fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
}

/// The value of this key is not NULL on threads that are in a callback. The first callback creates the key; None means that no
/// key was left. `thread_local!` cannot be used: rustc 1.78 and older refuse it under `forbid(unsafe_op_in_unsafe_fn)`.
static INSIDE: OnceLock<Option<c_uint>> = OnceLock::new();

/// Whether this thread is in a callback.
#[inline]
pub(crate) fn inside() -> bool {
    match INSIDE.get() {
        // SAFETY: the key was made and is never deleted.
        Some(Some(key)) => !unsafe { pthread_getspecific(*key) }.is_null(),
        _ => false,
    }
}

/// Records whether this thread is in a callback. Returns false if there is no memory for it.
pub(crate) fn set_inside(is_inside: bool) -> bool {
    let key = INSIDE.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the key is written here, and what is kept under it needs no destructor.
        (unsafe { pthread_key_create(&mut key, None) } == 0).then_some(key)
    });
    let mark = if is_inside { ptr::addr_of!(INSIDE).cast() } else { ptr::null() };
    // SAFETY: the key was made; the mark is only compared with NULL.
    key.is_some_and(|key| unsafe { pthread_setspecific(key, mark) } == 0)
}
