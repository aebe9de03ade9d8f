//! The fuzz corpus of request heads, replayed: every file ends in a verdict, the same for every prefix that has one,
//! and those whose name promises a verdict (`pass-…`, `refuse-400-…`, `incomplete-…`) end in that one.

use std::{fs, path::Path};

use exeat_proxy::handshake::http::{
    HeadReader, Parsed, parse,
    rewrite::{self, Persistence, Via},
};

fn verdict(head: &[u8]) -> String {
    match parse(head) {
        Ok(Parsed::Complete(request, _)) => {
            if let Some(plain) = request.as_plain() {
                rewrite::request(plain, Persistence::Keep, Via::Add, &mut Vec::new());
            }
            "pass".to_owned()
        }
        Ok(Parsed::Incomplete) => "incomplete".to_owned(),
        Err(fault) => format!("refuse-{}", fault.status()),
    }
}

#[test]
fn every_head_ends_in_its_verdict() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/head");
    let mut seen = 0;
    for entry in fs::read_dir(&corpus).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let head = fs::read(&path).unwrap();
        let whole = verdict(&head);
        if ["pass-", "refuse-", "incomplete-"].iter().any(|promise| name.starts_with(promise)) {
            assert!(name.starts_with(&whole), "{name}: {whole}");
        }
        // Dripped in, it must come to the same.
        let mut reader = HeadReader::new();
        let dripped = (0..=head.len())
            .find_map(|end| match reader.advance(&head[..end]) {
                Ok(Parsed::Incomplete) => None,
                Ok(Parsed::Complete(..)) => Some("pass".to_owned()),
                Err(fault) => Some(format!("refuse-{}", fault.status())),
            })
            .unwrap_or_else(|| "incomplete".to_owned());
        assert_eq!(dripped, whole, "{name}");
        seen += 1;
    }
    assert!(seen > 40, "the corpus is missing: {seen} files in {}", corpus.display());
}
