//! The live page in a browser: each control is turned, and the answer follows.

use super::chromium::Chromium;
use crate::overspin;
use crate::serve::Serving;
use overspin_testing::{Program, SCENARIO, skip};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

/// The scenario of the tutorial, in less time.
const TICKET: &str = "?scenario=examples/ticket-overcommit.toml&set=limit%3D100ms";

/// A page of the command at work, and the browser that shows it. `None` without a browser.
fn page(args: &[&str], program: &Program) -> Option<(Chromium, Serving)> {
    let Some(browser) = Chromium::start() else {
        skip("no chromium");
        return None;
    };
    Some((browser, Serving::start(program, args)))
}

/// Opens an address below that of the page, and waits for the first results.
fn open(browser: &Chromium, serving: &Serving, query: &str) {
    browser.go(&format!("{}{query}", serving.address));
    shown(browser, 1);
}

/// Waits until each side has shown this many results.
fn shown(browser: &Chromium, times: u32) {
    browser.until(&format!("sides_shown({times})").replace(
        "sides_shown",
        "(times => [...document.querySelectorAll('.result')].every(r => r.dataset.shown >= times && r.ariaBusy === 'false'))",
    ));
}

/// Turns a control as its user would: to the value at this place.
fn turn(browser: &Chromium, control: &str, place: usize) {
    browser.value(&format!(
        "(() => {{ const c = document.querySelector({control:?}); \
         if (c.tagName === 'SELECT') c.selectedIndex = {place}; else c.value = {place}; \
         c.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    ));
}

/// Nothing went wrong on the page, and it asked nobody else.
fn fine(browser: &Chromium, serving: &Serving) {
    assert_eq!(browser.errors(), Vec::<Value>::new());
    let ours = |url: &&String| {
        url.starts_with(&serving.address) || url.starts_with("about:") || url.starts_with("data:")
    };
    let requests = browser.requests();
    assert!(requests.iter().all(|url| ours(&url)), "{requests:?}");
}

/// What a side shows: answer, timeline, command.
fn side(browser: &Chromium, number: usize) -> [String; 3] {
    let of = |what: &str| {
        browser.text(&format!(
            "document.querySelectorAll('.side')[{number}].querySelector({what:?})?.textContent ?? ''"
        ))
    };
    [of("[id^=answer]"), of("[id$='-data']"), of(".share code")]
}

#[test]
fn each_control_changes_the_answer_and_the_timeline() {
    let program = overspin();
    let Some((browser, serving)) = page(&[], &program) else { return };
    let controls = browser_controls(&browser, &serving);
    assert_eq!(
        controls,
        [
            "set host.scheduler",
            "set host.cores",
            "set domain.guest.lock",
            "set domain.guest.vcpus",
            "set domain.guest.workload.section",
            "set domain.guest.workload.outside",
            "set limit",
            "set seed",
            "seeds ",
            "vary ",
        ]
    );
    for control in controls {
        let (parameter, key) = control.split_once(' ').unwrap();
        let selector = format!("[data-parameter={parameter}][data-key=\"{key}\"]");
        open(&browser, &serving, TICKET);
        let before = side(&browser, 0);
        let of = |what: &str| {
            browser.number(&format!("Number(document.querySelector({selector:?}).{what})")) as usize
        };
        // A lock may behave as the next one does, and a byte lock, the first, as no other does.
        let place = match browser.value(&format!("document.querySelector({selector:?}).tagName")) {
            _ if key.ends_with(".lock") => 0,
            Value::String(tag) if tag == "SELECT" => of("selectedIndex") + 1,
            _ => of("value") + 1,
        };
        turn(&browser, &selector, place);
        shown(&browser, 2);
        let after = side(&browser, 0);
        for (what, (before, after)) in
            ["answer", "timeline", "command"].iter().zip(before.iter().zip(&after))
        {
            assert!(before != after && !after.is_empty(), "{control}: {what}");
        }
        let option = match parameter {
            "set" => format!(" --set {key}="),
            "seeds" => " --seeds ".into(),
            _ => " -L ".into(),
        };
        assert!(after[2].contains(&option), "{control}: {}", after[2]);
        let curves = browser.value("document.getElementById('curves-0') !== null");
        assert_eq!(curves, parameter == "vary", "{control}");
        // The same after a reload, which is all that a reader of the address has.
        let address = browser.text("location.href");
        browser.leave("location.reload()");
        shown(&browser, 1);
        assert_eq!(browser.text("location.href"), address, "{control}");
        assert!(side(&browser, 0) == after, "{control}: another result");
    }
    // The ratio turns the cores.
    open(&browser, &serving, TICKET);
    turn(&browser, ".ratio", 0);
    shown(&browser, 2);
    assert!(side(&browser, 0)[2].contains(" --set host.cores=4"));
    fine(&browser, &serving);
    // An address that is none says what to do.
    browser.go(&format!("{}?scenario=/etc/passwd", serving.address));
    let said = browser.text("document.querySelector('.problem').textContent");
    assert!(said.contains("does not offer `/etc/passwd`") && said.contains("Remedy: "), "{said}");
    serving.end("INT");
}

/// The controls of the page: what each sets.
fn browser_controls(browser: &Chromium, serving: &Serving) -> Vec<String> {
    open(browser, serving, TICKET);
    let all = browser.value(
        "[...document.querySelectorAll('[data-parameter]')].map(c => `${c.dataset.parameter} ${c.dataset.key}`)",
    );
    all.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn two_settings_stand_side_by_side() {
    let program = overspin();
    let Some((browser, serving)) = page(&[], &program) else { return };
    open(&browser, &serving, TICKET);
    browser.leave("document.getElementById('beside').click()");
    browser.until("document.documentElement?.dataset.ready === 'yes' && document.querySelectorAll('.side').length === 2");
    shown(&browser, 1);
    let [first, other] = [0, 1].map(|number| side(&browser, number));
    assert_eq!((&first[0], &first[2]), (&other[0], &other[2]), "both begin alike");
    turn(&browser, "[data-parameter=other][data-key='domain.guest.lock']", 0);
    browser.until("document.querySelectorAll('.result')[1].dataset.shown === '2'");
    assert!(side(&browser, 0) == first, "the first stays");
    let changed = side(&browser, 1);
    assert!(
        changed[0] != other[0] && changed[2].contains("--set domain.guest.lock="),
        "{changed:?}"
    );
    assert_eq!(browser.number("document.querySelectorAll('.result')[0].dataset.shown * 1"), 1.0);
    assert_eq!(browser.number("overspin.timelines.length"), 2.0);
    let compared = "(document.querySelector('#compared[data-shown] p')?.textContent ?? '')";
    browser.until(&format!("{compared}.includes('better')"));
    assert!(browser.text(compared).contains("right"), "{}", browser.text(compared));
    // Both are in the address.
    browser.leave("location.reload()");
    shown(&browser, 1);
    assert!([0, 1].map(|number| side(&browser, number)) == [first, changed], "other results");
    fine(&browser, &serving);
    serving.end("INT");
}

#[test]
fn the_lesson_leads_through_its_steps() {
    let program = overspin();
    let Some((browser, serving)) = page(&[], &program) else { return };
    open(&browser, &serving, "");
    browser.leave("document.getElementById('lesson').click()");
    let steps = ["A question", "Another lock", "Is it chance?", "When exactly?"];
    for (heading, number) in steps.iter().zip(1..) {
        let title = format!("{number} of 4: {heading}");
        browser.until(&format!("document.querySelector('#step h2')?.textContent === {title:?} && document.documentElement.dataset.ready === 'yes'"));
        shown(&browser, 1);
        let tries = browser.number("document.querySelectorAll('#step .try').length") as usize;
        assert!(tries >= 2, "{heading}");
        // Controls stay within the step.
        turn(&browser, "[data-key='domain.guest.vcpus']", 2);
        shown(&browser, 2);
        assert!(browser.text("location.search").contains(&format!("lesson={number}")));
        if number < steps.len() {
            browser.leave("document.querySelector('#step [rel=next]').click()");
        }
    }
    // The last step: the longest wait, with its chain.
    browser.key("n");
    browser.until("document.querySelectorAll('.timeline .chain tr').length > 0");
    assert_eq!(browser.value("document.querySelector('#step [rel=next]')"), Value::Null);
    browser.leave("document.getElementById('lesson').click()");
    browser.until(
        "document.querySelector('.side') !== null && document.getElementById('step') === null",
    );
    shown(&browser, 1);
    fine(&browser, &serving);
    serving.end("INT");
}

#[test]
fn a_long_run_has_a_bar_and_is_given_up_for_a_newer_setting() {
    let program = overspin();
    program.write("long.toml", SCENARIO.replace("20ms", "24h"));
    program.write("short.toml", SCENARIO);
    let Some((browser, serving)) =
        page(&["long.toml", "short.toml", "--max-wall", "10min"], &program)
    else {
        return;
    };
    let text = browser_text(&browser, &serving);
    assert!(text.contains("long.toml"), "{text}");
    browser.until("document.querySelector('progress').value > 0 && !document.querySelector('progress').hidden");
    // Much less is simulated; the limit of ten minutes does not have to pass.
    turn(&browser, "[data-key=limit]", 0);
    shown(&browser, 1);
    assert_eq!(browser.value("document.querySelector('progress').hidden"), true);
    // Another source is another address.
    browser.value(
        "(s => { s.value = 'short.toml'; s.dispatchEvent(new Event('change', { bubbles: true })); })(document.getElementById('source'))",
    );
    browser.until("document.documentElement?.dataset.ready === 'yes' && location.search === '?scenario=short.toml'");
    shown(&browser, 1);
    assert_eq!(side(&browser, 0)[2], "overspin run short.toml");
    // A file may become wrong while it is open.
    program.write("short.toml", "limit = [");
    turn(&browser, "[data-key='host.cores']", 0);
    shown(&browser, 2);
    assert!(
        browser.text("document.querySelector('.problem').textContent").contains("short.toml:1:")
    );
    serving.end("INT");
}

/// Opens the page of the first file, and returns its list.
fn browser_text(browser: &Chromium, serving: &Serving) -> String {
    browser.go(&serving.address);
    browser.text("document.getElementById('source').textContent")
}

#[test]
fn a_result_is_kept_and_shown_again() {
    let program = overspin();
    let Some((browser, serving)) = page(&["--out", "kept"], &program) else { return };
    open(&browser, &serving, TICKET);
    let [answer, timeline, _] = side(&browser, 0);
    browser.value("document.querySelector('.keep').click()");
    browser.until("document.querySelector('.share').textContent.includes('kept as')");
    let record = crate::json(&program.read("kept/ticket-overcommit-1.json"));
    assert_eq!(record["set"], json!(["limit=100ms"]));
    open(&browser, &serving, "?scenario=kept/ticket-overcommit-1.json");
    let shown = side(&browser, 0);
    assert!(shown[1] == timeline, "another timeline");
    // The record says nothing of other runs.
    let first = answer.split('.').next().unwrap_or_default();
    assert!(first.contains("times a second") && shown[0].starts_with(first), "{}", shown[0]);
    assert_eq!(shown[2], "overspin report kept/ticket-overcommit-1.json");
    fine(&browser, &serving);
    serving.end("INT");
}

#[test]
fn a_notebook_of_this_machine_can_frame_it() {
    let program = overspin();
    let Some((browser, serving)) = page(&[], &program) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let notebook = format!("http://{}/", listener.local_addr().unwrap());
    let cell = format!(
        "<!DOCTYPE html><html data-ready=yes><iframe src=\"{}{TICKET}\"></iframe>",
        serving.address
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let length = cell.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(format!("{head}{cell}").as_bytes());
        }
    });
    browser.go(&notebook);
    // The page asks for the whole answer once it has shown the first lines.
    let is_shown = || {
        browser.value("0");
        browser.requests().iter().any(|url| url.starts_with(&format!("{}answer?", serving.address)))
    };
    overspin_testing::until("the frame has run", is_shown);
    serving.end("INT");
}

#[test]
fn everybody_can_use_it() {
    let program = overspin();
    let Some((browser, serving)) = page(&[], &program) else { return };
    let beside = format!("{TICKET}&other=limit%3D100ms&beside=yes&lesson=2");
    for pixels in [400, 1280] {
        let screen =
            json!({ "width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", screen);
        for query in [TICKET, &beside] {
            open(&browser, &serving, query);
            let wide = browser.value(
                "[...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > innerWidth + 0.5 \
                 && !(e.closest('svg') && e.tagName !== 'svg') && !e.closest('.wide, .scroller, pre')).map(e => e.outerHTML.slice(0, 120))",
            );
            assert_eq!(wide, json!([]), "{query}, {pixels} pixels wide");
        }
    }
    let Some(axe) = std::env::var_os("OVERSPIN_AXE") else {
        return skip("no axe-core: `.ci/run axe tests` fetches it and names it in OVERSPIN_AXE");
    };
    let axe = fs::read_to_string(axe).unwrap();
    for theme in ["light", "dark"] {
        open(&browser, &serving, &beside);
        browser.value(&format!("{axe}; 0"));
        if theme == "dark" {
            browser.value("document.getElementById('theme').click()");
        }
        let all = browser.value(
            "axe.run(document, { resultTypes: ['violations'] }).then(r => r.violations.flatMap(v => \
             v.nodes.slice(0, 3).map(n => `${v.id}: ${n.html.slice(0, 200)}: ${n.failureSummary}`)))",
        );
        assert_eq!(all, json!([]), "{theme}");
    }
    fine(&browser, &serving);
    serving.end("INT");
}
