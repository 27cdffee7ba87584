//! Slow, huge, many; a wrong token, host or origin; paths and keys that nobody offered; runs without an end.

use crate::{rest, served, status};
use overspin_testing::{SCENARIO, until};
use std::io::Write;
use std::net::Shutdown;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn who_is_not_the_page_gets_nothing() {
    served(Vec::new(), LONG, |place| {
        let good = place.head("progress");
        assert_eq!(status(&place.reply(good.as_bytes())), "200");
        let other = if place.token.starts_with('0') { "1" } else { "0" };
        let wrong = format!("{other}{}", &place.token[1..]);
        for (from, to) in [
            (place.token.as_str(), wrong.as_str()),
            (place.token.as_str(), ""),
            (&place.host, "evil.example"),
            // Another name of this address, as a rebound DNS name would be.
            (&place.host, &place.host.replace("127.0.0.1", "rebound.example")),
            ("\r\n\r\n", "\r\nOrigin: http://evil.example\r\n\r\n"),
            ("\r\n\r\n", "\r\nOrigin: null\r\n\r\n"),
        ] {
            let reply = place.reply(good.replace(from, to).as_bytes());
            assert_eq!(status(&reply), "403", "{to}: {reply}");
            assert!(!reply.contains(&place.token), "{reply}");
        }
        for (from, to, expected) in [
            ("GET", "POST", "405"),
            ("GET", "OPTIONS", "405"),
            ("Host", "Ghost", "403"),
            ("HTTP/1.1", "HTTP/9", "400"),
            ("\r\n\r\n", "\r\nContent-Length: 4\r\n\r\nbody", "413"),
            ("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n", "413"),
        ] {
            let reply = place.reply(good.replace(from, to).as_bytes());
            assert_eq!(status(&reply), expected, "{to}: {reply}");
        }
        assert_eq!(status(&place.reply(b"\x16\x03\x01\x02\x00\x01\x00 a handshake")), "400");
    });
}

#[test]
fn it_is_reached_from_this_machine_only() {
    served(Vec::new(), LONG, |place| {
        assert!(place.host.starts_with("127.0.0.1:"), "{}", place.host);
        let port = place.host.rsplit(':').next().unwrap();
        // Another address of this machine, where nothing listens.
        assert!(std::net::TcpStream::connect(format!("127.0.0.2:{port}")).is_err());
    });
}

#[test]
fn no_request_names_a_path_or_a_key_that_is_not_offered() {
    let dir = tempfile::tempdir().unwrap();
    let (own, secret) = (dir.path().join("own.toml"), dir.path().join("secret.toml"));
    std::fs::write(&own, SCENARIO).unwrap();
    std::fs::write(&secret, "name = \"hidden words\"").unwrap();
    let (folder, secret) = (dir.path().display().to_string(), secret.display().to_string());
    served(vec![own.clone()], LONG, |place| {
        let own = own.display();
        assert_eq!(status(&place.get(&format!("run?scenario={own}"))), "200");
        for path in [
            "../secret.toml",
            "..%2fsecret.toml",
            "/etc/passwd",
            &secret,
            "page.css/../../x",
            "%00",
        ] {
            let reply = place.get(path);
            assert_eq!(status(&reply), "404", "{path}: {reply}");
        }
        for query in [
            format!("scenario={secret}"),
            format!("scenario={folder}/./own.toml"),
            "scenario=/etc/passwd".into(),
            "scenario=-".into(),
            format!("scenario={own}&set=host.machine={secret}"),
            format!("scenario={own}&set=host={{machine=\"{}\"}}", secret.replace('"', "")),
            format!("scenario={own}&set=domain.guest.workload={{kind=\"x\"}}"),
            format!("scenario={own}&set=host.cores=4096"),
            format!("scenario={own}&set=domain.guest.vcpus=65536"),
            format!("scenario={own}&vary=domain.guest.vcpus=1,2,3"),
            format!("scenario={own}&seeds=4000000000"),
            format!("scenario={own}&out=/tmp/x"),
            format!("scenario={own}&{}", "set=host.cores=1&".repeat(100)),
        ] {
            for what in ["run", "", "scenario.toml", "report.html"] {
                let reply =
                    place.get(&format!("{what}?{}", query.replace('"', "%22").replace(' ', "%20")));
                assert_eq!(status(&reply), "422", "{what}?{query}: {reply}");
                assert!(reply.contains("Remedy: ") && !reply.contains("hidden"), "{reply}");
            }
        }
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(names.len(), 2, "nothing was written");
    });
}

