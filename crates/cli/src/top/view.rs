//! The view on a terminal: takes frames at the pace that the user chose, and reads keys.

use super::{Run, Shared, fault};
use crate::failure::{Failure, Verdict};
use crate::screen;
use crate::terminal::{Terminal, error, size};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use overspin_report::{Block, Screen, text_on, two_digits};
use overspin_scenario::Picos;
use overspin_watch::top::{Frame, Room, report};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Real time of a frame.
const REFRESH: Duration = Duration::from_millis(200);
/// Real time that a run takes at the first speed, unless the simulator is slower.
const WHOLE: Duration = Duration::from_secs(30);
/// The shortest interval, and the longest as a part of the run.
const LEAST: Picos = Picos::us(1);
const MOST_PART: u64 = 5;

/// What the user has chosen.
struct Pace {
    interval: Picos,
    limit: Picos,
    paused: bool,
}

impl Pace {
    fn new(limit: Picos) -> Self {
        let frames = (WHOLE.as_millis() / REFRESH.as_millis()) as u64;
        Self { interval: (limit / frames).max(LEAST), limit, paused: false }
    }

    fn faster(&mut self) {
        let most = (self.limit / MOST_PART).max(LEAST);
        self.interval = self.interval.saturating_mul(2).min(most);
    }

    fn slower(&mut self) {
        self.interval = (self.interval / 2).max(LEAST);
    }

    fn words(&self, at_end: bool) -> String {
        let speed = self.interval.seconds() / REFRESH.as_secs_f64();
        let state = match (at_end, self.paused) {
            (true, _) => "the run has ended",
            (false, true) => "paused",
            (false, false) => "running",
        };
        let speed = two_digits(speed);
        format!(
            "{state}, at most {speed} simulated s a second.  q quit, space pause, + - or arrows speed"
        )
    }
}

/// What a key means.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Quit,
    Pause,
    Faster,
    Slower,
}

fn wish(key: &KeyEvent) -> Option<Wish> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    // In this mode the terminal sends Ctrl-C as a key.
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if control => Some(Wish::Quit),
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Wish::Quit),
        KeyCode::Char(' ' | 'p') => Some(Wish::Pause),
        KeyCode::Char('+' | '=') | KeyCode::Right => Some(Wish::Faster),
        KeyCode::Char('-') | KeyCode::Left => Some(Wish::Slower),
        _ => None,
    }
}

/// Shows the run until it has ended and the user quits.
pub(super) fn view(run: &Run<'_>) -> Result<Verdict, Failure> {
    let pace = Pace::new(run.scenario.limit);
    let shared = Shared::new(pace.interval);
    let (send, receive) = sync_channel(1);
    let (shown, made) = std::thread::scope(|scope| {
        let for_run = shared.clone();
        let made = scope.spawn(move || run.make(&for_run, &send));
        let shown = show(run, pace, &shared, &receive);
        // The run may wait for somebody to take its next frame.
        shared.over.store(true, Ordering::Relaxed);
        drop(receive);
        (shown, made.join())
    });
    shown?;
    // A run that the user left is as good as one that ended.
    made.map_err(|_| fault())??;
    Ok(Verdict::Fine)
}

fn show(
    run: &Run<'_>,
    mut pace: Pace,
    shared: &Shared,
    frames: &Receiver<Frame>,
) -> Result<(), Failure> {
    let terminal = Terminal::take()?;
    let (mut last, mut at_end, mut due) = (None::<Frame>, false, Instant::now());
    loop {
        if run.runner.until.over().is_some() {
            return Ok(());
        }
        if !pace.paused && !at_end && Instant::now() >= due {
            match frames.try_recv() {
                Ok(frame) => {
                    last = Some(frame);
                    due = Instant::now() + REFRESH;
                }
                Err(TryRecvError::Disconnected) => at_end = true,
                Err(TryRecvError::Empty) => {}
            }
        }
        let size = size()?;
        terminal.show(&text(run, last.as_ref(), &pace.words(at_end), size), size)?;
        let wait = match pace.paused || at_end {
            true => REFRESH,
            false => due.saturating_duration_since(Instant::now()).max(Duration::from_millis(10)),
        };
        if !poll(wait).map_err(|e| error(&e))? {
            continue;
        }
        let Event::Key(key) = read().map_err(|e| error(&e))? else { continue };
        match wish(&key) {
            Some(Wish::Quit) => return Ok(()),
            Some(Wish::Pause) => pace.paused = !pace.paused,
            Some(Wish::Faster) => pace.faster(),
            Some(Wish::Slower) => pace.slower(),
            None => {}
        }
        shared.interval.store(pace.interval.0, Ordering::Relaxed);
    }
}

fn text(run: &Run<'_>, frame: Option<&Frame>, pace: &str, size: (u16, u16)) -> String {
    let screen = Screen { width: Some(size.0.into()), ascii: screen::is_ascii() };
    let Some(frame) = frame else {
        return format!("{}, seed {}\n{pace}\n", run.scenario.name, run.seed);
    };
    let mut blocks = vec![Block::Lines(format!("overspin top  {}\n{pace}", run.title(frame)))];
    blocks.extend(report(frame, Room::of(size.1.into(), frame)));
    text_on(&blocks, &screen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_last_line_says() {
        let of = |code, modifiers| wish(&KeyEvent::new(code, modifiers));
        let none = KeyModifiers::NONE;
        assert_eq!(of(KeyCode::Char('q'), none), Some(Wish::Quit));
        assert_eq!(of(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Wish::Quit));
        assert_eq!(of(KeyCode::Char('c'), none), None);
        assert_eq!(of(KeyCode::Char(' '), none), Some(Wish::Pause));
        assert_eq!(of(KeyCode::Right, none), Some(Wish::Faster));
        assert_eq!(of(KeyCode::Char('-'), none), Some(Wish::Slower));
    }

    #[test]
    fn speed_stays_within_what_can_be_seen() {
        let mut pace = Pace::new(Picos::sec(3));
        assert_eq!(pace.interval, Picos::ms(20), "150 frames of 200 ms");
        for _ in 0..40 {
            pace.faster();
        }
        assert_eq!(pace.interval, Picos::ms(600));
        for _ in 0..80 {
            pace.slower();
        }
        assert_eq!(pace.interval, LEAST);
    }
}
