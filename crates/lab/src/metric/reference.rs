//! Every metric as Markdown tables, for `docs/metrics.md`.

use super::{Metric, Table, real, schedbench, simulated, threads};
use crate::experiment;
use crate::record::Kind;
use crate::validate;
use std::fmt::Write;

/// What a chapter of the reference is about: a command and the records that it writes.
struct Chapter {
    heading: &'static str,
    /// Kind of its records, which says which metrics `compare` compares by default.
    kind: Kind,
    tables: &'static [Table],
}

const CHAPTERS: [Chapter; 14] = [
    Chapter { heading: "`run`, `seeds`", kind: Kind::Run, tables: &simulated::OF_RUN },
    Chapter { heading: "`sweep`", kind: Kind::Sweep, tables: &simulated::OF_SWEEP },
    Chapter {
        heading: "`reproduction`: experiments of kind `dbench`",
        kind: Kind::Reproduction,
        tables: &experiment::dbench::samples::TABLES,
    },
    Chapter {
        heading: "`reproduction`: experiments of kind `notification`",
        kind: Kind::Reproduction,
        tables: &experiment::notification::samples::TABLES,
    },
    Chapter {
        heading: "`reproduction`: experiments of kind `kernbench`",
        kind: Kind::Reproduction,
        tables: &experiment::kernbench::samples::TABLES,
    },
    Chapter {
        heading: "`reproduction`: experiments of kind `pv-ticket`",
        kind: Kind::Reproduction,
        tables: &experiment::pv_ticket::samples::TABLES,
    },
    Chapter {
        heading: "`reproduction`: experiments of kind `schedbench`",
        kind: Kind::Reproduction,
        tables: &experiment::schedbench::samples::TABLES,
    },
    Chapter { heading: "`schedbench`", kind: Kind::Schedbench, tables: &schedbench::OF_FILE },
    Chapter { heading: "`bench`", kind: Kind::Bench, tables: &threads::OF_SPEED },
    Chapter { heading: "`bench-locks`", kind: Kind::BenchLocks, tables: &threads::OF_LOCKS },
    Chapter { heading: "`noise`", kind: Kind::Noise, tables: &threads::OF_NOISE },
    Chapter { heading: "`calibration`", kind: Kind::Calibration, tables: &threads::OF_CALIBRATION },
    Chapter { heading: "`real`", kind: Kind::Real, tables: &real::OF_REAL },
    Chapter { heading: "`validation`", kind: Kind::Validation, tables: &validate::TABLES },
];

/// A chapter for each kind of record, with a Markdown table for each sort of place.
#[must_use]
pub fn tables() -> String {
    let mut text = String::new();
    for chapter in &CHAPTERS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "## {}\n", chapter.heading);
        for table in chapter.tables {
            let _ = writeln!(text, "**{}.** {}\n", table.heading, table.places);
            text.push_str("| metric | unit | meaning |\n| --- | --- | --- |\n");
            for metric in (table.metrics)() {
                text.push_str(&row(metric, chapter.kind));
            }
            text.push('\n');
        }
    }
    text
}

fn row(metric: &Metric, kind: Kind) -> String {
    let Metric { name, unit, meaning } = metric;
    let main = kind.main_metrics();
    let stars = if main.is_empty() || main.contains(name) { "**" } else { "" };
    let row = format!("| {stars}`{name}`{stars} | {unit} | {meaning} |\n");
    row.replace("|  |", "| |")
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_testing::expect_section;

    /// To renew the page after a change: `UPDATE_EXPECT=1 cargo test -p overspin-lab --lib published_metrics`.
    #[test]
    fn published_metrics_are_current() {
        let tables = format!("\n{}", tables());
        expect_section(
            "docs/metrics.md",
            "<!-- metrics: begin -->\n",
            "<!-- metrics: end -->",
            &tables,
        );
    }

    #[test]
    fn a_metric_is_defined_once_at_a_place_and_its_meaning_fits_a_cell() {
        for chapter in &CHAPTERS {
            for table in chapter.tables {
                let metrics = (table.metrics)();
                for (i, m) in metrics.iter().enumerate() {
                    let at = format!("{}, {}: {}", chapter.heading, table.heading, m.name);
                    assert!(metrics[..i].iter().all(|other| other.name != m.name), "{at}: twice");
                    assert!(!m.meaning.is_empty() && !m.meaning.contains(['|', '\n']), "{at}");
                }
            }
        }
    }
}
