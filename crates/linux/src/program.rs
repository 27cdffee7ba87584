//! Programs that are called, and what can go wrong.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use overspin_real::scratch::Scratch;

/// Lines of a program's output that an error shows.
const LAST_LINES: usize = 12;

/// Why there is no kernel, or no machine that runs it.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// A program is missing or failed.
    #[error("`{command}` failed: {said}")]
    Program {
        /// The command.
        command: String,
        /// The end of its output, or why it could not be started.
        said: String,
    },
    /// Programs are missing.
    #[error("there is no `{programs}`")]
    Missing {
        /// Their names.
        programs: String,
        /// Their packages.
        packages: String,
    },
    /// There is too little memory.
    #[error("guests of {mib} MiB do not fit: {there} MiB of this machine's memory can be had")]
    Memory {
        /// What guests need.
        mib: u32,
        /// What there is.
        there: u64,
    },
    /// There is too little space.
    #[error("{folder} has {free} MiB of space, and a kernel takes {needed}")]
    Space {
        /// Where.
        folder: String,
        /// What a kernel takes, in MiB.
        needed: u64,
        /// What there is, in MiB.
        free: u64,
    },
    /// A file cannot be read or written.
    #[error("{path}: {cause}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        #[source]
        cause: std::io::Error,
    },
    /// The source is none that the changes fit.
    #[error("{file}: there is no line `{line}`")]
    Source {
        /// The file.
        file: String,
        /// The line behind which something is inserted.
        line: &'static str,
    },
    /// The distribution has no such kernel.
    #[error("there is no package of Linux {version}; there are packages of {there}")]
    NoVersion {
        /// What was asked for.
        version: String,
        /// What there is.
        there: String,
    },
    /// The distribution has no such suite.
    #[error("there are no packages of a suite `{0}`")]
    NoSuite(String),
    /// A file is something else.
    #[error("{0} is no Linux kernel for x86")]
    NoKernel(String),
    /// The object file has something that a kernel must not have.
    #[error("the locks cannot be part of a kernel: {0}")]
    Object(String),
    /// The sources of the locks, or of the guests' first process, are gone.
    #[error("the sources are not in {0}, where this program was built")]
    NoTree(String),
    /// The guest cannot do what it was asked for.
    #[error("in the guest: {0}")]
    Guest(String),
    /// A guest gets no share of the CPUs.
    #[error("the kernel gives no share of the CPUs to a control group of ours ({0})")]
    Share(String),
    /// There is no place for kernels.
    #[error("there is no folder for cached files: neither XDG_CACHE_HOME nor HOME is set")]
    NoCache,
    /// The kernel said something else than it should.
    #[error("{what}; its console ended with: {console}")]
    Console {
        /// What is wrong.
        what: String,
        /// The end of the console.
        console: String,
    },
}

impl LinuxError {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Program { command, .. } if command.starts_with("apt") => {
                "as root, apt-get update; or give the source of a kernel of version 6.1: --source DIR".into()
            }
            Self::Program { command, .. } if command.starts_with("qemu") => {
                "as root, apt-get install qemu-system-x86".into()
            }
            Self::Program { command, .. } if command.starts_with("make") => {
                "as root, apt-get install make gcc flex bison bc libelf-dev libssl-dev".into()
            }
            Self::Program { .. } => "see what it says".into(),
            Self::Missing { packages, .. } => format!("as root, apt-get install {packages}"),
            Self::Memory { .. } => "give a guest less: --memory MIB".into(),
            Self::Space { .. } => "free some, or set XDG_CACHE_HOME to another folder".into(),
            Self::File { .. } => {
                "a kernel takes 3 GB: free some space, or set XDG_CACHE_HOME to another folder".into()
            }
            Self::Source { .. } => "give the source of Linux 6.1: docs/linux.md says what is changed".into(),
            Self::NoVersion { .. } => "name another suite of the distribution, as --suite trixie-backports; or a file, as --kernel /boot/vmlinuz-6.1.0".into(),
            Self::NoSuite(_) => "give a name of the distribution's, for example --suite trixie-backports".into(),
            Self::NoKernel(_) => "give an image as a package has it in /boot, or a vmlinux".into(),
            Self::Object(_) => "a newer compiler may do it otherwise: use the one of rust-toolchain or CONTRIBUTING".into(),
            Self::NoTree(_) => "build overspin from its sources, and keep them: cargo run --release -- linux build".into(),
            Self::Guest(_) => "see what it says: a guest has only what its disk has".into(),
            Self::Share(_) => "run it as root, in a system that lets it make control groups; or leave --quota out".into(),
            Self::NoCache => "set XDG_CACHE_HOME to a folder that takes 3 GB".into(),
            Self::Console { .. } => "run it again, and look at the whole console".into(),
        }
    }
}

