//! The world of a record's runs.

use overspin_scenario::Unhonoured;

/// What a record says about the world of its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InWorld {
    /// Its name; `None` for the simulator.
    pub name: Option<String>,
    /// Keys that it ignored.
    pub unhonoured: Vec<Unhonoured>,
}

impl InWorld {
    /// A warning in one line; `None` if the world honours everything.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let name = self.name.as_ref().filter(|_| !self.unhonoured.is_empty())?;
        let one = |u: &Unhonoured| format!("{} ({})", u.key, u.reason);
        let all: Vec<String> = self.unhonoured.iter().map(one).collect();
        Some(format!("the world `{name}` ignores {}", all.join("; ")))
    }
}
