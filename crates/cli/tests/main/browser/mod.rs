//! The report page in a real browser, opened as a file and without a network. Without Chromium these tests skip.
//!
//! Pictures of the page are compared with those in `browser/`. `UPDATE_EXPECT=1` writes them anew. Look at them before
//! you keep them.

mod access;
mod chromium;
mod live;

use crate::{json, overspin};
use chromium::Chromium;
use overspin_testing::{CORES, LOCKS, Program, SCENARIO, expected_bytes, root, skip};
use serde_json::Value;
use std::fs;
use std::sync::LazyLock;

/// Two guests: waiters of one sleep and are kicked, vCPUs of the other exit from their loops and get notices.
const MARKS: &str = r#"
name = "marks <b>&"
limit = "150ms"
warmup = "0"
[host]
cores = 2
scheduler = "credit-2008"
directed_yield = true
[host.pause_loop_exiting]
window = "20us"
[host.preemption_notification]
protocol = "deferral"
[[domain]]
name = "sleepers"
vcpus = 2
lock = "xen-pv"
workload = { kind = "lock-loop", section = "20us", outside = "30us" }
[[domain]]
name = "spinners"
vcpus = 3
lock = "ticket"
workload = { kind = "lock-loop", section = "20us", outside = "30us" }
"#;

/// A folder with one page for all tests: a single run, a run with marks of all kinds, a sweep.
static PAGES: LazyLock<Program> = LazyLock::new(|| {
    let pages = overspin();
    let example = root().join("examples/ticket-overcommit.toml");
    let example = example.to_str().unwrap();
    pages.write("marks.toml", MARKS);
    pages.write("sweep.toml", format!("name = \"sweep\"{SCENARIO}{LOCKS}{CORES}"));
    // A timeline shows everything, so that everything must count.
    let all = ["--set", "limit=500ms", "--set", "warmup=0"];
    pages.fine(&[&["run", example, "--json", "run.json", "--csv", "run.csv"], &all[..]].concat());
    pages.fine(&["run", "marks.toml", "--json", "marks.json"]);
    pages.fine(&["run", "sweep.toml", "--json", "sweep.json"]);
    let (said, _) =
        pages.fine(&["report", "run.json", "marks.json", "sweep.json", "-o", "page.html"]);
    assert!(
        said.starts_with("page.html: ") && said.contains("3 results, 3 timelines of "),
        "{said}"
    );
    pages
});

/// A browser with the page, or the reason to skip.
fn browser() -> Option<Chromium> {
    let Some(browser) = Chromium::start() else {
        skip("no chromium");
        return None;
    };
    browser.open(&PAGES.path("page.html"));
    Some(browser)
}

/// A timeline of the page in JavaScript.
fn timeline(number: usize) -> String {
    format!("overspin.timelines[{number}]")
}

#[test]
fn the_page_needs_no_network_and_has_no_errors() {
    let Some(page) = browser() else { return };
    assert_eq!(page.errors(), Vec::<Value>::new());
    let requests = page.requests();
    let others: Vec<&String> = requests
        .iter()
        .filter(|url| !url.starts_with("file:") && !url.starts_with("about:"))
        .collect();
    assert!(others.is_empty() && requests.len() <= 2, "{requests:?}");
    assert_eq!(page.number("overspin.timelines.length"), 3.0);
    // A name with markup in it is text.
    assert_eq!(page.number("[...document.querySelectorAll('h2')].filter(h => h.textContent === 'marks <b>&').length"), 1.0);
    // The page holds the samples, and hands out the same bytes as --csv.
    let csv = page.text(
        "overspin.inflate(document.getElementById('csv-0').textContent).then(b => new TextDecoder().decode(b))",
    );
    assert_eq!(csv, PAGES.read("run.csv"));
    let json = page.text(
        "overspin.inflate(document.getElementById('json-2').textContent).then(b => new TextDecoder().decode(b))",
    );
    assert_eq!(json, PAGES.read("sweep.json"));
    page.value("document.querySelector('button[data-raw]').click()");
    assert_eq!(page.errors(), Vec::<Value>::new());
}

