//! `overspin exec`: a program with the preload library.

use crate::catalog::unknown_lock;
use crate::failure::{Failure, Verdict};
use clap::Args;
use overspin_native::preload as loading;
use overspin_real::preload::before_others;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Args)]
#[command(
    after_long_help = "It becomes the program, and so ends as the program ends. A program that the loader gives no
library (linked statically, set-user-ID, with capabilities) runs with its own mutexes, after a
warning. If the program cannot be started:

Exit codes:
  2  wrong usage or input, or no such program
  3  the environment prevents it (no preload library)

Environment:
  OVERSPIN_PRELOAD  the preload library, if it is neither beside this command nor in ../lib"
)]
pub(crate) struct ExecArgs {
    /// Name of a lock (`overspin list locks`)
    #[arg(long, value_name = "NAME")]
    lock: String,
    /// When the program ends, print the most acquired mutexes on standard error
    #[arg(long)]
    stats: bool,
    /// When the program ends, write how long each mutex was held, waited for and left alone, as JSON for `overspin
    /// fit`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const LIBRARY: &str = "liboverspin_preload.so";

/// Becomes the program; returns only on failure.
pub(crate) fn exec(args: &ExecArgs) -> Result<Verdict, Failure> {
    let lock = overspin_locks::find(&args.lock).ok_or_else(|| unknown_lock(&args.lock))?.name;
    let library = find_library()?;
    let [program, arguments @ ..] = &args.command[..] else {
        return Err(Failure::usage("there is no program to run", "name it after `--`"));
    };
    let mut command = Command::new(program);
    command.args(arguments).env("OVERSPIN_LOCK", lock);
    command.env("LD_PRELOAD", before_others(&library, env::var_os("LD_PRELOAD")));
    if args.stats {
        command.env("OVERSPIN_STATS", "1");
    } else {
        command.env_remove("OVERSPIN_STATS");
    }
    let obstacle = warned(program, lock);
    let recording = match &args.record {
        Some(file) => Some(Recording::begin(file, program, obstacle)?),
        None => None,
    };
    match &recording {
        Some(recording) => command.env("OVERSPIN_RECORD", recording.request()),
        None => command.env_remove("OVERSPIN_RECORD"),
    };
    // Without it, each process tells for itself what there is to tell.
    let shared = share(recording.as_ref()).ok();
    match &shared {
        Some(file) => {
            let run = format!("{}:{}", std::process::id(), file.as_raw_fd());
            command.env(loading::RUN, run)
        }
        None => command.env_remove(loading::RUN),
    };
    let error = command.exec();
    if let Some(recording) = recording {
        recording.discard();
    }
    let cause = format!("cannot run {}: {error}", program.display());
    Err(match error.kind() {
        ErrorKind::NotFound if let Some(interpreter) = missing_interpreter(program) => {
            Failure::usage(
                format!(
                    "cannot run {}: there is no {interpreter:?}, its interpreter",
                    program.display()
                ),
                "install it, or correct the first line of the script",
            )
        }
        ErrorKind::NotFound => Failure::usage(cause, "give its path, or put its folder into PATH"),
        ErrorKind::PermissionDenied => Failure::usage(cause, "name a file that you may execute"),
        _ => Failure::environment(cause, "try it without overspin exec"),
    })
}

/// Says it if the program will run without the library, and why.
pub(crate) fn warned(program: &OsStr, lock: &str) -> Option<loading::Obstacle> {
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let file = loading::find_program(program, folders.as_bytes())?;
    let obstacle = loading::obstacle(file.path(), folders.as_bytes())?;
    let mut head = [0; 2];
    let is_script = File::open(file.path())
        .and_then(|mut file| file.read_exact(&mut head))
        .is_ok_and(|()| head == *b"#!");
    let its = if is_script { "its interpreter" } else { "it" };
    eprintln!(
        "warning: {} runs without `{lock}`: {its} {}\n help: {}",
        program.display(),
        obstacle.what(),
        obstacle.remedy()
    );
    Some(obstacle)
}

/// The interpreter that a script names, if it is not there: the kernel then calls the script itself not found.
fn missing_interpreter(program: &OsStr) -> Option<PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let file = loading::find_program(program, folders.as_bytes())?;
    let mut head = [0; 256];
    let length = File::open(file.path()).ok()?.read(&mut head).ok()?;
    let line = head[..length].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let name = line.split(|byte| b" \t".contains(byte)).find(|word| !word.is_empty())?;
    let interpreter = PathBuf::from(OsStr::from_bytes(name));
    (!interpreter.exists()).then_some(interpreter)
}

/// The memory in which the processes of the run tell each other what happens.
fn share(recording: Option<&Recording>) -> std::io::Result<OwnedFd> {
    let mut header = [loading::MAGIC, 0, 0, 0];
    if let Some(recording) = recording {
        let about = File::from(recording.open.try_clone()?).metadata()?;
        let number = u64::try_from(recording.open.as_raw_fd()).unwrap_or_default();
        header[1..].copy_from_slice(&[about.dev(), about.ino(), number]);
    }
    loading::shared(&header)
}

