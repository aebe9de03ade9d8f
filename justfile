# What a change has to pass, fast first. `.ci/run` installs what a fresh machine lacks, then calls `just ci`.

default:
    @just --list

# Everything, in the order in which faults are cheapest to find.
ci: fmt tidy clippy test doc deny machete fuzz-check bench-smoke

# Formatting.
fmt:
    cargo fmt --all --check

# The shape of the tree: rooms, headers, edges, documents in step with code.
tidy:
    cargo test --quiet --test tidy

# Lints, as errors.
clippy:
    cargo clippy --workspace --all-targets --quiet -- -D warnings

# The tests: the README's command.
test:
    cargo test --workspace

# The documentation builds, and every link in it leads somewhere.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --quiet

# Licences, sources, duplicate and banned crates.
deny:
    cargo deny --log-level error check bans licenses sources

# Dependencies that nothing uses.
machete:
    cargo machete

# The fuzz targets still compile. Their corpus runs in `test`.
fuzz-check:
    cargo check --quiet --manifest-path fuzz/Cargo.toml

# The benches still run, once each, unoptimised: no figure is judged here.
bench-smoke:
    cargo test --quiet --benches

# The benches, for people.
bench:
    cargo bench
