//! Panels of published and simulated figures.

use crate::{Compared, Grade, Reproduction};
use overspin_report::svg::colour;
use overspin_report::{Bar, Panel, Row};

/// A panel of the figures that `label` names, published and simulated.
#[must_use]
pub(super) fn of_figures(
    result: &Reproduction,
    title: &str,
    label: impl Fn(&Compared) -> Option<String>,
) -> Panel {
    let whisker = |v: f64, sd: Option<f64>| sd.map(|sd| [v - sd, v + sd]);
    let row = |f: &Compared| {
        let published = match f.published {
            Some(v) => Bar::Value(v, whisker(v, f.published_stddev)),
            None => Bar::Endless,
        };
        let simulated = match f.simulated {
            Some(v) => Bar::Value(v, whisker(v, f.simulated_stddev)),
            None if f.published.is_none() && f.grade == Grade::Good => Bar::Endless,
            None => Bar::None,
        };
        Some(Row { label: label(f)?, bars: vec![published, simulated] })
    };
    let rows: Vec<Row> = result.experiment.figures.iter().filter_map(row).collect();
    let any = rows.iter().flat_map(|r| &r.bars).any(|b| matches!(b, Bar::Value(_, Some(_))));
    let note = if any { "whiskers: standard deviation of the runs" } else { "" };
    let series = [("published", colour::PUBLISHED), ("simulated", colour::SIMULATED)];
    Panel {
        title: title.into(),
        note: note.into(),
        series: series.map(|(name, colour)| (name.to_owned(), colour)).into(),
        rows,
    }
}
