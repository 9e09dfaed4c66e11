//! Errors: the status, the message, and what a vendor's library reported.
use std::ffi::CStr;
use std::fmt;

use warpwave_sys as sys;

use crate::field::text_of;
use crate::inside::inside;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $raw:ident,)*) => {
        /// Why a call failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Status {
            $($(#[$doc])* $name,)*
            /// A status that this version of the crate does not know.
            Other(i32),
        }

        impl Status {
            fn from_raw(raw: sys::ww_status) -> Self {
                match raw {
                    $(sys::$raw => Status::$name,)*
                    other => Status::Other(other),
                }
            }

            /// Returns C's number for the status.
            pub fn raw(self) -> i32 {
                match self {
                    $(Status::$name => sys::$raw,)*
                    Status::Other(raw) => raw,
                }
            }
        }
    };
}

statuses! {
    /// A value is invalid: a number that is not finite, a text that is not JSON, a text with a NUL character, ...
    InvalidArgument = WW_INVALID_ARGUMENT,
    /// Vectors have another length than expected.
    DimensionMismatch = WW_DIMENSION_MISMATCH,
    /// The message says how much was requested and how much was free.
    OutOfMemory = WW_OUT_OF_MEMORY,
    /// The message lists the available devices.
    NoDevice = WW_NO_DEVICE,
    /// A vendor's call failed: [`Error::vendor`].
    DriverError = WW_DRIVER_ERROR,
    /// There is no such row, collection, tensor or file.
    NotFound = WW_NOT_FOUND,
    /// The id exists already.
    DuplicateId = WW_DUPLICATE_ID,
    /// The device, the type or the collection does not support this.
    Unsupported = WW_UNSUPPORTED,
    /// The message names the file, the offset and the reason.
    CorruptFile = WW_CORRUPT_FILE,
    /// Reading or writing a file failed.
    IoError = WW_IO_ERROR,
    /// A callback asked to stop.
    Cancelled = WW_CANCELLED,
    /// A number is outside its range.
    OutOfRange = WW_OUT_OF_RANGE,
    /// A bug in the library; please report it.
    Internal = WW_INTERNAL,
    /// The object was created before `fork()` and used in the child.
    OtherProcess = WW_OTHER_PROCESS,
    /// Another process or connection held a lock for too long; try again.
    Busy = WW_BUSY,
    /// Memory differs from what was written to it.
    Damaged = WW_DAMAGED,
    /// Other ranks did not report in time.
    Timeout = WW_TIMEOUT,
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: takes any number and returns a static text that ends with a NUL.
        let name = unsafe { CStr::from_ptr(sys::ww_status_name(self.raw())) };
        out.write_str(&name.to_string_lossy())
    }
}

/// What a vendor's library reported, if the error comes from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vendor {
    /// `"rocm"`
    pub backend: String,
    /// `"HIP"`
    pub library: String,
    /// `"hipMalloc"`
    pub call: String,
    /// `"hipErrorOutOfMemory"`
    pub name: String,
    /// The vendor's number: 2.
    pub code: i32,
}

/// A failed call. It changed nothing, unless the call's documentation says otherwise.
///
/// ```
/// use warpwave::{Device, Status};
///
/// let error = Device::open("abacus:3").unwrap_err();
/// assert_eq!(error.status(), Status::NoDevice);
/// println!("{error}"); // what was asked, what went wrong, what to do
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    status: Status,
    message: String,
    vendor: Option<Vendor>,
}

impl Error {
    /// Returns why the call failed, for a program.
    pub fn status(&self) -> Status {
        self.0.status
    }

