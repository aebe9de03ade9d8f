//! The shape of the tree, where a test can read it off: headers, rooms for `unsafe`, crate edges, words that do not
//! belong, and documents that must stay in step with the code.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use exeat_proxy::{decide::Reason, reply};

/// Every Rust file of the workspace, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for room in ["src", "config", "proxy", "loadtest", "tests", "benches", "fuzz"] {
        walk(&root().join(room), &mut files);
    }
    assert!(files.len() > 50, "the tree was not found");
    files
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root()).unwrap().to_owned(), text)
        })
        .collect()
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("corpus") {
                walk(&path, files);
            }
        } else {
            files.push(path);
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn doc(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// The cells of the rows of a Markdown table whose first cell is in backticks, backticks removed.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}

#[test]
fn every_file_says_what_it_owns() {
    for (path, text) in sources() {
        assert!(text.starts_with("//!"), "{} does not open with `//!`", path.display());
    }
}

#[test]
fn unsafe_has_rooms_of_its_own() {
    for (path, text) in sources() {
        let is_room = path.ends_with("sys.rs") || path.ends_with("tidy.rs");
        let uses = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or_default();
            code.contains("unsafe {") || code.contains("unsafe impl") || code.contains("unsafe fn")
        });
        assert!(is_room || !uses, "{} has `unsafe`; only sys.rs files may", path.display());
    }
}

#[test]
fn no_promises_in_the_code() {
    let words = ["TODO", "FIXME", "XXX", "HACK"];
    for (path, text) in sources().into_iter().filter(|(path, _)| !path.ends_with("tidy.rs")) {
        for (number, line) in text.lines().enumerate() {
            let found =
                words.iter().find(|word| line.split(|c: char| !c.is_alphanumeric()).any(|w| w == **word));
            assert!(found.is_none(), "{}:{}: {}", path.display(), number + 1, line.trim());
        }
    }
}

#[test]
fn platform_switches_stay_in_their_rooms() {
    for (path, text) in sources() {
        // Outside of it: file modes and owners, and what the kernel tells of the own process.
        let is_room = path.starts_with("enforcement")
            || path.starts_with("config/src/source")
            || path.ends_with("record/metrics.rs")
            || path.ends_with("tests.rs")
            || path.ends_with("tidy.rs");
        let uses =
            text.contains("cfg(target_os") || text.contains("cfg(windows") || text.contains("cfg(unix");
        assert!(is_room || !uses, "{} depends on the platform", path.display());
    }
}

#[test]
fn crates_know_only_whom_they_may() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut edges = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let to: BTreeSet<String> = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
            .filter(|name| name.starts_with("exeat"))
            .collect();
        edges.insert(package["name"].as_str().unwrap().to_owned(), to);
    }
    let expected = [
        ("exeat", &["exeat-config", "exeat-proxy"][..]),
        ("exeat-config", &[]),
        ("exeat-loadtest", &[]),
        ("exeat-proxy", &["exeat-config"]),
    ];
    let expected: BTreeMap<String, BTreeSet<String>> = expected
        .into_iter()
        .map(|(name, to)| (name.to_owned(), to.iter().map(ToString::to_string).collect()))
        .collect();
    assert_eq!(edges, expected);
}

#[test]
fn the_reasons_are_documented_as_they_are_answered() {
    let documented: Vec<Vec<String>> =
        rows(&doc("reasons.md")).into_iter().map(|cells| cells[..4].to_vec()).collect();
    let answered: Vec<Vec<String>> = Reason::ALL
        .into_iter()
        .map(|reason| {
            vec![
                reason.slug().to_owned(),
                reply::http_status(reason).to_string(),
                format!("{:02x}", reply::socks5_rep(reason).code()),
                reply::proxy_error(reason).unwrap_or("–").to_owned(),
            ]
        })
        .collect();
    assert_eq!(documented, answered);
}

#[test]
fn every_guarantee_has_its_test() {
    let promised: BTreeSet<String> =
        rows(&doc("guarantees.md")).into_iter().map(|cells| cells[0].clone()).collect();
    let mut files = Vec::new();
    walk(&root().join("tests/guarantees"), &mut files);
    let tested: BTreeSet<String> = files
        .iter()
        .filter_map(|path| path.file_stem()?.to_str()?.split('_').next().map(str::to_owned))
        .filter(|stem| stem.starts_with('g') && stem[1..].parse::<u32>().is_ok())
        .collect();
    assert!(!promised.is_empty());
    assert_eq!(promised, tested, "docs/guarantees.md and tests/guarantees/ differ");
}

#[test]
fn exit_statuses_are_documented() {
    let text = fs::read_to_string(root().join("src/exit.rs")).unwrap();
    let coded: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.split_once("=> ")?.1.strip_suffix(','))
        .filter(|number| number.parse::<u8>().is_ok())
        .map(str::to_owned)
        .collect();
    let documented: BTreeSet<String> =
        rows(&doc("exit-codes.md")).into_iter().map(|cells| cells[0].clone()).collect();
    assert_eq!(documented, coded);
}
