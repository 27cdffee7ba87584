//! Real programs with and without the library give the same results. Each test prints a message if its
//! program is not installed (Debian: memcached, redis-server, sysbench).

use crate::common::{compile_with, finish, with_lock};
use overspin_testing::skip;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The plain mutex, two locks that do well with more threads than CPUs, and one that hands over in order.
const LOCKS: [Option<&str>; 4] = [None, Some("mutex"), Some("futex"), Some("malthusian")];

/// Returns the command for the program, with a lock if there is one. Prints a message and returns `None` if
/// it is not installed.
fn program(name: &str, lock: Option<&str>) -> Option<Command> {
    let installed = |folder: PathBuf| folder.join(name).is_file();
    if !env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(installed)) {
        skip(&format!("{name} is not installed"));
        return None;
    }
    let mut command = with_lock(Path::new(name), lock);
    if lock.is_some() {
        command.env("OVERSPIN_STATS", "1");
    }
    Some(command)
}

/// Returns the acquisitions in the statistics, which show that the library was at work.
fn acquisitions(told: &str) -> u64 {
    let sums = told.lines().find(|line| line.contains(" acquisitions, ")).expect(told);
    let words: Vec<&str> = sums.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "acquisitions,").unwrap();
    words[at - 1].parse().unwrap()
}

/// A server in its own folder, with a socket there. It is killed if the test fails.
struct Server {
    child: Option<Child>,
    folder: tempfile::TempDir,
}

impl Server {
    fn start(command: &mut Command, folder: tempfile::TempDir) -> Self {
        let told = fs::File::create(folder.path().join("told")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(told).spawn().unwrap();
        Self { child: Some(child), folder }
    }

    fn connect(&self) -> UnixStream {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match UnixStream::connect(self.folder.path().join("socket")) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                    return stream;
                }
                Err(error) => {
                    assert!(Instant::now() < deadline, "the server does not answer: {error}");
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    /// Asks it to end. Returns its standard error.
    fn stop(mut self) -> String {
        let mut child = self.child.take().unwrap();
        let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(killed.success());
        let deadline = Instant::now() + Duration::from_secs(20);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the server does not end");
            }
            thread::sleep(Duration::from_millis(10));
        }
        fs::read_to_string(self.folder.path().join("told")).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Each of some clients sends lines and expects lines: `(what to send, the number of lines that come, the
/// last)`.
fn talk(server: &Server, session: impl Fn(usize) -> Vec<(String, usize, String)> + Sync) {
    const CLIENTS: usize = 6;
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let session = &session;
            scope.spawn(move || {
                let mut stream = BufReader::new(server.connect());
                for (send, lines, expected) in session(client) {
                    stream.get_mut().write_all(send.as_bytes()).unwrap();
                    let mut line = String::new();
                    for _ in 0..lines {
                        line.clear();
                        stream.read_line(&mut line).unwrap();
                    }
                    assert_eq!(line.trim_end(), expected, "{send:?}");
                }
            });
        }
    });
}

#[test]
fn memcached_counts() {
    for lock in LOCKS {
        let Some(mut command) = program("memcached", lock) else { return };
        let folder = tempfile::tempdir().unwrap();
        command
            .arg("-s")
            .arg(folder.path().join("socket"))
            .args(["-t", "6", "-m", "16", "-u", "root"]);
        let server = Server::start(&mut command, folder);
        talk(&server, |client| {
            let key = format!("own{client}");
            let mut session = vec![
                ("add all 0 0 1\r\n0\r\nget own\r\n".into(), 2, "END".into()),
                (format!("set {key} 0 0 1\r\n0\r\n"), 1, "STORED".into()),
            ];
            for i in 1..=100 {
                session.push((format!("incr all 1 noreply\r\nincr {key} 1\r\n"), 1, i.to_string()));
            }
            session
        });
        let mut stream = server.connect();
        stream.write_all(b"get all\r\nquit\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.lines().nth(1).map(str::trim), Some("600"), "{lock:?}: {answer}");
        let told = server.stop();
        if lock.is_some() {
            assert!(acquisitions(&told) >= 1200, "one for each increment: {told}");
        }
    }
}

#[test]
fn redis_counts_with_io_threads() {
    for lock in LOCKS {
        let Some(mut command) = program("redis-server", lock) else { return };
        let folder = tempfile::tempdir().unwrap();
        command.args([
            "--port",
            "0",
            "--io-threads",
            "3",
            "--io-threads-do-reads",
            "yes",
            "--save",
            "",
        ]);
        command.arg("--unixsocket").arg(folder.path().join("socket"));
        command.arg("--dir").arg(folder.path());
        let server = Server::start(&mut command, folder);
        talk(&server, |client| {
            let mut session = Vec::new();
            for i in 1..=100 {
                session.push((format!("INCR all\r\nINCR own{client}\r\n"), 2, format!(":{i}")));
            }
            session
        });
        // A background save forks.
        let mut stream = BufReader::new(server.connect());
        stream.get_mut().write_all(b"GET all\r\nBGSAVE\r\n").unwrap();
        let lines: Vec<String> = stream.by_ref().lines().take(3).map(Result::unwrap).collect();
        assert_eq!(lines[1], "600", "{lock:?}");
        assert_eq!(lines[2], "+Background saving started");
        let saved = server.folder.path().join("dump.rdb");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !saved.is_file() {
            assert!(Instant::now() < deadline, "the forked child has not saved");
            thread::sleep(Duration::from_millis(10));
        }
        let told = server.stop();
        if lock.is_some() {
            assert!(acquisitions(&told) > 0, "{told}");
        }
    }
}

#[test]
fn sysbench_does_its_work() {
    for (test, options, expected) in [
        (
            "mutex",
            ["--mutex-num=4", "--mutex-locks=500", "--mutex-loops=10"],
            "total number of events:              4",
        ),
        (
            "threads",
            ["--events=200", "--thread-locks=2", "--thread-yields=5"],
            "total number of events:              200",
        ),
    ] {
        for lock in LOCKS {
            let Some(mut command) = program("sysbench", lock) else { return };
            let output = finish(command.arg("--threads=4").args(options).args([test, "run"]));
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && said.contains(expected), "{test} {lock:?}: {said}");
            if lock.is_some() {
                let told = String::from_utf8(output.stderr).unwrap();
                // Each of 4 threads 500 times; or 200 events of 5 acquisitions.
                assert!(acquisitions(&told) >= 1000, "{test}: {told}");
            }
        }
    }
}

#[test]
fn condition_variables_of_c_plus_plus() {
    let Some(binary) = compile_with("g++", "conditions.cpp", &["-std=c++17"]) else { return };
    for lock in LOCKS.into_iter().chain([Some("ticket")]) {
        let output = finish(&mut with_lock(&binary, lock));
        assert!(output.status.success(), "{lock:?}: {output:?}");
        assert_eq!(output.stdout, b"10200 visits, baton 200\n", "{lock:?}");
    }
}
