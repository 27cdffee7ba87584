//! What is printed at the end of a program, on standard error.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::process;
use std::ptr;

use crate::shadow::{self, Line};

/// Mutexes that are listed one by one.
const TOP: usize = 10;

/// Prints the sums, and the mutexes that were acquired most often.
pub(crate) extern "C" fn print() {
    let Some((lock, mut lines)) = shadow::lines() else { return };
    let sum = |of: fn(&Line) -> u64| lines.iter().map(of).sum::<u64>();
    let (mutexes, acquisitions, contended) =
        (sum(|line| line.mutexes), sum(|line| line.acquisitions), sum(|line| line.contended));
    let process = process::id();
    crate::say(format_args!(
        "{lock} in process {process}: {mutexes} mutexes, {acquisitions} acquisitions, {contended} contended"
    ));
    if lines.is_empty() {
        return;
    }
    lines.sort_by_key(|line| (u64::MAX - line.acquisitions, line.address, line.caller));
    crate::say(format_args!("acquisitions  contended mutex               first locked at"));
    for line in lines.iter().take(TOP) {
        let Line { acquisitions, contended, caller, .. } = *line;
        let (mutex, caller) = (Mutexes(line), Place(caller));
        crate::say(format_args!("{acquisitions:>12} {contended:>10} {mutex:<19} {caller}"));
    }
    if let Some(rest) = lines.len().checked_sub(TOP).filter(|&rest| rest != 0) {
        crate::say(format_args!("and {rest} lines more"));
    }
}

/// The address of the mutex, or how many there were.
struct Mutexes<'a>(&'a Line);

impl fmt::Display for Mutexes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self.0 {
            Line { address: 0, mutexes, .. } => format!("({mutexes} ended)"),
            Line { address, .. } => format!("{address:#x}"),
        };
        f.pad(&text)
    }
}

/// A code address as `file+offset (function)`, as `addr2line` takes it.
struct Place(usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut info = MaybeUninit::<libc::Dl_info>::uninit();
        let address = ptr::with_exposed_provenance::<c_void>(self.0);
        // SAFETY: any address may be asked for; `info` is written if the answer is not 0.
        if self.0 == 0 || unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
            return write!(f, "{:#x}", self.0);
        }
        // SAFETY: `dladdr` has filled it.
        let info = unsafe { info.assume_init() };
        let text = |name: *const libc::c_char| {
            // SAFETY: it is a C string that lives as long as the file is loaded, and nobody unloads it now.
            (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy())
        };
        let file = text(info.dli_fname).unwrap_or_default();
        write!(f, "{file}+{:#x}", self.0 - info.dli_fbase.addr())?;
        match text(info.dli_sname) {
            Some(function) => write!(f, " ({function})"),
            None => Ok(()),
        }
    }
}
