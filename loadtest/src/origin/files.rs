//! A file server, enough for real clients: a package index, a git repository over plain HTTP.

use super::request::Request;
use super::script::{Script, Step, http_answer};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

/// Serves the files below `root` by `GET` and `HEAD`; a directory answers with its `index.html`,
/// or with links to its entries. Percent-encoding is decoded, the query is ignored.
pub fn files(root: impl Into<PathBuf>) -> Script {
    let root = root.into();
    Script::requests(move |request| vec![Step::Send(answer(&root, request))])
}

fn answer(root: &Path, request: &Request) -> Vec<u8> {
    let is_head = request.method == "HEAD";
    if !is_head && request.method != "GET" {
        return http_answer("405 Method Not Allowed", &[("Allow", "GET, HEAD")], "");
    }
    let mut answer = match find(root, &request.target) {
        Some((kind, body)) => http_answer("200 OK", &[("Content-Type", kind)], body),
        None => http_answer("404 Not Found", &[("Content-Type", "text/plain")], "not found\n"),
    };
    if is_head && let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
        answer.truncate(end + 4);
    }
    answer
}

fn find(root: &Path, target: &str) -> Option<(&'static str, Vec<u8>)> {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let path = percent_decoded(path);
    let relative = Path::new(path.trim_start_matches('/'));
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let file = root.join(relative);
    if file.is_dir() {
        let index = file.join("index.html");
        let body = std::fs::read(index).ok().or_else(|| listing(&file))?;
        return Some(("text/html", body));
    }
    Some((kind(&file), std::fs::read(&file).ok()?))
}

fn listing(directory: &Path) -> Option<Vec<u8>> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let slash = if entry.path().is_dir() { "/" } else { "" };
            Some(format!("{}{slash}", entry.file_name().to_str()?))
        })
        .collect();
    names.sort();
    let mut page = String::from("<!DOCTYPE html><html><body>\n");
    for name in names {
        let _ = writeln!(page, "<a href=\"{name}\">{name}</a><br>");
    }
    page.push_str("</body></html>\n");
    Some(page.into_bytes())
}

fn kind(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("json") => "application/json",
        Some("txt") => "text/plain",
        _ => "application/octet-stream",
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).filter(|_| first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
