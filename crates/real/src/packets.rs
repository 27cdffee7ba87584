//! Packets at a rate, as the load beside the tests of 2005: a `ping` with a chosen interval.
//!
//! Two threads have a network namespace each, and a virtual cable between them; nothing of it is visible to others, and
//! all of it ends with the threads. The sender sends ICMP echo requests by the clock; the kernel answers them in the
//! other namespace. All work for a packet and its answer is done on the sender's CPU: a timer's interrupt, a switch to
//! the sender, the way through both network stacks, and back. The sender has a real-time priority if it may, so that it
//! always preempts, as an interrupt would.
//!
//! The addresses are of a range that is kept for documentation (RFC 5737).

use crate::Failed;
use crate::program::need;
use overspin_native::bench::pin;
use overspin_native::measure::allowed_cpus;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const HERE: &str = "192.0.2.1/30";
const THERE: &str = "192.0.2.2/30";
const PEER: [u8; 4] = [192, 0, 2, 2];
/// The fastest rate that makes sense here, in packets a second.
pub const FASTEST: u32 = 1_000_000;
/// How long the first answer may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Traffic {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) seconds: f64,
}

/// Packets that are being sent.
#[derive(Debug)]
pub(crate) struct Packets {
    stop: Arc<AtomicBool>,
    sender: JoinHandle<Traffic>,
    /// Lives in the other namespace until this is dropped.
    _peer: mpsc::Sender<()>,
}

impl Packets {
    /// Sends `rate` packets a second from `cpu`, until it is stopped. The first answer has arrived then.
    pub(crate) fn start(rate: u32, cpu: usize) -> Result<Self, Failed> {
        need("ip", "makes the virtual cable", "iproute2")?;
        let (peer, peer_id) = peer()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let sender = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let socket = ours(peer_id, cpu).and_then(|()| socket());
                let answered = socket.and_then(|s| first_answer(&s).map(|()| s));
                match answered {
                    Ok(socket) => {
                        // If nobody listens, we are stopped at once.
                        let _ = ready.send(Ok(()));
                        send(&socket, rate, &stop)
                    }
                    Err(failed) => {
                        let _ = ready.send(Err(failed));
                        Traffic::default()
                    }
                }
            }
        });
        let lost = || Failed::needs("the sender of packets failed", "run the same command again");
        is_ready.recv().unwrap_or_else(|_| Err(lost()))?;
        Ok(Self { stop, sender, _peer: peer })
    }

    pub(crate) fn stop(self) -> Traffic {
        self.stop.store(true, Ordering::Relaxed);
        self.sender.join().unwrap_or_default()
    }
}

/// Moves the calling thread to a network of its own.
fn unshare() -> Result<(), Failed> {
    // SAFETY: it concerns only the network of the calling thread, which has no sockets.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
        return Ok(());
    }
    Err(Failed::needs(
        format!("cannot make a network namespace: {}", io::Error::last_os_error()),
        "run it as root (CAP_SYS_ADMIN), or without packets",
    ))
}

/// Runs `ip` in the network of the calling thread.
fn ip(arguments: &[&str]) -> Result<(), Failed> {
    let words = arguments.join(" ");
    let remedy = "check that the kernel has virtual cables (CONFIG_VETH), or run without packets";
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Failed::needs(format!("`ip {words}` failed: {said}"), remedy))
        }
        Err(e) => Err(Failed::needs(format!("cannot run `ip {words}`: {e}"), remedy)),
    }
}

/// The thread that owns the other end of the cable, and its number. It ends when its sender is dropped.
fn peer() -> Result<(mpsc::Sender<()>, i32), Failed> {
    let (alive, until) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        // SAFETY: it only asks for the number of the calling thread.
        let id = unsafe { libc::gettid() };
        let made = unshare().map(|()| id);
        let failed = made.is_err();
        // If nobody listens, `recv` ends at once.
        let _ = tell.send(made);
        if !failed {
            let _ = until.recv();
        }
    });
    let lost = || Failed::needs("a thread failed", "run the same command again");
    Ok((alive, told.recv().unwrap_or_else(|_| Err(lost()))?))
}

