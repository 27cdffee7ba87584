//! The command around the live page. What the server answers is tested in `crates/serve`, and the page in `browser/live.rs`.

use crate::{overspin, with_scenario};
use overspin_testing::{Ended, Program, signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

/// The command at work, with the address of its page.
pub struct Serving {
    child: Child,
    pub address: String,
}

impl Serving {
    pub fn start(program: &Program, args: &[&str]) -> Self {
        let mut child = program.start(&[&["serve"], args].concat());
        let mut line = String::new();
        let out = child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        Self { child, address: line.trim_end().to_owned() }
    }

    /// Ends it with a signal; returns what it wrote to standard error.
    pub fn end(self, name: &str) -> String {
        signal(&self.child, name);
        Ended::wait(self.child).with(0).1
    }

    /// The reply to a request for an address below that of the page.
    fn get(&self, path: &str) -> String {
        let rest = self.address.strip_prefix("http://").unwrap();
        let (host, base) = rest.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{base}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }
}

#[test]
fn it_prints_its_address_and_ends_with_a_signal() {
    for name in ["INT", "TERM", "HUP"] {
        let overspin = with_scenario();
        let serving = Serving::start(&overspin, &["s.toml", "--quiet"]);
        assert!(serving.address.starts_with("http://127.0.0.1:"), "{}", serving.address);
        let page = serving.get("");
        assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains(">s.toml</option>"), "{page}");
        let result = serving.get("run?scenario=s.toml");
        assert!(result.contains("overspin run s.toml"), "{result}");
        // A file is read again for each run.
        overspin.write("s.toml", "limit = 0");
        assert!(serving.get("run?scenario=s.toml").starts_with("HTTP/1.1 422"));
        assert_eq!(serving.end(name), "");
        assert_eq!(overspin.names(), ["s.toml"], "it leaves nothing");
    }
}

#[test]
fn a_run_under_way_ends_with_the_command() {
    let overspin = overspin();
    overspin.write("long.toml", overspin_testing::SCENARIO.replace("20ms", "24h"));
    let serving = Serving::start(&overspin, &["long.toml", "--max-wall", "1h"]);
    let reply = std::thread::scope(|scope| {
        let run = scope.spawn(|| serving.get("run?scenario=long.toml"));
        overspin_testing::until("the run begins", || {
            serving.get("progress").contains("\r\n\r\n0.")
        });
        signal(&serving.child, "INT");
        run.join().unwrap()
    });
    assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 503"), "{reply}");
    Ended::wait(serving.child).with(0);
}

#[test]
fn what_it_cannot_do_is_said_with_a_remedy() {
    let overspin = overspin();
    let error = overspin.fails(&["serve", "missing.toml"], 2);
    assert!(error.contains("missing.toml") && error.contains(" help: "), "{error}");
    let serving = Serving::start(&overspin, &[]);
    let port = serving.address["http://127.0.0.1:".len()..].split('/').next().unwrap().to_owned();
    let error = overspin.fails(&["serve", "--port", &port], 3);
    assert!(error.contains(&format!("port {port}")) && error.contains("--port"), "{error}");
    serving.end("INT");
}