/// The file of a recording, which is opened now: no program runs in vain for a wrong path, and one that changes its user or its
/// root still writes.
struct Recording {
    path: PathBuf,
    open: OwnedFd,
    /// It holds nothing but the note that a recording begins.
    is_new: bool,
}

impl Recording {
    fn begin(
        file: &Path,
        program: &OsStr,
        obstacle: Option<loading::Obstacle>,
    ) -> Result<Self, Failure> {
        // Before it is opened: that alone may do something to a device, or wait.
        if let Ok(about) = file.metadata()
            && !about.is_file()
        {
            let cause = format!("cannot record into `{}`: it is {}", file.display(), kind(&about));
            return Err(Failure::usage(
                cause,
                "name a file, which is read again by `overspin fit`",
            ));
        }
        let made = || {
            let mut opened =
                File::options().read(true).write(true).create(true).truncate(false).open(file)?;
            let about = opened.metadata()?;
            // A recording of an earlier run stays until the new one is there.
            let is_new = about.len() == 0;
            if is_new {
                let note = serde_json::json!({
                    "schema": "overspin-recording-begun/1", "state": "begins", "process": std::process::id(),
                    "program": program.to_string_lossy(), "obstacle": obstacle.map(loading::Obstacle::what),
                });
                // With this beginning the library knows the note, whatever order of keys is chosen here.
                let note = note.to_string().replacen("{\"schema\":", "{ \"schema\": ", 1);
                writeln!(opened, "{note}")?;
            } else {
                eprintln!("{} keeps its recording until the program has ended", file.display());
            }
            // What a link leads to is what is replaced at the end.
            Ok(Self { path: file.canonicalize()?, open: loading::inherited(&opened)?, is_new })
        };
        made().map_err(|e: std::io::Error| {
            let cause = format!("cannot write `{}`: {e}", file.display());
            Failure::environment(cause, "name a file in a folder in which you may write")
        })
    }

    /// The process that this one becomes, and the file.
    fn request(&self) -> OsString {
        let mut request = OsString::from(format!("{}:", std::process::id()));
        request.push(&self.path);
        request
    }

    /// No program has begun.
    fn discard(self) {
        if self.is_new {
            // A file that stays says that a recording has begun.
            let _ = fs::remove_file(self.path);
        }
    }
}

/// What a file is that is no regular one.
fn kind(about: &fs::Metadata) -> &'static str {
    let kind = about.file_type();
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// The file in `OVERSPIN_PRELOAD`, or else the library beside this command, in `../lib`, or where cargo has built it together
/// with this command.
pub(crate) fn find_library() -> Result<PathBuf, Failure> {
    let (found, tried) = match env::var_os("OVERSPIN_PRELOAD") {
        Some(file) => (existing(Path::new(&file)), format!("OVERSPIN_PRELOAD, {}", file.display())),
        None => {
            let command = env::current_exe().and_then(|path| path.canonicalize()).map_err(|e| {
                Failure::environment(
                    format!("cannot find the place of this command: {e}"),
                    format!("set OVERSPIN_PRELOAD to {LIBRARY}"),
                )
            })?;
            let beside = command.with_file_name(LIBRARY);
            let above = command.parent().and_then(Path::parent);
            let in_lib = || existing(&above?.join("lib").join(LIBRARY));
            let built = || existing(&Path::new(env!("OVERSPIN_LIBRARIES")).join(LIBRARY));
            let found = existing(&beside).or_else(in_lib).or_else(built);
            (found, beside.display().to_string())
        }
    };
    let Some(library) = found else {
        return Err(Failure::environment(
            format!("there is no preload library ({tried})"),
            format!(
                "the package has {LIBRARY}, and so has a build: {}. Put it beside this command or into ../lib relative \
                 to it, or set OVERSPIN_PRELOAD to the file",
                env!("OVERSPIN_LIBRARIES")
            ),
        ));
    };
    if !is_library(&library) {
        return Err(Failure::environment(
            format!("this is no library for this machine: {}", library.display()),
            format!("set OVERSPIN_PRELOAD to {LIBRARY} of the package or of a build"),
        ));
    }
    // The loader takes both for the end of a name, and cannot quote them.
    let splits = |byte: &u8| b": \t\n".contains(byte);
    if OsStr::as_encoded_bytes(library.as_os_str()).iter().any(splits) {
        return Err(Failure::environment(
            format!(
                "the path of the preload library has a colon or a space: {}",
                library.display()
            ),
            "the loader cannot handle this: move the library, or set OVERSPIN_PRELOAD to a link to it",
        ));
    }
    Ok(library)
}

/// Whether a file begins as shared libraries of this machine do. Of others the loader only warns, and the program runs without.
fn is_library(file: &Path) -> bool {
    let mut head = [0; 20];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut head));
    const SHARED: u16 = 3;
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    read.is_ok()
        && head.starts_with(b"\x7fELF\x02\x01")
        && half(16) == SHARED
        && half(18) == machine
}

/// The absolute path of an existing file: the program may change its folder and start others.
fn existing(file: &Path) -> Option<PathBuf> {
    file.is_file().then(|| std::path::absolute(file).ok())?
}
