//! The links of the pages: relative links and anchors lead somewhere, every page is in the book and in the list
//! of pages, and external links have a legal form. Nothing here needs a network.

use overspin_testing::{root, skip};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages outside of docs/ that belong to the book.
const PROJECT: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// A page: where it leads, and its anchors.
#[derive(Debug, Default)]
struct Page {
    /// Targets with their lines, counted from 1.
    links: Vec<(usize, String)>,
    anchors: BTreeSet<String>,
}

/// The anchor of a heading: what repository views and the book make of its text alike.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(kept)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

impl Page {
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        for (event, span) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = text[..span.start].lines().count().max(1);
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(part) | Event::Code(part) => {
                    heading.iter_mut().for_each(|text| text.push_str(&part));
                }
                Event::End(TagEnd::Heading(_)) => page.head(&heading.take().unwrap()),
                _ => {}
            }
        }
        page
    }

    /// Adds the anchor of a heading; later headings of the same text have a number.
    fn head(&mut self, text: &str) {
        let first = anchor(text);
        let numbered = (1..).map(|n| format!("{first}-{n}"));
        let free =
            std::iter::once(first.clone()).chain(numbered).find(|a| !self.anchors.contains(a));
        self.anchors.extend(free);
    }
}

/// All pages by their paths in the repository.
fn pages() -> BTreeMap<String, Page> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|e| e.unwrap().file_name());
    let docs = docs.filter_map(|name| name.into_string().ok()).map(|name| format!("docs/{name}"));
    let read = |name: String| {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        (name, Page::read(&text))
    };
    PROJECT
        .map(str::to_owned)
        .into_iter()
        .chain(docs)
        .filter(|n| n.ends_with(".md"))
        .map(read)
        .collect()
}

/// Where a relative link of a page leads, from the root of the repository. `None` if it leads out of it.
fn target(page: &str, link: &str) -> Option<String> {
    let mut words: Vec<&str> = page.split('/').collect();
    words.pop();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(word) => words.push(word.to_str()?),
            Component::ParentDir => _ = words.pop()?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(words.join("/"))
}

