//! Whether the dynamic loader puts a preload library into a program, as far as the program's file says.
//!
//! `overspin exec` asks before it starts a program, and the preload library asks before a process becomes another program,
//! perhaps between a `vfork` and an `exec`: nothing here needs memory of an allocator.
//!
//! | The loader ignores `LD_PRELOAD` | Source |
//! |---|---|
//! | there is no loader: the file names none (`PT_INTERP`) | elf(5) |
//! | the library is for another machine | ld.so(8) |
//! | secure execution: the program gets another user or group, or capabilities that the user lacks | ld.so(8), capabilities(7), `cap_bprm_creds_from_file` of Linux |
//!
//! A script is as its interpreter.

use std::ffi::{CStr, OsStr, c_char};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The length of the longest path that is looked at.
const LONGEST: usize = 1024;
/// Linux follows as many interpreters of interpreters.
const MOST_INTERPRETERS: u32 = 4;

/// A path, on the stack.
#[derive(Clone)]
pub struct ShortPath {
    bytes: [u8; LONGEST],
    length: usize,
}

impl std::fmt::Debug for ShortPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path().fmt(f)
    }
}

impl ShortPath {
    /// These parts, one after the other; `None` if they are too long.
    fn of(parts: &[&[u8]]) -> Option<Self> {
        let mut path = Self { bytes: [0; LONGEST], length: 0 };
        for part in parts {
            let end = path.length + part.len();
            // The last byte stays 0, for C.
            path.bytes[..LONGEST - 1].get_mut(path.length..end)?.copy_from_slice(part);
            path.length = end;
        }
        Some(path)
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.bytes[..self.length]))
    }

    /// Whether this process may execute the file.
    fn is_executable(&self) -> bool {
        let name = self.bytes.as_ptr().cast::<c_char>();
        // SAFETY: a text that ends with 0: the last byte is never written.
        let allowed = unsafe { libc::access(name, libc::X_OK) } == 0;
        allowed && self.path().is_file()
    }
}

/// The file that `execvp` would execute for `name`: the name itself if it has a slash, else the first one in the folders of
/// `folders`, which is the value of `PATH`.
#[must_use]
pub fn find_program(name: &OsStr, folders: &[u8]) -> Option<ShortPath> {
    let name = name.as_bytes();
    if name.contains(&b'/') {
        return ShortPath::of(&[name]).filter(ShortPath::is_executable);
    }
    let mut all = folders.split(|byte| *byte == b':').map(|folder| match folder {
        // The folder at hand.
        b"" => ShortPath::of(&[b"./", name]),
        folder => ShortPath::of(&[folder, b"/", name]),
    });
    all.find_map(|path| path.filter(ShortPath::is_executable))
}

/// Why a program would run without a preload library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// It is linked statically.
    Static,
    /// It is for another machine.
    Machine,
    /// Its loader is that of another C library.
    Loader,
    /// It runs as another user.
    User,
    /// It runs as another group.
    Group,
    /// Its file has capabilities.
    Capabilities,
}

impl Obstacle {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Static, Self::Machine, Self::Loader, Self::User, Self::Group, Self::Capabilities];

    /// What the program is, after "it".
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Static => "is linked statically",
            Self::Machine => "is for another kind of machine",
            Self::Loader => "needs another C library than glibc",
            Self::User => "is set-user-ID",
            Self::Group => "is set-group-ID",
            Self::Capabilities => "has file capabilities",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Static => "link it dynamically",
            Self::Machine => "build it for this machine",
            Self::Loader => "build it for glibc",
            Self::User => "run it as its owner, or a copy of it",
            Self::Group => "run it as its group, or a copy of it",
            Self::Capabilities => "run it as root, or a copy of it",
        }
    }
}

