//! Many seeds: what `overspin run --seeds` and files that vary the seed measure, record and print.

use crate::{load, one};
use overspin_lab::compare::{self, Finding};
use overspin_report::Block;
use overspin_runs::record::{Kind, Record};
use overspin_runs::scenario_file::Loaded;
use overspin_runs::seeds::{self, OverSeeds, seeds_from};
use overspin_runs::sweep;
use overspin_testing::{CORES, LOCKS, SCENARIO};

const VARY: &str = r#"
[[vary]]
name = "seed"
set = "seed"
to = ["5", "6", "7"]
"#;

/// The short scenario with these seeds and `--set` arguments.
fn over(seeds: &[u64], sets: &[&str]) -> OverSeeds {
    let settings = seeds::Settings { threads: 2, ..seeds::Settings::default() };
    seeds::run(&one(SCENARIO, sets), seeds, settings, &|_, _| {}).unwrap()
}

/// What a file with axes measures, and what is printed of it.
fn swept(text: &str, settings: sweep::Settings<'_>) -> (Record, String) {
    let Loaded::Sweep(sweep) = load(text, &[]) else { panic!("it is a sweep") };
    let measured = sweep::run(&sweep, settings, &|_, _| {}).unwrap();
    let printed = overspin_report::text(&overspin_runs::sweep::report(&measured));
    (overspin_runs::sweep::record(&sweep, &measured, &[], settings.seed), printed)
}

#[test]
fn all_samples_are_kept_with_their_seeds() {
    let over = overspin_runs::seeds::record(&over(&seeds_from(5, 3), &[]), &[]);
    assert_eq!((over.schema.as_str(), over.kind), ("overspin-record/1", Kind::Seeds));
    let here = |place: &str, metric: &str| place == "guest/section" && metric == "acquisitions";
    let rate = over.over_seeds.iter().find(|s| here(&s.place, &s.metric)).unwrap();
    assert_eq!(rate.seeds, [5, 6, 7]);
    let samples = over.samples.iter().filter(|s| here(&s.place, &s.metric));
    let samples: Vec<f64> = samples.map(|s| s.value).collect();
    assert_eq!(samples.len(), 3);
    let mean = rate.spread.summary.mean;
    assert!((samples.iter().sum::<f64>() / 3.0 - mean).abs() < 1e-6 * mean);
    assert!(rate.spread.interval.unwrap().low <= mean);
    // The run with one of these seeds is the same run.
    let scenario = one(SCENARIO, &[]);
    let outcome = overspin_sim::run(&scenario, 6).unwrap();
    let alone = overspin_runs::run::record(&scenario, &[], None, &outcome);
    assert_eq!(alone.runs[0].trace_hash, over.runs[1].trace_hash);
    // A file that varies only the seed is the same thing.
    let Loaded::Seeds(scenario, numbers) = load(&format!("{SCENARIO}{VARY}"), &[]) else {
        panic!()
    };
    let varied = seeds::run(&scenario, &numbers, seeds::Settings::default(), &|_, _| {}).unwrap();
    let varied = overspin_runs::seeds::record(&varied, &[]);
    assert_eq!((&varied.runs, &varied.samples), (&over.runs, &over.samples));
}

#[test]
fn means_are_printed_and_can_be_compared() {
    let ticket = over(&seeds_from(1, 6), &[]);
    let printed = overspin_report::text(&overspin_runs::seeds::report(&ticket));
    for words in ["6 runs", "seeds 1 to 6", "95 % from", "guest/section", "p99.9 wait"] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let byte = over(&seeds_from(1, 6), &["domain.guest.lock=lock-byte"]);
    let files = [("ticket.json", ticket), ("lock-byte.json", byte)].map(|(name, over)| {
        let text = overspin_runs::seeds::record(&over, &[]).to_json();
        (name.to_owned(), compare::read(name, &text, 1).unwrap())
    });
    let all = compare::compare(&files, 0.95, None);
    assert!(all.iter().all(|c| c.finding != Finding::Undecided), "six samples suffice: {all:?}");
    let compared = overspin_report::text(&compare::report(&all, 0.95));
    assert!(compared.contains("guest/section: acquisitions [1/s]"), "{compared}");
}

#[test]
fn sweeps_have_means_and_keep_each_run() {
    let asked = sweep::Settings { seed: Some(5), seeds: Some(3), ..sweep::Settings::default() };
    let (of_arguments, _) = swept(&format!("{SCENARIO}{LOCKS}"), asked);
    assert_eq!(of_arguments.runs.len(), 6);
    assert_eq!(of_arguments.over_seeds.len(), 2 * sweep::MEASURES.len(), "of two points");
    assert!(of_arguments.over_seeds.iter().all(|of| of.seeds == [5, 6, 7]));
    let (of_file, _) = swept(&format!("{SCENARIO}{LOCKS}{VARY}"), sweep::Settings::default());
    let parts = |r: &Record| serde_json::json!([r.axes, r.points, r.runs, r.samples, r.over_seeds]);
    assert_eq!(parts(&of_arguments), parts(&of_file), "the seed is no axis");
    let (_, printed) = swept(&format!("{SCENARIO}{VARY}{LOCKS}"), sweep::Settings::default());
    assert!(printed.contains("6 runs") && printed.contains('±'), "{printed}");
    assert!(!printed.contains("Columns: seed"), "{printed}");
}

/// The text of a page, without its markup.
fn plain(record: Record) -> String {
    let page = overspin_page::page(&[overspin_page::Entry { record, detail: None }]);
    page.replace("<code>", "`").replace("</code>", "`")
}

#[test]
fn a_page_begins_with_the_words_of_the_terminal() {
    // The first text after the title: these scenarios have no description.
    let first = |blocks: &[Block]| match &blocks[1] {
        Block::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let over = over(&seeds_from(1, 3), &[]);
    let said = first(&seeds::report(&over));
    assert!(said.contains("items a second: with 95 % certainty"), "{said}");
    assert!(plain(seeds::record(&over, &[])).contains(&format!("<p>{said}</p>")), "{said}");
    let Loaded::Sweep(axes) = load(&format!("{SCENARIO}{LOCKS}{CORES}"), &[]) else { panic!() };
    let measured = sweep::run(&axes, sweep::Settings::default(), &|_, _| {}).unwrap();
    let said = first(&sweep::report(&measured));
    assert!(said.contains("; ticket falls to ") && said.contains("--seeds 5 says"), "{said}");
    let page = plain(sweep::record(&axes, &measured, &[], None));
    assert!(page.contains(&format!("<p>{said}</p>")), "{said}");
}

#[test]
fn a_page_of_a_sweep_names_its_points_by_their_keys() {
    let Loaded::Sweep(axes) = load(&format!("{SCENARIO}{LOCKS}{CORES}"), &[]) else { panic!() };
    let measured = sweep::run(&axes, sweep::Settings::default(), &|_, _| {}).unwrap();
    let page = plain(sweep::record(&axes, &measured, &[], None));
    let charts = &page[..page.find("All samples").unwrap()];
    let (axis, value) = (&axes.axes[1].name, &axes.axes[1].values[0]);
    assert!(charts.contains(&format!("lock ticket, {axis} {value}")));
    assert!(!charts.contains(&format!("ticket.{value}")), "no place is a label");
}
