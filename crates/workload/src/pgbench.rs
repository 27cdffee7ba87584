//! Clients of a database that ask one small question after another, as `pgbench -S` does.
//!
//! Each client has its own process of the server. A few threads of pgbench serve all clients; each thread
//! serves the clients that were dealt to it. A thread takes the first answer that has come, and sends that
//! client's next question; without an answer it sleeps. The server's process sleeps until a question comes,
//! works, and sends the answer. So a transaction costs a wake-up and mostly a sleep on either side, and a few
//! acquisitions of global kernel locks, because every message enters the kernel.
//!
//! Times of single transactions vary uniformly. Each of the four ends of the two messages takes a quarter of
//! the kernel time, with locks as in [`Work`].
//!
//! Not modelled: the locks of the database itself, which sleep; disks (questions are answered from
//! memory); network cards (the sockets are local).

use crate::kernel_work::{KERNEL_LOCK, KernelLock, Work, distinct, names};
use crate::parameters::parameters;
use crate::queue::Queue;
use crate::{Env, Fault, Load, Mode, Program, Random, Semaphore, Start, WorkloadInfo};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use overspin_scenario::{Parameters, Picos};

parameters! {
    Pgbench: pub(crate) KEYS at "[domain.workload] with kind = \"pgbench\"",
    "Clients that ask a database, `pgbench -S -cN`: each has its own process of the server." {
        clients: u32 = integer(1, 10_000), Required, "N of `pgbench -cN`.";
        workers: u32 = integer(1, 10_000), Is("1"),
            "N of `pgbench -jN`: threads that the clients are dealt to, at most one per client.";
        transactions: u64 = integer(0, u64::MAX), Is("0"),
            "Transactions of each client; 0 means until the limit.";
        server: Picos = time(NS, LONGEST), Is("60us"), "Mean user CPU time of the server for a transaction.";
        client: Picos = time(NS, LONGEST), Is("15us"), "Mean user CPU time of pgbench for a transaction.";
        system: Picos = ANY, Is("40us"),
            "Mean kernel CPU time of a transaction, both sides, without waiting for locks.";
        locks: Vec<KernelLock> = Tables(&KERNEL_LOCK), Means("no locks"),
            "Kernel locks, one `[[domain.workload.locks]]` each.";
    }
}

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Pgbench>(
    "clients of a database: questions and answers between processes, and kernel locks",
    "PostgreSQL's pgbench -S; figures of March 2012",
    &KEYS,
);

impl Parameters for Pgbench {
    const KIND: &'static str = "pgbench";
}

/// Times of a transaction vary uniformly by this much around their mean.
const SPREAD_PERMILLE: u64 = 500;

/// A thread of pgbench, as the processes of the server see it.
struct Worker {
    /// One unit for each client in `answered`.
    answers: Semaphore,
    /// Clients whose answer has come and that have another question, first come first.
    answered: Queue,
}

impl Load for Pgbench {
    fn check(&self) -> Result<(), Fault> {
        distinct(&self.locks)
    }

    fn lock_names(&self) -> Vec<String> {
        names(&self.locks)
    }

    fn is_endless(&self) -> bool {
        self.transactions == 0
    }

    /// Threads of pgbench, and a process of the server for each client.
    fn most_tasks(&self, _vcpus: u32) -> u64 {
        u64::from(self.clients) + u64::from(self.workers.min(self.clients))
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        let w = Arc::new(self.clone());
        let workers = w.workers.clamp(1, w.clients.max(1));
        (0..workers)
            .map(|i| {
                let w = Arc::clone(&w);
                // Clients i, i + workers, i + 2 x workers, ...
                let clients = (w.clients + workers - 1 - i) / workers;
                let program: Program = Box::new(move |env| work(env, &w, i, clients));
                Start { name: format!("pgbench-{i}"), vcpu: Some(i % vcpus), program }
            })
            .collect()
    }
}

/// Thread `index` of pgbench: connects `clients` clients, then serves them until each has had its
/// transactions.
fn work(env: &dyn Env, w: &Arc<Pgbench>, index: u32, clients: u32) {
    let worker = Arc::new(Worker {
        answers: env.semaphore(clients),
        answered: Queue::new(clients as usize),
    });
    for client in 0..clients {
        let questions = env.semaphore(0);
        worker.answered.push(questions.0);
        let (w, worker) = (Arc::clone(w), Arc::clone(&worker));
        let process: Program = Box::new(move |env| serve(env, &w, &worker, questions));
        // Every new process goes to the idlest vCPU.
        env.spawn(format!("postgres-{index}-{client}"), None, process);
    }
    let mut side = Side::new(env, w, w.client);
    let mut left = w.transactions.saturating_mul(u64::from(clients));
    while w.transactions == 0 || left > 0 {
        env.down(worker.answers);
        let Some(client) = worker.answered.pop() else {
            unreachable!("a unit for each client in the queue");
        };
        side.turn();
        env.up(Semaphore(client));
        left = left.saturating_sub(1);
    }
}

/// A process of the server.
fn serve(env: &dyn Env, w: &Pgbench, worker: &Worker, questions: Semaphore) {
    let mut side = Side::new(env, w, w.server);
    let mut done = 0;
    loop {
        env.down(questions);
        side.turn();
        env.item_done();
        done += 1;
        if done == w.transactions {
            // This client has no more questions; the others may have some.
            break;
        }
        worker.answered.push(questions.0);
        env.up(worker.answers);
    }
}

/// One side of the connections.
struct Side<'a> {
    env: &'a dyn Env,
    kernel: Work<'a>,
    random: Random,
    user: Picos,
    /// Kernel time to receive a message, and to send one.
    message: Picos,
}

impl<'a> Side<'a> {
    fn new(env: &'a dyn Env, w: &'a Pgbench, user: Picos) -> Self {
        let kernel = Work::new(env, &w.locks);
        Self { env, kernel, random: env.random(0), user, message: w.system / 4 }
    }

    /// Receives a message, works, and is about to send one.
    fn turn(&mut self) {
        let mut around = |mean: Picos| Picos(self.random.around(mean.0, SPREAD_PERMILLE));
        let (user, message) = (around(self.user), around(self.message));
        self.kernel.kernel(message);
        self.env.compute(user, Mode::User);
        self.kernel.kernel(message);
    }
}
