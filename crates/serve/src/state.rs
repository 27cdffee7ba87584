//! The state of the page, which is the query of its address: `scenario=NAME&set=KEY=VALUE&...`, with the keys of `--set`. A
//! command and a scenario file follow from it.

use crate::controls::{Controls, Sets};
use crate::lesson;
use crate::problem::Problem;
use crate::query;
use crate::sources::{Source, Sources, What};
use overspin_record::shell_words;

/// One of two settings side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    First,
    Other,
}

impl Side {
    /// Its number, and that of its ids on the page.
    pub(crate) fn number(self) -> usize {
        match self {
            Self::First => 0,
            Self::Other => 1,
        }
    }

    /// The name of its settings in the query.
    pub(crate) fn parameter(self) -> &'static str {
        match self {
            Self::First => "set",
            Self::Other => "other",
        }
    }
}

/// Values that differ from the source's own: a key and its value.
pub(crate) type Settings = Vec<(String, String)>;

/// What the page shows.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) source: Source,
    pub(crate) first: Settings,
    /// The other setting, if two are shown.
    pub(crate) other: Option<Settings>,
    /// Seeds of each setting, if the page says how many.
    pub(crate) seeds: Option<u32>,
    /// The argument of `-L`, if the page adds an axis.
    pub(crate) vary: Option<String>,
    /// The step of the lesson.
    pub(crate) lesson: Option<usize>,
}

impl State {
    /// The state of a query, and the side that it asks for. An empty query is the first source as it is.
    pub(crate) fn read(text: &str, sources: &Sources) -> Result<(Self, Side), Problem> {
        let Some(pairs) = query::read(text) else {
            return Err(Problem::new("the address is damaged", "start again from the page's list"));
        };
        let named =
            pairs.iter().find(|(name, _)| name == "scenario").map(|(_, value)| value.as_str());
        let source = match named {
            Some(name) => sources.find(name)?,
            None => sources.first().clone(),
        };
        let controls = Controls::of(&source)?;
        let mut state = Self {
            source,
            first: Settings::new(),
            other: None,
            seeds: None,
            vary: None,
            lesson: None,
        };
        let mut side = Side::First;
        for (name, value) in pairs {
            match name.as_str() {
                "scenario" => {}
                "set" => put(&mut state.first, &controls, &value)?,
                "other" => put(state.other.get_or_insert_default(), &controls, &value)?,
                // With no difference yet, too.
                "beside" => _ = state.other.get_or_insert_default(),
                "seeds" => {
                    controls.check(&Sets::Seeds, &value)?;
                    state.seeds = value.parse().ok();
                }
                "vary" => {
                    controls.check(&Sets::Vary, &value)?;
                    state.vary = Some(value).filter(|axis| !axis.is_empty());
                }
                "lesson" => state.lesson = Some(lesson::number(&value)?),
                "side" if value == "0" => side = Side::First,
                "side" if value == "1" => side = Side::Other,
                _ => {
                    return Err(Problem::new(
                        format!("the address has an unknown part, `{name}`"),
                        "its parts are scenario, set, other, beside, seeds, vary and lesson",
                    ));
                }
            }
        }
        Ok((state, side))
    }

    /// The settings of a side.
    pub(crate) fn settings(&self, side: Side) -> &Settings {
        match (side, &self.other) {
            (Side::Other, Some(other)) => other,
            _ => &self.first,
        }
    }

