use super::functions::FUNCTIONS;
use super::*;
use overspin_record::metric::Metric;
use proptest::prelude::*;

static ELAPSED: Metric = Metric::new("elapsed", "s", "time");
static FINISHED: Metric = Metric::new("finished", "", "1 or 0");
static LATE: Metric = Metric::new("late", "ms", "time");
static SHARE: Metric = Metric::new("share", "%", "part");

fn vocabulary() -> Arc<Vocabulary> {
    let mut names = Vocabulary::default();
    for lock in ["byte", "xen-pv", "2.4 + patch"] {
        for load in ["half", "full"] {
            names.measured(&[lock, load], &[&ELAPSED, &FINISHED, &SHARE]);
        }
    }
    for rate in ["0", "1000", "2000", "4000"] {
        names.measured(&["pings", rate], &[&LATE]);
    }
    names.published(&["byte", "half"], &ELAPSED, 410.0);
    names.published(&["xen-pv", "half"], &ELAPSED, 340.0);
    Arc::new(names)
}

/// Two runs of byte at each load, seeds 1 and 2: 400 and 420 s. xen-pv's second run did not finish at full
/// load. The third lock has no runs. Pings are 1, 2, 2 and 8 ms late.
fn samples() -> Samples {
    let mut samples = Samples::default();
    for (i, seed) in [1, 2].into_iter().enumerate() {
        for load in ["half", "full"] {
            let byte = 400.0 + 20.0 * i as f64;
            let place = ["byte", load];
            let mut run = samples.run(Some(seed));
            run.add(&place, &FINISHED, 1.0).add(&place, &ELAPSED, byte).add(&place, &SHARE, 75.0);
            let (place, ended) = (["xen-pv", load], load == "half" || i == 0);
            let mut run = samples.run(Some(seed));
            run.add(&place, &FINISHED, f64::from(u8::from(ended)));
            if ended {
                run.add(&place, &ELAPSED, byte - 80.0).add(&place, &SHARE, 50.0);
            }
        }
    }
    for (rate, late) in [("0", 1.0), ("1000", 2.0), ("2000", 2.0), ("4000", 8.0)] {
        samples.run(Some(1)).add(&["pings", rate], &LATE, late);
    }
    samples
}

fn judge(text: &str) -> (Option<bool>, String) {
    match Condition::parse(text, &vocabulary()) {
        Ok(condition) => condition.judge(&Index::new(&samples())),
        Err(fault) => panic!("{text}: {fault:?}"),
    }
}

fn holds(text: &str) -> Option<bool> {
    judge(text).0
}

fn fault(text: &str) -> Fault {
    Condition::parse(text, &vocabulary()).expect_err(text)
}

#[test]
fn operators_bind_as_everywhere() {
    for text in [
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "10 - 4 - 3 == 3",
        "8 / 4 / 2 == 1",
        "-2 * 3 == -6",
        "not 1 > 2 and 1 < 2",
        "1 < 2 or 1 > 2 and 2 > 3",
        "not (1 < 2 and 2 < 1)",
        "1 < 2 <= 2 != 3",
        "50 % of 4 + 1 == 3",
        "1 between 0.5 and 2 and 3 > 2",
        "60 s == 1 min and 1000 ms == 1 s and 5 /s == 5 / 1 s",
        "2 KiB/s == 4 KiB / 2 s",
        "1.19 within 10 % of 1.212",
        "7 s within 2 s of 5 s and not 8 s within 2 s of 5 s",
        "-9 within 10 % of -10",
        "abs(-3 s) == 3 s",
    ] {
        assert_eq!(holds(text), Some(true), "{text}");
    }
    assert_eq!(holds("1 < 3 < 2"), Some(false));
}

