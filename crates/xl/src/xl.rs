//! The program `xl`.

use crate::XlError;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The program `xl`, and how to start it.
#[derive(Clone, Debug)]
pub struct Xl {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Default for Xl {
    /// `xl` of the search path.
    fn default() -> Self {
        Self::at("xl")
    }
}

impl Xl {
    /// This program.
    #[must_use]
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), environment: Vec::new() }
    }

    /// With this variable in its environment.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).envs(self.environment.iter().cloned());
        // A Ctrl-C is for this program, which then restores the host with more commands.
        command.process_group(0);
        command
    }

    /// The command as one would type it.
    fn words(&self, arguments: &[&str]) -> String {
        let program = self.program.display().to_string();
        [&[&*program], arguments].concat().join(" ")
    }

    fn cannot_start(&self, cause: std::io::Error) -> XlError {
        XlError::NoXl { program: self.program.display().to_string(), cause }
    }

    /// Runs a command to its end, and returns its output.
    ///
    /// # Errors
    /// If it cannot be started or fails.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String, XlError> {
        let output = self
            .command(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|cause| self.cannot_start(cause))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = last_lines(&String::from_utf8_lossy(&output.stderr));
        let said = if said.is_empty() { output.status.to_string() } else { said };
        Err(XlError::Command { command: self.words(arguments), said })
    }

    /// Starts a command at a terminal.
    pub(crate) fn start(&self, arguments: &[&str], terminal: File) -> Result<Child, XlError> {
        let output = terminal.try_clone().map_err(|cause| XlError::Terminal { cause })?;
        self.command(arguments)
            .stdin(terminal)
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|cause| self.cannot_start(cause))
    }

    /// The version of Xen.
    ///
    /// # Errors
    /// If there is no `xl`, or no Xen.
    pub fn version(&self) -> Result<String, XlError> {
        let info = self.run(&["info"]).map_err(|error| match error {
            XlError::Command { said, .. } => {
                XlError::NoXen { program: self.program.display().to_string(), said }
            }
            other => other,
        })?;
        let version = info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == "xen_version").then(|| value.trim().to_owned())
        });
        Ok(version.unwrap_or_else(|| "unknown".into()))
    }
}

/// The end of an error output in a line: the last lines name the cause.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}
