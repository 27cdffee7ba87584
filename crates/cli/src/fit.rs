//! `overspin fit`.

use crate::args::{FitArgs, Global};
use crate::failure::{Failure, Verdict};
use crate::show::Outputs;
use overspin_lab::fit::{self, Failed};
use overspin_lab::record;

pub(crate) fn fit(args: &FitArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.output.as_ref()])?;
    let name = args.file.display().to_string();
    let text = record::read_text(&args.file)?;
    let recording = fit::read(&name, &text)?;
    let number = args.mutex.unwrap_or_else(|| recording.hottest());
    let Some(mutex) = recording.mutexes.get(number) else {
        let cause = format!("{name}: there is no mutex {number}");
        let last = recording.mutexes.len() - 1;
        return Err(Failure::usage(cause, format!("--mutex is 0 to {last}")));
    };
    let fitted = fit::scenario(&name, &recording, mutex);
    if let Some(file) = outputs.open(args.output.as_ref())? {
        file.finish_with(&fitted.text)?;
    }
    let report = fit::report(&name, &recording, number, &fitted, &args.locks);
    outputs.report(&report.map_err(|failed| match failed {
        Failed::Scenario(error) => error.into(),
        Failed::Refused(cause) => Failure::refused(&name, &cause),
    })?)?;
    Ok(Verdict::Fine)
}