    /// The arguments of `--set`.
    pub(crate) fn sets(&self, side: Side) -> Vec<String> {
        self.settings(side).iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    /// The address of this state, without the part that is the same for all of them.
    pub(crate) fn query(&self) -> String {
        let mut pairs = vec![("scenario", self.source.name.clone())];
        for side in [Side::First, Side::Other] {
            if side == Side::First || self.other.is_some() {
                pairs.extend(self.sets(side).into_iter().map(|set| (side.parameter(), set)));
            }
        }
        if self.other.is_some() {
            pairs.push(("beside", "yes".into()));
        }
        pairs.extend(self.seeds.map(|seeds| ("seeds", seeds.to_string())));
        pairs.extend(self.vary.clone().map(|vary| ("vary", vary)));
        pairs.extend(self.lesson.map(|step| ("lesson", step.to_string())));
        query::write(pairs.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// The address of one side alone, which is a state, too.
    pub(crate) fn alone(&self, side: Side) -> Self {
        Self { first: self.settings(side).clone(), other: None, lesson: None, ..self.clone() }
    }

    /// The command that shows the same.
    pub(crate) fn command(&self, side: Side) -> String {
        let is_experiment = self.source.what == What::Experiment;
        let what = match self.source.what {
            What::Scenario => "run",
            What::Experiment => "reproduce",
            What::Record => "report",
        };
        let mut words = vec!["overspin".to_owned(), what.into(), self.source.name.clone()];
        for set in self.sets(side) {
            words.extend(["--set".into(), set]);
        }
        // `--seeds` of a scenario are two at least.
        if let Some(seeds) = self.seeds.filter(|n| *n > 1 || is_experiment) {
            words.extend(["--seeds".into(), seeds.to_string()]);
        }
        if let Some(vary) = &self.vary {
            words.extend(["-L".into(), vary.clone()]);
        }
        shell_words(&words)
    }
}

fn put(settings: &mut Settings, controls: &Controls, set: &str) -> Result<(), Problem> {
    let Some((key, value)) = set.split_once('=') else {
        return Err(Problem::new(format!("`{set}` has no `=`"), "write set=KEY=VALUE"));
    };
    controls.check(&Sets::Key(key.to_owned()), value)?;
    settings.retain(|(known, _)| known != key);
    settings.push((key.to_owned(), value.to_owned()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_testing::Reader;
    use std::sync::LazyLock;

    const TICKET: &str = "scenario=examples/ticket-overcommit.toml";

    fn read(query: &str) -> Result<(State, Side), Problem> {
        State::read(query, &Sources::new(&[], None).unwrap())
    }

    #[test]
    fn a_state_is_its_address() {
        for rest in [
            "",
            "&set=domain.guest.lock%3Dxen-pv&set=host.cores%3D4",
            "&set=host.cores%3D4&other=host.cores%3D3&beside=yes&seeds=10",
            "&beside=yes&vary=domain.guest.lock%3Devery%20lock&lesson=2",
        ] {
            let query = format!("{TICKET}{rest}");
            let (state, _) = read(&query).unwrap();
            assert_eq!(state.query(), query);
        }
        assert_eq!(read("").unwrap().0.query(), TICKET, "the tutorial's is the first");
    }

    /// Reads a request, whose head and query come from outside.
    fn request(bytes: &[u8]) {
        static SOURCES: LazyLock<Sources> = LazyLock::new(|| Sources::new(&[], None).unwrap());
        let Ok(Some(request)) = crate::http::parse(bytes) else { return };
        if let Ok((state, side)) = State::read(&request.query, &SOURCES) {
            let (again, _) = State::read(&state.query(), &SOURCES).unwrap();
            assert_eq!(again.query(), state.query());
            assert!(!state.command(side).contains('\n'));
            crate::file::text(&state, side).unwrap();
        }
    }

    #[test]
    fn damaged_requests_are_read_or_refused() {
        let reader = Reader {
            name: "request",
            read: request,
            examples: &["crates/serve/tests/inputs/request.txt"],
            words: &[
                "&set=", "&other=", "&beside=", "&vary=", "&seeds=2", "%3D", "%", "+", "\r\n",
                ": ", "Host", "lesson=4",
            ],
            inputs: 3000,
        };
        reader.try_damaged();
    }

    #[test]
    fn a_state_is_a_command() {
        let (state, side) = read(&format!(
            "{TICKET}&set=host.cores=3&set=host.cores=4&other=domain.guest.lock=mcs&seeds=5&vary=domain.guest.lock=every+lock&side=1"
        ))
        .unwrap();
        assert_eq!(side, Side::Other);
        let rest = "--seeds 5 -L 'domain.guest.lock=every lock'";
        let run = "overspin run examples/ticket-overcommit.toml --set";
        assert_eq!(state.command(Side::First), format!("{run} host.cores=4 {rest}"));
        assert_eq!(state.command(Side::Other), format!("{run} domain.guest.lock=mcs {rest}"));
        let (state, _) = read("scenario=2008-spinlocks&seeds=1").unwrap();
        assert_eq!(state.command(Side::First), "overspin reproduce 2008-spinlocks --seeds 1");
    }

    #[test]
    fn what_no_control_can_set_is_refused() {
        for (rest, words) in [
            ("&set=host.machine=/etc/passwd", "no control of `host.machine`"),
            ("&set=host.cores", "has no `=`"),
            ("&set=host.cores=1000000", "cannot set `host.cores`"),
            ("&seeds=100", "cannot set `seeds`"),
            ("&vary=host.cores=1,2", "cannot set `vary`"),
            ("&lesson=5", "no step"),
            ("&side=2", "unknown part"),
            ("&out=/tmp/x", "unknown part, `out`"),
            ("&set=%zz", "damaged"),
        ] {
            let problem = read(&format!("{TICKET}{rest}")).unwrap_err();
            assert!(
                problem.cause.contains(words) && !problem.remedy.is_empty(),
                "{rest}: {problem:?}"
            );
        }
        assert!(read("scenario=../Cargo.toml").is_err());
        assert!(read("scenario=2008-spinlocks&set=host.cores=4").is_err());
    }
}
