//! Programs that this process starts, or becomes: whether the loader will put this library into them.
//!
//! A program that will run without the lock is noted in the [`tally`], which tells the user at the end. If the
//! first process of the run becomes such a program, nobody is left who could; then the message comes at once.
//!
//! The functions only look, and then call the C library's. They may be called between a `vfork` and an `exec`, so they need no
//! memory and change nothing but the tally. The C library's own calls (`system`, `popen`, `execl`) do not come here.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;

use libc::pid_t;
use overspin_native::preload::{find_program, obstacle};

use crate::system::{KeepErrno, say};
use crate::tally::{self, Reason};
use crate::{placed, real};

type Strings = *const *const c_char;

unsafe extern "C" {
    static environ: Strings;
}

/// The value of `name`, which ends with `=`, in an environment.
///
/// # Safety
/// `environment` is null, or an environment.
unsafe fn value<'a>(environment: Strings, name: &[u8]) -> Option<&'a [u8]> {
    if environment.is_null() {
        return None;
    }
    let mut next = environment;
    loop {
        // SAFETY: as the caller promises, it ends with null, which is not passed.
        let text = unsafe { *next };
        if text.is_null() {
            return None;
        }
        // SAFETY: as the caller promises.
        let text = unsafe { CStr::from_ptr(text) }.to_bytes();
        if let Some(value) = text.strip_prefix(name) {
            return Some(value);
        }
        // SAFETY: as above.
        next = unsafe { next.add(1) };
    }
}

/// The file of this library, by which the loader was asked for it.
fn this_library<'a>() -> Option<&'a [u8]> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let here: fn() -> Option<&'a [u8]> = this_library;
    // SAFETY: any address may be asked for; the call writes `info` if it does not return 0.
    let info = unsafe {
        (libc::dladdr(here as *const c_void, info.as_mut_ptr()) != 0).then(|| info.assume_init())
    }?;
    // SAFETY: the loader's name of a library that is never unloaded.
    (!info.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes())
}

/// Which process becomes the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    This,
    Child,
}

/// Notes the program `file` if it will run without this library. `searches` for one that is looked for in `PATH`.
///
/// # Safety
/// `file` is a C string, and `environment` is one.
unsafe fn look(file: *const c_char, searches: bool, environment: Strings, by: By) {
    let Some(tally) = tally::tally() else { return };
    if file.is_null() {
        return;
    }
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises, here and below. `execvp` searches in this process's own folders.
    let (name, folders) = unsafe { (CStr::from_ptr(file), value(environ, b"PATH=")) };
    let folders = folders.unwrap_or(b"/bin:/usr/bin");
    let in_place = !searches || name.to_bytes().contains(&b'/');
    let within: &[u8] = if in_place { b"" } else { folders };
    let Some(found) = find_program(OsStr::from_bytes(name.to_bytes()), within) else { return };
    // SAFETY: as above.
    let preloads = unsafe { value(environment, b"LD_PRELOAD=") }.unwrap_or_default();
    // SAFETY: as above.
    let lock = unsafe { value(environment, b"OVERSPIN_LOCK=") };
    let library = this_library().unwrap_or_default();
    let has = preloads.split(|byte| b": ".contains(byte)).any(|one| one == library);
    let reason = if has && lock.is_some() {
        match obstacle(found.path(), folders) {
            Some(it) => Reason::Obstacle(it),
            None => return,
        }
    } else {
        Reason::Cleaned
    };
    if by == By::This
        && tally::is_first()
        && let Some(kind) = placed::kind()
    {
        // Whatever it took until here was told nowhere, and will not be.
        let name = found.path().display();
        return say(format_args!("{name} runs without `{}`: it {reason}", kind.name));
    }
    tally.add_unserved(name, reason);
}

/// Looks up what the functions below call: later may be between a `vfork` and an `exec`.
pub(crate) fn start() {
    real::find_exec();
}

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    file: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        look(file, false, environment, By::This);
        real::execve(file, arguments, environment)
    }
}

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(file: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        look(file, false, environ, By::This);
        real::execv(file, arguments)
    }
}

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        look(file, true, environ, By::This);
        real::execvp(file, arguments)
    }
}

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(
    file: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        look(file, true, environment, By::This);
        real::execvpe(file, arguments, environment)
    }
}

/// What `posix_spawn` has besides program, arguments and environment.
type Spawn = *const c_void;

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    child: *mut pid_t,
    file: *const c_char,
    actions: Spawn,
    attributes: Spawn,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        look(file, false, environment, By::Child);
        real::posix_spawn(child, file, actions, attributes, arguments, environment)
    }
}

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    child: *mut pid_t,
    file: *const c_char,
    actions: Spawn,
    attributes: Spawn,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        look(file, true, environment, By::Child);
        real::posix_spawnp(child, file, actions, attributes, arguments, environment)
    }
}
