//! How many connections there are at a time. A crowd that says nothing cannot keep others out: at a full house the one that has
//! been silent for longest has to go.

use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most connections at a time. A page has three at most.
const MOST: usize = 32;

/// The connections that are open.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    next: u64,
    /// Oldest first.
    all: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    number: u64,
    /// Another handle of its stream.
    stream: TcpStream,
    /// Whether its request has been read, and is answered.
    is_served: bool,
}

/// A connection that was let in; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    gate: &'a Gate,
    number: u64,
}

impl Gate {
    /// Lets a connection in. `None` if as many requests as possible are being answered, or if the system has no more handles.
    pub(crate) fn admit(&self, stream: &TcpStream) -> Option<Pass<'_>> {
        let stream = stream.try_clone().ok()?;
        let mut inside = self.inside();
        if inside.all.len() >= MOST {
            let silent = inside.all.iter().position(|open| !open.is_served)?;
            close(&inside.all.remove(silent).stream);
        }
        let number = inside.next;
        inside.next += 1;
        inside.all.push(Open { number, stream, is_served: false });
        drop(inside);
        Some(Pass { gate: self, number })
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        self.inside().all.drain(..).for_each(|open| close(&open.stream));
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// From now on the connection is not closed in favour of others. `false` if it has been.
    pub(crate) fn is_served(&self) -> bool {
        let mut inside = self.gate.inside();
        let own = inside.all.iter_mut().find(|open| open.number == self.number);
        own.map(|open| open.is_served = true).is_some()
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.gate.inside().all.retain(|open| open.number != self.number);
    }
}

fn close(stream: &TcpStream) {
    // It may have gone by itself.
    let _ = stream.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn the_oldest_silent_connection_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gate = Gate::default();
        let mut clients = Vec::new();
        let mut enter = || {
            clients.push(TcpStream::connect(address).unwrap());
            gate.admit(&listener.accept().unwrap().0)
        };
        let served = enter().unwrap();
        assert!(served.is_served());
        let others: Vec<Pass<'_>> = (1..MOST).map(|_| enter().unwrap()).collect();
        let late = enter().expect("the second makes room");
        assert_eq!(clients[1].read(&mut [0]).unwrap(), 0, "it was closed");
        clients[0].set_nonblocking(true).unwrap();
        assert!(clients[0].read(&mut [0]).is_err(), "the first is still there");
        assert!(!others[0].is_served() && others[1..].iter().chain([&late]).all(Pass::is_served));
        let mut enter = || {
            clients.push(TcpStream::connect(address).unwrap());
            gate.admit(&listener.accept().unwrap().0)
        };
        assert!(enter().is_none(), "all others are being served");
        drop(late);
        assert!(enter().is_some());
    }
}