#[test]
fn tables_are_sorted_and_the_theme_is_switched() {
    let Some(page) = browser() else { return };
    // The column of a table of numbers, as numbers.
    let column = "(() => { const t = [...document.querySelectorAll('table.sortable')].find(t => t.tHead.querySelector('.number') && t.tBodies[0].rows.length > 3); \
                  const i = [...t.tHead.rows[0].cells].findIndex(c => c.classList.contains('number')); \
                  return { t, i, values: () => [...t.tBodies[0].rows].map(r => Number(r.cells[i].textContent.replace(/,/g, ''))) }; })()";
    page.value(&format!("window.column = {column}; column.t.tHead.rows[0].cells[column.i].querySelector('button').click()"));
    assert_eq!(page.value("column.values().every((v, i, a) => i === 0 || a[i - 1] >= v)"), true);
    assert_eq!(
        page.text("column.t.tHead.rows[0].cells[column.i].getAttribute('aria-sort')"),
        "descending"
    );
    page.value("column.t.tHead.rows[0].cells[column.i].querySelector('button').click()");
    assert_eq!(page.value("column.values().every((v, i, a) => i === 0 || a[i - 1] <= v)"), true);

    let background = "getComputedStyle(document.body).backgroundColor";
    let light = page.text(background);
    page.value("document.getElementById('theme').click()");
    let dark = page.text(background);
    assert_ne!(light, dark);
    // The canvas follows: its background is a pixel of the palette.
    assert_eq!(
        page.value("overspin.timelines.every(t => t.palette.background !== 0xfff4f6f6)"),
        true
    );
    assert_eq!(page.errors(), Vec::<Value>::new());
}

#[test]
fn keys_wheel_and_pointer_move_the_view() {
    let Some(page) = browser() else { return };
    let t = timeline(0);
    let view = || (page.number(&format!("{t}.view.t0")), page.number(&format!("{t}.view.t1")));
    let length = || view().1 - view().0;
    page.value(&format!("{t}.canvas.scrollIntoView({{ block: 'center' }}); {t}.canvas.focus({{ preventScroll: true }})"));
    let whole = length();
    page.key("w");
    assert!(length() < whole * 0.9);
    let zoomed = view();
    page.key("d");
    assert!(view().0 > zoomed.0 && (length() - (zoomed.1 - zoomed.0)).abs() < 1e-3 * whole);
    page.key("a");
    assert!((view().0 - zoomed.0).abs() < 1e-3 * whole);
    page.key("s");
    assert!((length() - whole).abs() < 1e-3 * whole);
    // The wheel zooms where the pointer is: the time there stays.
    let left = page.number(&format!("{t}.canvas.getBoundingClientRect().left"));
    let top = page.number(&format!("{t}.canvas.getBoundingClientRect().top"));
    let at = (left + 500.0, top + 60.0);
    let before = page.number(&format!("{t}.time(500)"));
    page.mouse("mouseMoved", at, 0.0);
    page.mouse("mouseWheel", at, -400.0);
    page.until(&format!("{t}.view.t1 - {t}.view.t0 < {}", whole * 0.9));
    assert!((page.number(&format!("{t}.time(500)")) - before).abs() < 1e-6 * whole);
    // Dragging to the right shows earlier times.
    let start = view().0;
    page.mouse("mousePressed", at, 0.0);
    page.mouse("mouseMoved", (at.0 + 80.0, at.1), 0.0);
    page.mouse("mouseReleased", (at.0 + 80.0, at.1), 0.0);
    assert!(view().0 < start);
    page.key("0");
    assert!((length() - whole).abs() < 1e-3 * whole);
    assert_eq!(page.errors(), Vec::<Value>::new());
}

