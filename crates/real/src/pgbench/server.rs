//! A throw-away PostgreSQL server: its data are in a scratch folder, it listens on a socket there and on no network,
//! and both are gone at the end. It does not wait for the disk (`fsync = off`): a crash would cost data that nobody
//! wants.

use crate::preload::{self, Locks, NONE};
use crate::program::{self, Running};
use crate::scratch::Scratch;
use crate::{Cancel, Failed};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest path of a socket that Linux accepts.
const LONGEST_SOCKET: usize = 107;
/// The name of the socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";
/// Settings of the caller that must not reach our server.
const FOREIGN: [&str; 8] =
    ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS", "PGSERVICE", "PGPASSFILE"];

/// Where the programs are, and the user that runs the server.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    dir: PathBuf,
    /// Numbers of the user and the group, if we are root: PostgreSQL refuses to run as root.
    user: Option<(u32, u32)>,
}

/// The numbers of a user and its group; `None` if there is none of this name.
fn user_of(name: &str) -> Option<(u32, u32)> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [found, _, uid, gid, ..] = fields[..] else { return None };
        (found == name).then(|| Some((uid.parse().ok()?, gid.parse().ok()?)))?
    })
}

fn is_root() -> bool {
    // SAFETY: it only asks.
    unsafe { libc::geteuid() == 0 }
}

/// The folder of the newest version that Debian has installed.
fn debians() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let number = |path: &PathBuf| {
        let version = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        version.parse::<u32>().unwrap_or(0)
    };
    Some(versions.map(|v| v.path()).max_by_key(number)?.join("bin"))
}

impl Programs {
    pub(super) fn find(user: Option<&str>) -> Result<Self, Failed> {
        let asked = Command::new("pg_config").arg("--bindir").output().ok();
        let asked = asked.map(|o| PathBuf::from(String::from_utf8_lossy(&o.stdout).trim()));
        let whole = |dir: &PathBuf| dir.join("initdb").is_file() && dir.join("pgbench").is_file();
        let found = asked.filter(whole).or_else(|| debians().filter(whole));
        let dir = found.ok_or_else(|| {
            Failed::needs(
                "there is no PostgreSQL server with pgbench",
                "install it, for example with `apt-get install postgresql`; `pg_config --bindir` tells its place, \
                 or it is in /usr/lib/postgresql",
            )
        })?;
        Ok(Self { dir, user: Self::user(user)? })
    }

    fn user(asked: Option<&str>) -> Result<Option<(u32, u32)>, Failed> {
        match (is_root(), asked) {
            (false, None) => Ok(None),
            (false, Some(_)) => {
                let cause = "only root can run the server as another user";
                Err(Failed::usage(cause, "leave out --user: the server runs as you"))
            }
            (true, Some(name)) => match user_of(name) {
                Some((0, _)) => {
                    let cause = "PostgreSQL refuses to run as root";
                    Err(Failed::usage(cause, "name an unprivileged user with --user"))
                }
                Some(user) => Ok(Some(user)),
                None => {
                    let cause = format!("there is no user `{name}`");
                    Err(Failed::usage(cause, "name a user of /etc/passwd"))
                }
            },
            (true, None) => match user_of("postgres").or_else(|| user_of("nobody")) {
                Some(user) => Ok(Some(user)),
                None => Err(Failed::needs(
                    "PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody`",
                    "name an unprivileged user with --user",
                )),
            },
        }
    }

    /// The version, as the server tells it.
    pub(super) fn version(&self) -> String {
        let said = Command::new(self.dir.join("postgres")).arg("--version").output();
        said.map_or_else(
            |_| "PostgreSQL".into(),
            |o| String::from_utf8_lossy(&o.stdout).trim().to_owned(),
        )
    }

    /// A program that runs as the server's user.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.dir.join(name));
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        for name in FOREIGN {
            command.env_remove(name);
        }
        command
    }

    /// A new folder that belongs to the server's user.
    fn folder(&self, path: &Path) -> Result<(), Failed> {
        std::fs::create_dir(path).map_err(|e| Failed::io("make", path, &e))?;
        let Some((uid, gid)) = self.user else { return Ok(()) };
        std::os::unix::fs::chown(path, Some(uid), Some(gid))
            .map_err(|e| Failed::io("give to the server's user", path, &e))
    }
}

/// What all servers of a measurement have in common.
#[derive(Debug)]
pub(super) struct Setup<'a> {
    pub(super) programs: &'a Programs,
    pub(super) locks: &'a Locks,
    pub(super) scratch: &'a Arc<Scratch>,
    pub(super) buffers: &'a str,
    pub(super) scale: u32,
    pub(super) most_clients: u32,
}

