//! A workload from outside the tree: threads that compute and meet at a lock for some rounds.

use overspin_scenario::keys::{Absent, Kind, Section, key};
use overspin_scenario::{Parameters, Picos, SEC};
use overspin_workload::{Load, LockUse, Mode, Program, Start, WorkloadInfo};

/// Parameters of the workload.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meeting {
    /// Number of meetings of each thread.
    rounds: u64,
    /// CPU time between two meetings.
    work: Picos,
    /// Time with the lock held.
    speech: Picos,
}

const KEYS: Section = Section {
    heading: "[domain.workload] with kind = \"meeting\"",
    doc: "Threads that compute and meet at a lock, one on each vCPU.",
    keys: &[
        key(
            "rounds",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Is("100"),
            "Meetings of each thread.",
        ),
        key(
            "work",
            Kind::Time { min: Picos::ZERO, max: SEC },
            Absent::Is("1ms"),
            "CPU time before each meeting.",
        ),
        key(
            "speech",
            Kind::Time { min: Picos::ZERO, max: Picos::ms(10) },
            Absent::Is("10us"),
            "Time with the lock held.",
        ),
    ],
};

/// The description of the workload in the catalog.
pub const MEETING: WorkloadInfo =
    WorkloadInfo::of::<Meeting>("threads that compute and meet at a lock", "this example", &KEYS);

impl Parameters for Meeting {
    const KIND: &'static str = "meeting";
}

impl Load for Meeting {
    fn lock_names(&self) -> Vec<String> {
        vec!["table".into()]
    }

    fn is_endless(&self) -> bool {
        false
    }

    fn most_tasks(&self, vcpus: u32) -> u64 {
        vcpus.into()
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        let one = |vcpu| {
            let Self { rounds, work, speech } = *self;
            let program: Program = Box::new(move |env| {
                for _ in 0..rounds {
                    env.compute(work, Mode::User);
                    env.section(0, LockUse::Plain, speech);
                    env.item_done();
                }
            });
            Start { name: format!("guest{vcpu}"), vcpu: Some(vcpu), program }
        };
        (0..vcpus).map(one).collect()
    }
}