/// What is wrong with a link of a page.
fn fault(pages: &BTreeMap<String, Page>, page: &str, link: &str) -> Option<String> {
    if link.contains("://") {
        let rest = link.strip_prefix("https://").or_else(|| link.strip_prefix("http://"));
        let host = rest.unwrap_or_default().split('/').next().unwrap_or_default();
        let legal = host.contains('.') && !link.contains(char::is_whitespace);
        return (!legal).then(|| "is not the address of a page".into());
    }
    let (path, place) =
        link.split_once('#').map_or((link, None), |(path, place)| (path, Some(place)));
    let path = if path.is_empty() { Some(page.to_owned()) } else { target(page, path) };
    let Some(path) = path else { return Some("leads out of the repository".into()) };
    // A folder is a page in a repository view only.
    if !root().join(&path).is_file() {
        return Some(format!("leads to `{path}`, which is not a file"));
    }
    match (pages.get(&path), place) {
        (None, _) if path.ends_with(".md") => {
            Some(format!("leads to `{path}`, which is not a page of the book"))
        }
        (Some(to), Some(place)) if !to.anchors.contains(place) => {
            let known: Vec<&str> = to.anchors.iter().map(String::as_str).collect();
            Some(format!("`{path}` has no heading `{place}`; it has {}", known.join(", ")))
        }
        (None, Some(_)) => Some(format!("`{path}` has no headings")),
        _ => None,
    }
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut faults = Vec::new();
    let mut links = 0;
    for (name, page) in &pages {
        for (line, link) in &page.links {
            links += 1;
            faults.extend(fault(&pages, name, link).map(|f| format!("{name}:{line}: {link} {f}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(links > 200, "{links} links in {} pages", pages.len());
}

#[test]
fn every_page_is_in_the_book_once() {
    let pages = pages();
    let mut listed: Vec<String> = Vec::new();
    for (line, link) in &pages["docs/SUMMARY.md"].links {
        let to = target("docs/SUMMARY.md", link).unwrap();
        assert!(!listed.contains(&to), "docs/SUMMARY.md:{line}: {to} is listed twice");
        listed.push(to);
    }
    for name in pages.keys().filter(|name| *name != "docs/SUMMARY.md") {
        assert!(listed.contains(name), "docs/SUMMARY.md lacks {name}");
    }
}

/// The list of pages for readers of the repository follows from the order of the book, whose links have a title that says
/// what a page is for: the book does not show it, so the list does.
#[test]
fn the_list_of_pages_is_current() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut list = String::from(
        "<!-- Made from SUMMARY.md by UPDATE_EXPECT=1 cargo test -p overspin --test main list_of_pages -->\n\
         # Documentation\n\n\
         All pages, by what you want to do. The same pages, with a search, are a book: `.ci/book` builds it into\n\
         `target/book/index.html`.\n",
    );
    // The first two links are the front page and this list.
    for line in summary.lines().skip(4) {
        if let Some(heading) = line.strip_prefix("# ") {
            list += &format!("\n**{heading}**\n");
        } else if let Some((link, title)) = line.trim_end_matches(')').split_once(" \"") {
            list += &format!("{link}): {}\n", title.trim_end_matches('"'));
        } else if !line.is_empty() {
            list += &format!("{line}\n");
        }
    }
    overspin_testing::expect_file("docs/README.md", &list);
}

#[test]
fn the_glossary_is_in_alphabetical_order() {
    let glossary = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let terms: Vec<String> =
        glossary.lines().filter_map(|l| l.strip_prefix("## ")).map(str::to_lowercase).collect();
    assert!(!terms.is_empty() && terms.is_sorted(), "{terms:?}");
}

#[test]
fn every_picture_is_shown() {
    let pages = pages();
    let shown: BTreeSet<String> = pages
        .iter()
        .flat_map(|(name, page)| page.links.iter().filter_map(move |(_, link)| target(name, link)))
        .collect();
    for picture in fs::read_dir(root().join("docs/pictures")).unwrap() {
        let name = format!("docs/pictures/{}", picture.unwrap().file_name().to_str().unwrap());
        assert!(!name.ends_with(".svg") || shown.contains(&name), "no page shows {name}");
    }
}

#[test]
fn faults_are_found() {
    let mut pages = BTreeMap::new();
    pages.insert("README.md".to_owned(), Page::read("# A `b` & C\n\n## Two\n\n## Two\n"));
    assert_eq!(pages["README.md"].anchors.iter().collect::<Vec<_>>(), ["a-b--c", "two", "two-1"]);
    let fault = |link| fault(&pages, "README.md", link);
    for (link, message) in [
        ("docs/nothing.md", "is not a file"),
        ("examples", "is not a file"),
        ("../elsewhere.md", "out of the repository"),
        ("/etc/passwd", "out of the repository"),
        ("#three", "no heading `three`"),
        ("LICENSE-MIT#x", "has no headings"),
        ("CONTRIBUTING.md", "not a page of the book"),
        ("https://nothing", "not the address"),
        ("htps://example.org", "not the address"),
    ] {
        let found = fault(link).unwrap_or_default();
        assert!(found.contains(message), "{link}: {found}");
    }
    for link in ["#two-1", "README.md#a-b--c", "LICENSE-MIT", "https://example.org/x#y"] {
        assert_eq!(fault(link), None, "{link}");
    }
}

/// The values of an attribute in a page of the book.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let before = format!(" {attribute}=\"");
    html.split(&before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// `.ci/run` builds the book and names it in `OVERSPIN_BOOK`.
#[test]
fn the_built_book_has_no_dead_link_and_needs_no_network() {
    let Some(book) = std::env::var_os("OVERSPIN_BOOK").map(PathBuf::from) else {
        skip("the book is not built; .ci/book builds it, OVERSPIN_BOOK names it");
        return;
    };
    let (mut folders, mut html) = (vec![book.clone()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            match path.extension().and_then(|e| e.to_str()) {
                None if path.is_dir() => folders.push(path),
                Some("html") => {
                    let text = fs::read_to_string(&path).unwrap();
                    html.insert(
                        path.strip_prefix(&book).unwrap().to_str().unwrap().to_owned(),
                        text,
                    );
                }
                _ => {}
            }
        }
    }
    let mut links = 0;
    // 404.html takes its paths from the place where the book is served, and print.html repeats all pages.
    for (name, text) in
        html.iter().filter(|(n, _)| !["404.html", "print.html", "toc.html"].contains(&n.as_str()))
    {
        let outside = values(text, "src").into_iter().find(|link| link.contains("://"));
        assert_eq!(outside, None, "{name} loads it");
        let all = [values(text, "href"), values(text, "src")].concat();
        for link in all.into_iter().filter(|link| !link.contains(':')) {
            links += 1;
            let (path, place) = link.split_once('#').unwrap_or((link, ""));
            let to =
                if path.is_empty() { name.clone() } else { target(name, path).unwrap_or_default() };
            assert!(book.join(&to).is_file(), "{name}: {link} leads to `{to}`, which is not there");
            let found = place.is_empty() || values(&html[&to], "id").contains(&place);
            assert!(found, "{name}: {link}: `{to}` has no such place");
        }
    }
    assert!(html.len() > 40 && links > 1000, "{} pages, {links} links", html.len());
}

/// The page that sums up how far the published figures come out adds up what the pages of the experiments print.
#[test]
fn sums_over_the_experiments_are_right() {
    let page = |name: &str| fs::read_to_string(root().join("docs").join(name)).unwrap();
    let trust = page("trust.md");
    let mut sums = [0; 4];
    for name in overspin_experiment::names() {
        let text = page(&format!("{name}.md"));
        let Some(line) = text.lines().find(|line| line.starts_with("Predicted: ")) else {
            continue;
        };
        let numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
        let counts: Vec<u32> = numbers.take(4).collect();
        let [good, fair, missed, all] = counts[..] else { panic!("{line}") };
        sums.iter_mut().zip([all, good, fair, missed]).for_each(|(sum, n)| *sum += n);
        if all > 0 {
            let cell = format!("| {good}, {fair}, {missed} |");
            let row = trust.lines().find(|row| row.starts_with(&format!("| [{name}]"))).unwrap();
            assert!(row.contains(&cell), "{cell}: {row}");
        }
    }
    let [all, good, fair, missed] = sums;
    let words = format!(
        "{all} figures that had to come out by themselves: {good} are within 10 %, {fair} within 25 %, and {missed} are missed."
    );
    let trust: Vec<&str> = trust.split_whitespace().collect();
    assert!(trust.join(" ").contains(&words), "{words}");
}
