//! The picture: work and waits against the overcommit ratio, a bar for each scheduler.

use super::measure::{Advice, AdvisedPoint};
use super::plan::Group;
use super::verdict::ends;
use overspin_report::{Bar, Markup, Panel, Row};

/// An SVG file with two panels.
#[must_use]
pub fn picture(advice: &Advice) -> Markup {
    let question = &advice.question;
    let title = format!(
        "{} that run {}, with {} on {}",
        question.guests_in_words(),
        question.work.name(),
        question.lock,
        question.machine
    );
    let work = panel(advice, &format!("Work of {}, % of 1:1", question.whose_work()), |m| {
        let [low, mean, high] = advice.percent(m)?;
        Some(Bar::Value(mean, Some([low, high])))
    });
    let wait = panel(advice, "p99 wait, us", |m| {
        let spread = m.wait_p99_us.as_ref()?;
        let [low, high] = ends(spread);
        Some(Bar::Value(spread.summary.mean, Some([low.max(0.0), high])))
    });
    overspin_report::picture(&title, &[work, wait])
}

fn panel(advice: &Advice, title: &str, bar: impl Fn(&AdvisedPoint) -> Option<Bar>) -> Panel {
    let schedulers = &advice.question.schedulers;
    let hosts: Vec<u32> = advice
        .of(Group::Curve)
        .filter(|m| Some(&m.point.scheduler) == schedulers.first())
        .map(|m| m.point.pcpus)
        .collect();
    let row = |pcpus: u32| {
        let of = |scheduler: &String| {
            advice.on_curve(scheduler, pcpus).and_then(&bar).unwrap_or(Bar::None)
        };
        let own = if pcpus == advice.question.pcpus { " (yours)" } else { "" };
        Row {
            label: format!("{:.1}:1, {pcpus} pCPUs{own}", advice.question.ratio(pcpus)),
            bars: schedulers.iter().map(of).collect(),
        }
    };
    Panel {
        title: title.into(),
        note: "whiskers: 95 % interval of the mean over seeds".into(),
        series: Panel::series_of(schedulers),
        rows: hosts.into_iter().map(row).collect(),
    }
}
