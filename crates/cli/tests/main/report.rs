//! `overspin report`: what it writes where, and what it says if it cannot. `browser.rs` looks at the page itself.

use crate::with_scenario;
use overspin_testing::Program;

/// A folder with a scenario `s.toml` and the record `r.json` of a run of it.
fn folder() -> Program {
    let overspin = with_scenario();
    overspin.fine(&["run", "s.toml", "--quiet", "--json", "r.json"]);
    overspin
}

/// The command fails with this code, and says all of these words.
#[track_caller]
fn fails(overspin: &Program, args: &[&str], code: i32, words: &[&str]) {
    let error = overspin.fails(args, code);
    for word in words {
        assert!(error.contains(word), "{args:?}: {error}");
    }
}

#[test]
fn it_says_where_the_page_is_and_what_it_holds() {
    let overspin = folder();
    let said = |args: &[&str]| overspin.fine(args).0;
    let line = said(&["report", "r.json"]);
    assert!(
        line.starts_with("report.html: ") && line.contains(" MB, 1 result, a timeline of "),
        "{line}"
    );
    let page = overspin.read("report.html");
    assert!(page.contains("id=\"timeline-0\"") && !page.contains("The timeline is cut"));
    let line = said(&["report", "r.json", "r.json", "--no-timeline", "-o", "two.html"]);
    assert!(line.contains(" 2 results. "), "{line}");
    let page = overspin.read("two.html");
    assert!(!page.contains("id=\"timeline-0\"") && page.contains("id=\"result-1\""));
    said(&["report", "r.json", "--slices", "1000", "-o", "cut.html"]);
    assert!(overspin.read("cut.html").contains("The timeline is cut"));
    // On standard output the page is alone.
    let page = said(&["report", "r.json", "-o", "-"]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    // It replaces a page, and says nothing if asked to.
    assert_eq!(said(&["report", "r.json", "--quiet"]), "");
}

#[test]
fn what_it_cannot_read_or_write_it_says() {
    let overspin = folder();
    overspin.write("report.html", "mine");
    fails(&overspin, &["report", "s.toml"], 2, &["s.toml", "help", "overspin run"]);
    fails(&overspin, &["report", "none.json"], 2, &["none.json", "help"]);
    fails(
        &overspin,
        &["report", "r.json", "-o", "no/such.html"],
        3,
        &["no/such.html", "directory"],
    );
    fails(&overspin, &["report", "r.json", "--slices", "5"], 2, &["1000 to 4000000"]);
    fails(&overspin, &["report"], 2, &["RESULT"]);
    assert_eq!(overspin.read("report.html"), "mine", "nothing was replaced");
}
