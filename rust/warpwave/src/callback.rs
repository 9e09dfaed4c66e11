//! Callbacks: closures that C calls. A panic does not cross the boundary: it cancels the call and resumes once C has returned.
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::ops::ControlFlow;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;

use warpwave_sys as sys;

use crate::inside::{inside, set_inside};

/// Receives the progress of a long call: units done, and units in total. `ControlFlow::Break(())` cancels the call, which then
/// fails with [`Status::Cancelled`](crate::Status::Cancelled) and changes nothing. It runs on the calling thread and must not
/// call this crate: such calls fail with [`Status::InvalidArgument`](crate::Status::InvalidArgument). For the same reason it
/// leaks what it drops, except results and files. A panic in it cancels the call and resumes afterwards.
pub type Progress<'a> = &'a mut dyn FnMut(i64, i64) -> ControlFlow<()>;

/// Runs a closure for C. A result other than 0 stops the call, and so does a panic, which is kept.
fn caught(panic: &mut Option<Box<dyn Any + Send>>, closure: impl FnOnce() -> ControlFlow<()>) -> c_int {
    let outer = inside();
    if !set_inside(true) {
        return 1;
    }
    let outcome = catch_unwind(AssertUnwindSafe(closure));
    set_inside(outer);
    match outcome {
        Ok(flow) => c_int::from(flow.is_break()),
        Err(payload) => {
            *panic = Some(payload);
            1
        }
    }
}

/// A closure that lives for one call.
struct State<'a, F: ?Sized> {
    closure: &'a mut F,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a, F: ?Sized> State<'a, F> {
    /// Makes the call with the state's address, and resumes a panic of the closure after it.
    fn during<R>(closure: &'a mut F, call: impl FnOnce(*mut c_void) -> R) -> R {
        let mut state = State { closure, panic: None };
        let result = call(ptr::addr_of_mut!(state).cast());
        if let Some(payload) = state.panic {
            resume_unwind(payload);
        }
        result
    }
}

type Told<'a> = dyn FnMut(i64, i64) -> ControlFlow<()> + 'a;

unsafe extern "C" fn told(done: i64, total: i64, user: *mut c_void) -> c_int {
    // SAFETY: `user` is the State that with_progress() handed over, on the stack of the call that is under way on this thread, and
    // nothing else uses it meanwhile.
    let state = unsafe { &mut *user.cast::<State<'_, Told<'_>>>() };
    let closure = &mut *state.closure;
    caught(&mut state.panic, || closure(done, total))
}

/// Makes a call that takes a progress callback; passes it the function and its pointer.
#[inline]
pub(crate) fn with_progress<R>(progress: Option<Progress<'_>>, call: impl FnOnce(sys::ww_progress, *mut c_void) -> R) -> R {
    match progress {
        None => call(None, ptr::null_mut()),
        Some(closure) => State::<Told<'_>>::during(closure, |user| call(Some(told), user)),
    }
}

#[cfg(feature = "model")]
type Heard<'a> = dyn FnMut(&str) -> ControlFlow<()> + 'a;

#[cfg(feature = "model")]
unsafe extern "C" fn heard(text: *const std::ffi::c_char, bytes: usize, user: *mut c_void) -> c_int {
    // SAFETY: as in told(); the text has this many bytes and lives until this returns.
    let (state, text) =
        unsafe { (&mut *user.cast::<State<'_, Heard<'_>>>(), std::slice::from_raw_parts(text.cast::<u8>(), bytes)) };
    let closure = &mut *state.closure;
    caught(&mut state.panic, || closure(&String::from_utf8_lossy(text)))
}

/// Makes a call that takes a text callback.
#[cfg(feature = "model")]
pub(crate) fn with_text_callback<R>(closure: &mut Heard<'_>, call: impl FnOnce(sys::ww_text_callback, *mut c_void) -> R) -> R {
    State::<Heard<'_>>::during(closure, |user| call(Some(heard), user))
}

/// A long-lived closure: called while a store loads vectors, on the thread whose call needed them.
#[cfg(feature = "store")]
pub(crate) struct Loading(Box<dyn Fn(i64, i64) -> ControlFlow<()> + Send + Sync>);

#[cfg(feature = "store")]
unsafe extern "C" fn loading(done: i64, total: i64, user: *mut c_void) -> c_int {
    // SAFETY: `user` is a Loading that the store and each of its collections keep alive. It is only shared.
    let state = unsafe { &*user.cast::<Loading>() };
    caught(&mut None, || (state.0)(done, total))
}

#[cfg(feature = "store")]
impl Loading {
    pub(crate) fn new(closure: impl Fn(i64, i64) -> ControlFlow<()> + Send + Sync + 'static) -> Self {
        Loading(Box::new(closure))
    }

    pub(crate) fn raw(&self) -> (sys::ww_progress, *mut c_void) {
        (Some(loading), (self as *const Loading).cast_mut().cast())
    }
}