#[test]
fn the_timeline_agrees_with_the_record() {
    let Some(page) = browser() else { return };
    for (number, name) in ["run.json", "marks.json"].into_iter().enumerate() {
        let record = json(&PAGES.read(name));
        let outcome = &record["runs"][0]["outcome"];
        let t = timeline(number);
        let nanos = |picos: &Value| picos.as_f64().unwrap() / 1000.0;
        let quantum = page.number(&format!("{t}.data.head.quantum_ns"));
        let mut lane = 0;
        let mut acquisitions = 0.0;
        for domain in outcome["domains"].as_array().unwrap() {
            for vcpu in domain["vcpus"].as_array().unwrap() {
                // The time of each style in the row of runstates: running (0) and spinning (1), preempted (2), asleep (3).
                let time = |style: &str| {
                    page.number(&format!(
                        "(() => {{ const r = {t}.data.vcpuLanes[{lane}].rows[0]; let sum = 0; \
                         for (let i = 0; i < r.length; i++) if ({style}.includes(r.style[i])) sum += r.end[i] - r.start[i]; \
                         return sum; }})()"
                    )) * quantum
                };
                let pieces = page.number(&format!("{t}.data.vcpuLanes[{lane}].rows[0].length"));
                // No moment says that a vCPU comes up, so its wait for its first pCPU is not drawn.
                let begins = page.number(&format!("{t}.data.start[{t}.data.states[{lane}][0]]"));
                let undrawn = begins * quantum - nanos(&vcpu["offline"]);
                let near = |shown: f64, recorded: &Value, what: &str| {
                    let undrawn = if what == "runnable" { undrawn } else { 0.0 };
                    let error = (shown + undrawn - nanos(recorded)).abs();
                    assert!(
                        error <= quantum * (pieces + 1.0),
                        "{name} lane {lane} {what}: {shown} {recorded}"
                    );
                };
                near(time("[0, 1]"), &vcpu["running"], "running");
                near(time("[2]"), &vcpu["runnable"], "runnable");
                near(time("[3]"), &vcpu["blocked"], "blocked");
                lane += 1;
            }
            for lock in domain["locks"].as_array().unwrap() {
                acquisitions += lock["acquisitions"].as_f64().unwrap();
            }
        }
        // Every acquisition of a guest is a hold. (Locks of the host's noise are held too, and are in no outcome.)
        let holds = page.number(&format!(
            "{t}.data.byLock.filter(l => !l.name.startsWith('noise')).reduce((n, l) => n + l.holds.length, 0)"
        ));
        assert!(
            (holds - acquisitions).abs() <= 2.0,
            "{name}: {holds} holds, {acquisitions} acquisitions"
        );
    }
    // Every kind of mark that the host and the locks of the second run make.
    let kinds = page
        .value("[...new Set(overspin.timelines[1].data.marksOf.flat().map(m => m.kind))].sort()");
    for kind in [0, 1, 2, 3] {
        assert!(kinds.as_array().unwrap().contains(&kind.into()), "kind {kind}: {kinds}");
    }
}

/// The five longest waits of a single run in its timeline, beside the record and the words of `explain`.
fn chains_agree(page: &Chromium, t: &str, record: &Value, story: &str) {
    let waits = record["runs"][0]["outcome"]["worst_waits"].as_array().unwrap().clone();
    page.value(&format!("{t}.canvas.focus()"));
    let causes = [
        "holder_running",
        "holder_preempted",
        "next_preempted",
        "kick_wake",
        "own_preemption",
        "line_transfer",
        "holder_preempted_by_guest",
        "next_preempted_by_guest",
        "holder_throttled",
        "next_throttled",
    ];
    for (i, wait) in waits.iter().take(5).enumerate() {
        page.key("n");
        let title = page.text(&format!("{t}.details.querySelector('.chain-title').textContent"));
        // `1. guest/v3 waited 190.250 ms for lock 0: ...`, in the page with the guest before the lock.
        let line = story.split(&format!("\n{}. ", i + 1)).nth(1).unwrap();
        let (who, rest) = line.split_once(" waited ").unwrap();
        let millis: f64 = rest.split(" ms").next().unwrap().parse().unwrap();
        let shown: f64 =
            title.split(" waited ").nth(1).unwrap().split(" ms").next().unwrap().parse().unwrap();
        assert!(title.starts_with(&format!("{who} waited ")), "{title}\n{line}");
        assert!((shown - millis).abs() < 0.002, "{title}\n{line}");
        // The page finds the causes from its slices; the simulator kept them while it ran.
        let time = wait["time"].as_f64().unwrap();
        let found = page.value(&format!("{t}.causesOf({t}.selected.slice)"));
        for (cause, found) in causes.iter().zip(found.as_array().unwrap()) {
            // A record leaves out the causes of user mode where there are none.
            let kept = wait["causes"][cause].as_f64().unwrap_or(0.0) / time;
            assert!(
                (found.as_f64().unwrap() - kept).abs() < 0.01,
                "{title}\n{cause}: {found}, kept {kept}"
            );
        }
    }
}

