//! The live page's server as its clients see it.

// Clients that mean harm, over bare connections.
mod hostile;

use overspin_serve::{Server, Settings};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Ends a server when the test is over, even by a panic.
struct Stop(&'static AtomicBool);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The address of a server at work.
struct Place {
    host: String,
    token: String,
}

impl Place {
    /// A new connection.
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        // Only against hanging.
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// The head of a request that the page itself would make, for an address below its own.
    fn head(&self, path: &str) -> String {
        let Self { host, token } = self;
        format!("GET /{token}/{path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
    }

    /// The reply to these bytes; empty if the connection was closed without one.
    fn reply(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The server may refuse before it has all.
        let _ = stream.write_all(bytes);
        rest(&mut stream)
    }

    fn get(&self, path: &str) -> String {
        self.reply(self.head(path).as_bytes())
    }
}

/// What is still to be read; nothing after a reset.
fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The number of a reply.
fn status(reply: &str) -> &str {
    reply.strip_prefix("HTTP/1.1 ").map_or("none", |rest| &rest[..3])
}

/// A server that offers these files, for as long as `client` lasts.
fn served(files: Vec<PathBuf>, max_wall: Duration, client: impl FnOnce(&Place)) {
    let stop: &AtomicBool = Box::leak(Box::default());
    let server = Server::open(&Settings { port: 0, files, out: None, max_wall, stop }).unwrap();
    let address = server.address();
    let (host, token) = address["http://".len()..].trim_end_matches('/').split_once('/').unwrap();
    let place = Place { host: host.into(), token: token.into() };
    std::thread::scope(|scope| {
        let _stop = Stop(stop);
        scope.spawn(|| server.serve());
        client(&place);
    });
}
