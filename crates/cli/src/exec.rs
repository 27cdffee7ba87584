//! `overspin exec`: a program with the preload library.

use crate::catalog::unknown_lock;
use crate::failure::{Failure, Verdict};
use clap::Args;
use overspin_real::preload::before_others;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Args)]
#[command(
    after_long_help = "It becomes the program, and so ends as the program ends. If the program cannot be started:

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
    match &args.record {
        Some(file) => command.env("OVERSPIN_RECORD", request(file)?),
        None => command.env_remove("OVERSPIN_RECORD"),
    };
    let error = command.exec();
    let cause = format!("cannot run {}: {error}", program.display());
    Err(match error.kind() {
        ErrorKind::NotFound => Failure::usage(cause, "give its path, or put its folder into PATH"),
        ErrorKind::PermissionDenied => Failure::usage(cause, "name a file that you may execute"),
        _ => Failure::environment(cause, "try it without overspin exec"),
    })
}

/// The request for a recording: the process that this one becomes, and the file, which is made now. So no program runs in
/// vain for a wrong path.
fn request(file: &Path) -> Result<OsString, Failure> {
    let made = File::create(file).and_then(|_| std::path::absolute(file));
    let absolute = made.map_err(|e| {
        let cause = format!("cannot write `{}`: {e}", file.display());
        Failure::environment(cause, "name a file in a folder in which you may write")
    })?;
    let mut request = OsString::from(format!("{}:", std::process::id()));
    request.push(absolute);
    Ok(request)
}

/// The file in `OVERSPIN_PRELOAD`, or else the library beside this command, in `../lib` or in `../dist`. The last is
/// where cargo puts it for a command in `target/release`.
pub(crate) fn find_library() -> Result<PathBuf, Failure> {
    let remedy = format!(
        "build it with `cargo build --profile dist -p overspin-preload`; a command in target/ finds it then. For any \
         other command, put {LIBRARY} beside it or into ../lib relative to it, or set OVERSPIN_PRELOAD to the file"
    );
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
            let in_sibling = |name| existing(&above?.join(name).join(LIBRARY));
            let found = existing(&beside).or_else(|| in_sibling("lib"));
            (found.or_else(|| in_sibling("dist")), beside.display().to_string())
        }
    };
    let Some(library) = found else {
        return Err(Failure::environment(format!("there is no preload library ({tried})"), remedy));
    };
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

/// The absolute path of an existing file: the program may change its folder and start others.
fn existing(file: &Path) -> Option<PathBuf> {
    file.is_file().then(|| std::path::absolute(file).ok())?
}
