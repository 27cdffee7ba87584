//! Programs in C under the library: what the tests of it have in common.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use overspin_testing::{deep, skip};

/// Returns the shared library, which is built with the tests and lies beside them.
pub fn library() -> PathBuf {
    let test = env::current_exe().unwrap();
    let library = test.with_file_name("liboverspin_preload.so");
    assert!(library.is_file(), "{} is built with the tests", library.display());
    library
}

/// Compiles a source of this folder. Prints a message and returns `None` without a compiler, or if it lacks an
/// option.
pub fn compile_with(compiler: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    let program = tempfile::Builder::new().tempfile_in(folder).unwrap().into_temp_path();
    let program = program.keep().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let mut command = Command::new(compiler);
    command
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-rdynamic", "-o"])
        .arg(&program)
        .arg(source)
        .args(options);
    match command.output() {
        Ok(output) if !output.status.success() && options.contains(&"-fopenmp") => {
            skip("this compiler has no OpenMP");
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            skip(&format!("no {compiler}: {error}"));
            None
        }
    }
}

/// All of these locks, or by default the first few.
pub fn some<T: Copy>(locks: &[T], few: usize) -> Vec<T> {
    if deep() {
        return locks.to_vec();
    }
    skip(&format!(
        "{} of {} locks under the preload library: OVERSPIN_DEEP=1",
        locks.len() - few,
        locks.len()
    ));
    locks[..few].to_vec()
}

pub fn compile(compiler: &str, source: &str) -> Option<PathBuf> {
    compile_with(compiler, source, &["-ldl"])
}

/// Returns the command to run the program, with a lock if there is one.
pub fn with_lock(program: &Path, lock: Option<&str>) -> Command {
    let mut command = Command::new(program);
    command.env_remove("OVERSPIN_STATS").stdin(Stdio::null());
    match lock {
        Some(lock) => command.env("OVERSPIN_LOCK", lock).env("LD_PRELOAD", library()),
        None => command.env_remove("OVERSPIN_LOCK"),
    };
    command
}

/// Runs a program to its end; kills it if it hangs.
pub fn finish(command: &mut Command) -> Output {
    const LIMIT: Duration = Duration::from_secs(60);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    // The output fits into a pipe.
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > LIMIT {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!("{command:?} hangs: {output:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

pub fn succeeds(command: &mut Command) -> Output {
    let output = finish(command);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}, {told}", output.status);
    output
}