#[test]
fn a_huge_request_is_cut_off() {
    served(Vec::new(), LONG, |place| {
        let good = place.head("progress");
        let long = "x".repeat(1 << 20);
        for (from, to) in [
            ("progress", format!("progress?{long}")),
            ("\r\n\r\n", format!("\r\nX: {long}\r\n\r\n")),
            ("\r\n\r\n", format!("{}\r\n\r\n", "\r\nX: y".repeat(1000))),
        ] {
            let reply = place.reply(good.replace(from, &to).as_bytes());
            // It may be reset while it is still sending.
            assert!(["431", "none"].contains(&status(&reply)), "{reply}");
        }
        // A head without an end.
        let mut stream = place.connect();
        let begun = Instant::now();
        while stream.write_all(&[b'a'; 65536]).is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(100), "it still reads");
        }
        assert_eq!(status(&place.get("progress")), "200", "others are served");
    });
}

#[test]
fn a_slow_client_has_seconds_for_its_request() {
    served(Vec::new(), LONG, |place| {
        let begun = Instant::now();
        let mut silent = place.connect();
        let mut slow = place.connect();
        // A byte now and then buys no time.
        let sender = slow.try_clone().unwrap();
        let dripping = std::thread::spawn(move || {
            let mut sender = sender;
            let mut sent = 0;
            while sender.write_all(b"G").is_ok() && sent < 1000 {
                sent += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        assert_eq!(status(&place.get("progress")), "200", "others do not wait");
        assert_eq!(status(&rest(&mut silent)), "408");
        assert!(["408", "400", "none"].contains(&status(&rest(&mut slow))));
        assert!(begun.elapsed() >= Duration::from_secs(4), "an honest client has some seconds");
        assert!(begun.elapsed() < Duration::from_secs(60), "and not many");
        slow.shutdown(Shutdown::Both).ok();
        dripping.join().unwrap();
    });
}

#[test]
fn a_crowd_keeps_nobody_out() {
    served(Vec::new(), LONG, |place| {
        let mut crowd: Vec<_> = (0..300).map(|_| place.connect()).collect();
        for _ in 0..10 {
            assert_eq!(status(&place.get("progress")), "200");
        }
        // It made room before its time was over: then it would have been told so.
        assert_eq!(status(&rest(&mut crowd[0])), "none");
    });
}

#[test]
fn a_run_ends_at_its_limit_and_when_its_client_goes() {
    let dir = tempfile::tempdir().unwrap();
    let endless = dir.path().join("endless.toml");
    std::fs::write(&endless, SCENARIO.replace("20ms", "1000h")).unwrap();
    let run = format!("run?scenario={}", endless.display());
    served(vec![endless.clone()], Duration::from_millis(300), |place| {
        let begun = Instant::now();
        let reply = place.get(&run);
        assert_eq!(status(&reply), "200");
        assert!(reply.contains("The run was stopped at its limit, 0.3 s"), "{}", &reply[..2000]);
        assert!(begun.elapsed() < Duration::from_secs(60));
    });
    served(vec![endless], LONG, |place| {
        let is_idle = || place.get("progress").ends_with("\r\n\r\n");
        // Many clients that ask and go: one run at a time, and none that nobody waits for.
        for _ in 0..20 {
            let mut stream = place.connect();
            stream.write_all(place.head(&run).as_bytes()).unwrap();
            drop(stream);
        }
        let mut stream = place.connect();
        stream.write_all(place.head(&run).as_bytes()).unwrap();
        until("it is its turn", || !is_idle());
        drop(stream);
        until("the run is given up", is_idle);
        assert_eq!(status(&place.get("run?scenario=examples/ticket-overcommit.toml")), "200");
    });
}
