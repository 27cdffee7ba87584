use super::*;
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file;

const SCENARIO: &str = r#"
name = "</script><b>"
description = '<b>&"'
limit = "5ms"
[host]
cores = 2
stagger = "0"
noise = { placement = "none" }
[[domain]]
name = "g&t"
vcpus = 2
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

fn entry(most: usize) -> Entry {
    let scenario = scenario_file::parse("t", "t", SCENARIO, &[]).unwrap();
    let outcome = overspin_sim::run(&scenario, 3).unwrap();
    let record = overspin_runs::run::record(&scenario, &[], None, &outcome);
    let run =
        |s: &overspin_scenario::Scenario, seed, observer: &mut dyn overspin_host::Observer| {
            Runner::default().run(s, seed, observer, &|_| {})
        };
    let detail = detail(&record, most, &run).unwrap();
    Entry { record, detail }
}

#[test]
fn a_page_is_the_same_each_time_and_asks_for_nothing() {
    let html = page(&[entry(MOST_SLICES)]);
    assert_eq!(html, page(&[entry(MOST_SLICES)]));
    // What a browser would fetch. The namespace of SVG is not needed in HTML.
    for word in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(!html.contains("<b>") && html.contains("&lt;/script&gt;&lt;b&gt;"));
    assert!(html.contains("<p>&lt;b&gt;&amp;&quot; <"));
    // The script of the page; head and columns of the timeline; CSV and record.
    assert_eq!(html.matches("</script>").count(), 5);
    let detail = entry(MOST_SLICES).detail.unwrap();
    assert!(!detail.differs && !detail.timeline.is_cut());
}

#[test]
fn a_page_tells_when_its_record_was_made() {
    let mut record = entry(0).record.made_here("overspin seeds t.toml".into());
    record.environment.as_mut().unwrap().date = Some("2026-11-28T09:39:11Z".into());
    let html = page(&[Entry { record, detail: None }]);
    assert_eq!(html.matches("2026-11-28 09:39:11 UTC").count(), 2, "in its head and its origin");
    // A record of one run is the same whenever it is made.
    assert!(!page(&[entry(0)]).contains(" UTC"));
}

#[test]
fn a_small_timeline_holds_the_longest_wait() {
    let small = entry(60).detail.unwrap();
    let worst = &small.outcome.worst_waits[0];
    let t = &small.timeline;
    assert!(t.is_cut());
    assert!(t.from <= worst.since && worst.since < t.until, "{:?} {:?} {worst:?}", t.from, t.until);
}

#[test]
fn a_fragment_has_charts_and_leaves_the_page_around_it_alone() {
    let record = entry(0).record;
    let html = fragment(&record);
    assert_eq!(html.matches("<svg class=\"chart\"").count(), 3, "vCPUs, pCPUs, locks");
    assert!(!html.contains("<b>") && !html.contains("<script"));
    // Every rule is inside one that begins with the class of the fragment.
    let style = &html[html.find("<style>").unwrap() + 7..html.find("</style>").unwrap()];
    let (mut depth, mut selector) = (0, String::new());
    for c in style.chars() {
        match c {
            '{' => {
                assert!(depth > 0 || selector.trim_start().starts_with(".overspin"), "{selector}");
                depth += 1;
            }
            '}' => depth -= 1,
            _ if depth == 0 => selector.push(c),
            _ => {}
        }
        if c == '}' {
            selector.clear();
        }
    }
    assert_eq!(depth, 0);
}

#[test]
fn names_of_files_are_plain() {
    assert_eq!(file_name("../a b/\u{e9}.toml"), "a-b--.toml");
    assert_eq!(file_name("//"), "overspin");
}
