//! A shared library that is opened at run time.

use crate::Error;
use std::ffi::{CStr, CString, c_void};

/// An open library. It is never closed: MPI leaves threads and handlers behind.
#[derive(Debug)]
pub(super) struct Library {
    name: &'static str,
    handle: *mut c_void,
}

impl Library {
    /// Opens the first of some libraries that is there; where none is, the system's reason for the first.
    pub(super) fn open(names: &[&'static str]) -> Result<Library, String> {
        let mut reason = None;
        for &name in names {
            let file = CString::new(name).expect("a name without zeros");
            // Open MPI's plugins look for the library's symbols among the global ones.
            // SAFETY: the name ends with a zero. Code of the library that runs when it is opened is trusted, as that of every
            // library that the administrator of a machine has installed.
            let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            if !handle.is_null() {
                return Ok(Library { name, handle });
            }
            // SAFETY: this thread's last failure; the text is copied before the next call.
            let text = unsafe { libc::dlerror() };
            if !text.is_null() {
                // SAFETY: a text that ends with a zero.
                let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
                reason.get_or_insert(text);
            }
        }
        Err(reason.unwrap_or_else(|| "no reason given".to_owned()))
    }

    /// The name by which it was opened.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The address of a function or an object.
    pub(super) fn symbol(&self, symbol: &'static str) -> Result<*mut c_void, Error> {
        let name = CString::new(symbol).expect("a name without zeros");
        // SAFETY: the library is open, and the name ends with a zero.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            return Err(Error::NoSymbol { library: self.name.to_owned(), symbol });
        }
        Ok(address)
    }
}
