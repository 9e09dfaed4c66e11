//! Texts passed to C, where they end with a NUL.
use std::ffi::{c_char, CString};
use std::path::Path;
use std::ptr;

use crate::error::{Error, Result, Status};

fn has_nul(what: &str) -> Error {
    Error::new(Status::InvalidArgument, format!("{what} holds a NUL character, which no text of the library can"))
}

/// Texts up to this size are copied to the stack; ids are at most 256 bytes.
const SHORT_BYTES: usize = 272;

/// Calls a function with a text that ends with a NUL.
#[inline]
pub(crate) fn with_text<R>(text: &str, what: &str, function: impl FnOnce(*const c_char) -> Result<R>) -> Result<R> {
    with_bytes(text.as_bytes(), what, function)
}

/// Calls a function with a path, whose bytes need not be UTF-8.
pub(crate) fn with_path<R>(path: &Path, function: impl FnOnce(*const c_char) -> Result<R>) -> Result<R> {
    use std::os::unix::ffi::OsStrExt;
    with_bytes(path.as_os_str().as_bytes(), "the path", function)
}

#[inline]
fn with_bytes<R>(text: &[u8], what: &str, function: impl FnOnce(*const c_char) -> Result<R>) -> Result<R> {
    if text.len() >= SHORT_BYTES {
        return match CString::new(text) {
            Ok(text) => function(text.as_ptr()),
            Err(_) => Err(has_nul(what)),
        };
    }
    if text.contains(&0) {
        return Err(has_nul(what));
    }
    let mut buffer = [0u8; SHORT_BYTES];
    buffer[..text.len()].copy_from_slice(text);
    function(buffer.as_ptr().cast())
}

/// Many NUL-terminated texts, one after the other; some may be missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    starts: Vec<Option<usize>>,
    nul: bool,
}

impl Texts {
    pub(crate) fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = Option<T>>) -> Self {
        let mut all = Texts::default();
        for text in texts {
            all.starts.push(text.as_ref().map(|_| all.bytes.len()));
            if let Some(text) = text {
                all.nul |= text.as_ref().as_bytes().contains(&0);
                all.bytes.extend_from_slice(text.as_ref().as_bytes());
                all.bytes.push(0);
            }
        }
        all
    }

    pub(crate) fn of<T: AsRef<str>>(texts: &[T]) -> Self {
        Texts::new(texts.iter().map(Some))
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the addresses, NULL for missing texts. They are valid as long as `self` is not changed.
    pub(crate) fn pointers(&self, what: &str) -> Result<Vec<*const c_char>> {
        if self.nul {
            return Err(has_nul(what));
        }
        let address = |start: &Option<usize>| start.map_or(ptr::null(), |start| self.bytes[start..].as_ptr().cast());
        Ok(self.starts.iter().map(address).collect())
    }
}
