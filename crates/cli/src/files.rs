//! The files of a record: JSON, CSV, and the directory of a result with its page.

use crate::args::RecordArgs;
use crate::failure::Failure;
use crate::report::into_directory;
use crate::show::{Outputs, command, made};
use overspin_record::output::Output;
use overspin_record::results::{Claim, Outcomes};
use overspin_runs::record::{Record, csv};
use std::path::PathBuf;

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

    /// The directory, into which runs are kept as they end, if there is one.
    pub(crate) fn claim(&mut self) -> Option<&mut Claim> {
        self.out.as_mut()
    }

    /// Writes the record that `make` makes, if it is wanted.
    pub(crate) fn write(self, make: impl FnOnce() -> Record) -> Result<(), Failure> {
        self.write_part(make, true)
    }

    /// The same. If the record is not complete, the same command goes on with the directory.
    pub(crate) fn write_part(
        self,
        make: impl FnOnce() -> Record,
        complete: bool,
    ) -> Result<(), Failure> {
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
            claim.finish_part(&record, complete)?;
            if !self.own_page {
                into_directory(&dir, record)?;
            }
        }
        Ok(())
    }
}
