//! The first sentences of a measurement: its main figure in each place, and which lock did better.

use super::report::{base, change};
use overspin_report::three_digits;
use overspin_runs::record::{Group, Record};
use overspin_stats::difference::mean_interval;
use overspin_stats::{CONFIDENCE, Summary};

/// Places of which the answer speaks.
const MOST: usize = 6;

/// A sentence for each place, none if there is no main figure.
pub(super) fn answer(record: &Record, groups: &[Group<'_>], locks: &[String]) -> Vec<String> {
    let is_main = |metric: &&&str| groups.iter().any(|g| g.metric == **metric);
    let Some(main) = record.kind.main_metrics().iter().find(is_main) else { return Vec::new() };
    let of_main: Vec<&Group<'_>> =
        groups.iter().filter(|g| g.metric == *main && !g.place.contains('/')).collect();
    let mut sentences: Vec<String> =
        of_main.iter().take(MOST).filter_map(|group| sentence(group, &of_main, locks)).collect();
    if of_main.len() > MOST {
        sentences.push(format!("The tables have {} more.", of_main.len() - MOST));
    }
    sentences
}

/// `clients-4: rate 12,300 1/s (95 % certain: 12,100 to 12,500, 5 runs)`
fn sentence(group: &Group<'_>, all: &[&Group<'_>], locks: &[String]) -> Option<String> {
    let summary = Summary::of(&group.values)?;
    let sure = match mean_interval(&summary, CONFIDENCE) {
        Some(i) => {
            let [low, high] = [i.low, i.high].map(three_digits);
            format!("with 95 % certainty the mean is {low} to {high}, from {} runs", summary.n)
        }
        None => "one run: --runs 5 says how sure that is".into(),
    };
    let (mean, unit) = (three_digits(summary.mean), group.unit);
    let mut text = format!("`{}`: {} {mean} {unit} ({sure}).", group.place, group.metric);
    let before = base(group.place, locks).and_then(|base| {
        let of = all.iter().find(|g| g.place == base)?;
        Some((base, Summary::of(&of.values)?))
    });
    if let Some((base, before)) = before {
        text += &match change(&before, &summary) {
            Some([percent, low, high]) if low * high > 0.0 => {
                format!(" That is {percent:+.1} % ({low:+.1} to {high:+.1}) against `{base}`.")
            }
            Some([.., low, high]) => {
                format!(" No difference from `{base}` is proven ({low:+.1} to {high:+.1} %).")
            }
            None => String::new(),
        };
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group<'a>(place: &'a str, values: &[f64]) -> Group<'a> {
        Group { place, metric: "rate", unit: "1/s", values: values.to_vec() }
    }

    #[test]
    fn a_place_has_its_figure_and_its_difference() {
        let locks = ["none", "mutex"].map(str::to_owned);
        let (none, mutex) =
            (group("none.c4", &[99.0, 100.0, 101.0]), group("mutex.c4", &[149.0, 150.0, 151.0]));
        let all = [&none, &mutex];
        let first = sentence(&none, &all, &locks).unwrap();
        // Student's t for 2 degrees of freedom is 4.303; the standard error of 99, 100, 101 is 0.577.
        assert!(
            first.starts_with(
                "`none.c4`: rate 100 1/s (with 95 % certainty the mean is 97.5 to 102"
            ),
            "{first}"
        );
        let second = sentence(&mutex, &all, &locks).unwrap();
        assert!(second.contains("+50.0 %") && second.contains("against `none.c4`"), "{second}");
        let same = group("mutex.c4", &[99.0, 100.5, 101.0]);
        assert!(sentence(&same, &[&none, &same], &locks).unwrap().contains("No difference"));
        let single = sentence(&group("c4", &[5.0]), &[], &[]).unwrap();
        assert!(single.contains("--runs 5"), "{single}");
    }
}
