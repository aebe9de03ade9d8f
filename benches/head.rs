//! Reading a request head: a short CONNECT, one as curl sends it, and a browser's.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use exeat_proxy::handshake::http;

const SHORT: &str = "CONNECT www.example.com:443 HTTP/1.0\r\n\r\n";

const CURL: &str = "CONNECT www.example.com:443 HTTP/1.1\r\nHost: www.example.com:443\r\n\
    Proxy-Authorization: Basic c2Vzczpaemdkam9pZXdqZm9pZXdqZm9pZXdqZm9pd2VqZm9pZXdq\r\nUser-Agent: curl/7.88.1\r\n\
    Proxy-Connection: Keep-Alive\r\n\r\n";

const BROWSER: &str = "GET http://www.example.com/a/long/path?with=a&query=in&it HTTP/1.1\r\n\
    Host: www.example.com\r\nProxy-Connection: keep-alive\r\nCache-Control: max-age=0\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
    Accept-Encoding: gzip, deflate\r\nAccept-Language: en-US,en;q=0.9\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; consent=yes\r\n\r\n";

fn head(c: &mut Criterion) {
    let mut group = c.benchmark_group("head");
    for (name, head) in [("short", SHORT), ("curl", CURL), ("browser", BROWSER)] {
        group.throughput(Throughput::Bytes(head.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| match http::parse(black_box(head.as_bytes())) {
                Ok(http::Parsed::Complete(request, consumed)) => (request, consumed),
                other => panic!("{other:?}"),
            });
        });
    }
    group.finish();
}

criterion_group!(benches, head);
criterion_main!(benches);