#[test]
fn a_wait_tells_its_chain_as_explain_does() {
    let Some(page) = browser() else { return };
    let t = timeline(0);
    let (story, _) = PAGES.fine(&["explain", "run.json"]);
    chains_agree(&page, &t, &json(&PAGES.read("run.json")), &story);
    // The longest wait, whose main cause is a preempted next waiter, names it and the decision.
    page.value(&format!("{t}.place = -1; {t}.nextWait(1)"));
    let chain = page.text(&format!("{t}.details.querySelector('.chain').innerText"));
    assert!(chain.contains("the lock is free and kept for guest/v"), "{chain}");
    assert!(chain.contains(" came on pCPU ") && chain.contains(": end of slice"), "{chain}");

    // A click on the wait selects it again.
    let slice = page.number(&format!("{t}.selected.slice"));
    page.key("Escape");
    assert_eq!(page.value(&format!("{t}.selected")), Value::Null);
    page.value(&format!("{t}.canvas.scrollIntoView({{ block: 'center' }})"));
    let place = |axis: &str, what: &str| {
        page.number(&format!("{t}.canvas.getBoundingClientRect().{axis}")) + page.number(what)
    };
    let x = place("left", &format!("{t}.x(({t}.data.start[{slice}] + {t}.data.end[{slice}]) / 2)"));
    let lane =
        format!("{t}.lanes.find(l => l.lane === {t}.data.vcpuLanes[{t}.data.vcpu[{slice}]])");
    let y = place("top", &format!("{lane}.rows[1].y - {t}.scroller.scrollTop + 4"));
    page.click((x, y));
    assert_eq!(page.number(&format!("{t}.selected.slice")), slice);
    assert_eq!(page.errors(), Vec::<Value>::new());
}

#[test]
fn tasks_that_take_locks_have_lanes_and_chains_of_their_own() {
    let Some(page) = Chromium::start() else { return skip("no chromium") };
    let pages = overspin();
    // Four threads on two vCPUs, which share two pCPUs with a hog: both levels preempt.
    let text = "name = \"user\"\nlimit = \"200ms\"\nwarmup = \"0\"\n[host]\ncores = 2\nscheduler = \"eevdf-6.18\"\n\
        [[domain]]\nname = \"guest\"\nvcpus = 2\nlock = \"ticket\"\nkernel = { scheduler = \"eevdf\", preemption = \"full\" }\n\
        workload = { kind = \"lock-loop\", mode = \"user\", threads = 4, section = \"5us\", outside = \"20us\" }\n\
        [[domain]]\nname = \"hog\"\nvcpus = 1\nlock = \"ticket\"\nworkload = { kind = \"burn-wait\" }\n";
    pages.write("user.toml", text);
    pages.fine(&["run", "user.toml", "--json", "user.json"]);
    pages.fine(&["report", "user.json", "-o", "user.html"]);
    let (story, _) = pages.fine(&["explain", "user.json"]);
    page.open(&pages.path("user.html"));
    let t = timeline(0);
    let tasks =
        format!("{t}.data.vcpuLanes.filter(l => l.group === 'tasks').map(l => l.name).join(' ')");
    assert_eq!(page.text(&tasks), "guest/loop0 guest/loop1 guest/loop2 guest/loop3");
    let record = json(&pages.read("user.json"));
    chains_agree(&page, &t, &record, &story);
    // A pCPU runs one vCPU at a time, and tasks do not stand in its lane once more.
    let busy = format!(
        "{t}.data.pcpuLanes.every(l => {{ const r = l.rows[0]; for (let i = 1; i < r.length; i++) \
         if (r.start[i] < r.end[i - 1]) return false; return r.length > 0; }})"
    );
    assert_eq!(page.value(&busy), true);
    let chain = page.text(&format!("{t}.details.querySelector('.chain').innerText"));
    assert!(chain.contains("is off its vCPU") || chain.contains("is off its own vCPU"), "{chain}");
    assert!(chain.contains("the guest runs another task"), "{chain}");
    assert_eq!(page.errors(), Vec::<Value>::new());
}

