//! Calls that the crate lacks: options from text, and `SetDBOptions`.
#![allow(unsafe_code)] // the C interface of RocksDB

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;

use librocksdb_sys as sys;
use rocksdb::{AsRawPtr, DB, Options};

use super::options::{Setting, text};

/// The base's options with these changes; shared parts of the base (statistics) stay shared.
///
/// # Errors
/// `RocksDB`'s message if it does not accept one.
pub fn options(base: &Options, settings: &[Setting]) -> Result<Options, String> {
    let new = Options::default();
    let text = CString::new(text(settings)).map_err(|error| error.to_string())?;
    let mut error: *mut c_char = null_mut();
    // SAFETY: both options live throughout the call and nobody else uses the new ones; the text ends with a
    // zero; the error is written to one pointer.
    unsafe {
        sys::rocksdb_get_options_from_string(
            base.as_raw_ptr(),
            text.as_ptr(),
            new.as_raw_ptr(),
            &raw mut error,
        );
    }
    taken(error).map(|()| new)
}

/// Changes options of an open database.
///
/// # Errors
/// `RocksDB`'s message if it does not accept one.
pub fn set_database_options(db: &DB, settings: &[Setting]) -> Result<(), String> {
    let text = |text: &str| CString::new(text).map_err(|error| error.to_string());
    let names = settings.iter().map(|(name, _)| text(name)).collect::<Result<Vec<_>, _>>()?;
    let values = settings.iter().map(|(_, value)| text(value)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let values: Vec<_> = values.iter().map(|value| value.as_ptr()).collect();
    let mut error: *mut c_char = null_mut();
    // SAFETY: the database is open as long as it is borrowed; names and values are arrays of that many
    // NUL-terminated texts that outlive the call; the error is written to one pointer.
    unsafe {
        sys::rocksdb_set_db_options(
            db.as_raw_ptr(),
            names.len() as i32,
            names.as_ptr(),
            values.as_ptr(),
            &raw mut error,
        );
    }
    taken(error)
}

/// The error that a call has returned, if any.
fn taken(error: *mut c_char) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: RocksDB leaves null, or a NUL-terminated text that its caller must free, once.
    let words = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: as above; it is not used any more.
    unsafe { sys::rocksdb_free(error.cast()) };
    Err(words)
}
