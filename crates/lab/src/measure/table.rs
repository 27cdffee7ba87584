//! Measured noise as `[host.noise]` of a scenario: each CPU has its own.

use crate::calibrate::{FEWEST, MANY, rounded, text};
use overspin_native::measure::{Histogram, Noise};
use overspin_report::short;
use overspin_scenario::{Picos, Quantiles, Varying};
use std::fmt::Write as _;

/// The thread of `host.noise` that makes the gaps of some CPUs.
struct Thread {
    /// Mean time asleep.
    every: Picos,
    /// CPU time.
    length: Varying,
}

impl Thread {
    /// `None` if there was no gap.
    fn making(gaps: &Histogram, watched_ns: u64) -> Option<Self> {
        let asleep = watched_ns.saturating_sub(gaps.time_ns);
        let mean = rounded(gaps.mean_ns()?);
        let length = lengths(gaps).filter(|of| of.p99 > of.p50);
        let every = rounded(asleep as f64 / gaps.count as f64);
        Some(Self { every, length: length.map_or_else(|| mean.into(), Varying::from) })
    }

    fn words(&self) -> [String; 2] {
        [format!("every = \"{}\"", self.every), format!("length = {}", text(self.length))]
    }
}

/// The quantiles of gaps, if there are enough.
fn lengths(gaps: &Histogram) -> Option<Quantiles> {
    let at = |one_in: u64| rounded(gaps.of_all_but(one_in) as f64);
    let if_many = |one_in: u64| (gaps.count >= MANY as u64).then(|| at(one_in));
    let shortest = gaps.bins(8).first().map(|bin| rounded(bin.from_ns as f64));
    (gaps.count >= FEWEST as u64).then(|| Quantiles {
        min: shortest,
        p50: at(2),
        p90: Some(at(10)),
        p95: Some(at(20)),
        p99: at(100),
        p995: if_many(200),
        p999: if_many(1000),
        max: Some(rounded(gaps.max_ns as f64)),
    })
}

/// Settings of `host.noise` that make as many gaps as other threads and the hypervisor below made on the first `pcpus`
/// CPUs, of the same lengths: what a simulated host of this machine loses. Without a gap there is no noise.
#[must_use]
pub fn noise_settings(noise: &Noise, pcpus: u32) -> Vec<String> {
    let all = (0..pcpus).zip(&noise.cpus).filter_map(|(p, cpu)| {
        let mut gaps = cpu.noted.thread.clone();
        gaps.merge(&cpu.noted.taken);
        Some((p, Thread::making(&gaps, cpu.noted.watched_ns)?))
    });
    let (cpus, tables): (Vec<String>, Vec<String>) = all
        .map(|(p, thread)| {
            (p.to_string(), format!("{{ cpus = \"{p}\", {} }}", thread.words().join(", ")))
        })
        .unzip();
    if cpus.is_empty() {
        return vec!["host.noise.placement=none".into()];
    }
    let tables = tables.join(", ");
    vec![format!("host.noise.cpus=\"{}\"", cpus.join(",")), format!("host.noise.cpu=[{tables}]")]
}