#[test]
fn search_finds_slices_marks_and_times() {
    let Some(page) = browser() else { return };
    let t = timeline(1);
    page.value(&format!("{t}.canvas.focus()"));
    page.key("/");
    assert_eq!(page.value(&format!("document.activeElement === {t}.search")), true);
    let search = |text: &str| {
        page.value(&format!("{t}.search.value = {text:?}; {t}.search.focus()"));
        page.key("Enter");
    };
    search("spinners/v1 exit");
    assert_eq!(page.number(&format!("{t}.selected.mark.kind")), 3.0);
    let first = page.number(&format!("{t}.selected.start"));
    page.key("Enter");
    assert!(page.number(&format!("{t}.selected.start")) > first, "Enter goes on");
    search("kick");
    assert_eq!(page.number(&format!("{t}.selected.mark.kind")), 0.0);
    search("spinners/v2 preempted");
    assert_eq!(page.number(&format!("{t}.data.kind[{t}.selected.slice]")), 1.0);
    assert_eq!(page.number(&format!("{t}.selected.lane.vcpu")), 4.0);
    search("120 ms");
    let middle = page.number(&format!("{t}.data.ns(({t}.view.t0 + {t}.view.t1) / 2)"));
    assert!((middle - 120e6).abs() < 1e6, "{middle}");
    search("nothing of that name");
    assert_eq!(page.text(&format!("{t}.found.textContent")), "nothing found");
    page.key("Escape");
    assert_eq!(page.value(&format!("document.activeElement === {t}.canvas")), true);
    assert_eq!(page.errors(), Vec::<Value>::new());
}

/// Largest permitted mean difference of a picture's channels, of 255, and of a block of an eighth of its width.
const MEAN: f64 = 6.0;
const BLOCK: f64 = 40.0;

#[test]
fn pictures_look_as_they_did() {
    let Some(page) = browser() else { return };
    // Fonts differ between machines, so text is left out.
    page.value(
        "(() => { const s = document.createElement('style'); \
         s.textContent = 'text { fill: transparent !important } .timeline .scroller { width: 1200px }'; \
         document.head.append(s); for (const t of overspin.timelines) { t.textless = true; t.resize(); } })()",
    );
    let frame =
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))";
    let mut wrong = Vec::new();
    let mut look = |name: &str, selector: &str| {
        page.value(frame);
        compare(&page, name, &page.picture(selector, 0.5), &mut wrong);
    };
    look("whole", "#timeline-0 canvas");
    page.value("overspin.timelines[0].nextWait(1)");
    look("worst-wait", "#timeline-0 canvas");
    page.value("overspin.timelines[1].show(overspin.timelines[1].data.head.length * 0.45, overspin.timelines[1].data.head.length * 0.5)");
    look("marks", "#timeline-1 canvas");
    look("waits", "#waits-0 svg.chart");
    look("states", "#states-1 svg.chart");
    look("histogram", "#histograms-0 svg.chart");
    page.value("document.getElementById('theme').click()");
    look("dark", "#timeline-1 canvas");
    assert!(
        wrong.is_empty(),
        "{wrong:#?}\nIf this is right, look at the new pictures after UPDATE_EXPECT=1."
    );
}

