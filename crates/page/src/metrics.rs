//! Every metric as Markdown, for `docs/metrics.md`.

use overspin_experiment as experiment;
use overspin_lab::metric::{real, threads};
use overspin_lab::validate;
use overspin_record::metric::{Metric, Table};
use overspin_runs::record::Kind;
use overspin_runs::schedbench::metrics as schedbench;
use std::fmt::Write;

/// What a chapter of the reference is about: a command and the records that it writes.
struct Chapter {
    heading: String,
    /// Kind of its records, which says which metrics `compare` compares by default.
    kind: Kind,
    tables: Vec<Table>,
}

/// All chapters.
fn chapters() -> Vec<Chapter> {
    let chapter = |heading: &str, kind, tables| Chapter { heading: heading.into(), kind, tables };
    let one = |heading: &str, kind, tables: &[Table]| chapter(heading, kind, tables.to_vec());
    let mut all = vec![
        one("`run`, `seeds`", Kind::Run, &overspin_runs::seeds::TABLES),
        one("`sweep`", Kind::Sweep, &overspin_runs::sweep::TABLES),
    ];
    all.extend(experiment::metrics().map(|(kind, tables)| {
        chapter(
            &format!("`reproduction`: experiments of kind `{kind}`"),
            Kind::Reproduction,
            tables,
        )
    }));
    all.extend([
        one("`schedbench`", Kind::Schedbench, &schedbench::OF_FILE),
        one("`bench`", Kind::Bench, &threads::OF_SPEED),
        one("`bench-locks`", Kind::BenchLocks, &threads::OF_LOCKS),
        one("`noise`", Kind::Noise, &threads::OF_NOISE),
        one("`calibration`", Kind::Calibration, &threads::OF_CALIBRATION),
        one("`real`", Kind::Real, &real::OF_REAL),
        one("`validation`", Kind::Validation, &validate::TABLES),
    ]);
    all
}

/// A chapter for each kind of record, with a list for each sort of place.
#[must_use]
pub fn tables() -> String {
    let mut text = String::new();
    for chapter in chapters() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "## {}\n", chapter.heading);
        for table in &chapter.tables {
            let _ = writeln!(text, "**{}.** {}\n", table.heading, table.places);
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
    let unit = if unit.is_empty() { String::new() } else { format!(" [{unit}]") };
    format!("- {stars}`{name}`{stars}{unit}: {meaning}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_testing::expect_section;

    /// To renew the page after a change: `UPDATE_EXPECT=1 cargo test -p overspin-page published_metrics`.
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
    fn a_metric_is_defined_once_at_a_place_and_its_meaning_fits_a_line() {
        for chapter in chapters() {
            for table in &chapter.tables {
                let metrics = (table.metrics)();
                for (i, m) in metrics.iter().enumerate() {
                    let at = format!("{}, {}: {}", chapter.heading, table.heading, m.name);
                    assert!(metrics[..i].iter().all(|other| other.name != m.name), "{at}: twice");
                    assert!(!m.meaning.is_empty() && !m.meaning.contains('\n'), "{at}");
                }
            }
        }
    }
}
