//! `overspin report`: what it writes where, and what it says if it cannot. `tests/browser.rs` looks at the page itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
limit = "20ms"
[host]
cores = 2
[[domain]]
name = "guest"
vcpus = 4
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

/// A folder with a scenario `s.toml` and the record `r.json` of a run of it.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    let output = overspin(dir.path(), &["run", "s.toml", "--quiet", "--json", "r.json"]);
    assert!(output.status.success(), "{output:?}");
    dir
}

fn overspin(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.current_dir(dir).env("NO_COLOR", "1").args(args).output().unwrap()
}

/// The command fails with this code, and says all of these words.
#[track_caller]
fn fails(dir: &Path, args: &[&str], code: i32, words: &[&str]) {
    let output = overspin(dir, args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    for word in words {
        assert!(error.contains(word), "{args:?}: {error}");
    }
}

#[test]
fn it_says_where_the_page_is_and_what_it_holds() {
    let dir = folder();
    let dir = dir.path();
    let said = |args: &[&str]| {
        let output = overspin(dir, args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let line = said(&["report", "r.json"]);
    assert!(
        line.starts_with("report.html: ") && line.contains(" MB, 1 result, a timeline of "),
        "{line}"
    );
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("id=\"timeline-0\"") && !page.contains("The timeline is cut"));
    let line = said(&["report", "r.json", "r.json", "--no-timeline", "-o", "two.html"]);
    assert!(line.contains(" 2 results. "), "{line}");
    let page = fs::read_to_string(dir.join("two.html")).unwrap();
    assert!(!page.contains("id=\"timeline-0\"") && page.contains("id=\"result-1\""));
    said(&["report", "r.json", "--slices", "1000", "-o", "cut.html"]);
    assert!(fs::read_to_string(dir.join("cut.html")).unwrap().contains("The timeline is cut"));
    // On standard output the page is alone.
    let page = said(&["report", "r.json", "-o", "-"]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    // It replaces a page, and says nothing if asked to.
    assert_eq!(said(&["report", "r.json", "--quiet"]), "");
}

#[test]
fn what_it_cannot_read_or_write_it_says() {
    let dir = folder();
    let dir = dir.path();
    fs::write(dir.join("report.html"), "mine").unwrap();
    fails(dir, &["report", "s.toml"], 2, &["s.toml", "help", "overspin run"]);
    fails(dir, &["report", "none.json"], 2, &["none.json", "help"]);
    fails(dir, &["report", "r.json", "-o", "no/such.html"], 3, &["no/such.html", "directory"]);
    fails(dir, &["report", "r.json", "--slices", "5"], 2, &["1000 to 4000000"]);
    fails(dir, &["report"], 2, &["RESULT"]);
    assert_eq!(
        fs::read_to_string(dir.join("report.html")).unwrap(),
        "mine",
        "nothing was replaced"
    );
}