/// Compares a picture with the one that is kept, or keeps it. The browser decodes both.
fn compare(page: &Chromium, name: &str, taken: &str, wrong: &mut Vec<String>) {
    let kept = root().join(format!("crates/cli/tests/main/browser/{name}.png"));
    let Some(kept) = expected_bytes(&kept, &bytes(page, taken)) else { return };
    let kept: String = kept.iter().map(|b| format!("{b:02x}")).collect();
    let found = page.value(&format!(
        "(async () => {{
           const pixels = async (bytes) => {{
             const image = await createImageBitmap(new Blob([bytes]));
             const canvas = new OffscreenCanvas(64, 48);
             const context = canvas.getContext('2d');
             context.drawImage(image, 0, 0, 64, 48);
             return [context.getImageData(0, 0, 64, 48).data, image.width, image.height];
           }};
           const [a, w, h] = await pixels(Uint8Array.from(atob('{taken}'), c => c.charCodeAt(0)));
           const [b, w2, h2] = await pixels(Uint8Array.from('{kept}'.match(/../g), h => parseInt(h, 16)));
           let mean = 0; const blocks = new Array(48).fill(0);
           for (let i = 0; i < a.length; i++) {{
             const d = Math.abs(a[i] - b[i]); mean += d / a.length;
             const x = (i >> 2) % 64, y = Math.floor((i >> 2) / 64);
             blocks[Math.floor(y / 8) * 8 + (x >> 3)] += d / 256;
           }}
           return [mean, Math.max(...blocks), Math.abs(w - w2) + Math.abs(h - h2)];
         }})()"
    ));
    let [mean, block, size] = [0, 1, 2].map(|i| found[i].as_f64().unwrap());
    if mean > MEAN || block > BLOCK || size > 2.0 {
        wrong
            .push(format!("{name}: mean difference {mean:.1}, of a block {block:.1}, size {size}"));
    }
}

/// Base64 as bytes; the browser knows how.
fn bytes(page: &Chromium, base64: &str) -> Vec<u8> {
    let values = page.value(&format!("[...atob('{base64}')].map(c => c.charCodeAt(0))"));
    values.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u8).collect()
}

/// The size of a page with a million slices, and how many frames a second it draws. Run it on a quiet machine:
/// `cargo test --release -p overspin --test main -- browser --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn a_million_slices() {
    let Some(page) = Chromium::start() else { return skip("no chromium") };
    let overspin = overspin();
    let example = root().join("examples/ticket-overcommit.toml");
    let run = ["run", example.to_str().unwrap(), "--json", "run.json"];
    let many = [
        "--set",
        "host.cores=8",
        "--set",
        "domain.guest.vcpus=16",
        "--set",
        "limit=10s",
        "--set",
        "domain.guest.lock=lock-byte",
    ];
    overspin.fine(&[&run[..], &many[..]].concat());
    print!("{}", overspin.fine(&["report", "run.json", "-o", "page.html"]).0);
    let file = overspin.path("page.html");
    let size = fs::metadata(&file).unwrap().len() as f64;
    page.open(&file);
    let slices = page.number("overspin.timelines[0].data.count");
    let quantum = page.number("overspin.timelines[0].data.head.quantum_ns");
    println!(
        "{slices} slices, {:.2} MB, {:.2} bytes a slice, times in {quantum} ns",
        size / 1e6,
        size / slices
    );
    let found = page.value("overspin.timelines[0].measure(10)");
    println!(
        "{:.1} frames a second while zooming and panning; the longest took {:.1} ms to draw",
        found["fps"].as_f64().unwrap(),
        found["longest_ms"].as_f64().unwrap()
    );
    assert_eq!(page.errors(), Vec::<Value>::new());
}
