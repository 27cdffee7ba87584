//! The simulator's names for the schedulers of Linux kernels.

/// That of the kernel on which this program runs.
pub(crate) fn here() -> String {
    of(&std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default())
}

/// That of a Linux kernel of this release.
fn of(release: &str) -> String {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    let name = match (next(), next()) {
        version if version >= (6, 18) => "eevdf-6.18",
        version if version >= (6, 6) => "eevdf",
        // A kernel that does not tell its version is more likely a new one.
        (0, 0) => "eevdf-6.18",
        _ => "cfs",
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_by_release() {
        let names = ["6.18.44-fc", "7.0.1", "6.12.0", "6.6", "6.5.9", "5.15.0-generic", ""];
        let expected = ["eevdf-6.18", "eevdf-6.18", "eevdf", "eevdf", "cfs", "cfs", "eevdf-6.18"];
        assert_eq!(names.map(of), expected);
    }
}