/// Why the program in this file would run without the library; `None` if nothing is known against it. `folders` is the value
/// of `PATH`, for scripts that begin with `#!/usr/bin/env`.
#[must_use]
pub fn obstacle(file: &Path, folders: &[u8]) -> Option<Obstacle> {
    let mut path = ShortPath::of(&[file.as_os_str().as_bytes()])?;
    for _ in 0..=MOST_INTERPRETERS {
        let file = File::open(path.path()).ok()?;
        let mut head = [0; 256];
        let length = file.read_at(&mut head, 0).ok()?;
        match head[..length].strip_prefix(b"#!") {
            Some(line) => path = interpreter(line, folders)?,
            None => return of_elf(&file, &path),
        }
    }
    None
}

/// The program that a script's first line names, without `#!`.
fn interpreter(line: &[u8], folders: &[u8]) -> Option<ShortPath> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty());
    let program = words.next()?;
    let is_env = program == b"env" || program.ends_with(b"/env");
    // `env -S NAME` and `env VARIABLE=VALUE NAME`.
    let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
    match name.filter(|_| is_env) {
        Some(name) => find_program(OsStr::from_bytes(name), folders),
        None => ShortPath::of(&[program]),
    }
}

/// What was needed of an ELF header of 64 bits: machine, place, size and number of the program headers.
fn of_elf(file: &File, path: &ShortPath) -> Option<Obstacle> {
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    if !head.starts_with(b"\x7fELF") {
        // The kernel knows what to do with it, or refuses it.
        return None;
    }
    // Of the machine for which this code was compiled, whose library is to be loaded.
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let (is_64, is_little) = (head[4] == 2, head[5] == 1);
    if !is_64 || !is_little || half(18) != machine {
        return Some(Obstacle::Machine);
    }
    let table = u64::from_le_bytes(head[32..40].try_into().ok()?);
    let (size, number) = (u64::from(half(54)), u64::from(half(56)));
    let header = |i: u64| {
        let mut header = [0; 56];
        let at = table.checked_add(i * size)?;
        file.read_exact_at(&mut header, at).ok()?;
        Some(header)
    };
    const PT_INTERP: u32 = 3;
    let mut loader = None;
    for i in 0..number {
        let header = header(i)?;
        let word =
            |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap_or_default());
        if u32::from_le_bytes([header[0], header[1], header[2], header[3]]) == PT_INTERP {
            loader = Some((word(8), word(32)));
        }
    }
    let Some((at, length)) = loader else {
        // The loader itself names no loader; it loads the program of its first argument.
        let name = path.path().file_name().unwrap_or_default().as_bytes();
        let is_loader = name.starts_with(b"ld-") || name.starts_with(b"ld.so");
        return (!is_loader).then_some(Obstacle::Static);
    };
    let mut name = [0; 64];
    let name = name.get_mut(..usize::try_from(length).ok()?.min(64))?;
    file.read_exact_at(name, at).ok()?;
    if name.windows(7).any(|part| part == b"ld-musl") {
        return Some(Obstacle::Loader);
    }
    secure(file)
}

/// Whether the kernel asks for secure execution.
fn secure(file: &File) -> Option<Obstacle> {
    let about = file.metadata().ok()?;
    // SAFETY: they have no preconditions.
    let (user, group, bound) = unsafe {
        (libc::getuid(), libc::getgid(), libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0))
    };
    let mut system = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the file is open; the call writes `system` if it returns 0.
    let ignores = unsafe {
        libc::fstatvfs(file.as_raw_fd(), system.as_mut_ptr()) == 0
            && system.assume_init().f_flag & libc::ST_NOSUID != 0
    };
    if bound == 1 || ignores {
        return None;
    }
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2010;
    if about.mode() & SET_USER != 0 && about.uid() != user {
        return Some(Obstacle::User);
    }
    // Without the group's right to execute, the bit has another meaning.
    if about.mode() & SET_GROUP == SET_GROUP && about.gid() != group {
        return Some(Obstacle::Group);
    }
    let name: &CStr = c"security.capability";
    // SAFETY: the file is open, the name is a C string, and no value is asked for.
    let length =
        unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), std::ptr::null_mut(), 0) };
    // Root has them anyway.
    (length > 0 && user != 0).then_some(Obstacle::Capabilities)
}