    /// Returns what was asked, what went wrong and what to do, for a person. One line without control characters.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the vendor's call and its code, if a driver or a vendor's library failed.
    pub fn vendor(&self) -> Option<&Vendor> {
        self.0.vendor.as_ref()
    }

    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { status, message: message.into(), vendor: None }))
    }

    /// Returns the calling thread's last failure.
    #[cold]
    fn last(raw: sys::ww_status) -> Self {
        let mut info = sys::ww_error_info::default();
        // SAFETY: the struct is initialized; the message is a text of this thread that ends with a NUL and is copied here.
        let message = unsafe {
            let message = without_calls(&CStr::from_ptr(sys::ww_error_message()).to_string_lossy());
            sys::ww_error_detail(&mut info);
            message
        };
        let sys::ww_error_info { library, backend, call, name, code, .. } = &info;
        let library = text_of(library);
        let vendor = (!library.is_empty()).then(|| Vendor {
            backend: text_of(backend).to_owned(),
            library: library.to_owned(),
            call: text_of(call).to_owned(),
            name: text_of(name).to_owned(),
            code: *code,
        });
        Error(Box::new(Inner { status: Status::from_raw(raw), message, vendor }))
    }
}

/// Removes the names of C functions, which a user of this crate has not called, from a message: "ww_x: " at the start, and
/// where one message quotes another.
fn without_calls(message: &str) -> String {
    let mut kept = String::with_capacity(message.len());
    let mut rest = message;
    loop {
        while let Some(behind) = behind_call(rest) {
            rest = behind;
        }
        let Some(at) = rest.find(": ") else { break };
        kept.push_str(&rest[..at + 2]);
        rest = &rest[at + 2..];
    }
    kept + rest
}

/// Returns what follows "ww_x: ", if the text starts with that.
fn behind_call(text: &str) -> Option<&str> {
    let (name, rest) = text.strip_prefix("ww_")?.split_once(": ")?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(rest)
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Error");
        out.field("status", &self.0.status).field("message", &self.0.message);
        if let Some(vendor) = &self.0.vendor {
            out.field("vendor", vendor);
        }
        out.finish()
    }
}

impl std::error::Error for Error {}

/// Refuses calls made inside a callback: C holds locks while it calls back, and cannot detect a call that would take them
/// again.
#[inline]
pub(crate) fn refuse_inside() -> Result<()> {
    if inside() {
        return Err(Error::new(
            Status::InvalidArgument,
            "called from within a callback, while the library holds its locks; return from the callback first",
        ));
    }
    Ok(())
}

/// Makes a call of C: refuses it inside a callback, and turns its status into a result.
#[inline]
pub(crate) fn call(function: impl FnOnce() -> sys::ww_status) -> Result<()> {
    refuse_inside()?;
    match function() {
        sys::WW_OK => Ok(()),
        raw => Err(Error::last(raw)),
    }
}

/// Returns the failure of a C call that returned NULL.
pub(crate) fn failed() -> Error {
    let mut info = sys::ww_error_info::default();
    // SAFETY: the struct is initialized.
    unsafe { sys::ww_error_detail(&mut info) };
    Error::last(info.status)
}

/// Converts a number to the integer that C takes.
#[inline]
pub(crate) fn number<From, To: TryFrom<From>>(value: From, what: &str) -> Result<To>
where
    From: Copy + fmt::Display,
{
    To::try_from(value)
        .map_err(|_| Error::new(Status::OutOfRange, format!("{what} is {value}, which the library cannot count")))
}

#[cfg(test)]
mod tests {
    use super::without_calls;

    #[test]
    fn messages_name_no_functions_of_c() {
        for (said, kept) in [
            ("ww_store_open: busy_ms is -1; it must not be negative", "busy_ms is -1; it must not be negative"),
            ("ww_a: ww_b2: twice", "twice"),
            ("collection 'x': ww_matrix_open: no file", "collection 'x': no file"),
            ("a: b: ww_: c", "a: b: ww_: c"),
            ("the call ww_x: stays in a sentence", "the call ww_x: stays in a sentence"),
            ("ww_Query: not a function", "ww_Query: not a function"),
            ("", ""),
        ] {
            assert_eq!(without_calls(said), kept);
        }
    }
}
