//! `overspin doctor`.

use crate::args::{EXIT_CODES, Global};
use crate::exec::find_library;
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use clap::Args;
use overspin_lab::doctor::{self, Place};
use overspin_record::environment::Environment;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct DoctorArgs {
    /// Write as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn doctor(args: &DoctorArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.json.as_ref()])?;
    let json = outputs.open(args.json.as_ref())?;
    let environment = Environment::here();
    let place = Place::here(find_library().map_err(|failure| failure.cause()));
    let diagnosis = doctor::diagnose(&place, &environment);
    if let Some(json) = json {
        let record = json!({ "findings": diagnosis.findings });
        show::made_here(json, "overspin-doctor/1", record)?;
    }
    outputs.report_as_page(&doctor::report(&diagnosis, &environment.words()))?;
    // A machine that lacks something is not a failure.
    Ok(Verdict::Fine)
}