#[test]
fn a_reference_is_the_mean_of_its_samples() {
    for text in [
        "byte.half.elapsed == 410 s",
        "max(byte.half.elapsed) == 420 s and min(byte.half.elapsed) == 400 s",
        "count(byte.*.elapsed, xen-pv.half.elapsed) == 6",
        "median(byte.half.elapsed, byte.full.elapsed) == 410 s",
        "sum(byte.half.elapsed) == 820 s",
        "percentile(byte.half.elapsed, 95 %) == 420 s",
        "byte.half.share == 75 %",
        "published(byte.half.elapsed) / published(xen-pv.half.elapsed) within 1 % of 1.206",
        // The reciprocal for each seed, then the mean.
        "mean(1 / byte.half.elapsed by seed) == (1 / 400 s + 1 / 420 s) / 2",
        "mean(byte.half.elapsed - xen-pv.half.elapsed by seed) == 80 s",
        "max(mean($lock.half.elapsed) for $lock in [byte, xen-pv]) == 410 s",
        "all(byte.$load.elapsed == 410 s for $load)",
        "any(pings.$rate.late >= 8 ms for $rate)",
        "all(pings.$rate.late <= 2 ms for $rate where $rate < 4000)",
        "largest-step(pings.$rate.late for $rate) between 85 % and 86 %",
        "steepest-step(pings.$rate.late for $rate where $rate <= 2000) == 2",
        "welch(byte.half.elapsed, xen-pv.half.elapsed) < 5 %",
        "mann-whitney(byte.half.elapsed, byte.full.elapsed) > 50 %",
        "paired(byte.half.elapsed - byte.full.elapsed by seed) > 50 %",
    ] {
        assert_eq!(holds(text), Some(true), "{text}: {}", judge(text).1);
    }
}

#[test]
fn what_has_no_value_decides_nothing() {
    for text in [
        // There is no run, or a run did not finish: the finished ones may be the lucky ones.
        "'2.4 + patch'.half.elapsed < 1 s",
        "xen-pv.full.elapsed < 1 s",
        "max(*.full.elapsed) < 1 s",
        "count('2.4 + patch'.half.finished) == 0",
        "mean(byte.full.elapsed - xen-pv.full.elapsed by seed) > 0 s",
        "all($lock.half.finished == 1 for $lock)",
        "1 / 0 > 1",
        "0 / 0 < 1",
        "1 within 10 % of 0 / 0",
        "undecided",
        "not undecided",
        "undecided and 1 < 2",
        "undecided or 1 > 2",
        "1 < 2 and '2.4 + patch'.half.elapsed < 1 s",
    ] {
        assert_eq!(holds(text), None, "{text}");
    }
    // Conditions that come out the same for every possible missing value.
    assert_eq!(holds("undecided and 1 > 2"), Some(false));
    assert_eq!(holds("undecided or 1 < 2"), Some(true));
    assert_eq!(holds("all($lock.half.share > 60 % for $lock)"), Some(false));
    assert_eq!(holds("any($lock.half.share > 60 % for $lock)"), Some(true));
    assert_eq!(holds("2 < 1 < '2.4 + patch'.half.elapsed / 1 s"), Some(false));
    assert_eq!(
        holds("min(xen-pv.full.finished) == 0 and count(xen-pv.full.elapsed) == 1"),
        Some(true)
    );
}

