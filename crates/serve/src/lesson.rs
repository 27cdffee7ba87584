//! The lesson: the first four steps of docs/tutorial.md, each with the settings that it is about.

use crate::problem::Problem;

/// A step: its heading in the tutorial, its words, and addresses to try, each with the words of its link.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) heading: &'static str,
    pub(crate) words: &'static [&'static str],
    pub(crate) links: &'static [(&'static str, &'static str)],
    /// The address with which it begins.
    pub(crate) begins: &'static str,
}

/// The scenario of all steps.
pub(crate) const TICKET: &str = "scenario=examples/ticket-overcommit.toml";

pub(crate) const STEPS: [Step; 4] = [
    Step {
        heading: "A question",
        words: &[
            "A guest has 4 vCPUs. The host has 2 CPUs. All four want one lock, a ticket lock. What happens?",
            "The first line below is the answer. Turn pCPUs to 4: with a CPU for every vCPU only the \
             host's own work (`noise`) ever takes one away. Then turn it back.",
        ],
        links: &[("2 pCPUs", ""), ("4 pCPUs", "&set=host.cores=4")],
        begins: "",
    },
    Step {
        heading: "Another lock",
        words: &[
            "A ticket lock hands over in the order of arrival. When the next in line has no pCPU, all others wait for it.",
            "A byte lock has no order: its waiters burn CPU time while the holder is descheduled. A waiter of xen-pv spins for a \
             while, then blocks until the holder kicks it.",
        ],
        links: &[
            ("ticket", ""),
            ("lock-byte", "&set=domain.guest.lock=lock-byte"),
            ("xen-pv", "&set=domain.guest.lock=xen-pv"),
            ("ticket beside xen-pv", "&other=domain.guest.lock=xen-pv&beside=yes"),
            ("every lock", "&vary=domain.guest.lock=every%20lock"),
        ],
        begins: "",
    },
    Step {
        heading: "Is it chance?",
        words: &[
            "One run uses one seed. With ten, each figure is a mean with its 95 % interval.",
            "Sometimes the seeds fall into two groups with different answers. Then the mean describes neither, and the answer says \
             so. Here they do not.",
        ],
        links: &[
            ("one seed", ""),
            ("ten seeds", "&seeds=10"),
            ("ten seeds of xen-pv", "&seeds=10&set=domain.guest.lock=xen-pv"),
        ],
        begins: "&seeds=10",
    },
    Step {
        heading: "When exactly?",
        words: &[
            "This run has half a second, so that its timeline shows all of it, the start as well. Press n: the timeline goes to the longest wait, and the text below it tells its chain.",
            "Where it says \"kept for\" a vCPU, both pCPUs run vCPUs that spin, and no vCPU holds the lock: the next in line has no \
             pCPU.",
        ],
        links: &[
            ("half a second", "&set=limit=500ms"),
            ("the same with 4 pCPUs", "&set=limit=500ms&set=host.cores=4"),
        ],
        begins: "&set=limit=500ms",
    },
];

/// The number of a step, from 1.
pub(crate) fn number(text: &str) -> Result<usize, Problem> {
    text.parse().ok().filter(|number| (1..=STEPS.len()).contains(number)).ok_or_else(|| {
        Problem::new(
            format!("the lesson has no step `{text}`"),
            format!("its steps are 1 to {}", STEPS.len()),
        )
    })
}

/// The address of a step, with these settings.
pub(crate) fn address(number: usize, settings: &str) -> String {
    format!("?{TICKET}{settings}&lesson={number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Sources;
    use crate::state::State;

    #[test]
    fn the_steps_are_those_of_the_tutorial() {
        let tutorial =
            std::fs::read_to_string(overspin_testing::root().join("docs/tutorial.md")).unwrap();
        let headings: Vec<&str> =
            tutorial.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings[..STEPS.len()], STEPS.each_ref().map(|step| step.heading));
    }

    #[test]
    fn every_link_is_a_state() {
        let sources = Sources::new(&[], None).unwrap();
        for (step, number) in STEPS.iter().zip(1..) {
            let begins = [("begin", step.begins)];
            for (words, settings) in step.links.iter().chain(&begins) {
                let address = address(number, settings);
                let (state, _) = State::read(&address[1..], &sources).unwrap();
                assert_eq!(state.lesson, Some(number), "{words}");
            }
        }
    }
}
