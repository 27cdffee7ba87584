//! The dom0 of an emulated host: starts what `xl` needs, makes the runs of its orders, and switches the host off.

use crate::system;
use overspin_xl::{Message, Orders, Xl};
use rustix::system::{RebootCommand, reboot};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// Serial port of its own for messages: Xen writes on the first one.
const PORT: &str = "/dev/ttyS1";
const ORDERS: &str = "/orders.json";
/// Where the programs of Xen and their libraries are in this initramfs.
const PROGRAMS: &str = "/bin";
const LIBRARIES: (&str, &str) = ("LD_LIBRARY_PATH", "/lib");

pub(crate) fn main() {
    let port = Port(Mutex::new(File::options().write(true).open(PORT).ok()));
    if let Err(message) = work(&port) {
        port.send(&Message::Failed { job: None, message });
    }
    port.send(&Message::End);
    // The kernel panics if this process ends, and the host must not stay on.
    let _ = reboot(RebootCommand::PowerOff);
}

struct Port(Mutex<Option<File>>);

impl Port {
    fn send(&self, message: &Message) {
        let Ok(text) = serde_json::to_string(message) else { return };
        if let Ok(mut port) = self.0.lock()
            && let Some(port) = &mut *port
        {
            // There is nobody to tell about a failure.
            let _ = writeln!(port, "{text}")
                .and_then(|()| rustix::termios::tcdrain(&*port).map_err(Into::into));
        }
    }
}

fn work(port: &Port) -> Result<(), String> {
    for module in ["xen-evtchn", "xen-privcmd", "xenfs", "xen-gntdev", "xen-gntalloc"] {
        system::load_module(module, "")?;
    }
    system::mount_at("xenfs", "/proc/xen")?;
    system::mount_at("devpts", "/dev/pts")?;
    system::mount_at("tmpfs", "/run")?;
    for folder in ["/run/xenstored", "/run/xen", "/run/lock", "/tmp"] {
        fs::create_dir_all(folder).map_err(|e| format!("cannot make {folder}: {e}"))?;
    }
    start("xenstored", &["--priv-domid", "0"])?;
    // Without it, xl knows no pool.
    start("xen-init-dom0", &[])?;
    start("xenconsoled", &[])?;
    let xl = Xl::at(format!("{PROGRAMS}/xl")).with_variable(LIBRARIES.0, LIBRARIES.1);
    let xen = xl.version().map_err(|e| e.to_string())?;
    port.send(&Message::Up { xen });
    let text = fs::read_to_string(ORDERS).map_err(|e| format!("{ORDERS}: {e}"))?;
    let orders: Orders = serde_json::from_str(&text).map_err(|e| format!("{ORDERS}: {e}"))?;
    for (number, job) in orders.jobs.iter().enumerate() {
        let mut step = |step| port.send(&Message::Step { job: number, step });
        let (images, folder) = (&orders.images, Path::new("/tmp"));
        let made = match orders.watch {
            false => overspin_xl::run(&xl, job, images, folder, &mut step, &|| false)
                .map(|reports| Message::Done { job: number, reports }),
            true => overspin_xl::watch(&xl, job, images, folder, &mut step, &|| false)
                .map(|consoles| Message::Watched { job: number, consoles }),
        };
        port.send(&match made {
            Ok(message) => message,
            Err(error) => Message::Failed { job: Some(number), message: error.to_string() },
        });
    }
    Ok(())
}

/// Runs one of Xen's programs, which goes to the background if it is to stay.
fn start(program: &str, arguments: &[&str]) -> Result<(), String> {
    let status = Command::new(format!("{PROGRAMS}/{program}"))
        .args(arguments)
        .env(LIBRARIES.0, LIBRARIES.1)
        .status()
        .map_err(|e| format!("{program} cannot be started: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed: {status}")) }
}