#[test]
fn evidence_has_both_sides_and_what_was_published() {
    for (text, words) in [
        (
            "byte.half.elapsed / xen-pv.half.elapsed within 10 % of 1.212",
            "byte.half.elapsed / xen-pv.half.elapsed = 1.242 (published 1.206), within 10 % of 1.212 (1.091 to 1.333)",
        ),
        (
            "xen-pv.half.elapsed  <\n byte.half.elapsed < 1 min",
            "xen-pv.half.elapsed = 330 s (published 340 s) < byte.half.elapsed = 410 s (published 410 s) not < 1 min",
        ),
        (
            "byte.half.elapsed within 1 % of published(byte.half.elapsed)",
            "byte.half.elapsed = 410 s (published 410 s), within 1 % of published(byte.half.elapsed) = 410 s (405.9 s to 414.1 s)",
        ),
        ("1 - byte.half.share <= 10 %", "1 - byte.half.share = 25 % not <= 10 %"),
        (
            "all(pings.$rate.late <= 2 ms for $rate)",
            "pings.$rate.late <= 2 ms: 1 ms at 0; 2 ms at 1000; 2 ms at 2000; 8 ms (no) at 4000",
        ),
        (
            "xen-pv.full.elapsed < 1 s or 1 < 2",
            "xen-pv.full.elapsed < 1 s: undecided, 1 of 2 runs have no xen-pv.full.elapsed; 1 < 2",
        ),
        (
            "'2.4 + patch'.half.elapsed < 1 s",
            "'2.4 + patch'.half.elapsed < 1 s: undecided, there is no run of \"2.4 + patch\".half",
        ),
        ("1 between 2 and 3", "1, not between 2 and 3"),
    ] {
        assert_eq!(judge(text).1, words);
    }
    let (holds, words) =
        judge("all($x + $y < 6 for $x in [1, 2, 3], $y in [1, 2, 3], $z in [1, 2])");
    assert_eq!(holds, Some(false));
    assert_eq!(
        words,
        "$x + $y < 6: true in 16 of 18 cases, false in 2, for example 6 (no) at 3, 3, 1"
    );
}

#[test]
fn a_wrong_name_is_found_before_anything_runs() {
    for (text, at, message, help) in [
        (
            "bite.half.elapsed < 1 s",
            0,
            "no place `bite`",
            "did you mean `byte`? it can be: byte, xen-pv, \"2.4 + patch\", pings",
        ),
        ("1 s > byte.haf.elapsed", 11, "no `haf` at `byte`", "did you mean `half`?"),
        ("byte.half.elapse < 1 s", 10, "no `elapse` at `byte.half`", "elapsed, finished, share"),
        ("byte.half < 1 s", 0, "`byte.half` is a place", "elapsed, finished, share"),
        (
            "byte.half.elapsed.max < 1 s",
            18,
            "`byte.half.elapsed` has nothing below",
            "a place and a metric",
        ),
        (
            "published(byte.full.elapsed) < 1 s",
            15,
            "no `full` at `byte` among what was published",
            "half",
        ),
        (
            "all($lock.$load.elapsed < 1 s for $lock, $load in [half, ful])",
            10,
            "no `ful` at `byte`",
            "half",
        ),
        ("all(1 s > $lock.$load.elapse for $lock, $load)", 22, "no `elapse` at `*.*`", "elapsed"),
        ("byte.half.user-xen-pv.half.user < 1 s", 10, "no `user-xen-pv`", "elapsed"),
    ] {
        let fault = fault(text);
        assert!(fault.message.contains(message) && fault.help.contains(help), "{text}: {fault:?}");
        assert_eq!(fault.span.start, at, "{text}: {fault:?}");
    }
}

