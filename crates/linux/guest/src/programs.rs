//! Work of a scenario in user mode: its tasks are threads of this process, in the world `threads`.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use overspin_native::world::ThreadsWorld;
use overspin_scenario::{Scenario, Stopped};

use crate::Host;
use crate::talk::Say;

/// Threads that wait for their begin.
pub(crate) struct Programs {
    begin: Sender<()>,
    stop: Arc<AtomicBool>,
}

impl Programs {
    /// Gets the work of this scenario ready. What it did is said when all threads have ended.
    pub(crate) fn ready(scenario: &str, seed: u64, host: &Host) -> Result<Self, String> {
        let scenario: Scenario = serde_json::from_str(scenario).map_err(|e| e.to_string())?;
        let mut host = host.clone()?;
        let (begin, may_begin) = channel();
        let (say_ready, ready) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        thread::spawn(move || {
            let begun = Cell::new(false);
            let wait = || {
                begun.set(true);
                // Whoever asked waits for the answer, and keeps the other end until it says when to begin.
                let _ = say_ready.send(Ok(()));
                let _ = may_begin.recv();
            };
            let cancel = |_| stops.load(Ordering::Relaxed).then_some(Stopped::Interrupted);
            let made = ThreadsWorld::default().run_as_guest(&scenario, seed, &wait, &cancel);
            let said = match made {
                Err(refused) if !begun.get() => {
                    let _ = say_ready.send(Err(refused.to_string()));
                    return;
                }
                Err(refused) => Say::Failed(refused.to_string()),
                Ok(outcome) => Say::Worked(outcome.to_json()),
            };
            // A host that does not listen has ended the machine.
            let _ = host.say(&said);
        });
        ready.recv().map_err(|e| e.to_string())??;
        Ok(Self { begin, stop })
    }

    /// The threads begin.
    pub(crate) fn go(&self) {
        let _ = self.begin.send(());
    }

    /// They end soon.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
