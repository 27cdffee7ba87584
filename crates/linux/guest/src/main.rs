//! First process of a guest: it mounts what programs need, does what the host asks for, and says what came out.

mod dup;
mod modules;
mod program;
mod programs;
mod root;
#[path = "../../src/talk.rs"]
mod talk;
mod watch;
mod work;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use programs::Programs;
use rustix::system::RebootCommand;
use talk::{Ask, PORT, Say};
use watch::Watch;

fn main() {
    if let Err(error) = serve() {
        // The host sees it on the console.
        println!("overspin: {error}");
    }
    // The kernel panics if its first process ends; this ends the machine instead.
    rustix::fs::sync();
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
    loop {
        thread::park();
    }
}

fn serve() -> Result<(), String> {
    root::mount_usual("")?;
    modules::load();
    let port = port()?;
    let open = || File::options().read(true).write(true).open(&port);
    let hears = open().map_err(|e| format!("{}: {e}", port.display()))?;
    let mut host = Host(hears.try_clone().map_err(|e| e.to_string())?);
    host.say(&Say::Ready)?;
    let mut begun = Begun::default();
    for line in BufReader::new(hears).lines() {
        let line = line.map_err(|e| e.to_string())?;
        let ask = serde_json::from_str(&line).map_err(|e| format!("{e} in {line}"))?;
        if ask == Ask::Off {
            return Ok(());
        }
        if let Some(said) =
            answer(ask, &mut begun, &mut host).unwrap_or_else(|e| Some(Say::Failed(e)))
        {
            host.say(&said)?;
        }
    }
    Ok(())
}

/// What the host has begun, and not ended.
#[derive(Default)]
struct Begun {
    watch: Option<Watch>,
    programs: Option<Programs>,
}

/// Does it; nothing to say: the answer comes later.
fn answer(ask: Ask, begun: &mut Begun, host: &mut Host) -> Result<Option<Say>, String> {
    Ok(Some(match ask {
        Ask::Root(of) => root::enter(of).map(|()| Say::Done)?,
        Ask::Read(folder) => {
            root::read(&folder);
            Say::Done
        }
        Ask::Run { command, folder } => program::run(&command, &folder, host).map(Say::Ran)?,
        Ask::Dup { threads, seconds } => dup::run(threads, seconds).map(Say::Dups)?,
        Ask::Watch => {
            begun.watch = Some(Watch::begin());
            Say::Done
        }
        Ask::Watched => begun.watch.take().ok_or("nothing is watched")?.end().map(Say::Watched)?,
        Ask::Work(job) => work::tell(&job).map(|()| Say::Done)?,
        Ask::Programs { scenario, seed } => {
            begun.programs = Some(Programs::ready(&scenario, seed, host)?);
            Say::Done
        }
        Ask::Go => {
            match &mut begun.programs {
                Some(programs) => programs.go(),
                None => work::go(host)?,
            }
            return Ok(None);
        }
        Ask::Stop => {
            match &mut begun.programs {
                Some(programs) => programs.stop(),
                None => work::tell("stop")?,
            }
            return Ok(None);
        }
        Ask::Clock => Say::Clock(work::clock()),
        Ask::Notes => {
            let notes = work::notes()?;
            host.say(&Say::Bytes(notes.len() as u64))?;
            host.0.write_all(&notes).map_err(|e| format!("the host does not listen: {e}"))?;
            return Ok(None);
        }
        Ask::Off => Say::Done,
    }))
}

/// The host at the other end of the port.
struct Host(File);

impl Host {
    fn clone(&self) -> Result<Self, String> {
        self.0.try_clone().map(Self).map_err(|e| e.to_string())
    }

    fn say(&mut self, said: &Say) -> Result<(), String> {
        let mut line = serde_json::to_string(said).map_err(|e| e.to_string())?;
        line.push('\n');
        self.0.write_all(line.as_bytes()).map_err(|e| format!("the host does not listen: {e}"))
    }
}

/// The device of the port. Its driver may still look for it.
fn port() -> Result<PathBuf, String> {
    const TRIES: u32 = 100;
    for _ in 0..TRIES {
        for entry in fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten() {
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            if name.trim() == PORT {
                return Ok(PathBuf::from("/dev").join(entry.file_name()));
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(format!("there is no virtio port `{PORT}`"))
}
