//! CPU lists in the usual notation.

/// Parses a CPU list such as `0-3,6`. Ranges are checked before they are expanded, so that
/// `0-4000000000` costs nothing.
pub(crate) fn parse_cpus(text: &str, pcpus: u32) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        let number = |s: &str| {
            s.trim().parse::<u32>().map_err(|_| format!("`{part}` is neither a CPU nor a range"))
        };
        let (first, last) = match part.split_once('-') {
            Some((a, b)) => (number(a)?, number(b)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("the range `{part}` runs backwards"));
        }
        if last >= pcpus {
            return Err(format!("there is no pCPU {last}"));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpus("0-2,5, 1", 8), Ok(vec![0, 1, 2, 5]));
        for text in ["", "a", "3-1", "8", "0-4000000000", "1-", "-1"] {
            assert!(parse_cpus(text, 8).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse_cpus(&text, 4);
        }
    }
}
