//! Addresses of code as a user can look them up: a file, a place in it, its build ID.
//!
//! The loader's own name of the program is its first argument, which programs overwrite to name themselves (`redis-server *:6379`).
//! So the program's file is the one that `/proc/self/exe` named when this library was loaded.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::fmt::{self, Write as _};
use std::mem::MaybeUninit;
use std::ptr;

use libc::dl_phdr_info;

use crate::record;

/// A call: `FILE+OFFSET (FUNCTION)`, as `addr2line -e FILE OFFSET` takes it.
pub(crate) struct Place(pub(crate) usize);

/// A file with code of this process.
struct Module {
    file: String,
    /// What the loader has added to the addresses that the file has.
    base: usize,
    build_id: Option<String>,
}

/// What is looked for, and what was found.
struct Search {
    address: usize,
    found: Option<Module>,
}

impl Module {
    /// The module with this address.
    fn of(address: usize) -> Option<Self> {
        let mut search = Search { address, found: None };
        // SAFETY: `look` has the type of a callback, and gets the search.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        search.found
    }
}

/// Takes the module if it has the address.
unsafe extern "C" fn look(info: *mut dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader hands over a module, whose headers are in memory, and what `Module::of` gave it.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr as usize;
    let holds = |header: &&libc::Elf64_Phdr| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        header.p_type == libc::PT_LOAD
            && search.address.wrapping_sub(start) < header.p_memsz as usize
    };
    if headers.iter().find(holds).is_none() {
        return 0;
    }
    // SAFETY: null or a C string.
    let name = (!info.dlpi_name.is_null()).then(|| unsafe { CStr::from_ptr(info.dlpi_name) });
    let file = match name.map(CStr::to_string_lossy).unwrap_or_default() {
        name if name.is_empty() => record::program_file().display().to_string(),
        name => name.into_owned(),
    };
    let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
    let build_id = notes.filter_map(|header| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let start = ptr::with_exposed_provenance::<u8>(start);
        // SAFETY: the loader has mapped the notes.
        build_id(unsafe { std::slice::from_raw_parts(start, header.p_memsz as usize) })
    });
    search.found = Some(Module { file, base, build_id: { build_id }.next() });
    1
}

/// The build ID in these notes.
fn build_id(mut notes: &[u8]) -> Option<String> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_first_chunk::<12>()?;
        let word =
            |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let [name, length, kind] = [0, 4, 8].map(word);
        let padded = |size: u32| (size as usize).next_multiple_of(4);
        let id = rest.get(padded(name)..padded(name) + length as usize)?;
        if kind == NT_GNU_BUILD_ID && rest.starts_with(b"GNU\0") {
            let mut text = String::new();
            // Writing to a String cannot fail.
            id.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
            return Some(text);
        }
        notes = rest.get(padded(name) + padded(length)..)?;
    }
}

/// The build IDs of the files that have these addresses.
pub(crate) fn build_ids(addresses: impl Iterator<Item = usize>) -> BTreeMap<String, String> {
    let modules = addresses.filter_map(|address| Module::of(call(address)));
    modules.filter_map(|module| Some((module.file, module.build_id?))).collect()
}

/// An address inside of the call that returns to `address`: the return itself may belong to the next line.
fn call(address: usize) -> usize {
    address.saturating_sub(1)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = call(self.0);
        let Some(module) = Module::of(address) else { return write!(f, "{:#x}", self.0) };
        write!(f, "{}+{:#x}", module.file, address.wrapping_sub(module.base))?;
        let mut info = MaybeUninit::<libc::Dl_info>::uninit();
        let place = ptr::with_exposed_provenance::<c_void>(address);
        // SAFETY: any address may be passed; `info` is written if the result is not 0.
        let info =
            unsafe { (libc::dladdr(place, info.as_mut_ptr()) != 0).then(|| info.assume_init()) };
        match info {
            // SAFETY: it is a C string that lives as long as the file is loaded, and no thread unloads it now.
            Some(info) if !info.dli_sname.is_null() => unsafe {
                write!(f, " ({})", CStr::from_ptr(info.dli_sname).to_string_lossy())
            },
            _ => Ok(()),
        }
    }
}
