//! Text for programs that ask for it over HTTP, as Prometheus scrapes its targets.

use crate::http::{self, Gate, Reply, Request, Status};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The media type of Prometheus' text format.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page `/metrics`, on the loopback interface only. It lives as long as the process.
#[derive(Clone, Debug)]
pub struct Scrape {
    port: u16,
    text: Arc<Mutex<String>>,
}

impl Scrape {
    /// Begins to listen; port 0 is any that is free.
    ///
    /// # Errors
    /// If the port cannot be had, or no thread.
    pub fn open(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        let this = Self { port, text: Arc::default() };
        let server = this.clone();
        thread::Builder::new().name("scrape".into()).spawn(move || {
            http::answer_all(&listener, &Gate::default(), &|| false, &|request, _| {
                server.reply(request)
            });
        })?;
        Ok(this)
    }

    /// The address to scrape.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/metrics", self.port)
    }

    /// Replaces the text.
    pub fn set(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn reply(&self, request: &Request) -> Reply {
        if request.method != "GET" {
            return Reply::bare(Status::Method);
        }
        if !request.is_for(self.port) {
            return Reply::bare(Status::Forbidden);
        }
        if request.path != "/metrics" {
            return Reply::bare(Status::NotFound);
        }
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        Reply::of(KIND, text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    #[test]
    fn it_answers_one_address_of_this_machine() {
        let scrape = Scrape::open(0).unwrap();
        scrape.set("overspin_x 1\n".into());
        let reply = |method: &str, host: &str, path: &str| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, scrape.port)).unwrap();
            let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}:{}\r\n\r\n", scrape.port);
            stream.write_all(head.as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        let good = reply("GET", "127.0.0.1", "/metrics");
        assert!(good.starts_with("HTTP/1.1 200 ") && good.ends_with("overspin_x 1\n"), "{good}");
        for (method, host, path, status) in [
            ("POST", "localhost", "/metrics", "405"),
            ("GET", "evil.example", "/metrics", "403"),
            ("GET", "localhost", "/", "404"),
        ] {
            assert_eq!(&reply(method, host, path)[9..12], status, "{method} {host} {path}");
        }
        assert!(Scrape::open(scrape.port).is_err(), "the port is taken");
    }
}