/// A `[host.noise]` table that makes as many gaps, of the same lengths, as threads made on each CPU here. Gaps that
/// occupy no thread's place, such as interrupts, do not move a scheduler and are not in it.
#[must_use]
pub fn noise_table(noise: &Noise) -> String {
    let mut out = String::new();
    let gaps = noise.all(|n| &n.thread);
    let variation = |h: &Histogram| h.variation().map_or_else(|| "-".into(), short);
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "# Measured by overspin {}: {}, Linux {}, {} CPUs, {} s each.",
        env!("CARGO_PKG_VERSION"),
        noise.system.cpu_model.as_deref().unwrap_or("unknown CPU"),
        noise.system.kernel.as_deref().unwrap_or("(unknown)"),
        noise.cpus.len(),
        short(noise.duration_ns as f64 / 1e9),
    );
    let _ = writeln!(
        out,
        "# {} gaps of other threads. Coefficient of variation of lengths {}, of intervals {} (in a scenario: 1).",
        gaps.count,
        variation(&gaps),
        variation(&noise.all(|n| &n.intervals)),
    );
    let Some(mean) = Thread::making(&gaps, noise.watched_ns()) else {
        let _ = writeln!(out, "[host.noise]\nplacement = \"none\"");
        return out;
    };
    let each: Vec<(usize, Thread)> = (0..)
        .zip(&noise.cpus)
        .filter_map(|(p, cpu)| Some((p, Thread::making(&cpu.noted.thread, cpu.noted.watched_ns)?)))
        .collect();
    let cpus: Vec<String> = each.iter().map(|(p, _)| p.to_string()).collect();
    let _ = writeln!(
        out,
        "[host.noise]\nplacement = \"per-cpu\"\ncpus = \"{}\"\n# All CPUs together. Leave out `cpus` and the tables below \
         for a host of another size.\n{}",
        cpus.join(","),
        mean.words().join("\n")
    );
    for (p, thread) in each {
        let of = noise.cpus[p].cpu;
        let words = thread.words().join("\n");
        let _ = writeln!(out, "\n# CPU {of}\n[[host.noise.cpu]]\ncpus = \"{p}\"\n{words}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::{histogram, sample};
    use super::*;
    use overspin_scenario::{Host, MS, Noise as Table, SEC, US};

    /// The host of a scenario with this table, or with these settings.
    fn host(table: &str, sets: &[String]) -> Host {
        let rest = "[host]\ncores = 2\n[[domain]]\nvcpus = 1\nlock = \"ticket\"\nworkload = { kind = \"count\" }\n";
        let names = overspin_runs::catalog::names();
        let read = overspin_scenario_file::parse(names, "x", "x", &format!("{rest}{table}"), sets);
        read.unwrap_or_else(|e| panic!("{e}: {table}")).host
    }

    /// The CPUs with their mean sleep and the mean or median of their lengths.
    fn each(noise: &Table) -> Vec<(u32, Picos, Picos)> {
        noise.each.iter().map(|of| (of.cpus[0], of.every, of.length.median())).collect()
    }

    #[test]
    fn the_table_has_the_gaps_of_threads_only() {
        let noise = host(&noise_table(&sample()), &[]).noise.unwrap();
        // Three gaps in 2 s of CPU time: asleep for (2 s - 120 us) / 3, awake for 40 us.
        assert_eq!((noise.every, noise.length), (667 * MS, (40 * US).into()));
        // Two gaps in a second on the first, one on the second.
        assert_eq!(each(&noise), [(0, 500 * MS, 40 * US), (1, SEC, 40 * US)]);
        let mut quiet = sample();
        quiet.cpus.iter_mut().for_each(|c| c.noted.thread = Histogram::default());
        assert_eq!(host(&noise_table(&quiet), &[]).noise, None);
    }

    #[test]
    fn many_gaps_have_quantiles_and_a_quiet_cpu_has_no_noise() {
        let mut one = sample();
        one.cpus[0].noted.thread = Histogram::default();
        let lengths: Vec<u64> =
            (0..1000).map(|i| if i % 50 == 0 { 4 << 20 } else { 32_768 }).collect();
        one.cpus[1].noted.thread = histogram(&lengths);
        let noise = host(&noise_table(&one), &[]).noise.unwrap();
        assert_eq!(noise.cpus, [1]);
        let Varying::Drawn(found) = noise.each[0].length else { panic!("{noise:?}") };
        // 32,768 ns are in a bucket of 256 ns, 4.194304 ms are the longest; three digits stay.
        assert_eq!((found.min, found.p95), (Some(Picos(32_800_000)), Some(33 * US)));
        assert_eq!((found.p99, found.max), (4190 * US, Some(4190 * US)));
        // 80 ms in 20 long ones, 32 ms in the others.
        assert_eq!(noise.each[0].every, Picos(884_000_000));
    }

    #[test]
    fn settings_add_what_the_hypervisor_took_and_end_with_the_pcpus() {
        let noise = host("", &noise_settings(&sample(), 2)).noise.unwrap();
        // 30 us, 50 us and 3 ms; 40 us and 3 ms.
        let [first, second] = [Picos(1_030_000_000), 1520 * US];
        assert_eq!(each(&noise), [(0, 332 * MS, first), (1, Picos(498_000_000_000), second)]);
        let noise = host("", &noise_settings(&sample(), 1)).noise.unwrap();
        assert_eq!((each(&noise).len(), noise.cpus), (1, vec![0]));
        let mut quiet = sample();
        quiet.cpus.clear();
        assert_eq!(noise_settings(&quiet, 2), ["host.noise.placement=none"]);
    }
}
