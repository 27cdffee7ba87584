//! Machine profiles from files, as `overspin calibrate` writes them.
//!
//! A machine lives as long as the process, because the built-in ones do. So each file is read once.

use super::{DEFAULT, Machine, Value, nanos, smt};
use crate::cost_keys;
use overspin_scenario::keys::{Kind, legal};
use overspin_scenario::{COSTS, Picos, Quantiles, Tree, Varying, parse_time};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Whether this is the name of a file, not of a built-in machine.
pub fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// Why a profile cannot be used, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// The cause.
    pub message: String,
    /// The remedy.
    pub help: String,
}

/// A profile as its file states it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    #[serde(default)]
    brief: String,
    smt_permille: Option<u32>,
    #[serde(default)]
    costs: BTreeMap<String, Cost>,
}

/// A cost as a profile states it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Cost {
    Time(String),
    Quantiles(BTreeMap<String, String>),
}

impl Cost {
    /// The cost of this key, or what is wrong with it.
    fn value(&self, key: &'static str) -> Result<Value, String> {
        let of = COSTS.key(key).ok_or("there is no such cost")?;
        let varies = matches!(of.kind, Kind::Varying { .. });
        let (data, varies) = match self {
            Self::Time(text) => (parse_time(text)?.0.into(), None),
            Self::Quantiles(_) if !varies => return Err("this cost does not vary".into()),
            Self::Quantiles(all) => {
                let tree: Tree = all
                    .iter()
                    .map(|(at, text)| {
                        let time = parse_time(text).map_err(|e| format!("`{at}`: {e}"))?;
                        Ok((at.clone(), time.0.into()))
                    })
                    .collect::<Result<_, String>>()?;
                let quantiles = Quantiles::try_from(tree.clone()).map_err(|e| e.to_string())?;
                Varying::from(quantiles).agrees().map_err(|e| e.to_string())?;
                (tree.into(), Some(quantiles))
            }
        };
        let one = Tree::from_iter([(key.to_owned(), data)]);
        COSTS.check(&one).map_err(|e| e.to_string())?;
        let median = match (&one[key], varies) {
            (_, Some(quantiles)) => quantiles.p50,
            (time, None) => Picos(time.as_u64().unwrap_or_default()),
        };
        Ok(Value { varies, ..nanos(key, median.nanos(), "measured") })
    }
}

static READ: OnceLock<Mutex<HashMap<String, &'static Machine>>> = OnceLock::new();

/// The machine of the file at this path; a relative path is relative to the current directory.
///
/// # Errors
/// If it cannot be read, or is not a profile.
pub fn load(path: &str) -> Result<&'static Machine, ProfileError> {
    let read = READ.get_or_init(Mutex::default);
    let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(machine) = read.get(path) {
        return Ok(machine);
    }
    let text = std::fs::read_to_string(path).map_err(|e| ProfileError {
        message: format!("cannot read the machine profile `{path}`: {e}"),
        help: "make it with `overspin calibrate -o FILE.toml`; a relative path begins at the current directory"
            .into(),
    })?;
    let machine: &'static Machine = Box::leak(Box::new(parse(path, &text)?));
    read.insert(path.to_owned(), machine);
    Ok(machine)
}

fn parse(path: &str, text: &str) -> Result<Machine, ProfileError> {
    let keys: Vec<&'static str> = cost_keys().collect();
    // By bytes: a place may be inside a character.
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let profile: Profile = toml::from_str(text).map_err(|e| ProfileError {
        message: format!("{path}:{}: {}", line(e.span().map_or(0, |s| s.start)), e.message()),
        help: "a profile has brief, smt_permille and [costs]".into(),
    })?;
    let mut values: Vec<Value> = Vec::new();
    let fail = |key: &str, message: String, help: String| {
        let at = text.find(key).unwrap_or(0);
        Err(ProfileError { message: format!("{path}:{}: {message}", line(at)), help })
    };
    match profile.smt_permille {
        Some(permille) if (1..=1000).contains(&permille) => {
            values.push(smt(f64::from(permille), "measured"));
        }
        Some(permille) => {
            let message = format!("`smt_permille` is {permille}");
            return fail("smt_permille", message, "a whole number, 1 to 1000".into());
        }
        None => {}
    }
    for (key, cost) in &profile.costs {
        let Some(known) = keys.iter().find(|known| **known == key.as_str()) else {
            let message = format!("there is no cost `{key}`");
            return fail(key, message, format!("costs are: {}", keys.join(", ")));
        };
        match cost.value(known) {
            Ok(value) => values.push(value),
            Err(e) => {
                let help = COSTS.key(known).map(legal).unwrap_or_default();
                return fail(key, format!("`costs.{key}`: {e}"), help);
            }
        }
    }
    Ok(Machine {
        name: String::leak(path.to_owned()),
        brief: String::leak(profile.brief),
        year: 0,
        mhz: DEFAULT.mhz,
        values: Vec::leak(values),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_line_and_the_legal_values() {
        let error = |text: &str| parse("p.toml", text).unwrap_err();
        let e = error("brief = \"x\"\n[costs]\natomik = \"5ns\"\n");
        assert!(e.message.starts_with("p.toml:3: there is no cost `atomik`"), "{e:?}");
        assert!(e.help.contains("atomic, "), "{e:?}");
        let e = error("smt_permille = 1500\n");
        assert!(e.message.contains("p.toml:1: `smt_permille` is 1500"), "{e:?}");
        let e = error("[costs]\natomic = \"5 parsecs\"\n");
        assert!(e.message.contains("p.toml:2: `costs.atomic`"), "{e:?}");
        let e = error("[costs]\natomic = { p50 = \"5ns\", p99 = \"6ns\" }\n");
        assert!(e.message.contains("`costs.atomic`: this cost does not vary"), "{e:?}");
        let e = error("[costs]\nipi = { p50 = \"5us\", p99 = \"4us\" }\n");
        assert!(
            e.message.contains("p.toml:2: `costs.ipi`: ") && e.message.contains("`p99`"),
            "{e:?}"
        );
        let e = error("[costs]\nipi = { p50 = \"5us\", p98 = \"6us\", p99 = \"7us\" }\n");
        assert!(e.message.contains("p98"), "{e:?}");
        let e = error("[costs]\nipi = { p50 = \"5us\" }\n");
        assert!(e.message.contains("p99"), "{e:?}");
        let e = error("\n\nmhz = 5\n");
        assert!(e.message.starts_with("p.toml:3: "), "{e:?}");
        let e = error("# \u{feff}\ncosts = { \u{feff}a = 1 }\n");
        assert!(e.message.starts_with("p.toml:2: "), "{e:?}");
        assert!(load("/no/such.toml").unwrap_err().help.contains("overspin calibrate"));
    }

    #[test]
    fn a_cost_that_varies_is_the_scenarios() {
        let text =
            "[costs]\nipi = { p50 = \"5us\", p99 = \"40us\", max = \"1ms\" }\ntimer = \"2us\"\n";
        let machine = parse("p.toml", text).unwrap();
        let us = Picos::us;
        let ipi = Quantiles { max: Some(us(1000)), ..Quantiles::new(us(5), us(40)) };
        assert_eq!(machine.costs().ipi, ipi.into());
        assert_eq!((machine.cost("ipi"), machine.costs().timer), (us(5), us(2).into()));
        assert_eq!(machine.costs().hypercall, DEFAULT.costs().hypercall);
    }

    #[test]
    fn only_names_with_the_ending_are_files() {
        assert!(is_file("here.toml") && is_file("/a/b.toml"));
        assert!(!is_file("skylake-sp") && !is_file("toml"));
    }
}
