//! The scenarios of the folder `examples`. They are compiled in, so that users who have no copy of the repository can run them by
//! the same names.

use std::path::Path;

/// Names and texts, by name.
pub const EXAMPLES: [(&str, &str); 23] = [
    ("aligned-locks", include_str!("../../../examples/aligned-locks.toml")),
    ("boost-latency", include_str!("../../../examples/boost-latency.toml")),
    ("container-quota", include_str!("../../../examples/container-quota.toml")),
    ("give-space-back", include_str!("../../../examples/give-space-back.toml")),
    ("host-ratio", include_str!("../../../examples/host-ratio.toml")),
    ("io-beside-hog", include_str!("../../../examples/io-beside-hog.toml")),
    ("lock-map", include_str!("../../../examples/lock-map.toml")),
    ("lock-map-machines", include_str!("../../../examples/lock-map-machines.toml")),
    ("overcommit-curves", include_str!("../../../examples/overcommit-curves.toml")),
    ("pause-loop-exiting", include_str!("../../../examples/pause-loop-exiting.toml")),
    ("pause-loop-exits-by-year", include_str!("../../../examples/pause-loop-exits-by-year.toml")),
    ("pools-and-events", include_str!("../../../examples/pools-and-events.toml")),
    ("preemption-notification", include_str!("../../../examples/preemption-notification.toml")),
    ("pv-and-hvm", include_str!("../../../examples/pv-and-hvm.toml")),
    ("real-overcommit", include_str!("../../../examples/real-overcommit.toml")),
    ("spin-then-block", include_str!("../../../examples/spin-then-block.toml")),
    ("steal-governor", include_str!("../../../examples/steal-governor.toml")),
    ("threads-over-vcpus", include_str!("../../../examples/threads-over-vcpus.toml")),
    ("three-worlds", include_str!("../../../examples/three-worlds.toml")),
    ("tick-thief", include_str!("../../../examples/tick-thief.toml")),
    ("ticket-compile", include_str!("../../../examples/ticket-compile.toml")),
    ("ticket-overcommit", include_str!("../../../examples/ticket-overcommit.toml")),
    ("tlb-shootdown", include_str!("../../../examples/tlb-shootdown.toml")),
];

/// The text of the example of this name; `None` if there is none.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The text of the example at this path, such as `examples/ticket-overcommit.toml`; `None` if there is none.
#[must_use]
pub fn at(path: &Path) -> Option<&'static str> {
    let path = path.strip_prefix(".").unwrap_or(path);
    let name = path.strip_prefix("examples").ok()?.to_str()?.strip_suffix(".toml")?;
    text(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_that_of_the_repository() {
        assert!(at(Path::new("examples/tick-thief.toml")).is_some());
        assert!(at(Path::new("./examples/tick-thief.toml")).is_some());
        for other in ["tick-thief.toml", "examples/tick-thief", "x/examples/tick-thief.toml", "-"] {
            assert_eq!(at(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn every_example_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut there: Vec<String> = folder
            .read_dir()
            .unwrap()
            .filter_map(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .into_string()
                    .unwrap()
                    .strip_suffix(".toml")
                    .map(str::to_owned)
            })
            .collect();
        there.sort();
        assert_eq!(EXAMPLES.map(|(name, _)| name.to_owned()).to_vec(), there);
    }
}
