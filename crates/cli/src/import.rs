//! `overspin import`.

use crate::args::{Format, Global, ImportArgs};
use crate::failure::{Failure, Verdict};
use overspin_lab::output::Output;
use overspin_lab::{rt_app, scenario_file};

pub(crate) fn import(args: &ImportArgs, global: &Global) -> Result<Verdict, Failure> {
    let text = scenario_file::read_text(&args.file)?;
    let name = args.file.display().to_string();
    let imported = match args.format {
        Format::RtApp => rt_app::import(&name, &text),
    }
    .map_err(|e| Failure::Scenario(Box::new(e)))?;
    Output::create(&args.output)?.finish_with(&imported.scenario)?;
    if !global.quiet {
        for dropped in &imported.dropped {
            eprintln!("dropped: {dropped}");
        }
    }
    Ok(Verdict::Fine)
}