/// The variable in which `overspin exec` hands its run over: `PROCESS:FILE`, the number of the process that becomes the
/// program, and the number of an open file: the one from [`shared`].
pub const RUN: &str = "OVERSPIN_RUN";

/// What begins the shared memory of a run: this number, then device and inode of the recording's file, which is also open
/// (0 without a recording), and its number. [`Waits`] follow.
pub const MAGIC: u64 = 0x324e_5552_4e50_534f;

/// Where [`Waits`] are in the shared memory of a run.
pub const WAITS: usize = 4 * size_of::<u64>();

/// Waits for mutexes in all processes of a run so far, and what their holders did. Only `overspin exec --stats` counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Acquisitions that had to wait, and have ended.
    pub ended: u64,
    /// Their time, summed over the threads.
    pub waited_ns: u64,
    /// Acquisitions whose holders were looked at.
    pub looks: u64,
    /// How long these holders held.
    pub held_ns: u64,
    /// How long of that they were ready without a CPU.
    pub descheduled_ns: u64,
    /// How long of that they were off their CPU, if they went to sleep meanwhile.
    pub asleep_ns: u64,
}

impl Waits {
    /// Reads them from the shared memory of a run, whose file `/proc` shows for each process that has it open.
    ///
    /// # Errors
    /// Those of reading; and if this is no such memory.
    pub fn read(file: &File) -> std::io::Result<Self> {
        let mut bytes = [0; WAITS + 6 * size_of::<u64>()];
        file.read_exact_at(&mut bytes, 0)?;
        let word = |at: usize| {
            let mut word = [0; size_of::<u64>()];
            word.copy_from_slice(&bytes[at..at + size_of::<u64>()]);
            u64::from_ne_bytes(word)
        };
        if word(0) != MAGIC {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        let [ended, waited_ns, looks, held_ns, descheduled_ns, asleep_ns] =
            [0, 1, 2, 3, 4, 5].map(|n| word(WAITS + n * size_of::<u64>()));
        Ok(Self { ended, waited_ns, looks, held_ns, descheduled_ns, asleep_ns })
    }
}

/// Bytes of the shared memory of a run.
pub const SHARED: u64 = 1 << 14;

/// Places of open files from here on: programs close low numbers, and take them for their own.
pub const HIGH: libc::c_int = 700;

/// Memory for all processes of a run: an open file without a name, full of zeros behind `header`. Programs inherit it.
///
/// # Errors
/// Those of the system calls.
pub fn shared(header: &[u64; 4]) -> std::io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"overspin-run".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it is open, and belongs to nobody else.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(SHARED)?;
    let bytes: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
    file.write_all_at(&bytes, 0)?;
    inherited(&file)
}

