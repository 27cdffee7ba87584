//! Answers requests: it first refuses those that do not come from the page itself, and then looks for what they ask.

use crate::compare::compared;
use crate::file;
use crate::http::{Reply, Request, Status};
use crate::page;
use crate::problem::Problem;
use crate::run::{Extent, LIVE_SLICES, Made, run};
use crate::sources::Sources;
use crate::state::{Side, State};
use crate::token::Token;
use crate::work::{Desk, Unwanted};
use overspin_page::MOST_SLICES;

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// As much as a saved page has.
const WHOLE: Extent = Extent::Panels(MOST_SLICES);

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) port: u16,
    pub(crate) token: Token,
    pub(crate) sources: Sources,
    pub(crate) desk: Desk,
}

impl Routes {
    /// The reply to a request. `has_gone` says whether its client still waits.
    pub(crate) fn reply(&self, request: &Request, has_gone: &(dyn Fn() -> bool + Sync)) -> Reply {
        match self.path(request) {
            Ok(path) => self.of_path(path, &request.query, has_gone),
            Err(status) => Reply::bare(status),
        }
    }

    /// What is asked for, by somebody who may.
    fn path<'r>(&self, request: &'r Request) -> Result<&'r str, Status> {
        // Only keeping changes something, and a browser says who asks for that.
        let changes = request.path.ends_with("/keep");
        if request.method != if changes { "POST" } else { "GET" } {
            return Err(Status::Method);
        }
        if !request.is_for(self.port) {
            return Err(Status::Forbidden);
        }
        let of_origin = |origin: &str| {
            origin
                .strip_prefix("http://")
                .is_some_and(|host| crate::http::is_local(host, self.port))
        };
        if !request.origin.as_deref().map_or(!changes, of_origin) {
            return Err(Status::Forbidden);
        }
        let (token, path) = request.path[1..].split_once('/').ok_or(Status::Forbidden)?;
        if self.token.is(token) { Ok(path) } else { Err(Status::Forbidden) }
    }

    fn of_path(&self, path: &str, query: &str, has_gone: &(dyn Fn() -> bool + Sync)) -> Reply {
        match path {
            "" => self.page(query),
            "page.css" => Reply::of("text/css; charset=utf-8", page::style()),
            "page.js" => Reply::of("text/javascript; charset=utf-8", page::script()),
            "progress" => Reply::of(PLAIN, self.desk.progress()),
            "run" => {
                let shown = |state: &State, side, made| {
                    Reply::of(
                        HTML,
                        page::result(
                            state,
                            side,
                            &made,
                            self.desk.max_wall(),
                            self.sources.kept.is_some(),
                        ),
                    )
                };
                self.made(query, Extent::Panels(LIVE_SLICES), has_gone, shown)
            }
            // The answer again, with what takes longer.
            "answer" => {
                let shown = |_: &State, side, made| Reply::of(HTML, page::answer(side, &made));
                self.made(query, Extent::Answer, has_gone, shown)
            }
            "compare" => self.compare(query, has_gone),
            "report.html" => self.made(query, WHOLE, has_gone, |state, _, made| {
                let file = Some(format!("{}.html", file::name(state)));
                Reply { file, ..Reply::of(HTML, overspin_page::page(&[made.entry])) }
            }),
            "scenario.toml" => self.file(query),
            "keep" => {
                self.made(query, Extent::Record, has_gone, |state, _, made| self.keep(state, &made))
            }
            _ => Reply::bare(Status::NotFound),
        }
    }

    fn page(&self, query: &str) -> Reply {
        let page = State::read(query, &self.sources)
            .and_then(|(state, _)| page::page(&state, &self.sources));
        match page {
            Ok(page) => Reply::of(HTML, page),
            Err(problem) => Reply {
                status: Status::Refused,
                ..Reply::of(HTML, page::page_of_problem(&problem))
            },
        }
    }

    /// The reply that `shown` makes of the result of a query.
    fn made(
        &self,
        query: &str,
        extent: Extent,
        has_gone: &(dyn Fn() -> bool + Sync),
        shown: impl FnOnce(&State, Side, Made) -> Reply,
    ) -> Reply {
        let (state, side) = match State::read(query, &self.sources) {
            Ok(read) => read,
            Err(problem) => return refused(&problem),
        };
        let work = |until, progress: &_| run(&state, side, extent, until, progress);
        match self.desk.take(has_gone, work) {
            Ok(Ok(made)) => shown(&state, side, made),
            Ok(Err(problem)) => refused(&problem),
            Err(Unwanted) => Reply::bare(Status::Gone),
        }
    }

    /// What one side does to the other.
    fn compare(&self, query: &str, has_gone: &(dyn Fn() -> bool + Sync)) -> Reply {
        let state = match State::read(query, &self.sources) {
            Ok((state, _)) => state,
            Err(problem) => return refused(&problem),
        };
        let sides = [Side::First, Side::Other];
        let work = |until, progress: &_| -> Result<_, Problem> {
            let made = sides.map(|side| run(&state, side, Extent::Record, until, progress));
            let [first, other] = made;
            compared(&first?.entry.record, &other?.entry.record)
        };
        match self.desk.take(has_gone, work) {
            Ok(Ok(words)) => Reply::of(HTML, page::compared(&words).0),
            Ok(Err(problem)) => refused(&problem),
            Err(Unwanted) => Reply::bare(Status::Gone),
        }
    }

    /// Writes a result into the directory of results.
    fn keep(&self, state: &State, made: &Made) -> Reply {
        let Some(kept) = &self.sources.kept else { return Reply::bare(Status::NotFound) };
        match kept.keep(&file::name(state), &made.entry.record) {
            Ok(path) => Reply::of(PLAIN, format!("kept as {}", path.display())),
            Err(problem) => refused(&problem),
        }
    }

    fn file(&self, query: &str) -> Reply {
        let text = State::read(query, &self.sources)
            .and_then(|(state, side)| Ok((file::name(&state), file::text(&state, side)?)));
        match text {
            Ok((name, text)) => {
                Reply { file: Some(format!("{name}.toml")), ..Reply::of("application/toml", text) }
            }
            Err(problem) => refused(&problem),
        }
    }
}

