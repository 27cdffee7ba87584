//! Writing to standard output and to files.

use crate::args::{Global, RecordArgs};
use crate::failure::{Failure, Verdict};
use crate::report::into_directory;
use crate::{screen, signals};
use overspin_host::World;
use overspin_lab::catalog::catalog;
use overspin_lab::environment::Environment;
use overspin_lab::output::Output;
use overspin_lab::record::{InWorld, Record, csv};
use overspin_lab::results::{Claim, Outcomes};
use overspin_lab::way::{Until, Way};
use overspin_report::Block;
use overspin_scenario::{Scenario, Stopped};
use serde::Serialize;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

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

    /// Prints text for people, unless standard output carries data or --quiet was given.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        if self.quiet || self.to_stdout { Ok(()) } else { bytes(text.as_bytes()) }
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

/// Destinations of a record, opened before the work that it describes.
pub(crate) struct RecordFiles {
    json: Option<Output>,
    csv: Option<Output>,
    out: Option<Claim>,
    /// Whether the command writes the page of the directory itself.
    own_page: bool,
}

impl RecordFiles {
    pub(crate) fn open(outputs: &Outputs, args: &RecordArgs) -> Result<Self, Failure> {
        let claim = |dir: &PathBuf| Claim::new(dir, &command());
        let out = args.out.as_ref().map(claim).transpose()?;
        Ok(Self { out, ..Self::files(outputs, args)? })
    }

    /// Opens the files alone. The directory, into which runs are written as they end, is opened elsewhere.
    pub(crate) fn files(outputs: &Outputs, args: &RecordArgs) -> Result<Self, Failure> {
        let (json, csv) = (outputs.open(args.json.as_ref())?, outputs.open(args.csv.as_ref())?);
        Ok(Self { json, csv, out: None, own_page: false })
    }

    /// Leaves the page of the directory to the command, which writes it itself.
    pub(crate) fn with_own_page(self) -> Self {
        Self { own_page: true, ..self }
    }

    /// Where the directory keeps single runs until the result is written, if there is one.
    pub(crate) fn outcomes(&self) -> Option<&Outcomes> {
        self.out.as_ref().map(Claim::outcomes)
    }

    /// Writes the record that `make` makes, if it is wanted.
    pub(crate) fn write(self, make: impl FnOnce() -> Record) -> Result<(), Failure> {
        if self.json.is_none() && self.csv.is_none() && self.out.is_none() {
            return Ok(());
        }
        let record = make();
        if let Some(json) = self.json {
            json.finish_with(&record.to_json())?;
        }
        if let Some(file) = self.csv {
            file.finish_with(&csv(&record))?;
        }
        if let Some(claim) = self.out {
            let (dir, record) = (claim.dir().to_owned(), made(record));
            claim.finish(&record)?;
            if !self.own_page {
                into_directory(&dir, record)?;
            }
        }
        Ok(())
    }
}

/// The record, made here by the command at hand.
pub(crate) fn made(record: Record) -> Record {
    record.made_here(command())
}

fn fault(error: serde_json::Error) -> Failure {
    Failure::environment(format!("cannot write JSON: {error}"), "this is a fault in overspin")
}

/// Writes lists, checks and comparisons, which are not measurements, as indented JSON with a newline at the
/// end. After the program's version it adds the model's.
pub(crate) fn json<T: Serialize>(output: Output, record: &T) -> Result<(), Failure> {
    let mut value = serde_json::to_value(record).map_err(fault)?;
    if let Value::Object(record) = &mut value
        && let Some(version) = record.keys().position(|key| key == "version")
    {
        record.shift_insert(
            version + 1,
            "model_version".into(),
            overspin_sim::MODEL_VERSION.into(),
        );
    }
    let text = serde_json::to_string_pretty(&value).map_err(fault)?;
    Ok(output.finish_with(&(text + "\n"))?)
}

/// Writes a record of results that depend on the machine: it adds where and how they were made.
pub(crate) fn made_here<T: Serialize>(output: Output, record: &T) -> Result<(), Failure> {
    let mut value = serde_json::to_value(record).map_err(fault)?;
    if let Value::Object(record) = &mut value {
        record.insert("command".into(), command().into());
        record.insert("environment".into(), json!(Environment::here()));
    }
    json(output, &value)
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
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    let word = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let arguments = ARGUMENTS.get().map_or(&[][..], Vec::as_slice);
    let words = arguments.iter().skip(1).map(|w| word(w.to_string_lossy().into_owned()));
    std::iter::once("overspin".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// When to stop and keep the results so far: at the first Ctrl-C, or after this long.
pub(crate) fn until(max_wall: Option<Duration>) -> Until {
    Until {
        deadline: max_wall.and_then(|time| Instant::now().checked_add(time)),
        interrupted: Some(signals::first_interrupt()),
    }
}

/// The world of a command, by default the simulator, and when to stop and keep the results so far: at the first
/// Ctrl-C, or after this long.
pub(crate) fn way(world: Option<&str>, max_wall: Option<Duration>) -> Result<Way, Failure> {
    let world = world.unwrap_or(catalog().simulator().name());
    if world == crate::schedbench::XEN {
        return Err(Failure::usage(
            "the world `xen` runs the plans of schedbench only: its guests are Linux with their own locks",
            "use overspin schedbench run FILE.bench --world xen; docs/xen.md describes it",
        ));
    }
    let world = catalog().world(world).ok_or_else(|| {
        let names: Vec<&str> = catalog().worlds().iter().map(|world| world.name()).collect();
        let remedy = format!("worlds are: {}", names.join(", "));
        Failure::usage(format!("there is no world `{world}`"), remedy)
    })?;
    Ok(Way { world, until: until(max_wall) })
}

/// What records say about the world of runs of `scenarios`. Says what it ignores, once for all of them.
pub(crate) fn in_world<'a>(
    way: &Way,
    scenarios: impl IntoIterator<Item = &'a Scenario>,
    global: &Global,
) -> InWorld {
    let made = way.in_world(scenarios);
    if let Some(warning) = made.warning().filter(|_| !global.quiet) {
        eprintln!("warning: {warning}");
    }
    made
}

/// Reports that a command ended early, with only results from before `until`.
pub(crate) fn stopped(by: Stopped) -> Verdict {
    eprintln!("stopped before the end: {}", by.words());
    Verdict::Stopped(by)
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
