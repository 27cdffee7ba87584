//! The live page: a local server that runs scenarios in the simulator and shows them with the panels of the report page.
//!
//! It listens on the loopback interface only, and answers only requests with the token of the page's address. Requests choose among
//! what was named at the start, and turn controls; they name no paths, and run nothing but the simulator.
#![forbid(unsafe_code)]

mod compare;
mod controls;
mod file;
mod http;
mod kept;
mod lesson;
mod page;
mod problem;
mod query;
mod routes;
mod run;
mod scrape;
mod sources;
mod state;
mod token;
mod work;

use http::Gate;
use kept::Kept;
use problem::Problem;
use routes::Routes;
pub use scrape::Scrape;
use sources::Sources;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use token::Token;
use work::Desk;

/// How often the server looks whether it shall end.
const LOOK: Duration = Duration::from_millis(50);

/// How to serve.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port; 0 means any that is free.
    pub port: u16,
    /// Scenario files, experiments and records that the page offers besides those that come with the program.
    pub files: Vec<PathBuf>,
    /// Where results are kept that the user wants to keep, if anywhere.
    pub out: Option<PathBuf>,
    /// Real time after which a run is stopped.
    pub max_wall: Duration,
    /// Set by the user who ends the server.
    pub stop: &'static AtomicBool,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A file cannot be offered.
    #[error("{cause}")]
    File {
        /// Why.
        cause: String,
        /// What helps.
        remedy: String,
    },
    /// The port cannot be had, or there are no random numbers.
    #[error("cannot listen on port {port}: {cause}")]
    Listen {
        /// The port.
        port: u16,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    routes: Routes,
    stop: &'static AtomicBool,
}

impl Server {
    /// Begins to listen on the loopback interface.
    ///
    /// # Errors
    /// If a file cannot be read, or if the port cannot be had.
    pub fn open(settings: &Settings) -> Result<Self, ServeError> {
        let file =
            |problem: Problem| ServeError::File { cause: problem.cause, remedy: problem.remedy };
        let kept = settings.out.as_deref().map(Kept::new).transpose().map_err(file)?;
        let sources = Sources::new(&settings.files, kept).map_err(file)?;
        let listen = |cause| ServeError::Listen { port: settings.port, cause };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, settings.port)).map_err(listen)?;
        let port = listener.local_addr().map_err(listen)?.port();
        let token = Token::new().map_err(listen)?;
        let desk = Desk::new(settings.max_wall, settings.stop);
        Ok(Self { listener, routes: Routes { port, token, sources, desk }, stop: settings.stop })
    }

    /// The address of the page.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.routes.port, self.routes.token.as_str())
    }

    /// Serves until the user ends it. Runs that are under way are stopped then.
    pub fn serve(&self) {
        let gate = Gate::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !self.is_over() {
                    thread::sleep(LOOK);
                }
                gate.close();
                // Wakes the listener, which then looks.
                let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.routes.port));
            });
            http::answer_all(&self.listener, &gate, &|| self.is_over(), &|request, stream| {
                self.routes.reply(request, &|| has_gone(stream))
            });
        });
    }

    fn is_over(&self) -> bool {
        // The flag stands alone: no other memory depends on it.
        self.stop.load(Ordering::Relaxed)
    }
}

/// Whether the other end of a connection was closed.
fn has_gone(stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let gone = match stream.peek(&mut [0]) {
        Ok(n) => n == 0,
        Err(error) => {
            !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        }
    };
    gone || stream.set_nonblocking(false).is_err()
}
