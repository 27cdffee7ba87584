//! Every mistake in a scenario is an error with its place, its key and a remedy.

use overspin_located::LocatedError;
use overspin_located::drawing;
use overspin_report::Screen;
use overspin_runs::scenario_file::{LoadError, load};
use overspin_testing::GOOD;
use std::io::Write;

/// The change to the good scenario; line and column; what the message and the remedy must contain.
type Case = (&'static str, &'static str, usize, usize, &'static str, &'static str);

const CASES: &[Case] = &[
    ("cores = 2", "cores = 0", 4, 9, "`host.cores`: 0 is out of range", "from 1 to 4096"),
    ("cores = 2", "cores = -3", 4, 9, "-3 is out of range", "whole number"),
    ("cores = 2", "cores = 99999999999999999999999", 4, 9, "out of range", "from 1 to 4096"),
    ("cores = 2", "cores = \"2\"", 4, 9, "is a string, but must be an integer", "whole number"),
    ("cores = 2", "cores = 4096\nsockets = 256", 4, 9, "too many", "at most 65536"),
    ("cores = 2", "core = 2", 4, 1, "`core` is not a key of [host]", "did you mean `cores`"),
    (
        "cores = 2",
        "cores = 2\nscheduler = \"credits\"",
        5,
        13,
        "no scheduler `credits`",
        "did you mean `credit`",
    ),
    (
        "cores = 2",
        "cores = 2\nmachine = \"xeon-x5571\"",
        5,
        11,
        "no machine `xeon-x5571`",
        "did you mean `xeon-x5570`",
    ),
    ("cores = 2", "cores = 2\nsmt_permille = 1001", 5, 16, "out of range", "1 to 1000"),
    ("cores = 2", "cores = 2\ncores = 3", 5, 1, "not TOML", "once"),
    ("cores = 2", "", 3, 1, "`cores` is missing in [host]", "Cores in a socket"),
    ("vcpus = 4", "vcpus = 4.5", 9, 9, "a decimal number, but must be an integer", "whole number"),
    ("vcpus = 4", "vcpu = 4", 9, 1, "`vcpu` is not a key", "did you mean `vcpus`"),
    ("vcpus = 1", "vcpus = 300", 20, 9, "`ticket-small` serves at most", "another lock"),
    ("\"ticket\"", "\"tiket\"", 10, 8, "no lock `tiket`", "did you mean `ticket`"),
    ("cap = 0", "cap = 401", 12, 7, "401 is more than 4 vCPUs can use", "to 400"),
    ("cap = 0", "weight = 0", 12, 10, "out of range", "1 to 65535"),
    ("cap = 0", "weight = 65536", 12, 10, "out of range", "1 to 65535"),
    ("\"0-1\"", "\"0-2\"", 11, 12, "there is no pCPU 2", "numbered 0 to 1"),
    ("\"0-1\"", "\"1-0\"", 11, 12, "runs backwards", "0-1"),
    ("\"0-1\"", "[[0], [1]]", 11, 12, "2 lists for 4 vCPUs", "one list for each"),
    ("\"0-1\"", "[[0], [1], [], [1]]", 11, 23, "at least one pCPU", "numbered 0 to 1"),
    ("\"0-1\"", "[[0], [1], [7], [1]]", 11, 24, "no such pCPU", "numbered 0 to 1"),
    ("hz = 1000", "hz = 10001", 14, 6, "10001 is out of range", "0 to 10000"),
    ("\"1s\"", "\"-1s\"", 2, 9, "cannot be negative", "quotes"),
    ("\"1s\"", "-5", 2, 9, "cannot be negative", "quotes"),
    ("\"1s\"", "5", 2, 9, "unit is missing", "quotes"),
    ("\"1s\"", "0", 2, 9, "out of range", "1ns"),
    ("\"1s\"", "5s", 2, 9, "not TOML", "quote texts"),
    ("\"1s\"", "\"99999999999999999999h\"", 2, 9, "longer than", "1000h"),
    ("\"1s\"", "true", 2, 9, "a boolean, but must be a time", "30ms"),
    ("\"1s\"", "\"5 parsecs\"", 2, 9, "`parsecs` is not a unit", "ms"),
    ("\"30ms\"", "\"1ms\"\nratelimit = \"2ms\"", 7, 13, "2 ms is not legal", "at most tslice"),
    ("\"lock-loop\"", "\"lock-lop\"", 16, 8, "no workload `lock-lop`", "did you mean `lock-loop`"),
    (
        "section = \"2us\"",
        "jobs = 3",
        17,
        1,
        "`jobs` is not a key",
        "legal keys are: kind, name, vcpus, threads",
    ),
    ("\"other\"", "\"guest\"", 19, 8, "also called `guest`", "its own name"),
    ("jobs = 3", "jobs = 0", 22, 41, "out of range", "from 1"),
    ("[host]", "[hots]", 3, 2, "`hots` is not a key", "did you mean `host`"),
    ("name = \"good\"", "name = 3", 1, 8, "an integer, but must be a string", "quotes"),
    ("name = \"good\"", "ünïcode = 3", 1, 1, "not TOML", "quote"),
];

/// The error of a file with this content, and what a terminal shows of it: the first line, and the drawing on one line.
#[track_caller]
fn shown(content: &[u8]) -> (LoadError, String) {
    let mut file = tempfile::Builder::new().prefix("bad").suffix(".toml").tempfile().unwrap();
    file.write_all(content).unwrap();
    let error = load(file.path(), &[]).expect_err("it is wrong");
    let drawn = match &error {
        LoadError::Invalid(error) => drawing(error, &Screen::default()),
        _ => String::new(),
    };
    // The drawing wraps.
    let words: Vec<&str> = drawn.split_whitespace().filter(|word| *word != "│").collect();
    let shown = format!("{error} {}", words.join(" "));
    (error, shown)
}

#[test]
fn mistakes_in_scenarios() {
    for (from, to, line, column, message, help) in CASES {
        assert!(GOOD.contains(from), "the case changes something: {from}");
        let (error, shown) = shown(GOOD.replacen(from, to, 1).as_bytes());
        let LoadError::Invalid(error) = error else { panic!("{to}: {error}") };
        let LocatedError { line: found, column: at, .. } = *error;
        assert_eq!((found, at), (*line, *column), "{to}: {error}");
        assert!(shown.contains(&format!(".toml:{line}:{column}: ")), "{to}: {shown}");
        assert!(shown.contains(message) && shown.contains(help), "{to}: {shown}");
    }
}

#[test]
fn the_whole_file_is_wrong() {
    for (content, message) in [
        (&b""[..], "`host` is missing"),
        (b"\xff\xfe", "UTF-8"),
        (b"[host]\ncores = 1\n", "`domain` is missing"),
        (b"domain = []\n[host]\ncores = 1\n", "`domain` is empty"),
        (b"domain = 3\n[host]\ncores = 1\n", "must be an array of tables"),
        (b"[[[[[[[[", "not TOML"),
        (b"\0", "not TOML"),
    ] {
        let (error, shown) = shown(content);
        assert!(shown.contains(message), "{message}: {shown}");
        assert!(matches!(error, LoadError::Read { .. }) || shown.contains("help:"), "{shown}");
    }
}
