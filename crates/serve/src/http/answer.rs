//! Answers connections, each on a thread of its own.

use super::{Gate, Reply, Request, Status, read, write};
use crate::LOOK;
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Answers each connection by `reply`, until one comes after `is_over`. Returns when all have ended.
pub(crate) fn answer_all(
    listener: &TcpListener,
    gate: &Gate,
    is_over: &dyn Fn() -> bool,
    reply: &(dyn Fn(&Request, &TcpStream) -> Reply + Sync),
) {
    thread::scope(|scope| {
        for stream in listener.incoming() {
            if is_over() {
                break;
            }
            // With too many open files the next moment may be better.
            let Ok(stream) = stream else {
                thread::sleep(LOOK);
                continue;
            };
            // Without a thread the connection is closed.
            let _ = thread::Builder::new()
                .name("connection".into())
                .spawn_scoped(scope, move || answer(stream, gate, reply));
        }
    });
}

fn answer(
    mut stream: TcpStream,
    gate: &Gate,
    reply: &(dyn Fn(&Request, &TcpStream) -> Reply + Sync),
) {
    let Some(pass) = gate.admit(&stream) else {
        // Whoever it is may have gone.
        let _ = write(&mut stream, &Reply::bare(Status::Full));
        return;
    };
    let reply = match read(&mut stream) {
        Ok(request) if pass.is_served() => reply(&request, &stream),
        Ok(_) | Err(Status::Gone) => return,
        Err(status) => Reply::bare(status),
    };
    // The client may have gone.
    let _ = write(&mut stream, &reply);
}
