//! Many runs on all cores. The results are in the order of the jobs, whatever the threads do.

use overspin_host::Refused;
use overspin_record::results::ResultsError;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why a run could not be made or kept.
#[derive(Debug, thiserror::Error)]
pub enum ParallelError {
    /// The world refused a scenario.
    #[error("with {}: {cause}", .set.join(" "))]
    Sim {
        /// The settings of the refused run.
        set: Vec<String>,
        /// The reason.
        #[source]
        cause: Refused,
    },
    /// No worker threads.
    #[error("cannot start {threads} threads: {cause}")]
    Threads {
        /// How many.
        threads: usize,
        /// The reason.
        #[source]
        cause: rayon::ThreadPoolBuildError,
    },
    /// A finished run could not be kept.
    #[error(transparent)]
    Keep(#[from] ResultsError),
}

/// Does `job` for each of `jobs` on threads (0: one for each CPU); calls `progress` with the jobs done and the
/// jobs in all. The first jobs done are a fair sample of all: neighbours, which take similar time, are spread
/// over the whole of it. So the time that remains can be estimated from the beginning.
pub fn in_parallel<J: Sync, T: Send, E: From<ParallelError> + Send>(
    threads: usize,
    jobs: &[J],
    progress: &(dyn Fn(usize, usize) + Sync),
    job: impl Fn(&J) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let done = AtomicUsize::new(0);
    let one = |i: usize| {
        let result = job(&jobs[i])?;
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        Ok::<_, E>((i, result))
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|cause| ParallelError::Threads { threads, cause })?;
    // One at a time in this order: rayon would otherwise give each thread a half of its own.
    let order = spread_out(jobs.len());
    let next = AtomicUsize::new(0);
    let take = |_| order.get(next.fetch_add(1, Ordering::Relaxed)).map(|i| one(*i));
    let mut results: Vec<(usize, T)> = pool.install(|| {
        (0..jobs.len()).into_par_iter().with_max_len(1).filter_map(take).collect::<Result<_, _>>()
    })?;
    results.sort_by_key(|(i, _)| *i);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// The numbers below `n`, each once, in an order that covers the range evenly from the beginning: steps of the
/// golden section, made prime to `n`.
fn spread_out(n: usize) -> Vec<usize> {
    let mut step = (n as f64 * 0.618_034).round() as usize;
    while step > 0 && gcd(step, n) != 1 {
        step += 1;
    }
    (0..n).scan(0, |at, _| Some(std::mem::replace(at, (*at + step) % n))).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_and_results_are_in_their_order() {
        for n in [0, 1, 2, 3, 7, 100, 558] {
            let jobs: Vec<usize> = (0..n).collect();
            let most = AtomicUsize::new(0);
            let tell = |done: usize, total: usize| {
                assert!(done <= total && total == n);
                most.fetch_max(done, Ordering::Relaxed);
            };
            let square = |j: &usize| Ok::<_, ParallelError>(j * j);
            let squares = in_parallel(3, &jobs, &tell, square).unwrap();
            assert_eq!(squares, jobs.iter().map(|j| j * j).collect::<Vec<_>>());
            assert_eq!(most.into_inner(), n);
        }
    }

    #[test]
    fn the_first_jobs_are_from_everywhere() {
        let mut first: Vec<usize> = spread_out(1000).into_iter().take(20).collect();
        first.sort_unstable();
        let gaps = first.windows(2).map(|w| w[1] - w[0]);
        assert!(gaps.clone().max() <= Some(100) && gaps.min() >= Some(20), "{first:?}");
    }
}
