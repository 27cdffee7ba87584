//! Pages for everybody: what axe-core finds, pages of a narrow screen, and pages without a pointer.

use super::chromium::Chromium;
use crate::overspin;
use overspin_testing::{CORES, LOCKS, Program, SCENARIO, root, skip};
use serde_json::{Value, json};
use std::fs;
use std::sync::LazyLock;

/// A page of each sort that a reader opens first: of a run with a timeline, of a sweep, of an experiment, and of two
/// results side by side.
const NAMES: [&str; 4] = ["run.html", "sweep.html", "reproduction.html", "comparison.html"];

static PAGES: LazyLock<Program> = LazyLock::new(|| {
    let pages = overspin();
    pages.write("s.toml", SCENARIO);
    pages.write("sweep.toml", format!("name = \"sweep\"{SCENARIO}{LOCKS}{CORES}"));
    let mine = root().join("crates/page/tests/main/mine.toml");
    pages.fine(&["run", "s.toml", "--json", "run.json"]);
    pages.fine(&["run", "sweep.toml", "--json", "sweep.json", "--seeds", "2"]);
    pages.fine(&["reproduce", mine.to_str().unwrap(), "--report", "reproduction.html"]);
    pages.fine(&["report", "run.json", "-o", "run.html"]);
    pages.fine(&["report", "sweep.json", "-o", "sweep.html"]);
    pages.fine(&["report", "run.json", "sweep.json", "-o", "comparison.html"]);
    pages
});

/// A browser, or the reason to skip.
fn browser() -> Option<Chromium> {
    Chromium::start().or_else(|| {
        skip("no chromium");
        None
    })
}

/// Opens a page with everything on it that a reader can open.
fn open(browser: &Chromium, name: &str) {
    browser.open(&PAGES.path(name));
    browser.value("document.querySelectorAll('details').forEach(d => { d.open = true; })");
    // The page's script looks at sizes before the next picture.
    let drawn =
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))";
    browser.value(drawn);
}

#[test]
fn axe_finds_nothing() {
    let Some(axe) = std::env::var_os("OVERSPIN_AXE") else {
        return skip("no axe-core: `.ci/run axe tests` fetches it and names it in OVERSPIN_AXE");
    };
    let axe = fs::read_to_string(axe).unwrap();
    let Some(browser) = browser() else { return };
    let mut found = Vec::new();
    for name in NAMES {
        open(&browser, name);
        browser.value(&format!("{axe}; 0"));
        for theme in ["light", "dark"] {
            let toggled = "document.documentElement.classList.contains('dark')";
            if browser.value(toggled) != (theme == "dark") {
                browser.value("document.getElementById('theme').click()");
            }
            let passed = browser.number("axe.run(document).then(r => r.passes.length)");
            assert!(passed > 20.0, "{name}, {theme}: only {passed} of its rules apply");
            let all = browser.value(
                "axe.run(document, { resultTypes: ['violations'] }).then(r => r.violations.flatMap(v => \
                 v.nodes.slice(0, 3).map(n => `${v.id}: ${n.html.slice(0, 200)}: ${n.failureSummary}`)))",
            );
            found.extend(all.as_array().unwrap().iter().map(|v| format!("{name}, {theme}: {v}")));
        }
    }
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"));
}

/// Makes the screen this wide.
fn width(browser: &Chromium, pixels: u32) {
    let screen = json!({ "width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": false });
    browser.call("Emulation.setDeviceMetricsOverride", screen);
}

#[test]
fn a_narrow_screen_holds_each_page() {
    let Some(browser) = browser() else { return };
    width(&browser, 400);
    for name in NAMES {
        open(&browser, name);
        // What reaches beyond the screen, unless it scrolls in a region of its own.
        let wide = browser.value(
            "[...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > innerWidth + 0.5 \
             && !(e.closest('svg') && e.tagName !== 'svg') && !e.closest('.wide, .scroller, pre')).map(e => e.outerHTML.slice(0, 120))",
        );
        let [page, screen] = ["document.documentElement.scrollWidth", "innerWidth"];
        assert!(browser.number(page) <= browser.number(screen), "{name}: {wide:#}");
        // Such a region can be reached without a pointer, and says what it is.
        let unreached = browser.value(
            "[...document.querySelectorAll('.wide, pre')].filter(e => e.scrollWidth > e.clientWidth \
             && (e.tabIndex !== 0 || !e.getAttribute('aria-label'))).length",
        );
        assert_eq!(unreached, 0, "{name}");
        let words = browser.number(
            "Math.min(...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height).filter(h => h > 0))",
        );
        assert!(words >= 7.0, "{name}: words of {words} pixels");
    }
    assert_eq!(browser.errors(), Vec::<Value>::new());
}

#[test]
fn everything_is_reached_without_a_pointer() {
    let Some(browser) = browser() else { return };
    for pixels in [400, 1280] {
        width(&browser, pixels);
        for name in NAMES {
            open(&browser, name);
            browser.value(
                "window.left = new Set([...document.querySelectorAll('a[href], button, input, summary, [tabindex]')] \
                 .filter(e => e.checkVisibility()))",
            );
            let all = browser.number("left.size");
            assert!(all > 3.0, "{name}");
            // Each press reaches one; then the focus leaves the page.
            for _ in 0..=all as usize {
                browser.key("Tab");
                browser.value("left.delete(document.activeElement)");
            }
            let left = browser.value("[...left].map(e => e.outerHTML.slice(0, 120))");
            assert_eq!(left, json!([]), "{name}, {pixels} pixels wide");
        }
    }
}
