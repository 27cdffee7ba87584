//! Writes a reply, within a limit on its time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Real time for a whole reply, however slowly the client takes it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes that the client may still be sending when it gets its reply.
const LEFT: usize = 64 << 10;

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Fine,
    /// No HTTP, or no query of ours.
    Bad,
    /// Another token, host or origin.
    Forbidden,
    NotFound,
    /// Another method than GET.
    Method,
    TooSlow,
    /// It has a body.
    Body,
    /// The simulator refuses the setting.
    Refused,
    TooLong,
    /// Too many connections.
    Full,
    /// The client has gone: there is nobody to answer.
    Gone,
}

impl Status {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Fine => "200 OK",
            Self::Bad => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::Method => "405 Method Not Allowed",
            Self::TooSlow => "408 Request Timeout",
            Self::Body => "413 Content Too Large",
            Self::Refused => "422 Unprocessable Content",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::Full | Self::Gone => "503 Service Unavailable",
        }
    }
}

/// A reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    /// The media type.
    pub(crate) kind: &'static str,
    /// The name under which a browser saves it; `None`: the browser shows it.
    pub(crate) file: Option<String>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn of(kind: &'static str, body: String) -> Self {
        Self { status: Status::Fine, kind, file: None, body }
    }

    /// A reply without content.
    pub(crate) fn bare(status: Status) -> Self {
        let body = format!("{}\n", status.words());
        Self { status, ..Self::of("text/plain; charset=utf-8", body) }
    }

    fn head(&self) -> String {
        let Self { status, kind, body, .. } = self;
        let file = match &self.file {
            Some(name) => format!("Content-Disposition: attachment; filename=\"{name}\"\r\n"),
            None => String::new(),
        };
        let (status, length) = (status.words(), body.len());
        // The page takes its style and its script from its own address, and nothing from anywhere else; no other page can
        // read it or learn its address. Notebooks of this machine can frame it, if they know its address.
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{file}\
             Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors http://127.0.0.1:* http://localhost:*\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\
             Connection: close\r\n\r\n"
        )
    }
}

/// Writes a reply and ends the connection.
pub(crate) fn write(stream: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    for part in [reply.head().as_bytes(), reply.body.as_bytes()] {
        let mut rest = part;
        while !rest.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            stream.set_write_timeout(Some(left))?;
            match stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => rest = &rest[n..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    stream.shutdown(Shutdown::Write)?;
    // A connection that is closed before the client has sent everything is reset, and the reply may be lost.
    let mut left = LEFT;
    while left > 0 {
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        match stream.read(&mut [0; 4096]) {
            Ok(n) if n > 0 => left = left.saturating_sub(n),
            _ => break,
        }
    }
    Ok(())
}
