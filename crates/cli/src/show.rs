//! Writing to standard output and to files.

use crate::args::Global;
use crate::failure::Failure;
use crate::screen;
use overspin_record::environment::Environment;
use overspin_record::output::Output;
use overspin_record::shell_words;
use overspin_report::Block;
use overspin_runs::record::Record;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Writes to standard output. If the reader went away, this is not worth a message.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::environment(
            format!("cannot write to standard output: {e}"),
            "free some space, or send the output elsewhere",
        ),
    })
}

/// Files that a command writes. They are opened before its work, so that a bad name costs nothing.
pub(crate) struct Outputs {
    quiet: bool,
    to_stdout: bool,
}

impl Outputs {
    /// Checks that no two outputs have the same destination, where one of them would be lost.
    pub(crate) fn new(global: &Global, files: &[Option<&PathBuf>]) -> Result<Self, Failure> {
        let files: Vec<&PathBuf> = files.iter().flatten().copied().collect();
        let mut places = Vec::new();
        for file in &files {
            let place = place(file);
            // Nothing of value is lost there.
            if places.contains(&place) && place != Path::new("/dev/null") {
                return Err(Failure::usage(
                    match file.as_path() == Path::new("-") {
                        true => "two outputs have the same destination, standard output".to_owned(),
                        false => {
                            format!("two outputs have the same destination, `{}`", file.display())
                        }
                    },
                    "name another file for one of them",
                ));
            }
            places.push(place);
        }
        Ok(Self {
            quiet: global.quiet,
            to_stdout: files.iter().any(|p| p.as_path() == Path::new("-")),
        })
    }

    /// Opens an output file, if asked for.
    pub(crate) fn open(&self, path: Option<&PathBuf>) -> Result<Option<Output>, Failure> {
        Ok(path.map(|p| Output::create(p)).transpose()?)
    }

    /// Prints a report for people, as [`Outputs::print`] does.
    pub(crate) fn report(&self, blocks: &[Block]) -> Result<(), Failure> {
        self.print(&overspin_report::text_on(blocks, &screen::of_stdout()))
    }

    /// Prints a report whose tables are no wider than a page.
    pub(crate) fn report_as_page(&self, blocks: &[Block]) -> Result<(), Failure> {
        self.print(&overspin_report::text_on(blocks, &screen::page_on_stdout()))
    }

    /// Prints a report for people; before, writes it to the file of --markdown, if asked for.
    pub(crate) fn report_with_markdown(
        &self,
        blocks: &[Block],
        file: Option<&PathBuf>,
    ) -> Result<(), Failure> {
        if let Some(file) = self.open(file)? {
            file.finish_with(&overspin_report::markdown(blocks))?;
        }
        self.report(blocks)
    }

    /// Whether something is printed for people.
    pub(crate) fn prints(&self) -> bool {
        !self.quiet && !self.to_stdout
    }

    /// Prints text for people, unless standard output carries data or --quiet was given.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        if self.prints() { bytes(text.as_bytes()) } else { Ok(()) }
    }
}

/// The place of a file, present or future, whatever it is called.
fn place(file: &Path) -> PathBuf {
    let folder = || {
        let folder = file.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(file.file_name()?))
    };
    file.canonicalize().ok().or_else(folder).unwrap_or_else(|| file.to_owned())
}

/// The record, made here by the command at hand.
pub(crate) fn made(record: Record) -> Record {
    record.made_here(command())
}

/// Writes lists, checks and comparisons, which are not measurements, as indented JSON with a newline at the end: which
/// `schema` it has, the versions of the program and of its model, and the `record`.
pub(crate) fn json(output: Output, schema: &str, record: Value) -> Result<(), Failure> {
    let mut whole = json!({
        "schema": schema, "version": env!("CARGO_PKG_VERSION"),
        "model_version": overspin_sim::MODEL_VERSION,
    });
    if let (Value::Object(whole), Value::Object(record)) = (&mut whole, record) {
        whole.extend(record);
    }
    Ok(output.finish_with(&format!("{whole:#}\n"))?)
}

/// Writes a record of results that depend on the machine: it adds where and how they were made.
pub(crate) fn made_here(output: Output, schema: &str, mut record: Value) -> Result<(), Failure> {
    record["command"] = command().into();
    record["environment"] = json!(Environment::here());
    json(output, schema, record)
}

/// The arguments of the command. They are those of the process, except in an interpreter.
static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the arguments of the command, of which a process has one.
pub(crate) fn set_arguments(arguments: Vec<OsString>) {
    // A second command in a process fails, because the catalog is installed.
    let _ = ARGUMENTS.set(arguments);
}

/// The command, as it can be given to a shell again.
pub(crate) fn command() -> String {
    let arguments = ARGUMENTS.get().map_or(&[][..], Vec::as_slice);
    let words = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    shell_words(&std::iter::once("overspin".into()).chain(words).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_place_under_all_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("a.json"), dir.path().join("./b/../a.json"));
        std::fs::create_dir(dir.path().join("b")).unwrap();
        assert_eq!(place(&here), place(&there), "not there yet");
        std::fs::write(&here, "").unwrap();
        std::os::unix::fs::symlink(&here, dir.path().join("link")).unwrap();
        assert_eq!(place(&here), place(&dir.path().join("link")));
        assert_ne!(place(&here), place(&dir.path().join("c.json")));
    }
}
