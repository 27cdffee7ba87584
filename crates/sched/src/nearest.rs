//! Suggestions for misspelt names.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Edit distance with adjacent transpositions (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j - 1] + change).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// The name in `known` that is nearest to `wrong`, if one is near enough to suggest. For messages about names
/// of any kind.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No misspelt name is longer than this, and computing the distance takes quadratic time.
    if wrong.chars().count() > 64 {
        return None;
    }
    let wrong = plain(wrong);
    known
        .into_iter()
        .map(|name| {
            let plain = plain(name);
            // A part of a name counts as near: `byte` for `lock-byte`.
            let part = wrong.len() >= 3 && (plain.contains(&wrong) || wrong.contains(&plain));
            let d = distance(&wrong, &plain);
            (if part { d.min(2) } else { d }, name)
        })
        .min_by_key(|(d, _)| *d)
        .filter(|(d, name)| {
            // Of three letters, one may differ: `nope` is not `top`.
            let letters = name.chars().count();
            *d <= 2.max(letters / 3).min(letters.div_ceil(3))
        })
        .map(|(_, name)| name)
}

/// A remedy for a name that is none of `known`: the one that was probably meant, and all of them after the words
/// `legal`, such as `locks are`.
#[must_use]
pub fn suggestion(wrong: &str, legal: &str, known: &[&str]) -> String {
    let near = nearest(wrong, known.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    format!("{near}{legal}: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_name() {
        let known = ["vcpus", "weight", "cap", "affinity", "lock", "lock-byte"];
        for (wrong, right) in [
            ("vcpu", "vcpus"),
            ("vpcus", "vcpus"),
            ("wieght", "weight"),
            ("Weight", "weight"),
            ("lock_byte", "lock-byte"),
            ("byte", "lock-byte"),
        ] {
            assert_eq!(nearest(wrong, known), Some(right), "{wrong}");
        }
        assert_eq!(nearest("entirely-else", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