#[test]
fn faults_say_what_belongs_there() {
    for (text, at, message) in [
        ("", 0, "the end where a number"),
        ("1 <", 3, "the end where a number"),
        ("byte.half.elapsed", 0, "a number where a condition"),
        ("1 < 2 3", 6, "a number where an operator"),
        ("1 < 2 msec", 6, "`msec` where a unit"),
        ("(1 < 2", 6, "the end where `)`"),
        ("1 < 2 and 3", 10, "a number where a condition"),
        ("(1 < 2) + 1 > 0", 0, "a condition where a number"),
        ("byte.half.elapsed < 5", 20, "a plain number, but its counterpart is s"),
        ("byte.half.elapsed + byte.half.share > 1 s", 20, "this is a plain number"),
        ("byte.*.elapsed < 1 s", 0, "several places"),
        ("mena(byte.half.elapsed) < 1 s", 0, "no function `mena`"),
        ("abs(1, 2) < 1", 0, "`abs` got 2 arguments"),
        ("all(1 < 2)", 0, "goes over nothing"),
        ("all(byte.half.elapsed < 1 s for $x)", 32, "`$x` goes over nothing"),
        ("byte.$load.elapsed < 1 s", 5, "`$load` stands for nothing"),
        ("all(byte.$l.elapsed < 1 s for $l where $l < 3)", 39, "`half`, which is not a number"),
        ("all(pings.$r.late < 1 s for $r where $r < 0)", 37, "never true"),
        (
            "all(pings.$r.late < 1 s for $r where byte.half.elapsed < 0)",
            37,
            "cannot use measured values",
        ),
        ("1 within 10 of", 14, "the end where a number"),
        ("1 within x of 2", 9, "`x` where a number"),
        ("1 = 1", 2, "`=` is not an operator"),
        ("byte.half.share >= 90", 19, "without a unit beside one in percent"),
        ("max(byte.*.share) between 10 % and 90", 35, "without a unit beside one in percent"),
        ("byte.half.elapsed within 2 of 400 s", 0, "the tolerance is a plain number"),
        ("5 ms ms < 1 s", 5, "`ms` where an operator"),
        ("mean(mean(byte.half.elapsed by seed) by seed) > 1 s", 5, "inside another `by seed`"),
        ("largest-step(byte.$l.elapsed for $l) > 1", 33, "is not a number"),
    ] {
        let fault = fault(text);
        assert!(fault.message.contains(message), "{text}: {fault:?}");
        assert_eq!(fault.span.start, at, "{text}: {fault:?}");
        assert!(!fault.help.is_empty(), "{text}");
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let nested = format!("{}1{} < 2", "(".repeat(5000), ")".repeat(5000));
    assert!(fault(&nested).message.contains("nested"));
    assert!(fault(&format!("{}1 < 2", "-".repeat(5000))).message.contains("nested"));
    assert!(fault(&format!("{}1 < 2", "not ".repeat(5000))).message.contains("nested"));
    assert!(fault(&format!("1 < 2{}", " and 1 < 2".repeat(5000))).message.contains("too long"));
    let tens = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let loops: Vec<String> = ["a", "b", "c", "d", "e"].map(|v| format!("${v} in {tens}")).into();
    let text = format!("all($a < 10 for {})", loops.join(", "));
    assert!(fault(&text).message.contains("too many"));
}

/// The page lists every function.
#[test]
fn functions_are_documented() {
    let page = include_str!("../../../docs/claims.md");
    for function in &FUNCTIONS {
        assert!(page.contains(&format!("`{}(", function.name)), "{}", function.name);
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,60}") {
        let _ = Condition::parse(&text, &vocabulary());
    }

    /// Words of the language in any order; some of these texts are expressions.
    #[test]
    fn no_words_panic(words in prop::collection::vec(prop::sample::select(vec![
        "byte.half.elapsed", "xen-pv.*.share", "$x", "pings.$x.late", "1", "10 %", "0", "5 ms", "<", ">=",
        "==", "+", "-", "*", "/", "(", ")", "and", "or", "not", "within", "of", "between", "mean(", "all(",
        "largest-step(", "published(", "by seed", "for", "$x in [1, 2]", "where", ",", "undecided", "%", ".",
        "[", "]", "é", "\"",
    ]), 0..14)) {
        let text = words.join(" ");
        match Condition::parse(&text, &vocabulary()) {
            Ok(condition) => {
                let _ = condition.judge(&Index::new(&samples()));
            }
            Err(fault) => {
                prop_assert!(fault.span.end <= text.len() && text.get(fault.span.clone()).is_some());
            }
        }
    }

    /// A condition and its negation never agree, and both are undecided together.
    #[test]
    fn negation_is_consistent(a in -3i32..4, b in -3i32..4, order in 0usize..6) {
        let sign = ["<", "<=", ">", ">=", "==", "!="][order];
        let text = format!("{a} / {b} {sign} 1");
        prop_assert_eq!(holds(&text).map(|h| !h), holds(&format!("not {text}")));
    }
}
