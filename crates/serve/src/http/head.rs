//! Reads the head of a request, within limits on its size and its time.

use super::Status;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Most bytes of a head. An address with every control turned has less than a quarter of that.
const LONGEST: usize = 16 << 10;
/// Most header fields. Browsers send about fifteen.
const FIELDS: usize = 64;
/// Real time for the whole head, however slowly its bytes come.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the page reads of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// As it was sent: nothing is decoded, and no path names a file.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) host: Option<String>,
    pub(crate) origin: Option<String>,
}

impl Request {
    /// Whether it names this machine as browsers on it do. Another name for the loopback address would be one that another
    /// page's owner chose.
    pub(crate) fn is_for(&self, port: u16) -> bool {
        self.host.as_deref().is_some_and(|host| is_local(host, port))
    }
}

/// Whether a host is this machine's own, with this port.
pub(crate) fn is_local(host: &str, port: u16) -> bool {
    ["127.0.0.1", "localhost"].iter().any(|name| host == format!("{name}:{port}"))
}

/// Reads the head of a request.
pub(crate) fn read(stream: &mut TcpStream) -> Result<Request, Status> {
    let end = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Status::TooSlow);
        }
        let mut more = [0; 4096];
        let n = match stream.read(&mut more) {
            Ok(0) => return Err(Status::Gone),
            Ok(n) => n,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // With a timeout the system says either.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(Status::TooSlow);
            }
            Err(_) => return Err(Status::Gone),
        };
        bytes.extend_from_slice(&more[..n]);
        if let Some(request) = parse(&bytes)? {
            return Ok(request);
        }
        if bytes.len() > LONGEST {
            return Err(Status::TooLong);
        }
    }
}

/// The request that these bytes begin with; `None` if its head is not complete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Request>, Status> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Status::TooLong),
        Err(_) => return Err(Status::Bad),
    }
    let mut request =
        Request { method: head.method.unwrap_or_default().into(), ..Request::default() };
    let target = head.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    (request.path, request.query) = (path.into(), query.into());
    for field in head.headers.iter() {
        let value = || str::from_utf8(field.value).map(str::to_owned).map_err(|_| Status::Bad);
        // A field that comes twice could be read in two ways.
        let once = |known: &mut Option<String>| match known.replace(value()?) {
            None => Ok(()),
            Some(_) => Err(Status::Bad),
        };
        match field.name.to_ascii_lowercase().as_str() {
            "host" => once(&mut request.host)?,
            "origin" => once(&mut request.origin)?,
            "content-length" if field.value.trim_ascii() == b"0" => {}
            "content-length" | "transfer-encoding" => return Err(Status::Body),
            _ => {}
        }
    }
    Ok(Some(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_in_pieces() {
        let text = "GET /t/run?set=a HTTP/1.1\r\nHost: localhost:1\r\norigin: http://localhost:1\r\nX: y\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..end]), Ok(None), "{end}");
        }
        let expected = Request {
            method: "GET".into(),
            path: "/t/run".into(),
            query: "set=a".into(),
            host: Some("localhost:1".into()),
            origin: Some("http://localhost:1".into()),
        };
        assert_eq!(parse(text.as_bytes()), Ok(Some(expected)));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        let of = |fields: &str| parse(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes());
        assert_eq!(of("Host: a\r\nHost: b\r\n"), Err(Status::Bad));
        assert_eq!(of("Content-Length: 3\r\n"), Err(Status::Body));
        assert_eq!(of("Transfer-Encoding: chunked\r\n"), Err(Status::Body));
        assert_eq!(of(&"A: b\r\n".repeat(FIELDS + 1)), Err(Status::TooLong));
        assert_eq!(of("Host: \u{0}\r\n"), Err(Status::Bad));
        assert_eq!(parse(b"\x16\x03\x01 is no HTTP"), Err(Status::Bad));
        assert!(of("Content-Length: 0\r\n").unwrap().is_some());
    }
}