/// Makes the cable from the calling thread's new network to that of the thread `peer`, and stays on `cpu`.
fn ours(peer: i32, cpu: usize) -> Result<(), Failed> {
    unshare()?;
    let id = peer.to_string();
    ip(&["link", "add", "ours", "type", "veth", "peer", "name", "theirs", "netns", &id])?;
    ip(&["addr", "add", HERE, "dev", "ours"])?;
    ip(&["link", "set", "ours", "up"])?;
    let network = std::fs::File::open(format!("/proc/{}/task/{id}/ns/net", std::process::id()));
    let network = network
        .map_err(|e| Failed::needs(format!("cannot see the other network: {e}"), "mount /proc"))?;
    // The other end is set up from inside the other network, by a thread that joins it.
    let there = std::thread::spawn(move || {
        // SAFETY: it concerns only the network of the calling thread; the descriptor is open.
        if unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
            let cause = format!("cannot join the other network: {}", io::Error::last_os_error());
            return Err(Failed::needs(cause, "run it as root, or without packets"));
        }
        ip(&["addr", "add", THERE, "dev", "theirs"])?;
        ip(&["link", "set", "theirs", "up"])
    });
    there.join().unwrap_or_else(|_| Err(Failed::needs("a thread failed", "run it again")))?;
    stay_on(cpu)?;
    // SAFETY: the structure lives longer than the call; 0 is the calling thread. Without the priority, the sender may
    // have to wait for its turn; the achieved rate shows it.
    unsafe {
        let priority = libc::sched_param { sched_priority: 1 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
    Ok(())
}

/// Keeps the calling thread on a CPU.
pub(crate) fn stay_on(cpu: usize) -> Result<(), Failed> {
    pin(&[cpu]).map_err(|e| {
        Failed::needs(format!("cannot stay on CPU {cpu}: {e}"), "let this process use more CPUs")
    })
}

/// The CPU on which packets and their work meet: the first one that this process may use.
pub(crate) fn meeting_cpu() -> usize {
    allowed_cpus().ok().and_then(|cpus| cpus.first().copied()).unwrap_or(0)
}

/// A socket for echo requests to the other end, which never blocks.
fn socket() -> Result<OwnedFd, Failed> {
    let failed = |what: &str| {
        let cause = format!("cannot {what} a socket for ICMP: {}", io::Error::last_os_error());
        Failed::needs(cause, "run it as root (CAP_NET_RAW), or without packets")
    };
    // SAFETY: it makes a new descriptor.
    let fd = unsafe {
        libc::socket(
            libc::AF_INET,
            libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
            libc::IPPROTO_ICMP,
        )
    };
    if fd < 0 {
        return Err(failed("make"));
    }
    // SAFETY: it is ours and open.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: all zeros is a valid value.
    let mut to: libc::sockaddr_in = unsafe { zeroed() };
    to.sin_family = libc::AF_INET as libc::sa_family_t;
    to.sin_addr.s_addr = u32::from_ne_bytes(PEER);
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address lives longer than the call, and has this length.
    match unsafe { libc::connect(socket.as_raw_fd(), (&raw const to).cast(), length) } {
        0 => Ok(socket),
        _ => Err(failed("connect")),
    }
}

/// An echo request with 56 bytes of data, as `ping` sends it.
fn request(number: u16) -> [u8; 64] {
    let mut packet = [0; 64];
    packet[0] = 8;
    packet[6..8].copy_from_slice(&number.to_be_bytes());
    let words = packet.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet
}

fn send_one(socket: &OwnedFd, number: u64) -> bool {
    let packet = request(number as u16);
    // SAFETY: the packet lives longer than the call, and has this length.
    let sent = unsafe { libc::send(socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0) };
    sent == packet.len().cast_signed()
}

/// Counts the answers that have arrived.
fn answers(socket: &OwnedFd) -> u64 {
    let (mut packet, mut count) = ([0_u8; 128], 0);
    loop {
        // SAFETY: the kernel writes at most this many bytes.
        let got =
            unsafe { libc::recv(socket.as_raw_fd(), packet.as_mut_ptr().cast(), packet.len(), 0) };
        if got < 0 {
            return count;
        }
        // The IP header comes first; type 0 is an answer.
        let header = usize::from(packet[0] & 0xf) * 4;
        count += u64::from(got.cast_unsigned() > header && packet[header] == 0);
    }
}

/// Sends until something comes back: the two ends must first find each other.
fn first_answer(socket: &OwnedFd) -> Result<(), Failed> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        send_one(socket, 0);
        std::thread::sleep(Duration::from_millis(5));
        if answers(socket) > 0 {
            return Ok(());
        }
    }
    Err(Failed::needs(
        "no packet came back through the virtual cable",
        "check that no firewall rule of a new network namespace drops ICMP, or run without packets",
    ))
}

/// Sends at the rate; a sender that is late sends at once until it has caught up.
fn send(socket: &OwnedFd, rate: u32, stop: &AtomicBool) -> Traffic {
    let began = Instant::now();
    let mut traffic = Traffic::default();
    let mut due = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let at = Duration::from_nanos(due.saturating_mul(1_000_000_000) / u64::from(rate.max(1)));
        let wait = at.saturating_sub(began.elapsed());
        if !wait.is_zero() {
            // A slow rate must not keep the user waiting.
            std::thread::sleep(wait.min(Duration::from_millis(100)));
            if wait > Duration::from_millis(100) {
                continue;
            }
        }
        traffic.sent += u64::from(send_one(socket, due));
        traffic.answered += answers(socket);
        due += 1;
    }
    traffic.seconds = began.elapsed().as_secs_f64();
    // The last answers are on their way.
    std::thread::sleep(Duration::from_millis(2));
    traffic.answered += answers(socket);
    traffic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_checksum_of_rfc_792() {
        // 0x0800 + number; the complement of the sum, all other words being 0.
        assert_eq!(request(0)[..8], [8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
        assert_eq!(request(0x1234)[2..4], (!(0x0800_u16 + 0x1234)).to_be_bytes());
        // With a carry: 0x0800 + 0xffff = 0x107ff -> 0x0800.
        assert_eq!(request(0xffff)[2..4], (!0x0800_u16).to_be_bytes());
    }

    #[test]
    fn packets_are_sent_at_the_rate_and_answered() {
        let packets = match Packets::start(1000, meeting_cpu()) {
            Ok(packets) => packets,
            Err(failed) => {
                overspin_testing::skip(&failed.to_string());
                return;
            }
        };
        std::thread::sleep(Duration::from_millis(500));
        let traffic = packets.stop();
        assert!(traffic.sent > 100 && traffic.sent <= 1000, "{traffic:?}");
        assert!(traffic.answered * 10 >= traffic.sent * 9, "{traffic:?}");
    }
}
