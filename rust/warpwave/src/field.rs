//! Texts in the fields of C's structs.
use std::ffi::c_char;

/// Returns the text in a field of C, which ends with a NUL; the library writes UTF-8 and cuts between characters.
pub(crate) fn text_of(field: &[c_char]) -> &str {
    // SAFETY: c_char is u8 or i8, both of one byte without invalid values.
    let bytes = unsafe { std::slice::from_raw_parts(field.as_ptr().cast::<u8>(), field.len()) };
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}
