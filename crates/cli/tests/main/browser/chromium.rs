//! Drives a headless Chromium over its debugging pipe: messages in JSON, each ended by a zero byte, on file descriptors
//! 3 and 4. A shell opens both on named pipes, so that no code here has to arrange descriptors.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time in which something on a page must become true. It is a limit against hanging only.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names of the program, in the order in which they are tried.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with one page.
pub struct Chromium {
    child: Child,
    to: RefCell<File>,
    from: RefCell<BufReader<File>>,
    next: RefCell<u64>,
    session: String,
    /// Events that arrived so far.
    events: RefCell<Vec<Value>>,
    _dir: tempfile::TempDir,
}

impl Chromium {
    /// Starts a browser with no network but this machine's own address; `None` if there is none on this machine.
    pub fn start() -> Option<Self> {
        let works = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
        let name = NAMES.iter().find(works)?;
        let dir = tempfile::tempdir().unwrap();
        let pipes = [dir.path().join("to"), dir.path().join("from")];
        assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
        let profile = format!("--user-data-dir={}", dir.path().join("profile").display());
        let child = Command::new("sh")
            .args(["-c", "to=$1 from=$2; shift 2; exec \"$@\" 3<\"$to\" 4>\"$from\"", "sh"])
            .args(&pipes)
            .args([
                name,
                "--headless",
                "--remote-debugging-pipe",
                // Containers and root have no sandbox to offer; the page is our own.
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                "--force-device-scale-factor=1",
                "--force-color-profile=srgb",
                "--hide-scrollbars",
                "--window-size=1280,900",
                &profile,
            ])
            // It is killed at the end, and would leave a folder there.
            .env("TMPDIR", dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Opening a named pipe waits for its other end, so the order is that of the shell.
        let to = OpenOptions::new().write(true).open(&pipes[0]).unwrap();
        let from = BufReader::new(File::open(&pipes[1]).unwrap());
        let mut browser = Self {
            child,
            to: to.into(),
            from: from.into(),
            next: 0.into(),
            session: String::new(),
            events: RefCell::default(),
            _dir: dir,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", target);
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method and returns its result.
    pub fn call(&self, method: &str, parameters: Value) -> Value {
        self.tried(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method and returns its result, or the browser's error.
    fn tried(&self, method: &str, parameters: Value) -> Result<Value, Value> {
        let id = *self.next.borrow() + 1;
        *self.next.borrow_mut() = id;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.borrow_mut().write_all(&bytes).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.borrow_mut().read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser has gone");
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == id {
                return match answer["error"].is_null() {
                    true => Ok(answer["result"].clone()),
                    false => Err(answer["error"].clone()),
                };
            }
            self.events.borrow_mut().push(answer);
        }
    }

    /// Opens a page of ours, and waits until its script has run.
    pub fn open(&self, page: &Path) {
        self.go(&format!("file://{}", page.display()));
    }

    /// The same for any address.
    pub fn go(&self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.until("document.documentElement?.dataset.ready === 'yes'");
    }

    /// The value of a JavaScript expression, which may be a promise.
    pub fn value(&self, expression: &str) -> Value {
        self.evaluated(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// The value of an expression, or the browser's error, which comes if the page is being left.
    fn evaluated(&self, expression: &str) -> Result<Value, Value> {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.tried("Runtime.evaluate", asked)?;
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        Ok(answer["result"]["value"].clone())
    }

    /// Does what leaves the page, such as a click on a link, and waits until the script of the next one has run.
    pub fn leave(&self, expression: &str) {
        // The page may be gone before its browser has said so.
        let _ = self.evaluated(&format!("window.isLeft = true; {expression}; 0"));
        self.until("!window.isLeft && document.documentElement?.dataset.ready === 'yes'");
    }

    /// The value of an expression that is a number.
    pub fn number(&self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
    }

    /// The value of an expression that is a text.
    pub fn text(&self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_else(|| panic!("{expression} is no text")).into()
    }

    /// Waits until an expression is true.
    pub fn until(&self, expression: &str) {
        let begin = Instant::now();
        while !self.evaluated(expression).is_ok_and(|value| value == true) {
            assert!(begin.elapsed() < PATIENCE, "{expression} never holds: {:?}", self.errors());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key.
    pub fn key(&self, key: &str) {
        let mut event = json!({ "type": "keyDown", "key": key });
        if key.chars().count() == 1 {
            event["text"] = key.into();
        } else if key == "Enter" {
            event["text"] = "\r".into();
        } else if key == "Tab" {
            // Without its number the focus stays where it is.
            event["windowsVirtualKeyCode"] = 9.into();
        }
        self.call("Input.dispatchKeyEvent", event);
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
    }

    /// Sends a mouse event: `mouseMoved`, `mousePressed`, `mouseReleased`, or `mouseWheel` with the turn.
    pub fn mouse(&self, kind: &str, (x, y): (f64, f64), turn: f64) {
        let button = if kind == "mouseMoved" || kind == "mouseWheel" { "none" } else { "left" };
        let event = json!({
            "type": kind, "x": x, "y": y, "button": button, "clickCount": 1, "deltaX": 0, "deltaY": turn,
        });
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Clicks.
    pub fn click(&self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, 0.0);
        self.mouse("mousePressed", at, 0.0);
        self.mouse("mouseReleased", at, 0.0);
    }

    /// A picture of an element, at a part of its size: PNG as base64.
    pub fn picture(&self, selector: &str, scale: f64) -> String {
        let rectangle = self.value(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView(); \
             const r = e.getBoundingClientRect(); \
             return {{ x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height }}; }})()"
        ));
        let mut clip = rectangle;
        clip["scale"] = scale.into();
        let asked = json!({ "format": "png", "clip": clip, "captureBeyondViewport": true });
        self.call("Page.captureScreenshot", asked)["data"].as_str().unwrap().to_owned()
    }

    /// What went wrong on the page: exceptions, errors of the console, and of the browser about the page.
    pub fn errors(&self) -> Vec<Value> {
        let is_error = |e: &&Value| match e["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                matches!(e["params"]["type"].as_str(), Some("error" | "warning"))
            }
            Some("Log.entryAdded") => {
                matches!(e["params"]["entry"]["level"].as_str(), Some("error" | "warning"))
            }
            _ => false,
        };
        self.events.borrow().iter().filter(is_error).cloned().collect()
    }

    /// The addresses that the page asked for.
    pub fn requests(&self) -> Vec<String> {
        let of = |e: &Value| {
            (e["method"] == "Network.requestWillBeSent")
                .then(|| e["params"]["request"]["url"].as_str().unwrap_or_default().to_owned())
        };
        self.events.borrow().iter().filter_map(of).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // The browser may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
