//! Runs a program in a folder, and says what it printed if it ends otherwise than expected.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::spawn;
use std::time::Duration;
use tempfile::TempDir;

/// A program and the folder in which it runs. Cargo tells only tests of a package where its programs are, so each such
/// test crate has one function which makes this: `Program::new(env!("CARGO_BIN_EXE_overspin"))`.
#[derive(Debug)]
pub struct Program {
    program: PathBuf,
    dir: TempDir,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

impl Program {
    /// `program` in a new folder, which is removed with this value.
    ///
    /// # Panics
    /// If no folder can be made.
    #[must_use]
    pub fn new(program: &str) -> Self {
        Self { program: program.into(), dir: tempfile::tempdir().expect("a temporary folder") }
    }

    /// `program` in a new folder with [`SCENARIO`](crate::SCENARIO) in the file `s.toml`.
    #[must_use]
    pub fn with_scenario(program: &str) -> Self {
        let program = Self::new(program);
        program.write("s.toml", crate::SCENARIO);
        program
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A path in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// The names of what is in the folder, sorted.
    ///
    /// # Panics
    /// If the folder cannot be read.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.dir()).expect("the folder");
        let name = |file: std::io::Result<std::fs::DirEntry>| file.expect("a file").file_name();
        let mut names: Vec<String> =
            files.map(|file| name(file).into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    /// Writes a file into the folder.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("a temporary file");
    }

    /// The text of a file in the folder.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The command, for a test that starts it itself. It has no colours, and both outputs are pipes.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(self.dir()).env("NO_COLOR", "1").args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the program. [`Ended::wait`] waits for its end.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    #[track_caller]
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().expect("the program starts")
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// If it cannot be started, panics itself, or prints something else than UTF-8.
    #[must_use]
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Ended {
        Ended::of(&mut self.command(args))
    }

    /// Runs the program, which must end with 0; returns both outputs.
    ///
    /// # Panics
    /// If it ends otherwise.
    #[track_caller]
    pub fn fine(&self, args: &[&str]) -> (String, String) {
        let Ended { code, out, err, .. } = self.run(args);
        assert_eq!(code, Some(0), "{args:?}: {out}{err}");
        (out, err)
    }

    /// Runs the program, which must end with `code`; returns what it wrote to standard error.
    ///
    /// # Panics
    /// If it ends otherwise.
    #[track_caller]
    pub fn fails(&self, args: &[&str], expected: i32) -> String {
        let Ended { code, out, err, .. } = self.run(args);
        assert_eq!(code, Some(expected), "{args:?}: {out}{err}");
        err
    }
}

/// Sends a signal, such as `INT`, to a process that a test has started.
///
/// # Panics
/// If the process cannot get it.
#[track_caller]
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(status.expect("kill starts").success(), "{name}");
}

impl Ended {
    /// Runs `command` to its end.
    ///
    /// # Panics
    /// If it cannot be started, panics itself, or prints something else than UTF-8.
    #[must_use]
    #[track_caller]
    pub fn of(command: &mut Command) -> Self {
        Self::told(command.output().expect("the program starts"))
    }

    /// Waits for the end of a started program. After five minutes it kills the program: the limit is only against
    /// hanging.
    ///
    /// # Panics
    /// If it does not end, panics itself, or prints something else than UTF-8.
    #[must_use]
    #[track_caller]
    pub fn wait(child: Child) -> Self {
        let id = child.id().to_string();
        let (sender, ended) = channel();
        // If nobody listens any more, the test has failed already.
        spawn(move || _ = sender.send(child.wait_with_output()));
        let Ok(output) = ended.recv_timeout(Duration::from_secs(300)) else {
            // Ignored: the test fails anyway.
            let _ = Command::new("kill").args(["-s", "KILL", &id]).status();
            panic!("after five minutes it has not ended");
        };
        Self::told(output.expect("it is a child of this process"))
    }

    #[track_caller]
    fn told(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(!err.contains("panicked"), "{err}");
        Self { code: output.status.code(), signal: output.status.signal(), out, err }
    }

    /// Asserts the exit code; returns both outputs.
    ///
    /// # Panics
    /// If the program ended otherwise.
    #[track_caller]
    pub fn with(self, expected: i32) -> (String, String) {
        let Self { code, out, err, .. } = self;
        assert_eq!(code, Some(expected), "{out}{err}");
        (out, err)
    }
}
