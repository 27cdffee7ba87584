//! Runs a program in a folder, and says what it printed if it ends otherwise than expected.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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

    /// As above, with [`SCENARIO`](crate::SCENARIO) in the file `s.toml`.
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

    /// Writes a file into the folder.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a temporary file");
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
        let Ended { code, out, err } = self.run(args);
        assert_eq!(code, Some(0), "{args:?}: {out}{err}");
        (out, err)
    }

    /// Runs the program, which must end with `code`; returns what it wrote to standard error.
    ///
    /// # Panics
    /// If it ends otherwise.
    #[track_caller]
    pub fn fails(&self, args: &[&str], expected: i32) -> String {
        let Ended { code, out, err } = self.run(args);
        assert_eq!(code, Some(expected), "{args:?}: {out}{err}");
        err
    }
}

impl Ended {
    /// Runs `command` to its end.
    ///
    /// # Panics
    /// If it cannot be started, panics itself, or prints something else than UTF-8.
    #[must_use]
    #[track_caller]
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(!err.contains("panicked"), "{command:?}: {err}");
        Self { code: output.status.code(), out, err }
    }
}
