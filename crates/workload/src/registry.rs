//! The workloads, one per line.

use crate::{Fault, WorkloadInfo};
use alloc::format;
use alloc::vec::Vec;

/// All workloads of this crate.
pub const WORKLOADS: &[WorkloadInfo] = &[
    crate::lockloop::INFO,
    crate::burnwait::INFO,
    crate::kernbench::INFO,
    crate::schedbench::INFO,
    crate::phases::INFO,
    crate::count::INFO,
    crate::pft::INFO,
    crate::ping::INFO,
    crate::pgbench::INFO,
    crate::dbench::INFO,
    crate::stream::INFO,
    crate::replay::INFO,
];

/// The workloads that a program knows: those of this crate, and others.
#[derive(Clone, Debug)]
pub struct Kinds(Vec<WorkloadInfo>);

impl Kinds {
    /// The workloads of this crate.
    #[must_use]
    pub fn builtin() -> Self {
        Self(WORKLOADS.to_vec())
    }

    /// Adds this workload; it replaces one of the same name.
    #[must_use]
    pub fn with(mut self, info: WorkloadInfo) -> Self {
        self.0.retain(|known| known.name != info.name);
        self.0.push(info);
        self
    }

    /// All known workloads.
    #[must_use]
    pub fn all(&self) -> &[WorkloadInfo] {
        &self.0
    }

    /// The workload of this name.
    ///
    /// # Errors
    /// If there is none, at the key `kind`.
    pub fn find(&self, name: &str) -> Result<&WorkloadInfo, Fault> {
        self.0.iter().find(|known| known.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|known| known.name).collect();
            let message = format!("there is no workload `{name}`");
            Fault::new("kind", message, format!("workloads are: {}", names.join(", ")))
        })
    }
}

impl Default for Kinds {
    /// The workloads of this crate.
    fn default() -> Self {
        Self::builtin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::all_keys;
    use crate::{Load, Start};
    use alloc::string::ToString;
    use overspin_scenario::keys::{Absent, Kind, Section, integer, key};
    use overspin_scenario::{Parameters, Picos, Value};
    use std::collections::BTreeSet;

    /// Every kind has a full description, and only keys that a file reader can lower.
    #[test]
    fn every_kind_is_told_in_full() {
        let mut names = BTreeSet::new();
        for info in WORKLOADS {
            assert!(names.insert(info.name), "two are called {}", info.name);
            assert!(!info.brief.is_empty() && !info.source.is_empty(), "{}", info.name);
            let heading = format!("[domain.workload] with kind = \"{}\"", info.name);
            assert_eq!(info.keys.heading, heading);
            for key in all_keys(info.keys) {
                assert!(key.doc.ends_with('.'), "{}: {}", info.name, key.name);
                let is_data = !matches!(
                    key.kind,
                    Kind::Lock
                        | Kind::Scheduler
                        | Kind::Machine
                        | Kind::Cpus
                        | Kind::Numbers
                        | Kind::Workload
                        | Kind::Workloads
                        | Kind::Params(_)
                );
                assert!(is_data, "{}: no reader lowers `{}`", info.name, key.name);
                assert!(
                    !["kind", "name", "vcpus"].contains(&key.name)
                        || info.keys.key(key.name).is_none()
                );
            }
        }
    }

    /// Defaults fit the fields and their ranges: a table with only the required keys is a workload, and
    /// survives the way through its type unchanged.
    #[test]
    fn defaults_are_legal() {
        for info in WORKLOADS {
            let mut tree = info.keys.defaults();
            for key in info.keys.keys.iter().filter(|k| matches!(k.absent, Absent::Required)) {
                let value = match key.kind {
                    Kind::Integer { min, .. } | Kind::Time { min: Picos(min), .. } => {
                        Value::from(min.max(1))
                    }
                    Kind::Texts => Value::from(["run 1ms"].as_slice()),
                    _ => Value::from("burnwait 70 200000"),
                };
                tree.insert(key.name.into(), value);
            }
            let lowered = info.lower(tree.clone()).unwrap_or_else(|e| panic!("{}: {e}", info.name));
            assert_eq!(lowered.kind, info.name);
            assert!(info.load(&lowered).unwrap().most_tasks(3) > 0, "{}", info.name);
        }
    }

    #[test]
    fn values_out_of_range_are_found_wherever_they_stand() {
        let fault = |kind: &str, tree: &str| {
            let mut all = Kinds::builtin().find(kind).unwrap().keys.defaults();
            let given: Value = serde_json::from_str(tree).unwrap();
            all.extend(given.as_object().unwrap().clone());
            let fault = Kinds::builtin().find(kind).unwrap().lower(all).unwrap_err();
            (fault.key.clone(), fault.to_string())
        };
        let (key, text) = fault("count", r#"{"to": 0}"#);
        assert_eq!((&*key, &*text), ("to", "`to`: 0 is out of range; a whole number from 1"));
        let (key, _) =
            fault("dbench", r#"{"clients": 1, "disk": {"seek": 1, "page": 1, "request": 0}}"#);
        assert_eq!(key, "disk.page");
        let locks = r#"[{"name": "a", "hold": 1, "every": 1000, "irqs_off": false},
                        {"name": "b", "hold": 1, "every": 999, "irqs_off": false}]"#;
        let (key, text) = fault("pft", &format!("{{\"locks\": {locks}}}"));
        assert_eq!(key, "locks.1.every");
        assert!(
            text.starts_with("`locks.1.every`: 999ps is out of range; a time from 1ns to 1s"),
            "{text}"
        );
        let same = locks.replace("999", "1000").replace("\"b\"", "\"a\"");
        let (key, text) = fault("pft", &format!("{{\"locks\": {same}}}"));
        assert_eq!(key, "locks.1.name", "{text}");
        let (key, text) = fault("count", r#"{"too": 7}"#);
        assert_eq!(key, "");
        assert!(text.contains("invalid parameters for `count`") && text.contains("too"), "{text}");
    }

    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    struct Own {
        naps: u64,
    }

    impl Parameters for Own {
        const KIND: &'static str = "own";
    }

    impl Load for Own {
        fn is_endless(&self) -> bool {
            false
        }

        fn most_tasks(&self, _vcpus: u32) -> u64 {
            self.naps
        }

        fn start(&self, _vcpus: u32) -> Vec<Start> {
            Vec::new()
        }
    }

    const NAPS: Section = Section {
        heading: "[domain.workload] with kind = \"own\"",
        doc: "Naps.",
        keys: &[key("naps", integer(1, 9), Absent::Is("3"), "How many.")],
    };

    #[test]
    fn a_kind_of_somebody_else_is_one_more() {
        let kinds = Kinds::builtin().with(WorkloadInfo::of::<Own>("naps", "a cat", &NAPS));
        assert_eq!(kinds.all().len(), WORKLOADS.len() + 1);
        let own = kinds.find("own").unwrap();
        let lowered = own.lower(NAPS.defaults()).unwrap();
        assert_eq!(own.load(&lowered).unwrap().most_tasks(1), 3);
        assert_eq!(own.load(&Own { naps: 10 }.into()).unwrap_err().key, "naps");
        let fault = Kinds::builtin().find("own").unwrap_err();
        assert!(fault.help.contains("lock-loop, "), "{fault}");
    }
}