/// The same open file under a high number, which programs inherit.
///
/// # Errors
/// Those of the system calls.
pub fn inherited(file: &File) -> std::io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::{FromRawFd, OwnedFd};
    for lowest in [HIGH, 3] {
        // SAFETY: the file is open.
        let fd = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, lowest) };
        if fd >= 0 {
            // SAFETY: it is open, and belongs to nobody else.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
    Err(std::io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A file that may be executed.
    fn file(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> std::path::PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// An ELF file of this machine, with this loader if it is not empty.
    fn elf(loader: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        (bytes[32], bytes[54], bytes[56]) = (64, 56, 1);
        (bytes[64], bytes[72], bytes[96]) = (3, 120, loader.len() as u8);
        if loader.is_empty() {
            bytes[64] = 1;
        }
        bytes.extend(loader);
        bytes
    }

    #[test]
    fn waits_are_read_from_the_memory_of_a_run_only() {
        let folder = tempfile::tempdir().unwrap();
        let of = |words: &[u64]| {
            let path = folder.path().join("run");
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            std::fs::write(&path, bytes).unwrap();
            Waits::read(&File::open(&path).unwrap())
        };
        let [ended, waited_ns, looks, held_ns, descheduled_ns, asleep_ns] =
            [12, 3456, 7, 900, 80, 60];
        let waits = Waits { ended, waited_ns, looks, held_ns, descheduled_ns, asleep_ns };
        assert_eq!(of(&[MAGIC, 1, 2, 3, 12, 3456, 7, 900, 80, 60, 9]).unwrap(), waits);
        assert!(of(&[MAGIC + 1, 1, 2, 3, 12, 3456, 7, 900, 80, 60]).is_err());
        assert!(of(&[MAGIC, 1, 2, 3, 12, 3456, 7, 900, 80]).is_err());
    }

    #[test]
    fn a_file_says_why_the_loader_would_not_preload() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let of = |path: &Path| obstacle(path, b"");
        let good = file(folder, "good", &elf(b"/lib/ld-linux.so\0"), 0o755);
        assert_eq!(of(&good), None);
        assert_eq!(of(&file(folder, "static", &elf(b""), 0o755)), Some(Obstacle::Static));
        let musl = file(folder, "musl", &elf(b"/lib/ld-musl-x86_64.so.1\0"), 0o755);
        assert_eq!(of(&musl), Some(Obstacle::Loader));
        // The loader itself.
        assert_eq!(of(&file(folder, "ld-linux-x86-64.so.2", &elf(b""), 0o755)), None);
        let mut other = elf(b"/lib/ld-linux.so\0");
        other[4] = 1;
        assert_eq!(of(&file(folder, "other", &other, 0o755)), Some(Obstacle::Machine));
        // Set-user-ID to the user that it runs as changes nothing.
        let own = file(folder, "own", &elf(b"/lib/ld-linux.so\0"), 0o4755);
        assert_eq!(of(&own), None);
        // Neither the loader nor the kernel looks at files that are no programs.
        assert_eq!(of(&file(folder, "short", b"\x7fELF", 0o755)), None);
        assert_eq!(of(&folder.join("none")), None);
        assert_eq!(of(folder), None);
    }

    #[test]
    fn a_script_is_as_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let path = folder.as_os_str().as_bytes();
        let still = file(folder, "still", &elf(b""), 0o755);
        let line = format!("#! {} -x\nwhatever", still.display());
        let script = file(folder, "script", line.as_bytes(), 0o755);
        assert_eq!(obstacle(&script, b""), Some(Obstacle::Static));
        let twice = file(folder, "twice", format!("#!{}\n", script.display()).as_bytes(), 0o755);
        assert_eq!(obstacle(&twice, b""), Some(Obstacle::Static));
        let by_env = file(folder, "by_env", b"#!/usr/bin/env -S A=1 still\n", 0o755);
        assert_eq!(obstacle(&by_env, path), Some(Obstacle::Static));
        assert_eq!(obstacle(&by_env, b"/no/such"), None);
        // A circle ends.
        let circle = folder.join("circle");
        file(folder, "circle", format!("#!{}\n", circle.display()).as_bytes(), 0o755);
        assert_eq!(obstacle(&circle, b""), None);
    }

    #[test]
    fn programs_are_found_as_execvp_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = [b"/no/such:", folder.path().as_os_str().as_bytes()].concat();
        let here = file(folder.path(), "here", b"x", 0o755);
        file(folder.path(), "no-right", b"x", 0o644);
        let find = |name: &str| find_program(OsStr::new(name), &path).map(|p| p.path().to_owned());
        assert_eq!(find("here"), Some(here.clone()));
        assert_eq!(find(here.to_str().unwrap()), Some(here));
        assert_eq!(find("no-right"), None);
        assert_eq!(find("none"), None);
        assert_eq!(find(&"x".repeat(2000)), None);
    }
}