fn refused(problem: &Problem) -> Reply {
    Reply { status: Status::Refused, ..Reply::of(HTML, page::problem_shown(problem).0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    static STOP: AtomicBool = AtomicBool::new(false);

    fn routes() -> Routes {
        Routes {
            port: 8080,
            token: Token::new().unwrap(),
            sources: Sources::new(&[], None).unwrap(),
            desk: Desk::new(Duration::from_secs(10), &STOP),
        }
    }

    /// A request of the page itself, for a path below the token.
    fn asks(routes: &Routes, path: &str, query: &str) -> Request {
        Request {
            method: "GET".into(),
            path: format!("/{}/{path}", routes.token.as_str()),
            query: query.into(),
            host: Some("127.0.0.1:8080".into()),
            origin: None,
        }
    }

    #[test]
    fn only_the_page_itself_is_answered() {
        let routes = routes();
        let status = |request: &Request| routes.reply(request, &|| false).status;
        let good = asks(&routes, "progress", "");
        assert_eq!(status(&good), Status::Fine);
        let origin = |text: &str| Request { origin: Some(text.into()), ..good.clone() };
        assert_eq!(status(&origin("http://localhost:8080")), Status::Fine);
        for origin_ in
            ["http://localhost:8081", "https://localhost:8080", "null", "http://evil.example", ""]
        {
            assert_eq!(status(&origin(origin_)), Status::Forbidden, "{origin_}");
        }
        for host in
            [None, Some("evil.example:8080"), Some("127.0.0.1"), Some("127.0.0.1:80"), Some("")]
        {
            let request = Request { host: host.map(str::to_owned), ..good.clone() };
            assert_eq!(status(&request), Status::Forbidden, "{host:?}");
        }
        for path in ["/", "//progress", "/progress", "/0/progress", "*", "http://127.0.0.1:8080/x"]
        {
            let request = Request { path: path.into(), ..good.clone() };
            assert_eq!(status(&request), Status::Forbidden, "{path}");
        }
        for method in ["POST", "HEAD", "DELETE"] {
            let request = Request { method: method.into(), ..good.clone() };
            assert_eq!(status(&request), Status::Method);
        }
        for path in ["../Cargo.toml", "page.css/", "%2e%2e/etc/passwd", "run/x", "etc/passwd"] {
            assert_eq!(status(&asks(&routes, path, "")), Status::NotFound, "{path}");
        }
    }

    #[test]
    fn a_result_has_the_panels_of_the_report_page() {
        let routes = routes();
        let query = "scenario=examples/ticket-overcommit.toml&set=limit=100ms&side=0";
        let reply = routes.reply(&asks(&routes, "run", query), &|| false);
        assert_eq!(reply.status, Status::Fine, "{}", reply.body);
        for part in [
            "id=\"answer-0\"",
            "id=\"timeline-0\"",
            "id=\"waits-0\"",
            "id=\"work-0\"",
            "overspin run examples/",
        ] {
            assert!(reply.body.contains(part), "{part}");
        }
        let answer = reply.body.find("id=\"answer-0\"").unwrap();
        assert!(answer < reply.body.find("class=\"share\"").unwrap());
        assert!(!reply.body.contains("it would be"), "nothing beside it yet");
        let answer = routes.reply(&asks(&routes, "answer", query), &|| false).body;
        assert!(
            answer.contains("With a pCPU for each vCPU") && answer.contains("id=\"answer-0\""),
            "{answer}"
        );
        assert!(!answer.contains("timeline"), "{answer}");
        let saved = routes.reply(&asks(&routes, "report.html", query), &|| false);
        assert_eq!(saved.file.as_deref(), Some("ticket-overcommit.html"));
        assert!(
            saved.body.starts_with("<!DOCTYPE html>") && saved.body.contains("id=\"answer-0\"")
        );
    }

    #[test]
    fn two_settings_are_compared() {
        let routes = routes();
        let of = |rest: &str| {
            let query = format!("scenario=examples/ticket-overcommit.toml{rest}");
            routes.reply(&asks(&routes, "compare", &query), &|| false).body
        };
        let better = of("&other=domain.guest.lock=xen-pv");
        assert!(
            better.contains("<code>right</code>, is better than A") && better.contains("<table"),
            "{better}"
        );
        assert!(!better.contains("--verbose"), "{better}");
        let same = of("&beside=yes");
        assert!(!same.contains("is better"), "{same}");
        // What is cut has no figures.
        let cut = Routes { desk: Desk::new(Duration::ZERO, &STOP), ..super::tests::routes() };
        let query = "scenario=examples/ticket-overcommit.toml&beside=yes";
        assert_eq!(cut.reply(&asks(&cut, "compare", query), &|| false).body, "");
    }

    #[test]
    fn a_result_is_kept_where_the_server_was_told_to() {
        let dir = tempfile::tempdir().unwrap();
        let kept = crate::kept::Kept::new(dir.path()).unwrap();
        let routes = Routes { sources: Sources::new(&[], Some(kept)).unwrap(), ..routes() };
        let query = "scenario=examples/ticket-overcommit.toml&set=limit=50ms";
        let keep = asks(&routes, "keep", query);
        let status = |request: &Request| routes.reply(request, &|| false).status;
        assert_eq!(status(&keep), Status::Method);
        let keep = Request { method: "POST".into(), ..keep };
        assert_eq!(status(&keep), Status::Forbidden, "a browser would name the page");
        let keep = Request { origin: Some("http://127.0.0.1:8080".into()), ..keep };
        let reply = routes.reply(&keep, &|| false);
        let file = dir.path().join("ticket-overcommit-1.json");
        assert_eq!(reply.body, format!("kept as {}", file.display()));
        // It is offered, and shows what the run showed.
        let name = file.display().to_string();
        assert!(routes.reply(&asks(&routes, "", ""), &|| false).body.contains(&name));
        let shown = routes.reply(&asks(&routes, "run", &format!("scenario={name}")), &|| false);
        assert_eq!(shown.status, Status::Fine, "{}", shown.body);
        assert!(
            shown.body.contains("id=\"timeline-0\"") && shown.body.contains("overspin report ")
        );
        // Without a directory nothing can be kept.
        let other = super::tests::routes();
        let keep = Request { path: format!("/{}/keep", other.token.as_str()), ..keep };
        assert_eq!(other.reply(&keep, &|| false).status, Status::NotFound);
    }

    #[test]
    fn what_is_refused_says_why_and_what_helps() {
        let routes = routes();
        for (path, query) in [
            ("run", "scenario=/etc/passwd"),
            ("", "set=host.machine=/etc/passwd"),
            ("scenario.toml", "x=<b>"),
        ] {
            let reply = routes.reply(&asks(&routes, path, query), &|| false);
            assert_eq!(reply.status, Status::Refused, "{query}");
            assert!(
                reply.body.contains("Remedy: ") && !reply.body.contains("<b>"),
                "{}",
                reply.body
            );
        }
        let gone = routes.reply(&asks(&routes, "run", ""), &|| true);
        assert_eq!(gone.status, Status::Gone);
    }
}