/// A server that runs; it is stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Server {
    folder: PathBuf,
    variant: String,
    process: Running,
}

impl Setup<'_> {
    /// A server with its data, which has the lock of `variant`; and how often it and pgbench took a pthread mutex
    /// through that lock while the data were loaded and a second of transactions ran.
    pub(super) fn server(&self, variant: &str, cancel: Cancel) -> Result<(Server, u64), Failed> {
        let folder = self.scratch.path().join(if variant.is_empty() { NONE } else { variant });
        if folder.join(SOCKET).as_os_str().len() > LONGEST_SOCKET {
            let cause = format!("the path of a socket in `{}` is too long", folder.display());
            return Err(Failed::usage(cause, "choose a shorter path with --scratch"));
        }
        self.programs.folder(&folder)?;
        let mut initdb = self.programs.program("initdb");
        initdb.args(["-U", "postgres", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"]);
        initdb.arg("-D").arg(folder.join("data")).current_dir(&folder);
        program::run(initdb, self.scratch, cancel)?;
        // Counting costs a little, so the server that is measured does not count.
        let mut server = self.start(&folder, variant, true, cancel)?;
        let mut counted = 0;
        for arguments in
            [&["-i", "-q", "-s", &self.scale.to_string()][..], &["-n", "-S", "-T", "1"]]
        {
            let mut client = server.client(self.programs, "pgbench");
            self.locks.apply_counting(variant, &mut client)?;
            client.args(arguments).arg("postgres");
            counted += preload::acquisitions(&program::run(client, self.scratch, cancel)?.stderr);
        }
        server.process.stop();
        counted += preload::acquisitions(&server.process.texts()[1]);
        Ok((self.start(&folder, variant, false, cancel)?, counted))
    }

    /// Starts the server, and waits until it answers.
    fn start(
        &self,
        folder: &Path,
        variant: &str,
        counting: bool,
        cancel: Cancel,
    ) -> Result<Server, Failed> {
        let mut command = self.programs.program("postgres");
        command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).current_dir(folder);
        for setting in [
            "listen_addresses=",
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "autovacuum=off",
            "max_wal_size=8GB",
            "checkpoint_timeout=1d",
            &format!("shared_buffers={}", self.buffers),
            &format!("max_connections={}", self.most_clients + 10),
        ] {
            command.arg("-c").arg(setting);
        }
        match counting {
            true => self.locks.apply_counting(variant, &mut command)?,
            false => self.locks.apply(variant, &mut command)?,
        }
        let process = program::start(command, self.scratch)?;
        let server = Server { folder: folder.into(), variant: variant.into(), process };
        server.answers(self, cancel)
    }
}

impl Server {
    /// The server, as soon as it answers.
    fn answers(mut self, setup: &Setup<'_>, cancel: Cancel) -> Result<Self, Failed> {
        let began = Instant::now();
        loop {
            if cancel() {
                return Err(Failed::Stopped);
            }
            if self.process.is_over() {
                let early = Failed::needs("the server ended", "run the same command again");
                return Err(self.process.finish(cancel).err().unwrap_or(early));
            }
            let mut ready = self.client(setup.programs, "pg_isready");
            ready.arg("-q");
            if program::run(ready, setup.scratch, cancel).is_ok() {
                return Ok(self);
            }
            if began.elapsed() > PATIENCE {
                let [stdout, stderr] = self.process.texts();
                let said = program::last_words(&stdout, &stderr);
                let cause = format!("the server did not answer within a minute; {said}");
                return Err(Failed::needs(cause, "free some memory, or ask for smaller --buffers"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A program that talks to this server, without the server's lock.
    fn client(&self, programs: &Programs, name: &str) -> Command {
        let mut command = programs.program(name);
        command.arg("-h").arg(&self.folder).args(["-p", "5432", "-U", "postgres"]);
        command.current_dir(&self.folder);
        command
    }

    /// A pgbench for this server, with the same lock.
    pub(super) fn pgbench(&self, programs: &Programs, locks: &Locks) -> Result<Command, Failed> {
        let mut command = self.client(programs, "pgbench");
        locks.apply(&self.variant, &mut command)?;
        Ok(command)
    }

    /// Where it and its clients may write.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_by_name() {
        assert_eq!(user_of("root"), Some((0, 0)));
        assert_eq!(user_of("no-such-user"), None);
        if is_root() {
            assert!(Programs::user(Some("root")).unwrap_err().to_string().contains("root"));
            assert!(Programs::user(Some("no-such-user")).is_err());
            assert!(Programs::user(None).unwrap().is_some_and(|(uid, _)| uid != 0));
        } else {
            assert_eq!(Programs::user(None).unwrap(), None);
            assert!(Programs::user(Some("nobody")).is_err());
        }
    }
}
