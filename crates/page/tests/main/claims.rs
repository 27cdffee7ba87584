//! An experiment by a user: its file alone, without code, decides its claims and computes its figures.

use overspin_experiment as experiment;
use overspin_experiment::{Compared, Grade, Reproduction, Settings, reproduce};

/// A small compile under two locks; one load does not finish within the limit.
pub(crate) const MINE: &str = include_str!("mine.toml");

pub(crate) fn run(text: &str) -> Reproduction {
    let experiment = experiment::parse("mine.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let settings = Settings { threads: 1, ..Settings::default() };
    reproduce(&experiment, settings, &|_, _| {}).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn claims_of_a_file_are_decided_by_the_file() {
    let result = run(MINE);
    let holds: Vec<Option<bool>> = result.experiment.claims.iter().map(|c| c.holds).collect();
    assert_eq!(holds, [Some(true), Some(false), None, None], "{:#?}", result.experiment.claims);
    assert_eq!(result.verdict(), Some(false));
    let evidence: Vec<&str> =
        result.experiment.claims.iter().map(|c| c.evidence.as_str()).collect();
    assert!(evidence[1].starts_with("max(*.*.elapsed) = ") && evidence[1].ends_with("not <= 1 us"));
    assert!(evidence[2].ends_with("(a probability is never above 1)"), "{}", evidence[2]);
    assert!(evidence[3].contains("add `holds"), "{}", evidence[3]);
    // Two locks, two loads, three seeds.
    let elapsed = result.samples.iter().filter(|s| s.metric == "elapsed").count();
    assert_eq!((elapsed, result.runs.len()), (12, 12));
    assert!(result.samples.iter().any(|s| s.place == "xen-pv.\"2 jobs\""));
}

/// The values of a metric at a place.
fn values(result: &Reproduction, place: &str, metric: &str) -> Vec<f64> {
    let rows = result.samples.iter().filter(|s| s.place == place && s.metric == metric);
    rows.map(|s| s.value).collect()
}

fn note(figure: &Compared) -> &str {
    figure.note.as_deref().unwrap_or_default()
}

#[test]
fn figures_of_a_file_are_computed_as_the_file_says() {
    let result = run(MINE);
    let [elapsed, never, half, some] = result.experiment.figures.as_slice() else { panic!("four") };
    let of = |load: &str| values(&result, &format!("xen-pv.{load}"), "elapsed");
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    assert_eq!(elapsed.simulated, Some(mean(&of("small"))));
    assert!(elapsed.simulated_stddev.is_some() && elapsed.note.is_none(), "{elapsed:?}");
    assert_eq!((never.grade, note(never)), (Grade::Missed, "6 of 6 runs finished"));
    // 0.025, to two digits.
    assert_eq!((half.published, half.simulated), (Some(0.03), Some(0.025)));
    assert_eq!((half.grade, note(half)), (Grade::Good, "printed 0.03, follows 0.03"));
    assert_eq!((some.simulated, some.grade), (None, Grade::Missed));
    assert!(note(some).contains("does not say how"), "{some:?}");

    // A copy with only another expression.
    let text = MINE.replace(
        "\"xen-pv.small.elapsed\"",
        "\"max(xen-pv.small.elapsed) + 2 * xen-pv.'2 jobs'.elapsed\"",
    );
    let text = text.replace("published(xen-pv.small.elapsed)", "0.05");
    let copy = run(&text);
    let largest = of("small").into_iter().fold(0.0, f64::max);
    let expected = largest + 2.0 * mean(&of("\"2 jobs\""));
    assert_eq!(
        (copy.experiment.figures[0].simulated, copy.experiment.figures[0].simulated_stddev),
        (Some(expected), None)
    );
    assert_eq!(copy.experiment.figures[0].error, Some(expected / 0.05 - 1.0));
}

#[test]
fn a_wrong_name_in_a_figure_is_an_error_in_the_file() {
    let wrong = |from: &str, to: &str, at: &str| {
        let text = MINE.replacen(from, to, 1);
        let error = experiment::parse("mine.toml", &text).expect_err(to);
        let (number, line) = text.lines().enumerate().find(|(_, l)| l.contains(at)).unwrap();
        assert_eq!((error.line, error.column), (number + 1, line.find(at).unwrap() + 1), "{error}");
        assert_eq!(&*error.key, "figures.0.simulated");
        format!("{error} {}", error.help)
    };
    let simulated = "\"xen-pv.small.elapsed\"";
    let error = wrong(simulated, "\"xen-pv.smal.elapsed\"", "smal.");
    assert!(error.contains("no `smal` at `xen-pv`"), "{error}");
    assert!(error.contains("did you mean `small`? it can be: small, \"2 jobs\""), "{error}");
    let error = wrong(simulated, "\"xen-pv.small.elapsed < 1 s\"", "xen-pv.small.elapsed < ");
    assert!(error.contains("a condition where a number belongs"), "{error}");
    let error = wrong(simulated, "\"maen(xen-pv.small.elapsed)\"", "maen");
    assert!(error.contains("did you mean `mean`?"), "{error}");
    let published = "\"published(xen-pv.small.user)\"";
    let error = wrong(simulated, published, "xen-pv.small.user");
    assert!(error.contains("among what was published"), "{error}");
}

#[test]
fn runs_that_do_not_finish_decide_nothing() {
    let result = run(&MINE.replace("limit = \"1s\"", "limit = \"1ms\""));
    let notes: Vec<&str> = result.experiment.figures.iter().map(note).collect();
    assert_eq!(notes[0], "not computed: 3 of 3 runs have no xen-pv.small.elapsed");
    assert_eq!(
        (notes[1], result.experiment.figures[1].grade),
        ("0 of 6 runs finished", Grade::Good)
    );
    let holds: Vec<Option<bool>> = result.experiment.claims.iter().map(|c| c.holds).collect();
    // That they finish is false; their times are unknown.
    assert_eq!(holds, [Some(false), None, None, None], "{:#?}", result.experiment.claims);
    assert!(
        result.experiment.claims[1].evidence.contains("3 of 3 runs have no"),
        "{:#?}",
        result.experiment.claims
    );
}

#[test]
fn a_wrong_name_is_an_error_in_the_file() {
    let text = MINE.replace("and all($lock.\"2 jobs\".elapsed", "and all($lock.\"3 jobs\".elapsed");
    let error = experiment::parse("mine.toml", &text).expect_err("there is no such load");
    let (number, line) =
        text.lines().enumerate().find(|(_, l)| l.contains("3 jobs")).expect("it is there");
    assert_eq!((error.line, error.column), (number + 1, line.find("\"3 jobs").unwrap() + 1));
    assert_eq!(&*error.key, "claim.0.holds");
    assert!(error.message.contains("no `3 jobs`"), "{error}");
    assert!(error.help.contains("did you mean `\"2 jobs\"`?"), "{}", error.help);
    // If the text has escapes, the place is the whole text.
    let text = MINE.replace("\"max(*.*.elapsed) <= 1 us\"", "\"max(*.*.\\u0065lapse) <= 1 us\"");
    let error = experiment::parse("mine.toml", &text).expect_err("there is no such metric");
    assert!(error.message.contains("no `elapse`"), "{error}");
    assert!(text.lines().nth(error.line - 1).is_some_and(|l| l.starts_with("holds")));
}