pub(crate) fn file(path: &Path, cause: std::io::Error) -> LinuxError {
    LinuxError::File { path: path.display().to_string(), cause }
}

/// Is written into a folder when all is there that belongs there.
const COMPLETE: &str = ".overspin-complete";

/// Notes that the folder is complete.
pub(crate) fn complete(folder: &Path) -> Result<(), LinuxError> {
    let mark = folder.join(COMPLETE);
    fs::write(&mark, "").map_err(|cause| file(&mark, cause))
}

/// Whether that was noted.
pub(crate) fn is_complete(folder: &Path) -> bool {
    folder.join(COMPLETE).exists()
}

/// What a command gets before it is started: it may add what ends the command if this process is killed. An error is in words.
pub type Guard<'a> = &'a dyn Fn(&mut Command) -> Result<(), String>;

/// The guard of what works in this folder: its guardian ends the command.
pub fn guard_of(scratch: &Scratch) -> impl Fn(&mut Command) -> Result<(), String> {
    |command| scratch.guard(command).map_err(|error| error.to_string())
}

/// Runs `command` to its end with its output in `log`. An error shows the end of that file.
pub(crate) fn succeeds(
    command: &mut Command,
    log: &Path,
    guard: Guard<'_>,
) -> Result<(), LinuxError> {
    let output = File::create(log).map_err(|cause| file(log, cause))?;
    let errors = output.try_clone().map_err(|cause| file(log, cause))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    guard(command).map_err(|said| failed(command, said))?;
    let status = command.status().map_err(|e| failed(command, e.to_string()))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read(log).unwrap_or_default();
    Err(failed(command, format!("{status}; {}", last_lines(&String::from_utf8_lossy(&text)))))
}

/// Makes these targets in `tree`, on all CPUs, with the output in `log`.
pub(crate) fn make(
    tree: &Path,
    targets: &[&str],
    log: &Path,
    guard: Guard<'_>,
) -> Result<(), LinuxError> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut make = Command::new("make");
    make.arg(format!("-j{jobs}")).arg("-s").args(targets).current_dir(tree);
    succeeds(&mut make, log, guard)
}

/// Runs `command`, and returns what it prints.
pub(crate) fn output(command: &mut Command) -> Result<String, LinuxError> {
    let output = command.output().map_err(|e| failed(command, e.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(failed(command, format!("{}; {}", output.status, last_lines(&text(&output.stderr)))))
}

/// Cargo, to compile the crate in `source`, which is no member of the workspace, into `folder`.
pub(crate) fn cargo(source: &Path, folder: &Path) -> Result<Command, LinuxError> {
    if !source.is_dir() {
        return Err(LinuxError::NoTree(source.display().to_string()));
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]);
    cargo.arg(source.join("Cargo.toml")).arg("--target-dir").arg(folder);
    for of_host in ["CARGO_BUILD_TARGET", "RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        cargo.env_remove(of_host);
    }
    Ok(cargo)
}

pub(crate) fn failed(command: &Command, said: String) -> LinuxError {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<&str> = words.map(|w: &OsStr| w.to_str().unwrap_or("?")).take(4).collect();
    LinuxError::Program { command: words.join(" "), said }
}

/// The last lines of a text, in one line.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join(" / ")
}

/// The folder `overspin/linux` in the user's folder for cached files.
///
/// # Errors
/// If the environment names none.
pub fn cache() -> Result<PathBuf, LinuxError> {
    let named = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    Ok(folder.ok_or(LinuxError::NoCache)?.join("overspin/linux"))
}

/// Waits until no other process changes what is in `cache`, and keeps others waiting as long as the file is open.
///
/// # Errors
/// If the file that is locked cannot be made.
pub fn alone(cache: &Path) -> Result<File, LinuxError> {
    let path = cache.join("lock");
    let made = fs::create_dir_all(cache).and_then(|()| File::create(&path));
    let locked = made.and_then(|found| found.lock().map(|()| found));
    locked.map_err(|cause| file(&path, cause))
}
